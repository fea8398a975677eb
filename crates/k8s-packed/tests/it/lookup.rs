//! Paths compared with a plain walk over the document; getters compared with paths.

use k8s_packed::{Encoder, Object, ValueRef, object};
use proptest::prelude::*;

use crate::doc::{Doc, check_value, choices, path_in, root, similar};

#[track_caller]
fn check(object: &Object, doc: &Doc, choices: &[(u8, u8)]) {
    let path = path_in(doc, choices);
    let expected: Vec<&Doc> = doc.locate(path.steps()).iter().map(|way| doc.at(way)).collect();
    check_value(object.get(&path), expected.first().copied());
    let found: Vec<ValueRef<'_>> = object.all(&path).collect();
    assert_eq!(found.len(), expected.len(), "{path}");
    for (found, expected) in found.into_iter().zip(expected) {
        check_value(Some(found), Some(expected));
    }
}

proptest! {
    #![proptest_config(test_support::cases(256))]

    #[test]
    fn paths_find_what_a_plain_walk_finds(doc in root(), paths in prop::collection::vec(choices(), 1..8)) {
        let object = doc.object();
        for choices in &paths {
            check(&object, &doc, choices);
        }
    }

    #[test]
    fn getters_agree_with_paths(doc in root()) {
        let object = doc.object();
        let text = |path: &str| object.get(&path.parse().unwrap()).and_then(|v| v.as_str());
        // A path goes through a list's items by index only, so a metadata that is no map has no members.
        prop_assert_eq!(object.name(), text("metadata.name").unwrap_or(""));
        prop_assert_eq!(object.namespace(), text("metadata.namespace").filter(|n| !n.is_empty()));
        prop_assert_eq!(object.uid(), text("metadata.uid"));
        prop_assert_eq!(object.resource_version(), text("metadata.resourceVersion"));
        prop_assert_eq!(object.api_version(), text("apiVersion"));
        prop_assert_eq!(object.kind(), text("kind"));
        let labels = object.get(&"metadata.labels".parse().unwrap()).and_then(|v| v.as_map());
        let labels: Vec<_> = labels.into_iter().flatten().filter_map(|(k, v)| Some((k, v.as_str()?))).collect();
        prop_assert_eq!(object.labels().collect::<Vec<_>>(), labels.clone());
        for (key, value) in labels {
            prop_assert_eq!(object.label(key), Some(value));
        }
        let root = object.root();
        prop_assert_eq!(root.len(), root.iter().count());
        for (key, value) in root {
            prop_assert_eq!(root.get(key), Some(value));
            if let ValueRef::Array(items) = value {
                prop_assert_eq!(items.len(), items.iter().count());
                for (at, item) in items.iter().enumerate() {
                    prop_assert_eq!(items.get(at), Some(item));
                }
                prop_assert_eq!(items.get(items.len()), None);
            }
        }
    }
}

proptest! {
    #![proptest_config(test_support::cases(16))]

    #[test]
    fn paths_find_the_same_in_shared_objects(docs in similar(60), paths in prop::collection::vec(choices(), 4)) {
        let mut encoder = Encoder::new();
        for doc in &docs {
            let object = encoder.encode(doc.json().as_bytes()).unwrap();
            for choices in &paths {
                check(&object, doc, choices);
            }
        }
    }
}

#[test]
fn a_missing_or_odd_metadata_is_what_it_is() {
    let get = |object: &Object, path: &str| object.get(&path.parse().unwrap()).map(|v| v.to_value());
    let none = object!({"kind": "Odd"});
    assert_eq!((get(&none, "metadata"), get(&none, "metadata.name")), (None, None));
    let empty = object!({"metadata": {}});
    assert_eq!(get(&empty, "metadata"), Some(serde_json::json!({})));
    let list = object!({"metadata": ["a"]});
    assert_eq!(get(&list, "metadata[0]"), Some("a".into()));
    assert_eq!(list.all(&"metadata[*]".parse().unwrap()).count(), 1);
    assert_eq!((list.name(), list.metadata().len()), ("", 0));
    let text = object!({"metadata": "a"});
    assert_eq!(get(&text, "metadata"), Some("a".into()));
}

#[test]
fn wildcards_nest_deeper_than_what_is_kept_in_place() {
    let object = object!({"a": [[[[[1, 2], []], [[3]]]], 4]});
    let found: Vec<_> = object.all(&"a[*][*][*][*][*]".parse().unwrap()).filter_map(|v| v.as_i64()).collect();
    assert_eq!(found, [1, 2, 3]);
    assert_eq!(object.get(&"a[*][*][*][*][1]".parse().unwrap()).and_then(|v| v.as_i64()), Some(2));
}

#[test]
fn the_empty_path_is_the_object() {
    let object = object!({"a": 1});
    let path = k8s_packed::Path::from_steps([]);
    assert_eq!(object.get(&path), Some(ValueRef::Map(object.root())));
    assert_eq!(object.all(&path).count(), 1);
}

#[test]
fn indexes_out_of_any_range_find_nothing() {
    let object = object!({"a": [1, 2]});
    for index in [2, -3, i64::MAX, i64::MIN] {
        let path = k8s_packed::Path::from_steps([k8s_packed::Step::Member("a".into()), k8s_packed::Step::Index(index)]);
        assert_eq!(object.get(&path), None, "{index}");
    }
}
