//! What an encoder leaves out and adds, against a model that deletes from the document.

use k8s_packed::{Encoder, Object, Path, Step};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::doc::{Doc, check_object, choices, path_in, root, similar};

/// The document without what the paths select; an index from the end and the empty path select nothing.
fn deleted(doc: &Doc, paths: &[Path]) -> Doc {
    let from_the_end = |s: &Step| matches!(s, Step::Index(at) if *at < 0);
    let counted = paths.iter().filter(|p| !p.steps().is_empty() && !p.steps().iter().any(from_the_end));
    let places: Vec<_> = counted.flat_map(|p| doc.locate(p.steps())).collect();
    doc.without(&places)
}

proptest! {
    #![proptest_config(test_support::cases(256))]

    #[test]
    fn c60_ignored_paths_are_left_out_and_nothing_else(
        doc in root(), choices in prop::collection::vec(choices(), 0..6), copies in 2usize..5,
    ) {
        let paths: Vec<Path> = choices.iter().map(|c| path_in(&doc, c)).collect();
        let expected = deleted(&doc, &paths);
        let mut encoder = Encoder::new().ignore(&paths);
        for _ in 0..copies {
            let object = encoder.encode(doc.json().as_bytes()).unwrap();
            check_object(&object, &expected);
            // Twice changes nothing, in whatever way.
            check_object(&encoder.reencode(&encoder_free(&object)), &expected);
            encoder.start_compaction();
            let again = encoder.reencode(&object);
            check_object(&again, &expected);
            let steps: Vec<&Path> = paths.iter().filter(|p| !p.steps().iter().any(is_index)).collect();
            if steps.len() == paths.len() {
                let json = serde_json::to_vec(&again).unwrap();
                check_object(&encoder.encode(&json).unwrap(), &expected);
            }
        }
    }
}

proptest! {
    #![proptest_config(test_support::cases(16))]

    #[test]
    fn ignored_paths_are_left_out_of_shared_objects(docs in similar(60), choices in prop::collection::vec(choices(), 3)) {
        let paths: Vec<Path> = choices.iter().map(|c| path_in(&docs[0], c)).collect();
        let mut encoder = Encoder::new().ignore(&paths);
        for doc in &docs {
            check_object(&encoder.encode(doc.json().as_bytes()).unwrap(), &deleted(doc, &paths));
        }
    }
}

fn is_index(step: &Step) -> bool {
    matches!(step, Step::Index(_))
}

/// The same content in an object that no encoder made.
fn encoder_free(object: &Object) -> Object {
    Object::from_slice(&serde_json::to_vec(object).unwrap()).unwrap()
}

#[track_caller]
fn check(paths: &[&str], input: Value, expected: Value) {
    let paths: Vec<Path> = paths.iter().map(|p| p.parse().unwrap()).collect();
    let mut encoder = Encoder::new().ignore(&paths);
    let object = encoder.encode(input.to_string().as_bytes()).unwrap();
    assert_eq!(object.to_value(), expected);
    assert_eq!(encoder.reencode(&object).to_value(), expected);
}

#[test]
fn wildcards_reach_through_lists_and_maps() {
    check(
        &["status.conditions[*].lastProbeTime", "status.*[0].type"],
        json!({"status": {"conditions": [{"type": "A", "lastProbeTime": 1}, {"type": "B", "lastProbeTime": 2}, 3]}}),
        json!({"status": {"conditions": [{}, {"type": "B"}, 3]}}),
    );
    check(&["a[*]"], json!({"a": [1, 2], "b": 3}), json!({"a": [], "b": 3}));
    check(&["a.*"], json!({"a": {"x": 1}, "b": {"x": 1}}), json!({"a": {}, "b": {"x": 1}}));
    check(
        &["*.x", "a.y"],
        json!({"a": {"x": 1, "y": 2, "z": 3}, "b": {"x": 1, "y": 2}}),
        json!({"a": {"z": 3}, "b": {"y": 2}}),
    );
}

#[test]
fn what_is_not_there_is_no_error() {
    let input = json!({"a": [1], "b": {"c": null}, "d": "text"});
    check(&["x.y", "a.b", "a[7]", "a[-1]", "b[0]", "d.e", "d[*]", "b.c.d"], input.clone(), input);
}

#[test]
fn a_path_below_one_that_is_ignored_changes_nothing() {
    check(&["a.b", "a.b.c", "a[*]", "a.b"], json!({"a": {"b": {"c": 1}}}), json!({"a": {}}));
}

#[test]
fn indexes_count_the_items_as_they_came() {
    check(&["a[0]", "a[2].x"], json!({"a": [0, 1, {"x": 2, "y": 3}, {"x": 4}]}), json!({"a": [1, {"y": 3}, {"x": 4}]}));
}

#[test]
fn what_is_ignored_may_be_deeper_than_an_object() {
    let json = format!(r#"{{"metadata":{{"name":"a","deep":{}{}}}}}"#, "[".repeat(500), "]".repeat(500));
    let path: Path = "metadata.deep".parse().unwrap();
    let object = Encoder::new().ignore([&path]).encode(json.as_bytes()).unwrap();
    assert_eq!(object.to_value(), json!({"metadata": {"name": "a"}}));
}

#[test]
fn metadata_only_keeps_the_type_and_the_metadata() {
    let labels: Path = "metadata.labels".parse().unwrap();
    let mut encoder = Encoder::new().metadata_only().ignore([&labels]);
    let json = br#"{"kind":"Pod","spec":{"kind":"x"},"metadata":{"name":"a","labels":{},"spec":1},"apiVersion":"v1","status":[]}"#;
    let object = encoder.encode(json).unwrap();
    let expected = r#"{"kind":"Pod","metadata":{"name":"a","spec":1},"apiVersion":"v1"}"#;
    assert_eq!(serde_json::to_string(&object).unwrap(), expected);
}

#[test]
fn c38_an_item_of_a_list_gets_the_type_that_it_lacks() {
    let mut encoder = Encoder::new();
    encoder.set_type_meta("v1", "Pod");
    let mut check = |json: &str, expected: Value| {
        let object = encoder.encode(json.as_bytes()).unwrap();
        assert_eq!(object.to_value(), expected);
        assert_eq!(encoder.reencode(&object), object);
        object
    };
    let listed =
        check(r#"{"metadata":{"name":"a"}}"#, json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}));
    let watched = check(
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#,
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}),
    );
    assert_eq!((listed.kind(), listed.api_version()), (Some("Pod"), Some("v1")));
    assert!(listed == watched && listed.same_content(&watched));
    check(r#"{"kind":"Other"}"#, json!({"apiVersion": "v1", "kind": "Other"}));
    check(r#"{"spec":{"kind":"x"}}"#, json!({"spec": {"kind": "x"}, "apiVersion": "v1", "kind": "Pod"}));
}

#[test]
fn an_ignored_type_is_not_filled_in_again() {
    let kind: Path = "kind".parse().unwrap();
    let mut encoder = Encoder::new().ignore([&kind]);
    encoder.set_type_meta("v1", "Pod");
    for json in [r#"{"kind":"Pod"}"#, "{}"] {
        assert_eq!(encoder.encode(json.as_bytes()).unwrap().to_value(), json!({"apiVersion": "v1"}));
    }
}
