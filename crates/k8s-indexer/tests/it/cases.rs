//! Faults that users of neighbouring libraries met, by number.

use k8s_indexer::{Expression, FieldSelector, Indexer, ignored_paths, validate};
use k8s_packed::{Encoder, Object, object};
use k8s_types::IndexKey;
use serde_json::{Value, json};

fn values(text: &str, object: &Object) -> Vec<String> {
    let expression: Expression = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    expression.values(object)
}

fn key(segments: &[&str]) -> IndexKey {
    IndexKey::from_segments(segments)
}

#[test]
fn c38_index_by_kind_is_the_same_from_list_and_watch() {
    let by_kind = Indexer::new(["kind", "metadata.namespace"]).expect("index");
    let watched = object!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"}});
    let listed = object!({"metadata": {"namespace": "n", "name": "a"}, "kind": "Pod"});
    assert_eq!(by_kind.keys_of(&watched).as_slice(), by_kind.keys_of(&listed).as_slice());
    // What was not filled in is missing, and not the empty text.
    let bare = object!({"metadata": {"name": "a", "namespace": "n"}});
    assert_eq!(by_kind.keys_of(&bare).as_slice(), [key(&[])]);
}

#[test]
fn c54_an_object_has_exactly_its_present_keys() {
    let by_host = Indexer::new([k8s_indexer::IndexExpression::multi_valued("hosts[*]")]).expect("index");
    let mut keys = k8s_indexer::Keys::new();
    for hosts in [json!(["x"]), json!(["x", "y"]), json!(["y", "x", "y"]), json!([]), json!(["x"])] {
        by_host.keys(&object!({"hosts": (hosts.clone())}), &mut keys);
        let mut expected: Vec<IndexKey> = Vec::new();
        for host in hosts.as_array().expect("hosts") {
            let key = key(&[host.as_str().expect("host")]);
            if !expected.contains(&key) {
                expected.push(key);
            }
        }
        if expected.is_empty() {
            expected.push(key(&[]));
        }
        assert_eq!(keys.as_slice(), expected, "{hosts}");
    }
}

#[test]
fn c55_a_lost_label_leaves_the_part_of_the_key_before_it() {
    let by_team = Indexer::new(["metadata.namespace", "metadata.labels.team", "kind"]).expect("index");
    let mut keys = k8s_indexer::Keys::new();
    let object = |labels: Value| {
        Object::from_value(&json!({"kind": "Pod", "metadata": {"namespace": "n", "labels": labels}})).expect("object")
    };
    for (labels, expected, missing) in [
        (json!({"team": "red"}), key(&["n", "red", "Pod"]), None),
        (json!({}), key(&["n"]), Some(1)),
        (json!({"team": "blue"}), key(&["n", "blue", "Pod"]), None),
        (json!({"team": null}), key(&["n"]), Some(1)),
        (json!({"team": ["red"]}), key(&["n"]), Some(1)),
        (json!({"team": ""}), key(&["n", "", "Pod"]), None),
    ] {
        by_team.keys(&object(labels.clone()), &mut keys);
        assert_eq!(keys.as_slice(), [expected], "{labels}");
        assert_eq!(keys.missing(), missing, "{labels}");
        assert_eq!(keys.not_scalar(), usize::from(labels["team"].is_array()), "{labels}");
    }
}

