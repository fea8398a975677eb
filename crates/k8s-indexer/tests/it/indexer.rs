//! Composite keys, several values, and their cap.

use k8s_indexer::{IndexExpression, Indexer, Keys, MAX_KEYS};
use k8s_packed::{Object, object};
use k8s_types::IndexKey;
use serde_json::{Value, json};

fn keys(index: &Indexer, object: &Object) -> Vec<Vec<String>> {
    let segments = |key: &IndexKey| key.segments().map(str::to_owned).collect();
    index.keys_of(object).iter().map(segments).collect()
}

#[test]
fn order_of_expressions_is_that_of_the_segments() {
    let object = object!({"a": "1", "b": 2, "c": true});
    let index = Indexer::new(["c", "a", "b"]).expect("index");
    assert_eq!(index.arity(), 3);
    assert!(!index.is_multi_valued());
    assert_eq!(index.expressions().map(|e| e.text()).collect::<Vec<_>>(), ["c", "a", "b"]);
    assert_eq!(keys(&index, &object), [["true", "1", "2"]]);
}

#[test]
fn an_index_without_expressions_has_one_key_for_all() {
    let index = Indexer::new::<[&str; 0]>([]).expect("index");
    assert_eq!(index.keys_of(&object!({"a": 1})).as_slice(), [IndexKey::from_segments::<[&str; 0]>([])]);
    assert_eq!(index.keys_of(&object!({"a": 1})).missing(), None);
}

#[test]
fn the_first_result_counts_unless_multi_valued() {
    let object = object!({"rules": [{"host": null}, {"host": "b"}, {"host": "a"}, {"host": "b"}], "n": "x"});
    let first = Indexer::new(["rules[*].host", "n"]).expect("index");
    assert_eq!(keys(&first, &object), [["b", "x"]]);
    let all = Indexer::new([IndexExpression::multi_valued("rules[*].host"), "n".into()]).expect("index");
    assert!(all.is_multi_valued());
    assert_eq!(keys(&all, &object), [["b", "x"], ["a", "x"]]);
    let general = Indexer::new([IndexExpression::multi_valued("rules[1:].host"), "n".into()]).expect("index");
    assert_eq!(keys(&general, &object), [["b", "x"], ["a", "x"]]);
}

#[test]
fn an_array_first_is_missing_and_counted() {
    let object = object!({"v": [["a"], "b"], "n": "x"});
    let first = Indexer::new(["n", "v[*]"]).expect("index").keys_of(&object);
    assert_eq!(first.as_slice(), [IndexKey::from_segments(["x"])]);
    assert_eq!((first.missing(), first.not_scalar()), (Some(1), 1));
    let all = Indexer::new(["n".into(), IndexExpression::multi_valued("v[*]")]).expect("index").keys_of(&object);
    assert_eq!(all.as_slice(), [IndexKey::from_segments(["x", "b"])]);
    assert_eq!((all.missing(), all.not_scalar()), (None, 1));
}

#[test]
fn several_values_in_several_places_are_all_combined() {
    let object = object!({"a": [1, 2], "b": "x", "c": ["u", "v"], "none": []});
    let all = |text: &str| IndexExpression::multi_valued(text);
    let index = Indexer::new([all("a[*]"), "b".into(), all("c[*]")]).expect("index");
    assert_eq!(keys(&index, &object), [["1", "x", "u"], ["1", "x", "v"], ["2", "x", "u"], ["2", "x", "v"]]);
    let partial = Indexer::new([all("a[*]"), all("none[*]"), all("c[*]")]).expect("index");
    let partial = partial.keys_of(&object);
    assert_eq!(partial.as_slice(), [IndexKey::from_segments(["1"]), IndexKey::from_segments(["2"])]);
    assert_eq!(partial.missing(), Some(1));
}

#[test]
fn more_keys_than_the_cap_are_left_out_and_reported() {
    let numbers = |count: usize| Value::from((0..count).collect::<Vec<_>>());
    let all = |text: &str| IndexExpression::multi_valued(text);
    let one = Indexer::new([all("a[*]")]).expect("index");
    let two = Indexer::new([all("a[*]"), all("b[*]")]).expect("index");
    let many = Indexer::new(vec![all("a[*]"); 12]).expect("index");
    let mut keys = Keys::new();
    for (index, a, b, expected, overflow) in [
        (&one, MAX_KEYS, 0, MAX_KEYS, false),
        (&one, MAX_KEYS + 1, 0, MAX_KEYS, true),
        (&two, 40, 25, MAX_KEYS, false),
        (&two, 40, 26, MAX_KEYS, true),
        (&two, 1, 5000, MAX_KEYS, true),
        (&many, 1000, 0, MAX_KEYS, true),
        (&one, 3, 0, 3, false),
    ] {
        let object = Object::from_value(&json!({"a": numbers(a), "b": numbers(b)})).expect("object");
        index.keys(&object, &mut keys);
        assert_eq!((keys.len(), keys.overflow()), (expected, overflow), "{a} times {b}");
        let mut distinct: Vec<IndexKey> = keys.drain().collect();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), expected);
    }
}

#[test]
fn the_expression_that_is_wrong_is_named() {
    let error = Indexer::new(["metadata.namespace", "metadata.labels['app"]).expect_err("quote");
    assert_eq!(error.position(), 1);
    assert_eq!(error.to_string(), "expression 1");
    assert_eq!(
        format!("index_by[{}]: {}", error.position(), error.error()),
        "index_by[1]: unclosed quote at column 17"
    );
    assert!(std::error::Error::source(&error).is_some());
}
