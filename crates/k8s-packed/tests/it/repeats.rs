//! Strings that stand in one object more than once and in no other.

use k8s_packed::{Encoder, Object};
use proptest::prelude::*;

use crate::doc::{Doc, check_object};

fn encode(doc: &Doc) -> Object {
    Encoder::new().encode(doc.json().as_bytes()).unwrap()
}

fn text(s: &str) -> Doc {
    Doc::Text(s.into())
}

fn map(members: &[(&str, Doc)]) -> Doc {
    Doc::Map(members.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect())
}

#[test]
fn a_string_that_comes_again_takes_three_bytes() {
    let time = "2026-03-01T10:40:26Z";
    let once = encode(&map(&[("list", Doc::List(vec![text(time)]))]));
    let ten_times = map(&[("list", Doc::List(vec![text(time); 10]))]);
    let object = encode(&ten_times);
    check_object(&object, &ten_times);
    // The list's head is wider by a byte, too.
    assert_eq!(object.size(), once.size() + 9 * 3 + 1);
}

#[test]
fn parts_with_equal_bytes_and_other_strings_are_not_equal() {
    let doc =
        |s: &str| map(&[("first", text(s)), ("map", map(&[("again", text(s))])), ("list", Doc::List(vec![text(s)]))]);
    let (a, b) = (doc("a text of one"), doc("a text of two"));
    let mut encoder = Encoder::new();
    let mut objects = vec![];
    for _ in 0..3 {
        objects.push((encoder.encode(a.json().as_bytes()).unwrap(), encoder.encode(b.json().as_bytes()).unwrap()));
    }
    for (a, b) in &objects {
        for key in ["map", "list"] {
            assert_ne!(a.root().get(key), b.root().get(key));
        }
        assert!(a != b && !a.same_content(b));
        assert!(*a == objects[0].0 && *b == objects[0].1);
    }
}

#[test]
fn the_metadata_getters_follow_references() {
    let doc = map(&[
        ("app", text("a-name-of-its-own")),
        ("metadata", map(&[("uid", text("a-name-of-its-own")), ("name", text("a-name-of-its-own"))])),
    ]);
    let object = encode(&doc);
    assert_eq!((object.name(), object.uid()), ("a-name-of-its-own", Some("a-name-of-its-own")));
    assert_eq!(object.decode::<serde_json::Value>().unwrap(), doc.value());
}

#[test]
fn a_shared_part_takes_its_strings_with_it() {
    // The list is known to the table by the end; the same text outside of it then has nothing to refer to.
    let mut encoder = Encoder::new();
    for i in 0..40 {
        let doc = map(&[
            ("metadata", map(&[("name", text(&format!("{i}")))])),
            ("list", Doc::List(vec![text("short1"), text("another text")])),
            ("a", text("short1")),
            ("b", text("short1")),
        ]);
        check_object(&encoder.encode(doc.json().as_bytes()).unwrap(), &doc);
    }
}

#[test]
fn references_reach_as_far_as_they_can() {
    // Containers around it all move the strings when they close, past the last place that may be referred to.
    for before in [0, 60_900, 61_300, 61_400, 61_420, 61_430, 61_440, 61_450, 65_500, 65_600, 200_000] {
        let filler = Doc::List(vec![text(&"x".repeat(before))]);
        let pair = Doc::List(vec![text("an inner text"), text("an outer text"), text("an inner text")]);
        let mut doc =
            map(&[("filler", filler), ("outer", text("an outer text")), ("list", pair.clone()), ("again", pair)]);
        for _ in 0..100 {
            doc = map(&[("deep", doc)]);
        }
        check_object(&encode(&doc), &doc);
    }
}

#[test]
fn more_strings_than_are_remembered_come_back() {
    let items = (0..400).map(|i| text(&format!("text number {}", i % 150))).collect();
    let doc = map(&[("list", Doc::List(items))]);
    check_object(&encode(&doc), &doc);
}

/// Nested lists and maps of few strings, so that most of them come again.
fn repetitive() -> impl Strategy<Value = Doc> {
    let leaf = (0usize..6, 4usize..30).prop_map(|(i, len)| text(&"abcdefghij".repeat(3)[i..i + len.min(24)]));
    let inner = leaf.prop_recursive(6, 120, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..8).prop_map(Doc::List),
            prop::collection::vec(inner, 1..8).prop_map(|values| Doc::Map(
                values.into_iter().enumerate().map(|(i, v)| (format!("k{i}"), v)).collect()
            )),
        ]
    });
    prop::collection::vec(inner, 1..6)
        .prop_map(|values| Doc::Map(values.into_iter().enumerate().map(|(i, v)| (format!("m{i}"), v)).collect()))
}

proptest! {
    #![proptest_config(test_support::cases(128))]

    #[test]
    fn repetitive_objects_keep_their_content(docs in prop::collection::vec(repetitive(), 1..4)) {
        let mut encoder = Encoder::new();
        for round in 0..12 {
            for doc in &docs {
                let mut doc = doc.clone();
                doc.set("metadata", map(&[("name", text(&format!("object number {round}"))), ("uid", text(&round.to_string()))]));
                doc.set("again", text(&format!("object number {round}")));
                let object = encoder.encode(doc.json().as_bytes()).unwrap();
                check_object(&object, &doc);
                prop_assert!(object == doc.object() && doc.object().same_content(&object));
                prop_assert!(encoder.reencode(&object) == object);
                // Duplicates make the encoder write everything twice.
                let twice = format!(r#"{{"m0":1,{}"#, &doc.json()[1..]);
                check_object(&encoder.encode(twice.as_bytes()).unwrap(), &doc);
            }
        }
    }
}
