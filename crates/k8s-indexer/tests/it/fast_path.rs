//! Both ways of reading give the same, on generated documents and expressions.

use k8s_indexer::Expression;
use k8s_packed::{Object, Path, Step};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use serde_json_path::JsonPath;

/// Few names, so that expressions hit; some that need quotes.
const NAMES: [&str; 6] = ["a", "b", "k8s-app", "a.b/c", "it's", "ä"];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e25_f64..1e25).prop_map(Value::from),
        (0_i32..3).prop_map(|n| json!(f64::from(n))),
        "[a-c]{0,2}".prop_map(Value::from),
    ]
}

/// Members in the order of their names, as the API server writes maps: then the order of results is the same for
/// every way of reading, whatever features `serde_json` has.
fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 48, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(&NAMES[..]), inner, 0..4).prop_map(map),
        ]
    })
}

fn map(members: std::collections::BTreeMap<&'static str, Value>) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

fn document() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(prop::sample::select(&NAMES[..]), value(), 1..5).prop_map(map)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::sample::select(&NAMES[..]).prop_map(|name| Step::Member(name.into())),
        2 => (-4_i64..4).prop_map(Step::Index),
        2 => Just(Step::Wildcard),
    ]
}

/// The expression in RFC 9535.
fn rfc(steps: &[Step]) -> String {
    let mut text = String::from("$");
    for step in steps {
        text += &match step {
            Step::Member(name) => format!("['{}']", name.replace('\'', "\\'")),
            Step::Index(index) => format!("[{index}]"),
            Step::Wildcard => "[*]".to_owned(),
        };
    }
    text
}

/// The texts of values by the documented table, computed another way.
fn texts(found: Vec<&Value>) -> Vec<String> {
    found.into_iter().filter_map(text).collect()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Array(_) | Value::Object(_) => None,
        Value::Bool(b) => Some(b.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Number(n) if n.is_f64() => {
            let n = n.as_f64().unwrap_or_default();
            Some(if n == 0.0 {
                "0".to_owned()
            } else if n.abs() < 1e21 && n.abs() >= 1e-7 {
                format!("{n}")
            } else {
                format!("{n:e}")
            })
        }
        Value::Number(n) => Some(n.to_string()),
    }
}

fn check(document: &Value, expressions: &[String], query: &str) -> Result<(), TestCaseError> {
    let object = Object::from_value(document).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let query = JsonPath::parse(query).map_err(|error| TestCaseError::fail(format!("{query}: {error}")))?;
    let found = query.query(document).all();
    let first = found.iter().find(|value| !value.is_null()).and_then(|value| text(value));
    let expected = texts(found);
    for expression in expressions {
        let compiled: Expression = expression.parse()?;
        prop_assert_eq!(compiled.values(&object), expected.clone(), "{}", expression);
        prop_assert_eq!(compiled.first(&object), first.clone(), "{}", expression);
    }
    Ok(())
}

/// A segment of kubectl's dialect that is more than a step, and the same in RFC 9535.
fn special() -> impl Strategy<Value = (String, String)> {
    let bound = || prop::option::of(-4_i64..4).prop_map(|n| n.map(|n| n.to_string()).unwrap_or_default());
    let name = || prop::sample::select(&NAMES[..]).prop_map(|name| name.replace('\'', "\\'"));
    prop_oneof![
        (bound(), bound(), prop::option::of(1_i64..3)).prop_map(|(start, end, step)| {
            let step = step.map(|step| format!(":{step}")).unwrap_or_default();
            let text = format!("[{start}:{end}{step}]");
            (text.clone(), text)
        }),
        (name(), -2_i64..2).prop_map(|(name, index)| {
            let text = format!("['{name}',{index},*]");
            (text.clone(), text)
        }),
        name().prop_map(|name| (format!("..['{name}']"), format!("..['{name}']"))),
        Just(("..*".to_owned(), "..*".to_owned())),
        name().prop_map(|name| (format!("[?(@['{name}'])]"), format!("[?@['{name}']]"))),
        (name(), 0_u8..3).prop_map(|(name, n)| {
            (format!("[?(@['{name}']!={n})]"), format!("[?@['{name}'] && @['{name}'] != {n}]"))
        }),
        Just(("[?(@>1)]".to_owned(), "[?@ > 1]".to_owned())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plain_paths_read_the_same_as_the_query_engine(
        document in document(),
        steps in prop::collection::vec(step(), 1..5),
    ) {
        let query = rfc(&steps);
        let path = Path::from_steps(steps).to_string();
        check(&document, &[path.clone(), format!("{{{path}}}"), query.clone()], &query)?;
    }

    #[test]
    fn translated_expressions_read_the_same_as_the_query_engine(
        document in document(),
        before in prop::collection::vec(step(), 0..3),
        special in special(),
        after in prop::collection::vec(step(), 0..3),
    ) {
        let (kubectl, query) = special;
        let plain = |steps: &[Step]| rfc(steps)[1..].to_owned();
        let ours = format!("{}{kubectl}{}", plain(&before), plain(&after));
        let query = format!("${}{query}{}", plain(&before), plain(&after));
        check(&document, &[ours, query.clone()], &query)?;
    }

    #[test]
    fn order_of_members_changes_the_order_of_results_only(
        document in document(),
        steps in prop::collection::vec(step(), 1..5),
    ) {
        let reversed = reverse(&document);
        let expression: Expression = Path::from_steps(steps).to_string().parse()?;
        let object = |value: &Value| serde_json::to_vec(value).ok().and_then(|json| Object::from_slice(&json).ok());
        let mut some = object(&document).map(|object| expression.values(&object)).unwrap_or_default();
        let mut others = object(&reversed).map(|object| expression.values(&object)).unwrap_or_default();
        some.sort();
        others.sort();
        prop_assert_eq!(some, others);
    }

    #[test]
    fn what_the_query_engine_refuses_is_refused(text in "\\$[.\\[\\]'a-b0*:?@ -]{0,10}") {
        let engine = JsonPath::parse(&text).is_ok();
        match text.parse::<Expression>() {
            Ok(_) => prop_assert!(engine, "{text} is no RFC 9535"),
            Err(error) => prop_assert!(
                !engine || ["empty path", "slice with step 0", "brackets nested"].iter().any(|m| error.message().starts_with(m)),
                "{text}: {error}",
            ),
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>(), likely in "[${}.*@a-b0-1'\"\\[\\]()\\\\:,?=!<>& -]{0,24}") {
        for text in [text, likely] {
            if let Err(error) = text.parse::<Expression>() {
                prop_assert!(error.column() >= 1 && error.column() <= text.chars().count() + 1, "{text}: {error}");
            }
            let _ = text.parse::<k8s_indexer::FieldSelector>();
            let _ = k8s_indexer::ignored_paths([&text]);
        }
    }
}

fn reverse(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(reverse).collect(),
        Value::Object(members) => {
            let members: Vec<(String, Value)> =
                members.iter().map(|(name, value)| (name.clone(), reverse(value))).collect();
            Value::Object(members.into_iter().rev().collect())
        }
        other => other.clone(),
    }
}
