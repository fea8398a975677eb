//! What goes in comes out: values, text, order of members; alone and through a shared table.

use k8s_packed::{Encoder, Number, Object, ValueRef};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::doc::{Doc, check_object, plain, root, similar};

proptest! {
    #![proptest_config(test_support::cases(256))]

    #[test]
    fn a_single_object_says_what_its_json_says(doc in root()) {
        let json = doc.json();
        check_object(&Object::from_slice(json.as_bytes()).unwrap(), &doc);
        check_object(&serde_json::from_str(&json).unwrap(), &doc);
        // Whatever the members' order is in a Value of this build.
        let value: Value = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(Object::from_value(&value).unwrap().to_value(), plain(&value));
        prop_assert_eq!(Object::from_serialize(&value).unwrap().to_value(), plain(&value));
        let spaced = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(Object::from_slice(spaced.as_bytes()).unwrap().to_value(), plain(&value));
    }

    #[test]
    fn an_object_that_came_first_to_an_encoder_says_it_too(doc in root()) {
        let mut encoder = Encoder::new();
        for _ in 0..3 {
            check_object(&encoder.encode(doc.json().as_bytes()).unwrap(), &doc);
        }
    }
}

proptest! {
    #![proptest_config(test_support::cases(12))]

    #[test]
    fn hundreds_of_similar_objects_share_a_table_and_keep_their_content(docs in similar(200)) {
        let mut encoder = Encoder::new();
        let objects: Vec<Object> = docs.iter().map(|d| encoder.encode(d.json().as_bytes()).unwrap()).collect();
        for (object, doc) in objects.iter().zip(&docs) {
            check_object(object, doc);
        }
        let alone: usize = docs[100..].iter().map(|d| d.object().size()).sum();
        let shared: usize = objects[100..].iter().map(Object::size).sum();
        // At least the keys, a common label and a common text are in the table by then.
        prop_assert!(shared + 100 * 60 < alone, "{} shared, {} alone", shared, alone);
        // Encoded again, into the table that has seen everything, and across objects of three origins.
        for (object, doc) in objects.iter().zip(&docs) {
            let again = encoder.reencode(object);
            check_object(&again, doc);
            let alone = doc.object();
            prop_assert_eq!((again == *object, again == alone, alone == again), (true, true, true));
            prop_assert!(again.same_content(object) && alone.same_content(&again));
        }
    }
}

/// Written and read by hand, since the generated floats come from Rust's own text.
#[track_caller]
fn check_number(text: &str, expected: Number) {
    let json = format!(r#"{{"n":{text},"deep":[{{"n":{text}}}]}}"#);
    for object in [Object::from_slice(json.as_bytes()).unwrap(), Encoder::new().encode(json.as_bytes()).unwrap()] {
        for path in ["n", "deep[0].n"] {
            let found = object.get(&path.parse().unwrap()).unwrap();
            match (found, expected) {
                (ValueRef::Number(Number::Float(found)), Number::Float(expected)) => {
                    assert_eq!(found.to_bits(), expected.to_bits(), "{text}");
                }
                _ => assert_eq!(found.as_number(), Some(expected), "{text}"),
            }
        }
    }
}

#[test]
fn c59_numbers_keep_their_last_digit_and_bit() {
    for (text, expected) in [
        ("0", Number::Int(0)),
        ("8080", Number::Int(8080)),
        ("9007199254740993", Number::Int(9_007_199_254_740_993)),
        ("-9223372036854775808", Number::Int(i64::MIN)),
        ("9223372036854775807", Number::Int(i64::MAX)),
        ("9223372036854775808", Number::Uint(1 << 63)),
        ("18446744073709551615", Number::Uint(u64::MAX)),
        ("18446744073709551616", Number::Float(18_446_744_073_709_551_616.0)),
        ("-9223372036854775809", Number::Float(-9_223_372_036_854_775_809.0)),
        ("8080.0", Number::Float(8080.0)),
        ("1e3", Number::Float(1000.0)),
        ("1E+3", Number::Float(1000.0)),
        ("-0", Number::Float(-0.0)),
        ("-0.0", Number::Float(-0.0)),
        ("5e-324", Number::Float(5e-324)),
        ("2.2250738585072011e-308", Number::Float(2.225_073_858_507_201e-308)),
        ("1e308", Number::Float(1e308)),
        ("1.7976931348623157e308", Number::Float(f64::MAX)),
        ("1e-400", Number::Float(0.0)),
        ("0.1", Number::Float(0.1)),
        ("123456789012345678901234567890", Number::Float(123_456_789_012_345_678_901_234_567_890.0)),
    ] {
        check_number(text, expected);
    }
}

#[test]
fn the_order_of_members_is_the_servers() {
    let json = r#"{"z":1,"a":{"y":[],"b":{}},"metadata":{"uid":"u","name":"n"},"kind":"K"}"#;
    let object = Object::from_slice(json.as_bytes()).unwrap();
    assert_eq!(serde_json::to_string(&object).unwrap(), json);
    let keys: Vec<&str> = object.root().iter().map(|(k, _)| k).collect();
    assert_eq!(keys, ["z", "a", "metadata", "kind"]);
}

#[test]
fn escapes_and_every_plane_of_unicode_come_back() {
    let json = br#"{"\u0000\"\\\/\b":"\ud83e\udd80\u00e9\ud800\udc00\uffff","\u00e9":"e\u0301"}"#;
    let object = Object::from_slice(json).unwrap();
    assert_eq!(object.to_value(), json!({"\0\"\\/\u{8}": "🦀é\u{10000}\u{ffff}", "é": "e\u{301}"}));
}

#[test]
fn a_map_of_many_members_comes_back_in_order() {
    for count in [47, 48, 49, 50, 191, 192, 193, 16_500] {
        let members = (0..count).map(|i| (format!("key-{i}"), Doc::Int(i))).collect();
        let doc = Doc::Map(members);
        check_object(&doc.object(), &doc);
        let mut encoder = Encoder::new();
        for name in ["a", "b", "c"] {
            let mut doc = doc.clone();
            doc.set("metadata", Doc::Map(vec![("name".into(), Doc::Text(name.into()))]));
            check_object(&encoder.encode(doc.json().as_bytes()).unwrap(), &doc);
        }
    }
}

#[test]
fn views_print_json_and_debug_prints_no_content() {
    let object =
        Object::from_slice(br#"{"kind":"Secret","metadata":{"name":"n"},"data":{"password":["hunter2",1.5]}}"#);
    let object = object.unwrap();
    let value = object.get(&"data".parse().unwrap()).unwrap();
    assert_eq!(value.to_string(), r#"{"password":["hunter2",1.5]}"#);
    assert_eq!(object.get(&"data.password[0]".parse().unwrap()).unwrap().to_string(), "hunter2");
    for text in [
        format!("{object:?}"),
        format!("{value:?}"),
        format!("{:?}", object.root()),
        format!("{:?}", object.root().iter()),
        format!("{:?}", object.get(&"data.password".parse().unwrap())),
        format!("{:?}", object.get(&"data.password[0]".parse().unwrap())),
    ] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    assert!(format!("{object:?}").contains("Secret"));
}
