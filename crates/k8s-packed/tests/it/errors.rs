//! Error texts name the place and never repeat a value: objects may be Secrets.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Node, Pod, Secret, Service};
use k8s_packed::{Encoder, Error, Object, Path, object};
use proptest::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::doc::{Doc, choices, path_in, root};

const SECRET_TEXT: &str = "hunter2 sésame";
const SECRET_NUMBER: i64 = 4_815_162_342;

#[track_caller]
fn check(error: &Error) {
    let mut texts = vec![error.to_string(), format!("{error:?}")];
    let mut source = std::error::Error::source(error);
    while let Some(e) = source {
        texts.extend([e.to_string(), format!("{e:?}")]);
        source = e.source();
    }
    for text in texts {
        assert!(!text.contains("hunter") && !text.contains("sésame") && !text.contains("481516"), "{text}");
    }
}

/// A type whose own code quotes what it was given.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Value")]
struct Quoting;

impl TryFrom<Value> for Quoting {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        Err(format!("what is {value}?"))
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Untagged {
    _A(#[allow(dead_code)] IpAddr),
    _B { _a: Box<Untagged> },
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind")]
enum Tagged {
    #[serde(rename = "A")]
    _A(#[allow(dead_code)] HashMap<String, i8>),
}

#[derive(Debug, Deserialize)]
#[serde(field_identifier)]
enum Field {
    #[serde(rename = "a")]
    _A,
}

fn decode<T: DeserializeOwned>(object: &Object) {
    if let Err(error) = object.decode::<T>() {
        check(&error);
    }
    if let Err(error) = object.decode::<HashMap<String, T>>() {
        check(&error);
    }
    if let Err(error) = object.decode::<BTreeMap<String, Vec<T>>>() {
        check(&error);
    }
}

fn decode_all(object: &Object) {
    decode::<u8>(object);
    decode::<i128>(object);
    decode::<bool>(object);
    decode::<char>(object);
    decode::<()>(object);
    decode::<IpAddr>(object);
    decode::<(u8, u8)>(object);
    decode::<Quoting>(object);
    decode::<Untagged>(object);
    decode::<Tagged>(object);
    decode::<Field>(object);
    decode::<std::num::NonZeroI8>(object);
    decode::<std::time::Duration>(object);
    decode::<Pod>(object);
    decode::<Secret>(object);
    decode::<Service>(object);
    decode::<Node>(object);
}

/// The document with a secret at every leaf.
fn marked(doc: &Doc) -> Doc {
    let mut doc = doc.clone();
    for (i, leaf) in doc.leaves().into_iter().enumerate() {
        if !matches!(leaf, Doc::Map(_)) {
            *leaf = match i % 3 {
                0 => Doc::Text(SECRET_TEXT.into()),
                1 => Doc::Int(SECRET_NUMBER),
                _ => Doc::Float(SECRET_NUMBER as f64 + 0.5),
            };
        }
    }
    doc
}

proptest! {
    #![proptest_config(test_support::cases(200))]

    #[test]
    fn no_error_text_repeats_a_value(doc in root(), cut: prop::sample::Index, byte: u8) {
        let doc = marked(&doc);
        decode_all(&doc.object());
        let mut json = doc.json().into_bytes();
        let at = cut.index(json.len());
        if let Err(error) = Object::from_slice(&json[..at]) {
            check(&error);
        }
        json[at] = byte;
        if let Err(error) = Encoder::new().encode(&json) {
            check(&error);
        }
    }

    #[test]
    fn an_error_names_the_path_to_the_field(doc in root(), choices in choices()) {
        // Walks to a random place, through plain steps only, and asks for a type that nothing is.
        let path = path_in(&doc, &choices);
        let steps: Vec<_> = doc.locate(path.steps()).into_iter().next().unwrap_or_default();
        let steps = steps.into_iter().map(|place| match place {
            crate::doc::Place::Member(name) => k8s_packed::Step::Member(name.into()),
            crate::doc::Place::Item(at) => k8s_packed::Step::Index(at as i64),
        });
        let path = Path::from_steps(steps);
        let object = doc.object();
        let error = Wanted::new(path.steps()).decode(&object).unwrap_err();
        let prefix = if path.steps().is_empty() { String::new() } else { format!("{path}: ") };
        prop_assert_eq!(error.to_string(), format!("{prefix}refused"));
    }
}

/// A seed that walks along a path and refuses what it finds at the end.
struct Wanted<'p>(&'p [k8s_packed::Step]);

impl<'p> Wanted<'p> {
    fn new(steps: &'p [k8s_packed::Step]) -> Self {
        Self(steps)
    }

    fn decode(self, object: &Object) -> Result<(), Error> {
        serde::de::DeserializeSeed::deserialize(self, k8s_packed::ValueRef::Map(object.root()))
    }
}

impl<'de> serde::de::DeserializeSeed<'de> for Wanted<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.0.is_empty() {
            return Err(serde::de::Error::custom("refused"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> serde::de::Visitor<'de> for Wanted<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the way to the field")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if self.0[0] == k8s_packed::Step::Member(key.into()) {
                map.next_value_seed(Wanted(&self.0[1..]))?;
            } else {
                map.next_value::<serde::de::IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let k8s_packed::Step::Index(at) = self.0[0] else { return Ok(()) };
        for _ in 0..at {
            seq.next_element::<serde::de::IgnoredAny>()?;
        }
        seq.next_element_seed(Wanted(&self.0[1..])).map(|_| ())
    }
}

#[track_caller]
fn check_text<T: DeserializeOwned>(object: &Object, text: &str) {
    let error = object.decode::<T>().err().expect("it does not fit");
    assert_eq!(error.to_string(), text);
    assert!(error.is_decode() && !error.is_too_deep() && !error.is_truncated());
}

#[test]
fn texts_say_what_was_found_and_what_was_expected() {
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Closed {
        #[serde(rename = "port")]
        _port: u16,
    }
    type Of<T> = HashMap<String, T>;
    check_text::<Of<Closed>>(
        &object!({"a.b/c": {"port": 70_000}}),
        "['a.b/c'].port: invalid value: integer, expected u16",
    );
    check_text::<Of<Closed>>(
        &object!({"a": {"port": 1.5}}),
        "a.port: invalid type: floating point number, expected u16",
    );
    check_text::<Of<Closed>>(&object!({"a": {}}), "a: missing field port");
    check_text::<Of<Closed>>(&object!({"a": {"prot": 1}}), "a.prot: unknown field, expected one of port");
    check_text::<Of<Vec<bool>>>(&object!({"a": [true, null]}), "a[1]: invalid type: null, expected a boolean");
    check_text::<Of<External>>(&object!({"a": "C"}), "a: unknown variant, expected one of A, B");
    check_text::<Of<External>>(&object!({"a": {"B": []}}), "a.B: invalid type: array, expected i8");
    check_text::<Of<External>>(&object!({"a": "B"}), "a: invalid type: unit variant, expected newtype variant");
    check_text::<Of<External>>(&object!({"a": 7}), "a: invalid type: integer, expected a string or a map");
    check_text::<String>(&object!({"a": 7}), "invalid type: map, expected a string");
    check_text::<Of<(u8, u8)>>(&object!({"a": [1]}), "a: invalid length 1, expected a tuple of size 2");
}

#[derive(Debug, Deserialize)]
enum External {
    #[serde(rename = "A")]
    _A,
    #[serde(rename = "B")]
    _B(#[allow(dead_code)] i8),
}

#[test]
fn what_a_type_says_itself_is_passed_on_unless_it_repeats_the_value() {
    type Of<T> = HashMap<String, T>;
    check_text::<Of<IpAddr>>(&object!({"a": "10.0.0"}), "a: invalid IP address syntax");
    check_text::<Of<Untagged>>(&object!({"a": 7}), "a: data did not match any variant of untagged enum Untagged");
    let withheld = "a: refused by its type, for a reason that quotes the value";
    check_text::<Of<Quoting>>(&object!({"a": "text"}), withheld);
    check_text::<Of<Quoting>>(&object!({"a": {"b": [7]}}), withheld);
}
