use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::{LabelOperator, LabelRequirement, LabelSelector};

fn selector(text: &str) -> LabelSelector {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn matches(selector: &LabelSelector, labels: &[(&str, &str)]) -> bool {
    let labels: BTreeMap<&str, &str> = labels.iter().copied().collect();
    selector.matches_with(|key| labels.get(key).copied())
}

#[test]
fn texts_and_what_goes_to_the_server() {
    for (text, sent) in [
        ("", ""),
        ("  ", ""),
        ("a=b", "a=b"),
        ("a==b", "a=b"),
        (" a = b , c != d ", "a=b,c!=d"),
        ("a=", "a="),
        ("a=,b", "a=,b"),
        ("a!=", "a!="),
        ("a in (x)", "a in (x)"),
        ("a in (y, x ,y)", "a in (y,x)"),
        ("a notin (x,y)", "a notin (x,y)"),
        ("a in (,x)", "a in (,x)"),
        ("a in ()", "a in ()"),
        ("a,!b", "a,!b"),
        ("! b", "!b"),
        ("a>1,b < 2", "a>1,b<2"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("notin=in", "notin=in"),
        ("a=b,a=c", "a=b,a in (c)"),
        ("a=b,a=b", "a=b"),
        (
            "endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io",
            "endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io",
        ),
    ] {
        let parsed = selector(text);
        assert_eq!(parsed.to_string(), sent, "{text:?}");
        assert_eq!(selector(sent), parsed, "{sent:?}");
        assert_eq!(parsed.validate(), Ok(()), "{text:?}");
        assert_eq!(parsed.is_empty(), sent.is_empty());
    }
}

#[test]
fn wrong_texts_say_what_and_where() {
    for (text, expected) in [
        (",", "expected a label key, found ',' at column 1"),
        ("a,", "expected a label key, found the end at column 3"),
        ("a,,b", "expected a label key, found ',' at column 3"),
        ("=a", "expected a label key, found '=' at column 1"),
        ("!", "expected a label key, found the end at column 2"),
        ("!a=b", "expected ',' or the end, found '=' at column 3"),
        ("a b", "expected an operator, found \"b\" at column 3: one of =, ==, !=, in, notin, >, <"),
        ("a=b c", "expected ',' or the end, found \"c\" at column 5"),
        ("a=b=c", "expected ',' or the end, found '=' at column 4"),
        ("a===b", "expected a label value, found '=' at column 4"),
        ("a in x", "expected '(', found \"x\" at column 6"),
        ("a in (x", "unclosed '(' at column 6"),
        ("a in (x y)", "expected ',' or ')', found \"y\" at column 9"),
        ("a in (x))", "expected ',' or the end, found ')' at column 9"),
        ("a>b", "expected an integer, found \"b\" at column 3"),
        ("a>", "expected an integer, found \"\" at column 3"),
        ("-a", "invalid label key \"-a\" at column 1"),
        ("a/b/c", "invalid label key \"a/b/c\" at column 1"),
        ("A/b", "invalid label key \"A/b\" at column 1"),
        ("a=b_", "invalid label value \"b_\" at column 3"),
        ("ä=b", "invalid label key \"ä\" at column 1"),
    ] {
        let error = text.parse::<LabelSelector>().expect_err(text);
        assert_eq!(error.to_string(), expected, "{text:?}");
    }
}

#[test]
fn matching() {
    let web = [("app", "web"), ("rank", "7")];
    for (text, expected) in [
        ("", true),
        ("app", true),
        ("app=web", true),
        ("app=", false),
        ("app!=web", false),
        ("other!=web", true),
        ("app in (db,web)", true),
        ("app notin (db)", true),
        ("other notin (db)", true),
        ("other in (db)", false),
        ("!other", true),
        ("!app", false),
        ("rank>6", true),
        ("rank>7", false),
        ("rank<8", true),
        ("app>1", false),
        ("other<1", false),
        ("app=web,rank=8", false),
        ("app=web,app=db", false),
    ] {
        assert_eq!(matches(&selector(text), &web), expected, "{text:?}");
    }
}

#[test]
fn serde_has_the_shape_of_the_api() {
    let parsed = selector("app=web,tier in (a,b),!canary");
    let value = json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]},
            {"key": "canary", "operator": "DoesNotExist"},
        ],
    });
    assert_eq!(serde_json::to_value(&parsed).expect("json"), value);
    assert_eq!(serde_json::from_value::<LabelSelector>(value).expect("json"), parsed);
    assert_eq!(serde_json::from_value::<LabelSelector>(json!({})).expect("json"), LabelSelector::new());
    // A misspelled member would widen the selector.
    assert!(serde_json::from_value::<LabelSelector>(json!({"matchlabels": {"a": "b"}})).is_err());
}

