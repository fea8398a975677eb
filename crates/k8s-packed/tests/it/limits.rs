//! Depth, duplicates, size, and input that is no object at all.

use std::time::Instant;

use k8s_packed::{Encoder, Error, Object, Path};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::doc::{Doc, numbers_are_texts, root, time_of_a_plain_read};

fn both(json: &[u8]) -> Result<Object, Error> {
    let alone = Object::from_slice(json);
    let mut encoder = Encoder::new();
    let shared = encoder.encode(json);
    assert_eq!(alone, shared);
    alone
}

fn nested(levels: usize, list: bool) -> String {
    let inner = levels - 1;
    if list {
        format!(r#"{{"a":{}{}}}"#, "[".repeat(inner), "]".repeat(inner))
    } else {
        format!(r#"{}{{}}{}"#, r#"{"a":"#.repeat(inner), "}".repeat(inner))
    }
}

#[test]
fn values_may_be_nested_as_deep_as_serde_json_reads() {
    for list in [false, true] {
        let json = nested(127, list);
        let value: Value = serde_json::from_str(&json).unwrap();
        let object = both(json.as_bytes()).unwrap();
        assert_eq!(object.to_value(), value);
        assert_eq!(Object::from_value(&value).unwrap(), object);
        assert_eq!(serde_json::to_string(&object).unwrap(), json);
        assert_eq!(object.decode::<Value>().unwrap(), value);
        assert_eq!(Encoder::new().reencode(&object), object);

        let json = nested(128, list);
        serde_json::from_str::<Value>(&json).unwrap_err();
        assert!(both(json.as_bytes()).unwrap_err().is_too_deep());
        // A tree made by hand is held to the same limit.
        let value = json!({"a": value});
        let error = Object::from_value(&value).unwrap_err();
        assert!(error.is_too_deep() && !error.is_decode() && !error.is_truncated());
        assert_eq!(error.to_string(), "nested deeper than 127 levels");
        assert!(Object::from_serialize(&value).unwrap_err().is_too_deep());
    }
    both(&vec![b'['; 1 << 20]).unwrap_err();
}

#[track_caller]
fn check_duplicates(json: &str, expected: &str) {
    let object = both(json.as_bytes()).unwrap();
    assert_eq!(serde_json::to_string(&object).unwrap(), expected);
    // As serde_json resolves them, and with the keys in a table.
    assert_eq!(object.to_value(), serde_json::from_str::<Value>(json).unwrap());
    let mut encoder = Encoder::new();
    for name in ["a", "b", "c", "d"] {
        let named = |text: &str| format!(r#"{{"metadata":{{"name":"{name}"}},{}"#, &text[1..]);
        let object = encoder.encode(named(json).as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&object).unwrap(), named(expected));
    }
}

#[test]
fn the_last_of_duplicate_members_wins_in_the_first_ones_place() {
    check_duplicates(r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#);
    check_duplicates(r#"{"x":{"a":[1],"b":2,"a":[{"c":1,"c":2}]},"a":1}"#, r#"{"x":{"a":[{"c":2}],"b":2},"a":1}"#);
    check_duplicates(r#"{"x":[{"a":1,"\u0061":2}],"y":{"a":1}}"#, r#"{"x":[{"a":2}],"y":{"a":1}}"#);
    // Beyond the number of members that are looked through one by one.
    let many: Vec<String> = (0..60).map(|i| format!(r#""k{i}":{i}"#)).collect();
    let many = many.join(",");
    check_duplicates(
        &format!(r#"{{{many},"k0":"last","k59":"last"}}"#),
        &format!("{{{many}}}").replace(r#""k0":0"#, r#""k0":"last""#).replace(r#""k59":59"#, r#""k59":"last""#),
    );
}

#[test]
fn duplicate_metadata_gives_the_last_ones_name() {
    let object = both(br#"{"metadata":{"name":"a","uid":"1"},"metadata":{"name":"x","name":"b"}}"#).unwrap();
    assert_eq!((object.name(), object.uid()), ("b", None));
    assert_eq!(object.metadata().len(), 1);
}

#[test]
fn duplicates_of_what_is_ignored_are_ignored() {
    let path: Path = "a.b".parse().unwrap();
    let mut encoder = Encoder::new().ignore([&path]);
    let object = encoder.encode(br#"{"a":{"b":1,"c":2,"b":3},"a":{"b":4}}"#).unwrap();
    assert_eq!(object.to_value(), json!({"a": {}}));
}

#[track_caller]
fn check_error(json: &[u8], text: &str) {
    let error = both(json).unwrap_err();
    assert_eq!(error.to_string(), text);
    assert_eq!(error.is_truncated(), text.starts_with("JSON ends"));
}

#[test]
fn what_is_no_object_is_named_and_not_quoted() {
    check_error(b"", "JSON ends in the middle of a value");
    check_error(br#"{"a":"#, "JSON ends in the middle of a value");
    check_error(br#"{"a":"secr"#, "JSON ends in the middle of a value");
    for json in ["null", "true", "7", "-7", "1.5", "1e400", "\"secret\"", "[]", "[{}]", "18446744073709551616"] {
        let error = both(json.as_bytes()).unwrap_err().to_string();
        let expected =
            if json == "1e400" && !numbers_are_texts() { "number out of range" } else { "not a JSON object" };
        assert_eq!(error, expected, "{json}");
    }
    check_error(br#"{"a":1} secret"#, "invalid JSON at line 1 column 9");
    check_error(b"{\"a\":\n secret}", "invalid JSON at line 2 column 2");
    check_error(br#"{secret:1}"#, "invalid JSON at line 1 column 2");
    check_error(br#"{"a":1e400}"#, "number out of range");
    check_error(b"{\"a\":\n\"\xff\"}", "invalid JSON at line 2 column 2");
    check_error(b"{\"a\":\"\xf0\x9f", "JSON ends in the middle of a value");
    check_error(br#"{"a":[1,]}"#, "invalid JSON at line 1 column 9");
    assert_eq!(Object::from_value(&json!([1])).unwrap_err().to_string(), "not a JSON object");
    assert_eq!(Object::from_serialize(&"text").unwrap_err().to_string(), "not a JSON object");
}

#[test]
fn numbers_of_other_formats_are_what_json_makes_of_them() {
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, MapDeserializer};
    fn check<'de, N: IntoDeserializer<'de, Error>>(number: N, expected: Value) {
        let map = MapDeserializer::new([("n", number)].into_iter());
        let object: Object = serde::Deserialize::deserialize(map).unwrap();
        assert_eq!(object.to_value(), json!({"n": expected}));
    }
    check(f64::NAN, Value::Null);
    check(f64::NEG_INFINITY, Value::Null);
    check(0.5f32, json!(0.5));
    check(i128::from(i64::MIN), json!(i64::MIN));
    check(i128::MIN, json!(i128::MIN as f64));
    check(1u128 << 64, json!(18_446_744_073_709_551_616.0));
    check(u128::from(u64::MAX), json!(u64::MAX));
    check('x', json!("x"));
}

#[test]
fn texts_that_are_no_unicode_are_refused() {
    for json in [
        &b"{\"a\":\"\xff\"}"[..],
        b"{\"\xc3\x28\":1}",
        br#"{"a":"\ud800"}"#,
        br#"{"a":"\udc00\ud800"}"#,
        br#"{"a":"\u12"}"#,
        br#"{"a":"\x41"}"#,
        b"{\"a\":\"\n\"}",
        b"\xef\xbb\xbf{}",
    ] {
        let error = both(json).unwrap_err();
        assert!(error.to_string().starts_with("invalid JSON at line "), "{error}");
    }
}

#[test]
fn an_object_that_fails_leaves_the_encoder_as_it_was() {
    let mut encoder = Encoder::new();
    let good = r#"{"metadata":{"name":"good"},"a-common-key":"a common text"}"#;
    let before = encoder.encode(good.as_bytes()).unwrap();
    let memory = encoder.memory();
    for i in 0..100 {
        let bad = format!(r#"{{"metadata":{{"name":"bad-{i}"}},"another-key":"another text","bad":]"#);
        encoder.encode(bad.as_bytes()).unwrap_err();
    }
    assert_eq!(encoder.memory(), memory);
    assert_eq!(encoder.encode(good.as_bytes()).unwrap(), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_beginning_of_a_document_is_one(doc in root(), pretty: bool) {
        let json = if pretty { serde_json::to_string_pretty(&doc.value()).unwrap() } else { doc.json() };
        for end in 0..json.len() {
            prop_assert!(both(&json.as_bytes()[..end]).is_err());
        }
        both(json.as_bytes()).unwrap();
    }
}

#[test]
fn c22_an_object_of_one_and_a_half_megabytes_passes() {
    for text in ["x".repeat(1_400_000), "é🦀".repeat(240_000), "\"\\\n".repeat(470_000)] {
        let doc = Doc::Map(vec![
            ("metadata".into(), Doc::Map(vec![("name".into(), Doc::Text("big".into()))])),
            ("data".into(), Doc::Map(vec![("blob".into(), Doc::Text(text.clone())), ("end".into(), Doc::Int(1))])),
        ]);
        let mut encoder = Encoder::new();
        let before = encoder.memory();
        for _ in 0..3 {
            let object = encoder.encode(doc.json().as_bytes()).unwrap();
            assert_eq!(object.get(&"data.blob".parse().unwrap()).unwrap().as_str(), Some(&*text));
            assert_eq!(object.get(&"data.end".parse().unwrap()).unwrap().as_i64(), Some(1));
            assert!(object.size() < text.len() + 200);
        }
        // Neither the table nor the encoder's buffers keep it.
        assert!(encoder.memory() < before + 64_000, "{}", encoder.memory());
    }
}

#[test]
fn maps_of_a_hundred_thousand_keys_take_linear_time() {
    let members: Vec<String> = (0..100_000).map(|i| format!(r#""key-{i}":"value {i}""#)).collect();
    let json = format!(r#"{{"metadata":{{"name":"big"}},"data":{{{}}}}}"#, members.join(","));
    let (linear, start) = (time_of_a_plain_read(&json), Instant::now());
    let mut encoder = Encoder::new();
    for name in ["a", "b", "c"] {
        let json = json.replacen("big", name, 1);
        let object = encoder.encode(json.as_bytes()).unwrap();
        assert_eq!(object.get(&"data".parse().unwrap()).unwrap().as_map().unwrap().len(), 100_000);
        let last = object.get(&"data.key-99999".parse().unwrap()).unwrap();
        assert_eq!(last.as_str(), Some("value 99999"));
    }
    // One duplicate, and everything is read twice.
    let twice = json.replacen(r#""key-99999""#, r#""key-0""#, 1);
    let object = encoder.encode(twice.as_bytes()).unwrap();
    assert_eq!(object.get(&"data.key-0".parse().unwrap()).unwrap().as_str(), Some("value 99999"));
    // Looking through all members for each of them would take thousands of times as long.
    assert!(start.elapsed() < 100 * linear, "{:?}, a plain read {linear:?}", start.elapsed());
}