#[test]
fn c59_one_text_for_a_value_whatever_its_type() {
    let table = [
        ("8080", Some("8080")),
        ("8080.0", Some("8080")),
        ("\"8080\"", Some("8080")),
        ("1e3", Some("1000")),
        ("-0.0", Some("0")),
        ("true", Some("true")),
        ("\"true\"", Some("true")),
        ("null", None),
        ("[]", None),
        ("{}", None),
        ("9007199254740993", Some("9007199254740993")),
        ("-9223372036854775808", Some("-9223372036854775808")),
        ("18446744073709551615", Some("18446744073709551615")),
        ("0.1", Some("0.1")),
        ("\" 8080\"", Some(" 8080")),
    ];
    let mut encoder = Encoder::new();
    // The fast path, and the same member by the general path.
    for text in ["spec.value", "spec['value','nope']", "$.spec.value", "$..value"] {
        let expression: Expression = text.parse().expect(text);
        let index = Indexer::new([text]).expect(text);
        for (value, expected) in table {
            let json = format!(r#"{{"metadata":{{"name":"a"}},"spec":{{"value":{value}}}}}"#);
            // By itself, as a watch event may come, and twice by a store's encoder, which interns.
            let alone = Object::from_slice(json.as_bytes()).expect(value);
            let first = encoder.encode(json.as_bytes()).expect(value);
            let second = encoder.encode(json.as_bytes()).expect(value);
            for object in [alone, first, second] {
                assert_eq!(expression.first(&object).as_deref(), expected, "{text}: {value}");
                let expected: Vec<&str> = expected.into_iter().collect();
                assert_eq!(index.keys_of(&object).as_slice(), [key(&expected)], "{text}: {value}");
            }
        }
    }
}

#[test]
fn c60_doing_it_twice_changes_nothing() {
    let json = json!({"metadata": {"name": "a", "annotations": {"k": "v"}}, "status": {"phase": "Running"}});
    let paths = ignored_paths(["status", "metadata.annotations['k']"]).expect("paths");
    let bytes = serde_json::to_vec(&json).expect("json");
    let mut encoder = Encoder::new().ignore(&paths);
    let once = encoder.encode(&bytes).expect("object");
    let twice = encoder.encode(&serde_json::to_vec(&once).expect("json")).expect("object");
    assert_eq!(once, twice);
    assert_eq!(once.to_value(), json!({"metadata": {"name": "a", "annotations": {}}}));
}

const SPELLINGS: [&str; 5] = [
    r"metadata.labels.app\.kubernetes\.io/name",
    "metadata.labels['app.kubernetes.io/name']",
    r#"metadata.labels["app.kubernetes.io/name"]"#,
    r"metadata.labels['app\.kubernetes\.io/name']",
    r#"{.metadata.labels["app\.kubernetes\.io/name"]}"#,
];

#[test]
fn c69_dots_and_slashes_in_keys() {
    let object = object!({"metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "x=y"}}});
    let bytes = serde_json::to_vec(&object).expect("json");
    for text in SPELLINGS {
        assert_eq!(values(text, &object), ["x=y"], "{text}");
        // The same in ignored fields and in field selectors, also when the value has the sign in it.
        let ignored = ignored_paths([text]).expect(text);
        let pruned = Encoder::new().ignore(&ignored).encode(&bytes).expect("object");
        assert_eq!(values(text, &pruned), [""; 0], "{text}");
        for sign in ["=", "=="] {
            let selector: FieldSelector = format!("{text}{sign}x=y").parse().expect(text);
            assert!(selector.matches(&object), "{text}");
            assert!(!selector.matches(&pruned), "{text}");
        }
    }
    for unescaped in ["metadata.labels.app.kubernetes.io/name", "$.metadata.labels.app.kubernetes.io/name"] {
        let error = validate(unescaped).expect_err(unescaped);
        assert_eq!(error.suggestion(), Some("write metadata.labels['app.kubernetes.io/name']"));
        assert!(ignored_paths([unescaped]).is_err());
        assert!(format!("{unescaped}=x").parse::<FieldSelector>().is_err());
    }
    let error = validate("items[0:2].metadata.labels.a.b/c").expect_err("behind a slice");
    assert_eq!(error.to_string(), "unescaped dots in a label key at column 28: write metadata.labels['a.b/c']");
}

#[test]
fn c70_index_out_of_range_negative_and_of_the_wrong_type() {
    let rows: [(&str, [&[&str]; 6]); 10] = [
        // Expression; results for [], ["a"], ["a", "b", "c"], a map, a text, null.
        ("v[5]", [&[], &[], &[], &[], &[], &[]]),
        ("v[-1]", [&[], &["a"], &["c"], &[], &[], &[]]),
        ("v[-9]", [&[], &[], &[], &[], &[], &[]]),
        ("v[-1:]", [&[], &["a"], &["c"], &[], &[], &[]]),
        ("v[-9:]", [&[], &["a"], &["a", "b", "c"], &[], &[], &[]]),
        ("v[0:0]", [&[], &[], &[], &[], &[], &[]]),
        ("v[1:9]", [&[], &[], &["b", "c"], &[], &[], &[]]),
        ("$.v[-1:]", [&[], &["a"], &["c"], &[], &[], &[]]),
        ("$.v[::-1]", [&[], &["a"], &["c", "b", "a"], &[], &[], &[]]),
        ("v.k", [&[], &[], &[], &["m"], &[], &[]]),
    ];
    let subjects = [json!([]), json!(["a"]), json!(["a", "b", "c"]), json!({"k": "m"}), json!("text"), Value::Null];
    for (text, results) in rows {
        for (subject, expected) in subjects.iter().zip(results) {
            let object = Object::from_value(&json!({"v": subject})).expect("object");
            assert_eq!(values(text, &object), expected, "{text}: {subject}");
        }
    }
    for text in [
        "v[::0]",
        "v[0:1:0]",
        "$.v[::0]",
        "$.v[?@.a][ 0 : 1 : 0 ]",
        "v[99999999999999999999]",
        "v[:99999999999999999999]",
    ] {
        assert!(validate(text).is_err(), "{text}");
    }
    assert_eq!(
        validate("$.v[::0]").expect_err("step").to_string(),
        "slice with step 0, which selects nothing at column 6"
    );
    // A colon and a zero elsewhere are no step.
    assert_eq!(validate("$.v[?@['a::0'] == '::0']"), Ok(()));
}

#[test]
fn c72_ways_to_write_the_start() {
    let object = object!({"metadata": {"name": "a", "ownerReferences": [{"name": "owner"}]}});
    for text in ["metadata.name", ".metadata.name", "$.metadata.name", "{.metadata.name}"] {
        assert_eq!(values(text, &object), ["a"], "{text}");
    }
    // What RFC 9535 tools write.
    assert_eq!(values("$.metadata.ownerReferences[?(@.name=='owner')].name", &object), ["owner"]);
    for (text, expected) in [
        ("", "empty path at column 1"),
        (".", "empty path at column 1"),
        ("$", "empty path at column 1"),
        ("{", "unclosed '{' at column 1"),
        ("metadata.name.", "name missing after '.' at column 15"),
        (" metadata.name ", "unexpected space at column 1"),
        ("metadata.[name]", "'.' before '[' at column 9: leave the dot away"),
        ("$.[?(@.a)]", "'.' before '[' at column 2: leave the dot away"),
        ("{range .items[*]}", "template command 'range' at column 2: a path is one expression, use [*]"),
        ("name={.metadata.name}", "text before '{' at column 1: a path is one expression"),
        ("{..name} text", "text after '}' at column 9: a path is one expression"),
        ("{..name", "unclosed '{' at column 1"),
        ("{..name}{.kind}", "'}' without its counterpart at column 8"),
        ("..", "name missing after '..' at column 3"),
        ("...name", "name missing after '..' at column 3"),
        ("a....b", "name missing after '..' at column 4"),
        ("a..", "name missing after '..' at column 4"),
        ("a[0:1].", "name missing after '.' at column 8"),
        ("a[0:1]b", "expected '.' or '[' at column 7"),
    ] {
        assert_eq!(validate(text).expect_err(text).to_string(), expected, "{text:?}");
    }
    // In kubectl, and here, two dots are a recursive descent.
    assert_eq!(values("metadata..name", &object), ["a", "owner"]);
}

#[test]
fn c73_characters_other_dialects_refuse() {
    let object = object!({"metadata": {
        "labels": {"k8s-app": "1", "web/html": "2"},
        "annotations": {"a:b": "3", "a b": "4", "it's": "5", "größe": "6", "0": "7", "日本": "8"},
    }});
    for (text, expected) in [
        ("metadata.labels.k8s-app", "1"),
        ("metadata.labels.web/html", "2"),
        ("metadata.annotations.a:b", "3"),
        ("metadata.annotations['a b']", "4"),
        ("metadata.annotations[\"it's\"]", "5"),
        (r"metadata.annotations['it\'s']", "5"),
        ("metadata.annotations.größe", "6"),
        ("metadata.annotations.0", "7"),
        ("metadata.annotations['0']", "7"),
        ("metadata.annotations.日本", "8"),
        ("$.metadata.annotations.größe", "6"),
        // The same names behind something that the query engine evaluates.
        ("..labels.k8s-app", "1"),
        ("..labels.web/html", "2"),
        ("..annotations.a:b", "3"),
        ("..annotations['a b']", "4"),
        (r"..annotations['it\'s','nope']", "5"),
        ("..annotations.größe", "6"),
        ("..annotations.0", "7"),
    ] {
        assert_eq!(values(text, &object), [expected], "{text}");
    }
}
