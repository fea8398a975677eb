//! Equality and "nothing but the version changed" against the documents they were made of.

use std::time::Instant;

use k8s_packed::{Encoder, Object, object};
use proptest::prelude::*;
use serde_json::Value;

use crate::doc::{Doc, root, scalar, time_of_a_plain_read};

/// The same document with its members in another order.
fn shuffled(doc: &Doc, seed: u64) -> Doc {
    match doc {
        Doc::List(items) => Doc::List(items.iter().map(|v| shuffled(v, seed)).collect()),
        Doc::Map(members) => {
            let mut members: Vec<_> = members.iter().map(|(k, v)| (k.clone(), shuffled(v, seed))).collect();
            members.sort_by_key(|(k, _)| k.bytes().fold(seed, |h, b| h.wrapping_mul(31) ^ u64::from(b)).reverse_bits());
            Doc::Map(members)
        }
        leaf => leaf.clone(),
    }
}

/// The value without its resource version, for a plain comparison.
fn without_version(doc: &Doc) -> Value {
    let mut value = doc.value();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    value
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn objects_are_equal_when_their_json_is(
        doc in root(), seed: u64, at: prop::sample::Index, leaf in scalar(), versions: (bool, bool),
    ) {
        let mut other = shuffled(&doc, seed);
        if seed % 3 > 0 {
            let mut leaves = other.leaves();
            let at = at.index(leaves.len());
            if !matches!(leaves[at], Doc::Map(_)) {
                *leaves[at] = leaf;
            }
        }
        let mut doc = doc;
        for (doc, version) in [(&mut doc, versions.0), (&mut other, versions.1)] {
            if let Some((_, metadata @ Doc::Map(_))) = doc.members().iter_mut().find(|(k, _)| k == "metadata")
                && version
            {
                metadata.set("resourceVersion", Doc::Text(seed.to_string()));
            }
        }
        let equal = doc.value() == other.value();
        let same = without_version(&doc) == without_version(&other);
        let mut encoder = Encoder::new();
        let mut shared = |doc: &Doc| encoder.encode(doc.json().as_bytes()).unwrap();
        let left = [doc.object(), shared(&doc), shared(&doc), shared(&doc)];
        let right = [other.object(), shared(&other), shared(&other)];
        for a in &left {
            prop_assert!(left.iter().all(|b| a == b && a.same_content(b)));
            for b in &right {
                prop_assert_eq!((a == b, b == a), (equal, equal));
                prop_assert_eq!((a.same_content(b), b.same_content(a)), (same, same));
            }
        }
    }
}

#[test]
fn only_the_version_of_the_object_itself_does_not_count() {
    let old = object!({"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"resourceVersion": "1"}});
    let new = object!({"metadata": {"resourceVersion": "2", "name": "a"}, "spec": {"resourceVersion": "1"}});
    assert!(old.same_content(&new) && old != new);
    let spec = object!({"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"resourceVersion": "2"}});
    assert!(!old.same_content(&spec));
    let nested = object!({"metadata": {"name": "a", "labels": {"resourceVersion": "1"}}});
    let other = object!({"metadata": {"name": "a", "labels": {"resourceVersion": "2"}}});
    assert!(!nested.same_content(&other));
    // Without any version, and with metadata that is missing, empty or no map.
    assert!(old.same_content(&object!({"metadata": {"name": "a"}, "spec": {"resourceVersion": "1"}})));
    let [none, empty, text] = [object!({}), object!({"metadata": {}}), object!({"metadata": "a"})];
    for (a, b) in [(&none, &empty), (&none, &text), (&empty, &text), (&text, &object!({"metadata": "b"}))] {
        assert!(!a.same_content(b) && !b.same_content(a));
    }
    assert!(text.same_content(&text.clone()) && text.same_content(&object!({"metadata": "a"})));
}

#[test]
fn integers_and_floats_differ_and_zero_has_no_sign() {
    assert_ne!(object!({"a": 1}), object!({"a": 1.0}));
    assert_eq!(object!({"a": 0.0}), object!({"a": -0.0}));
    assert_ne!(object!({"a": null}), object!({}));
    assert_ne!(object!({"a": {}}), object!({"a": []}));
}

#[test]
fn big_maps_in_opposite_orders_are_compared_in_good_time() {
    let count = 100_000;
    let text = |keys: &mut dyn Iterator<Item = u32>| {
        let members: Vec<String> = keys.map(|i| format!(r#""key-{i}":{i}"#)).collect();
        format!("{{{}}}", members.join(","))
    };
    let (linear, start) = (time_of_a_plain_read(&text(&mut (0..count))), Instant::now());
    let up = Object::from_slice(text(&mut (0..count)).as_bytes()).unwrap();
    let down = Object::from_slice(text(&mut (0..count).rev()).as_bytes()).unwrap();
    assert_eq!(up, down);
    // Looking each member up by a walk would take thousands of times as long.
    assert!(start.elapsed() < 100 * linear, "{:?}, a plain read {linear:?}", start.elapsed());
}

#[test]
fn clones_are_the_same_allocation() {
    let object = object!({"a": 1});
    assert!(object.ptr_eq(&object.clone()));
    assert!(!object.ptr_eq(&object!({"a": 1})));
}