#[test]
fn structures_that_the_api_refuses() {
    use LabelOperator::{DoesNotExist, Exists, Gt, In, NotIn};
    let none: [&str; 0] = [];
    let with = |requirement| LabelSelector::new().label("a", "b").require(requirement);
    for (selector, expected) in [
        (LabelSelector::new().label("a b", "c"), "matchLabels: invalid label key \"a b\""),
        (LabelSelector::new().label("a", "c d"), "matchLabels: invalid label value \"c d\""),
        (with(LabelRequirement::new("k", In, none)), "matchExpressions[0]: In without values"),
        (with(LabelRequirement::new("k", NotIn, none)), "matchExpressions[0]: NotIn without values"),
        (with(LabelRequirement::new("k", Exists, ["x"])), "matchExpressions[0]: Exists with values"),
        (with(LabelRequirement::new("k", DoesNotExist, ["x"])), "matchExpressions[0]: DoesNotExist with values"),
        (with(LabelRequirement::new("k", Gt, ["x"])), "matchExpressions[0]: \"x\" is no integer"),
        (with(LabelRequirement::new("k", Gt, ["1", "2"])), "matchExpressions[0]: Gt needs one value"),
        (with(LabelRequirement::new("", Exists, none)), "matchExpressions[0]: invalid label key \"\""),
    ] {
        let error = selector.validate().expect_err(expected);
        assert_eq!(error.to_string(), expected);
    }
}

fn requirement() -> impl Strategy<Value = LabelRequirement> {
    let values = prop::collection::btree_set("[a-c]{0,2}", 1..4);
    let operator = prop_oneof![
        Just(LabelOperator::In),
        Just(LabelOperator::NotIn),
        Just(LabelOperator::Exists),
        Just(LabelOperator::DoesNotExist),
        Just(LabelOperator::Gt),
        Just(LabelOperator::Lt),
    ];
    ("[a-c]{1,2}", operator, values, any::<i64>()).prop_map(|(key, operator, values, bound)| {
        let values: Vec<String> = match operator {
            LabelOperator::In | LabelOperator::NotIn => values.into_iter().collect(),
            LabelOperator::Gt | LabelOperator::Lt => vec![bound.unsigned_abs().min(99).to_string()],
            _ => Vec::new(),
        };
        LabelRequirement::new(key, operator, values)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_and_json_round_trip(
        labels in prop::collection::btree_map("[a-c/]{1,3}", "[a-c]{0,2}", 0..3),
        requirements in prop::collection::vec(requirement(), 0..4),
        seen in prop::collection::btree_map("[a-c]{1,2}", "[a-c0-9]{0,2}", 0..4),
    ) {
        let mut selector = LabelSelector::new();
        for (key, value) in labels {
            selector = selector.label(key, value);
        }
        for requirement in requirements {
            selector = selector.require(requirement);
        }
        let json = serde_json::to_string(&selector)?;
        prop_assert_eq!(&serde_json::from_str::<LabelSelector>(&json)?, &selector);
        if selector.validate().is_ok() {
            let parsed: LabelSelector = selector.to_string().parse()?;
            let label = |key: &str| seen.get(key).map(String::as_str);
            prop_assert_eq!(parsed.matches_with(label), selector.matches_with(label));
            prop_assert_eq!(parsed.to_string(), selector.to_string());
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>(), likely in "[a-c!=(), <>in/-]{0,16}") {
        let _ = text.parse::<LabelSelector>();
        if let Ok(selector) = likely.parse::<LabelSelector>() {
            prop_assert_eq!(selector.validate(), Ok(()));
            prop_assert_eq!(&selector.to_string().parse::<LabelSelector>()?, &selector);
        }
    }
}
