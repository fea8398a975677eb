//! What an encoder keeps when it keeps some paths only, against a model that walks over the document.

use k8s_packed::{Encoder, Object, Path, Step};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::doc::{Doc, check_object, choices, path_in, root, similar};

const IDENTITY: [&str; 5] = ["name", "namespace", "uid", "resourceVersion", "generation"];

/// The paths with the identity.
fn with_identity(paths: &[Path]) -> Vec<Path> {
    let member = |name: &str| Step::Member(name.into());
    let identity = IDENTITY.map(|name| Path::from_steps([member("metadata"), member(name)]));
    paths.iter().cloned().chain(identity).collect()
}

/// The document with what lies on one of the ways, or below its end.
fn kept(doc: &Doc, ways: &[&[Step]]) -> Doc {
    if ways.iter().any(|way| way.is_empty()) {
        return doc.clone();
    }
    let below = |leads: &dyn Fn(&Step) -> bool| -> Vec<&[Step]> {
        ways.iter().filter(|way| leads(&way[0])).map(|way| &way[1..]).collect()
    };
    match doc {
        Doc::List(items) => {
            let ways = below(&|step| matches!(step, Step::Index(_) | Step::Wildcard));
            Doc::List(items.iter().filter(|_| !ways.is_empty()).map(|item| kept(item, &ways)).collect())
        }
        Doc::Map(members) => {
            let member = |(key, value): &(String, Doc)| {
                let ways = below(&|step| match step {
                    Step::Member(name) => **name == **key,
                    step => *step == Step::Wildcard,
                });
                (!ways.is_empty()).then(|| (key.clone(), kept(value, &ways)))
            };
            Doc::Map(members.iter().filter_map(member).collect())
        }
        _ => Doc::Null,
    }
}

fn model(doc: &Doc, paths: &[Path]) -> Doc {
    let paths = with_identity(paths);
    kept(doc, &paths.iter().map(Path::steps).collect::<Vec<_>>())
}

/// Compares all reads of the paths with those of the whole object.
fn check_reads(object: &Object, whole: &Object, paths: &[Path]) {
    for path in &with_identity(paths) {
        assert_eq!(object.get(path).map(|v| v.to_value()), whole.get(path).map(|v| v.to_value()), "{path}");
        let all = |object: &Object| object.all(path).map(|v| v.to_value()).collect::<Vec<_>>();
        assert_eq!(all(object), all(whole), "{path}");
    }
    assert_eq!((object.name(), object.namespace()), (whole.name(), whole.namespace()));
    assert_eq!((object.uid(), object.resource_version()), (whole.uid(), whole.resource_version()));
    assert_eq!(object.generation(), whole.generation());
}

proptest! {
    #![proptest_config(test_support::cases(512))]

    #[test]
    fn kept_paths_read_as_in_the_whole_object_and_nothing_else_is_there(
        doc in root(), kept in prop::collection::vec(choices(), 0..5), ignored in prop::collection::vec(choices(), 0..3),
    ) {
        let paths: Vec<Path> = kept.iter().map(|c| path_in(&doc, c)).collect();
        let ignored: Vec<Path> = ignored.iter().map(|c| path_in(&doc, c)).collect();
        let json = doc.json();

        let whole = doc.object();
        let mut encoder = Encoder::new().keep_only(&paths);
        for _ in 0..2 {
            let object = encoder.encode(json.as_bytes()).unwrap();
            check_object(&object, &model(&doc, &paths));
            check_reads(&object, &whole, &paths);
            // Encoded again, also into another table, it stays what it is.
            check_object(&encoder.reencode(&object), &model(&doc, &paths));
        }

        // What is ignored goes, also from what is kept.
        let mut both = Encoder::new().ignore(&ignored).keep_only(&paths);
        let pruned = Encoder::new().ignore(&ignored).encode(json.as_bytes()).unwrap();
        let object = both.encode(json.as_bytes()).unwrap();
        check_reads(&object, &pruned, &paths);
        check_object(&both.encode_alone(json.as_bytes()).unwrap(), &model(&parsed(&pruned), &paths));
        prop_assert_eq!(object, both.encode_alone(json.as_bytes()).unwrap());
    }
}

proptest! {
    #![proptest_config(test_support::cases(16))]

    #[test]
    fn objects_that_share_a_table_keep_the_same(docs in similar(60), choices in prop::collection::vec(choices(), 3)) {
        let paths: Vec<Path> = choices.iter().map(|c| path_in(&docs[0], c)).collect();
        let mut encoder = Encoder::new().keep_only(&paths);
        for doc in &docs {
            let object = encoder.encode(doc.json().as_bytes()).unwrap();
            check_object(&object, &model(doc, &paths));
            check_object(&object.detached(), &model(doc, &paths));
        }
    }
}

