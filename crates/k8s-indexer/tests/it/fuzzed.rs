//! What must hold for any text. Run by the fuzz targets, and by `seeds` over their corpus.

use k8s_indexer::{Expression, ExpressionError, FieldSelector, Indexer, Keys};
use k8s_packed::{Object, Path};
use serde_json::{Value, json};
use serde_json_path::JsonPath;

/// Something for most expressions to find: nulls, texts, integers, arrays and maps, and awkward names.
fn sample() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "a", "namespace": "shop",
            "labels": {"app": "web", "app.kubernetes.io/name": "cart", "a'b\"c\\d": "odd", "": "empty"},
        },
        "spec": {"replicas": 3, "on": true, "nothing": null, "rules": [{"host": "x", "port": 80}, {"host": "y"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": null}]},
        "items": [[1, 2], [], {"name": "b"}, "text", null],
    })
}

/// A text that is an expression is read again as the same; what begins with `$` finds what the reference finds.
pub(crate) fn check_expression(text: &str) {
    let expression = match text.parse::<Expression>() {
        Ok(expression) => expression,
        Err(error) => return check_error(text, &error),
    };
    assert_eq!(expression.text(), text);
    assert_eq!(k8s_indexer::validate(text), Ok(()));
    let value = sample();
    let object = Object::from_value(&value).unwrap();
    let values = expression.values(&object);
    let again: Expression = expression.to_string().parse().unwrap();
    assert_eq!(again.values(&object), values);
    if let Some(path) = expression.path() {
        // A plain path may be written in its canonical form.
        let canonical: Expression = path.to_string().parse().unwrap_or_else(|e| panic!("{path}: {e}"));
        assert_eq!(canonical.path(), Some(path));
        assert_eq!(canonical.first(&object), expression.first(&object));
    }
    let first = expression.first(&object);
    assert!(first.is_none() || first.as_ref() == values.first());
    let _ = (expression.root(), expression.reads_only_metadata());
    assert!(expression.covered_by(&[Path::from_steps([])]).is_some());
    if let Ok(reference) = JsonPath::parse(text) {
        let found = reference.query(&value).all().into_iter().filter_map(text_of).collect::<Vec<_>>();
        assert_eq!(values, found);
    } else {
        assert!(!text.starts_with('$'), "the reference refuses it");
    }
    let mut keys = Keys::new();
    Indexer::new([text, "metadata.name"]).unwrap().keys(&object, &mut keys);
    assert_eq!(keys.len(), 1);
}

/// The text of a value of the sample, which has no floats.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

/// A text that is a field selector has a canonical form, which is the same selector.
pub(crate) fn check_field_selector(text: &str) {
    match text.parse::<FieldSelector>() {
        Ok(selector) => {
            let canonical = selector.to_string();
            let again: FieldSelector = canonical.parse().unwrap_or_else(|e| panic!("{canonical}: {e}"));
            assert_eq!(again.value(), selector.value());
            assert_eq!(again.expression().text(), selector.expression().text());
            assert_eq!(again.to_string(), canonical);
            let object = Object::from_value(&sample()).unwrap();
            let is_match = selector.expression().first(&object).as_deref() == Some(selector.value());
            assert_eq!(selector.matches(&object), is_match);
        }
        Err(error) => check_error(text, &error),
    }
}

fn check_error(text: &str, error: &ExpressionError) {
    assert!(error.column() >= 1 && error.column() <= text.chars().count() + 1, "{error}");
    assert!(!error.message().is_empty());
}
