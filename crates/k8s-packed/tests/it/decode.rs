//! Any type that serde knows decodes as `serde_json` decodes it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::net::IpAddr;

use k8s_packed::{Encoder, Error, Number, Object, ValueRef, object};
use proptest::prelude::*;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::doc::{Doc, doc, numbers_are_texts, plain, root};

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Plain {
    name: String,
    replicas: Option<u32>,
    #[serde(default)]
    paused: bool,
    #[serde(default = "seven")]
    weight: i8,
    ratio: Option<f64>,
    unit: (),
    pair: Option<(String, u16)>,
    letter: Option<char>,
    nested: Option<Box<Plain>>,
    list: Option<Vec<Option<i64>>>,
}

fn seven() -> i8 {
    7
}

#[derive(Debug, PartialEq, Deserialize)]
struct Strict {
    #[serde(flatten)]
    known: Known,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Known {
    a: Option<i32>,
    b: Option<Wrapped>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Closed {
    #[serde(rename = "a")]
    _a: Option<IgnoredByEquality>,
}

#[derive(Debug, Deserialize)]
struct IgnoredByEquality(#[allow(dead_code)] IgnoredAny);

impl PartialEq for IgnoredByEquality {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[derive(Debug, PartialEq, Deserialize)]
struct Wrapped(u8);

#[derive(Debug, PartialEq, Deserialize)]
struct Unit;

#[derive(Debug, PartialEq, Deserialize)]
struct Tuple(i64, String);

#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
enum External {
    Unit,
    New(i64),
    Tuple(i64, String),
    Struct { a: i64, b: Option<String> },
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Internal {
    Unit,
    Struct { a: i64 },
    New(Known),
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    Unit,
    New(f64),
    Tuple(i64, String),
    Struct { a: i64 },
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Bool(bool),
    Small(u8),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Text(String),
    Pair(i64, i64),
    List(Vec<Untagged>),
    Known { a: i64 },
    Map(BTreeMap<String, Untagged>),
    Null,
}

/// Decodes the member `v` of an object, alone and shared.
#[track_caller]
fn check<T: DeserializeOwned + PartialEq + Debug>(value: &Value) {
    #[derive(Deserialize)]
    struct Holder<T> {
        v: T,
    }
    let json = json!({"v": value, "metadata": {"name": "n"}}).to_string();
    let expected = serde_json::from_value::<T>(value.clone());
    let mut encoder = Encoder::new();
    let mut objects: Vec<Object> = (0..2).map(|_| encoder.encode(json.as_bytes()).unwrap()).collect();
    objects.push(Object::from_slice(json.as_bytes()).unwrap());
    for object in objects {
        match (object.decode::<Holder<T>>().map(|h| h.v), &expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, *expected, "{value}"),
            (Err(error), Err(_)) => assert!(error.is_decode()),
            (found, _) => panic!("{value} as {}: {found:?}\n{expected:?}", std::any::type_name::<T>()),
        }
    }
}

#[track_caller]
fn check_all(value: &Value) {
    check::<Plain>(value);
    check::<Option<Plain>>(value);
    check::<Closed>(value);
    check::<Wrapped>(value);
    check::<Unit>(value);
    check::<Tuple>(value);
    check::<(u8, (), Option<bool>)>(value);
    check::<[u8; 2]>(value);
    check::<External>(value);
    check::<HashMap<String, External>>(value);
    check::<HashMap<i8, i64>>(value);
    check::<HashMap<u64, Value>>(value);
    check::<BTreeMap<External, IgnoredByEquality>>(value);
    check::<HashMap<bool, IgnoredByEquality>>(value);
    check::<HashMap<char, IgnoredByEquality>>(value);
    check::<HashMap<Option<String>, IgnoredByEquality>>(value);
    check::<HashMap<i128, IgnoredByEquality>>(value);
    check::<Vec<f32>>(value);
    check::<IpAddr>(value);
    check::<Vec<u8>>(value);
    check::<char>(value);
    check::<String>(value);
    check::<Cow<'static, str>>(value);
    check::<f64>(value);
    check::<u64>(value);
    check::<i64>(value);
    check::<u8>(value);
    check::<i128>(value);
    check::<bool>(value);
    check::<()>(value);
    check::<std::num::NonZeroU16>(value);
    check::<std::time::Duration>(value);
    check::<Value>(&plain(value));
    // With `arbitrary_precision`, serde_json cannot read numbers that serde has buffered; we can.
    if !numbers_are_texts() {
        check::<Strict>(value);
        check::<Internal>(value);
        check::<Adjacent>(value);
        check::<Untagged>(value);
        check::<Vec<Untagged>>(value);
    }
}

#[test]
fn every_shape_decodes_as_serde_json_decodes_it() {
    for value in [
        json!({"name": "a", "unit": null}),
        json!({"name": "a", "unit": null, "replicas": 3, "paused": true, "weight": -1, "ratio": 1, "pair": ["x", 1],
            "letter": "é", "list": [1, null, -2], "nested": {"name": "b", "unit": null, "ratio": 0.5}, "more": {}}),
        json!({"name": null}),
        json!({"name": "a", "unit": null, "pair": ["x"]}),
        json!({"name": "a", "unit": null, "pair": ["x", 1, 2]}),
        json!({"name": "a", "unit": null, "replicas": -1}),
        json!({"name": "a", "unit": null, "weight": 300}),
        json!(["a", 1, true, 3, 1.5, null, null, null, null, null]),
        json!(["a", 1]),
        json!([7, "b"]),
        json!([7, null, true]),
        json!([1, 2]),
        json!([1, 2, 3]),
        json!([]),
        json!({}),
        json!(null),
        json!("Unit"),
        json!("New"),
        json!("Other"),
        json!({"Unit": null}),
        json!({"Unit": 1}),
        json!({"New": 1}),
        json!({"New": "x"}),
        json!({"Tuple": [1, "x"]}),
        json!({"Tuple": []}),
        json!({"Tuple": {"a": 1}}),
        json!({"Struct": {"a": 1, "b": "x"}}),
        json!({"Struct": {"a": 1}}),
        json!({"Struct": [1, "x"]}),
        json!({"New": 1, "Unit": null}),
        json!({"type": "unit"}),
        json!({"type": "unit", "more": [1]}),
        json!({"a": 1, "type": "struct"}),
        json!({"type": "struct"}),
        json!({"type": "new", "a": 1, "b": 2}),
        json!({"type": 1}),
        json!({"t": "Unit"}),
        json!({"c": 1.5, "t": "New"}),
        json!({"t": "Tuple", "c": [1, "x"]}),
        json!({"c": {"a": 1}, "t": "Struct"}),
        json!({"t": "Nothing"}),
        json!({"a": 1, "b": 2, "c": {"d": [1.5]}}),
        json!({"a": "x"}),
        json!({"b": 256}),
        json!({"1": 1, "-7": 2}),
        json!({"01": 1}),
        json!({"+1": 1}),
        json!({" 1": 1}),
        json!({"1 ": 1}),
        json!({"1.5": 1}),
        json!({"1e2": 1}),
        json!({"300": 1}),
        json!({"18446744073709551615": 1}),
        json!({"170141183460469231731687303715884105727": 1}),
        json!({"true": 1, "false": 2}),
        json!({"True": 1}),
        json!({"x": 1}),
        json!({"": 1}),
        json!({"Unit": 1}),
        json!({"New": 1}),
        json!("10.0.0.1"),
        json!("fd00::1"),
        json!("x"),
        json!(""),
        json!(0),
        json!(255),
        json!(256),
        json!(-1),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1.0),
        json!(1.5),
        json!(1e300),
        json!(true),
        json!({"secs": 1, "nanos": 2}),
        json!([[1, 2], [3.5], "x", null, {"a": 1}, {"a": "b", "c": 1}]),
    ] {
        check_all(&value);
    }
}

/// Values that half fit the types above.
fn half_fitting() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "name", "replicas", "paused", "weight", "ratio", "unit", "pair", "letter", "nested", "list", "a", "b", "type",
        "t", "c", "Unit", "New", "Tuple", "Struct", "1", "-1", "x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..300).prop_map(Value::from),
        any::<f32>().prop_filter("JSON has no such number", |f| f.is_finite()).prop_map(|f| json!(f64::from(f))),
        prop::sample::select(vec!["Unit", "New", "Struct", "unit", "new", "struct", "x", "text", "10.0.0.1"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|members| members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn half_fitting_values_decode_or_fail_as_in_serde_json(value in half_fitting()) {
        check_all(&value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_document_decodes_to_a_value(doc in root(), below in doc()) {
        let object = doc.object();
        prop_assert_eq!(object.decode::<Value>().unwrap(), doc.value());
        prop_assert_eq!(object.decode::<HashMap<String, Value>>().unwrap().len(), object.root().len());
        object.decode::<IgnoredAny>().unwrap();
        prop_assert!(object.decode::<Object>().unwrap() == object);
        if !numbers_are_texts() {
            check_all(&below.value());
        }
    }

    #[test]
    fn raw_values_are_the_compact_text(doc in root()) {
        let raw: Box<RawValue> = doc.object().decode().unwrap();
        prop_assert_eq!(raw.get(), doc.json());
        let members: HashMap<String, Box<RawValue>> = doc.object().decode().unwrap();
        if let Doc::Map(expected) = &doc {
            for (key, value) in expected {
                prop_assert_eq!(members[key].get(), value.json());
            }
        }
    }
}

#[test]
fn texts_are_borrowed_from_the_object_or_its_table() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Borrowed<'a> {
        short: &'a str,
        #[serde(borrow)]
        cow: Cow<'a, str>,
        #[serde(borrow)]
        map: HashMap<&'a str, &'a str>,
    }
    let json = r#"{"short":"a","cow":"a text that all of them have","map":{"key\n":"a \u0022text\u0022 that all of them have"}}"#;
    let mut encoder = Encoder::new();
    let mut objects = vec![Object::from_slice(json.as_bytes()).unwrap()];
    for i in 0..200 {
        let named = format!(r#"{{"metadata":{{"name":"{i}"}},{}"#, &json[1..]);
        objects.push(encoder.encode(named.as_bytes()).unwrap());
    }
    // How soon, and a byte or two, depend on the seed of the hashes.
    assert!(objects[200].size() + 50 < objects[1].size(), "texts of the last are in the table");
    for object in &objects {
        let found: Borrowed<'_> = object.decode().unwrap();
        assert!(matches!(found.cow, Cow::Borrowed(_)));
        assert_eq!(found.cow, "a text that all of them have");
        assert_eq!(found.map["key\n"], "a \"text\" that all of them have");
        assert_eq!(found.short, "a");
    }
}

#[test]
fn a_part_of_an_object_decodes_by_itself() {
    let object = object!({"spec": {"ports": [{"port": 80, "name": "http"}]}});
    #[derive(Deserialize)]
    struct Port<'a> {
        port: u16,
        name: &'a str,
    }
    let port = object.get(&"spec.ports[0]".parse().unwrap()).unwrap();
    let port = Port::deserialize(port).unwrap();
    assert_eq!((port.port, port.name), (80, "http"));
}

#[test]
fn numbers_are_offered_as_serde_json_offers_them() {
    struct Offered(&'static str);
    impl<'de> Deserialize<'de> for Offered {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl serde::de::Visitor<'_> for Visitor {
                type Value = Offered;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("a number")
                }
                fn visit_i64<E>(self, _: i64) -> Result<Offered, E> {
                    Ok(Offered("i64"))
                }
                fn visit_u64<E>(self, _: u64) -> Result<Offered, E> {
                    Ok(Offered("u64"))
                }
                fn visit_f64<E>(self, _: f64) -> Result<Offered, E> {
                    Ok(Offered("f64"))
                }
            }
            deserializer.deserialize_u64(Visitor)
        }
    }
    for (number, expected) in [(json!(0), "u64"), (json!(-1), "i64"), (json!(u64::MAX), "u64"), (json!(1.0), "f64")] {
        let object = object!({"n": number});
        let offered: HashMap<String, Offered> = object.decode().unwrap();
        assert_eq!(offered["n"].0, expected);
    }
}

#[test]
fn a_visitor_that_stops_early_is_told() {
    #[derive(Debug)]
    struct First;
    impl<'de> Deserialize<'de> for First {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = First;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("a map or a list")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<First, A::Error> {
                    map.next_entry::<String, IgnoredAny>().map(|_| First)
                }
                fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<First, A::Error> {
                    seq.next_element::<IgnoredAny>().map(|_| First)
                }
            }
            deserializer.deserialize_any(Visitor)
        }
    }
    object!({"a": 1}).decode::<First>().unwrap();
    let error = object!({"a": 1, "b": 2}).decode::<First>().unwrap_err();
    assert_eq!(error.to_string(), "invalid length 2, expected fewer members");
    let object = object!({"a": [1, 2, 3]});
    let error: Error = First::deserialize(object.get(&"a".parse().unwrap()).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "invalid length 3, expected fewer items");
}

#[test]
fn numbers_convert_where_they_fit() {
    let object = object!({"n": [1, -1, u64::MAX, 1.5]});
    let values: Vec<ValueRef<'_>> = object.root().get("n").unwrap().as_array().unwrap().iter().collect();
    assert_eq!(values.iter().map(|v| v.as_i64()).collect::<Vec<_>>(), [Some(1), Some(-1), None, None]);
    assert_eq!(values.iter().map(|v| v.as_u64()).collect::<Vec<_>>(), [Some(1), None, Some(u64::MAX), None]);
    assert_eq!(
        values.iter().map(|v| v.as_f64()).collect::<Vec<_>>(),
        [Some(1.0), Some(-1.0), Some(u64::MAX as f64), Some(1.5)]
    );
    assert_eq!(values[2].as_number(), Some(Number::Uint(u64::MAX)));
    assert_eq!(values[3].as_number().unwrap().to_string(), "1.5");
}