/// An object as a document again.
fn parsed(object: &Object) -> Doc {
    fn doc(value: k8s_packed::ValueRef<'_>) -> Doc {
        use k8s_packed::{Number, ValueRef};
        match value {
            ValueRef::Null => Doc::Null,
            ValueRef::Bool(b) => Doc::Bool(b),
            ValueRef::Number(Number::Int(n)) => Doc::Int(n),
            ValueRef::Number(Number::Uint(n)) => Doc::Uint(n),
            ValueRef::Number(Number::Float(n)) => Doc::Float(n),
            ValueRef::String(s) => Doc::Text(s.into()),
            ValueRef::Array(items) => Doc::List(items.iter().map(doc).collect()),
            ValueRef::Map(map) => Doc::Map(map.into_iter().map(|(k, v)| (k.into(), doc(v))).collect()),
        }
    }
    Doc::Map(object.root().into_iter().map(|(k, v)| (k.into(), doc(v))).collect())
}

#[track_caller]
fn check(paths: &[&str], input: Value, expected: Value) {
    let paths: Vec<Path> = paths.iter().map(|p| p.parse().unwrap()).collect();
    let mut encoder = Encoder::new().keep_only(&paths);
    assert_eq!(encoder.encode(input.to_string().as_bytes()).unwrap().to_value(), expected);
}

#[test]
fn without_paths_the_identity_is_kept() {
    check(
        &[],
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"a": "c2VjcmV0"},
            "metadata": {
                "name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7", "generation": 2,
                "labels": {"app": "x"}, "annotations": {"name": "secret"}, "managedFields": [{"manager": "m"}],
            },
        }),
        json!({"metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7", "generation": 2}}),
    );
}

#[test]
fn what_lies_on_the_way_stays_with_what_is_kept_of_it() {
    let input = json!({
        "a": [{"x": 1, "y": 2}, 3, {"y": 4}, [{"x": 5}]],
        "b": {"c": 6, "d": {"e": 7, "f": 8}},
        "g": "text",
    });
    let check = |paths: &[&str], expected: Value| check(paths, input.clone(), expected);
    check(&["a[*].x"], json!({"a": [{"x": 1}, null, {}, []]}));
    check(&["a[0].x"], json!({"a": [{"x": 1}, null, {}, []]}));
    check(&["a[-1]"], json!({"a": [{"x": 1, "y": 2}, 3, {"y": 4}, [{"x": 5}]]}));
    check(&["a.x"], json!({"a": []}));
    check(&["b[0]"], json!({"b": {}}));
    check(&["b.*.e"], json!({"b": {"c": null, "d": {"e": 7}}}));
    check(&["b.d.e", "b.*.f"], json!({"b": {"c": null, "d": {"e": 7, "f": 8}}}));
    check(&["b.d", "b.d.e"], json!({"b": {"d": {"e": 7, "f": 8}}}));
    check(&["g.h", "missing.i"], json!({"g": null}));
}

#[test]
fn the_whole_object_can_be_kept() {
    let paths = [Path::from_steps([])];
    let json = json!({"metadata": {"name": "a", "labels": {}}, "spec": [1]});
    let object = Encoder::new().keep_only(&paths).encode(json.to_string().as_bytes()).unwrap();
    assert_eq!(object.to_value(), json);
}

#[test]
fn a_type_is_filled_in_only_if_it_is_kept() {
    let kind: Path = "kind".parse().unwrap();
    let mut encoder = Encoder::new().keep_only([&kind]);
    encoder.set_type_meta("v1", "Pod");
    for json in [r#"{"spec":1}"#, r#"{"kind":"Pod","apiVersion":"v1"}"#] {
        assert_eq!(encoder.encode(json.as_bytes()).unwrap().to_value(), json!({"kind": "Pod"}));
    }
}

#[test]
fn what_is_left_out_may_be_deeper_than_an_object() {
    let json = format!(r#"{{"metadata":{{"name":"a"}},"spec":{}{}}}"#, "[".repeat(500), "]".repeat(500));
    let object = Encoder::new().keep_only([]).encode(json.as_bytes()).unwrap();
    assert_eq!(object.to_value(), json!({"metadata": {"name": "a"}}));
}

#[test]
fn objects_that_stand_for_themselves_need_no_table() {
    let mut encoder = Encoder::new();
    let json = json!({"metadata": {"name": "a", "labels": {"app": "cart"}}, "spec": {"image": "cart:1"}}).to_string();
    for _ in 0..8 {
        encoder.encode(json.as_bytes()).unwrap();
    }
    let shared = encoder.encode(json.as_bytes()).unwrap();
    let alone = encoder.encode_alone(json.as_bytes()).unwrap();
    encoder.start_compaction();
    assert!(!encoder.is_current(&shared));
    for object in [&alone, &shared.detached()] {
        assert!(encoder.is_current(object));
        assert_eq!(*object, shared);
    }
    assert!(alone.detached().ptr_eq(&alone));
    assert!(encoder.encode_alone(b"[]").is_err());
}
