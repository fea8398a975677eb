use super::{Path, PathError, Step};
use proptest::prelude::*;

fn path(text: &str) -> Path {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn error(text: &str) -> PathError {
    match text.parse::<Path>() {
        Ok(path) => panic!("{text:?} parsed to {path}"),
        Err(error) => error,
    }
}

fn check(text: &str, canonical: &str) {
    assert_eq!(path(text).to_string(), canonical, "{text:?}");
    assert_eq!(path(canonical), path(text), "canonical text of {text:?}");
}

fn check_error(text: &str, expected: &str) {
    assert_eq!(error(text).to_string(), expected, "{text:?}");
}

#[test]
fn members_indexes_and_wildcards() {
    check("spec.rules[0].host", "spec.rules[0].host");
    check("a[-1]", "a[-1]");
    check("a[*].b", "a[*].b");
    check("a.*", "a[*]");
    check("*.a", "[*].a");
    check(".*", "[*]");
    check("[0].a", "[0].a");
    check("['a'].b", "a.b");
    check("a[00]", "a[0]");
    check("a[ 0 ][ 'b c' ][ * ]", "a[0]['b c'][*]");
    check("data.0", "data.0");
    assert_eq!(path("data.0").steps()[1], Step::Member("0".into()));
    assert_eq!(path("data[0]").steps()[1], Step::Index(0));
}

#[test]
fn c69_dots_and_slashes_in_keys() {
    for text in [
        r"metadata.labels.app\.kubernetes\.io/name",
        "metadata.labels['app.kubernetes.io/name']",
        r#"metadata.labels["app.kubernetes.io/name"]"#,
        r"metadata.labels['app\.kubernetes\.io/name']",
        r#"metadata.labels["app\.kubernetes\.io/name"]"#,
        r"{.metadata.labels.app\.kubernetes\.io/name}",
        r"{.metadata.labels['app\.kubernetes\.io/name']}",
        "$.metadata.labels['app.kubernetes.io/name']",
        "$['metadata'][\"labels\"]['app.kubernetes.io/name']",
    ] {
        check(text, "metadata.labels['app.kubernetes.io/name']");
    }
}

#[test]
fn c69_unescaped_key_shows_the_right_spelling() {
    check_error(
        "metadata.labels.app.kubernetes.io/name",
        "unescaped dots in a label key at column 17: write metadata.labels['app.kubernetes.io/name']",
    );
    check_error(
        "$.metadata.labels.app.kubernetes.io/name",
        "unescaped dots in a label key at column 19: write metadata.labels['app.kubernetes.io/name']",
    );
    check_error(
        "spec.template.metadata.annotations.a.b/c.d",
        "unescaped dots in an annotation key at column 36: write spec.template.metadata.annotations['a.b/c.d']",
    );
    check_error(
        "metadata.labels.foo.bar",
        "unescaped dots in a label key at column 17: write metadata.labels['foo.bar']",
    );
    check_error(
        "spec.selector.matchLabels.example.com/team",
        "unescaped dots in a label key at column 27: write spec.selector.matchLabels['example.com/team']",
    );
    check_error(
        "status.capacity.nvidia.com/gpu",
        "unescaped dots in a key at column 17: write status.capacity['nvidia.com/gpu']",
    );
    // Elsewhere a member below a map called `data` is what it says.
    check("spec.data.config.name", "spec.data.config.name");
}

#[test]
fn c70_indexes_too_large_to_be_meant() {
    check_error("a[99999999999999999999]", "index out of range at column 3");
    check_error("$.a[9007199254740992]", "index out of range at column 5");
    check("a[9007199254740991]", "a[9007199254740991]");
    check_error("a[-]", "digits missing after '-' at column 4");
}

#[test]
fn c72_ways_to_write_the_start() {
    for text in [
        "metadata.name",
        ".metadata.name",
        "$.metadata.name",
        "{.metadata.name}",
        "{metadata.name}",
        "{$.metadata.name}",
        "{@.metadata.name}",
        "@.metadata.name",
        "{ .metadata.name }",
        "$['metadata']['name']",
        "$ [ 'metadata' ] .name",
    ] {
        check(text, "metadata.name");
    }
    for (text, expected) in [
        ("", "empty path at column 1"),
        (".", "empty path at column 1"),
        ("$", "empty path at column 1"),
        ("@", "empty path at column 1"),
        ("{", "unclosed '{' at column 1"),
        ("{}", "empty path at column 1"),
        ("{.}", "empty path at column 2"),
        ("metadata..name", "recursive descent in a plain path at column 9"),
        ("..name", "recursive descent in a plain path at column 1"),
        ("metadata.name.", "name missing after '.' at column 15"),
        ("$.metadata.", "name missing after '.' at column 12"),
        (" metadata.name ", "unexpected space at column 1"),
        ("metadata.name ", "unexpected space at column 14"),
        ("metadata. name", "unexpected space at column 10"),
        ("$.metadata.name ", "unexpected space at column 16"),
        ("metadata.[name]", "'.' before '[' at column 9: leave the dot away"),
        ("metadata.['name']", "'.' before '[' at column 9: leave the dot away"),
        ("metadata[name]", "name without quotes in brackets at column 10: write ['name']"),
        ("metadata[]", "empty brackets at column 9"),
        ("metadata['name'", "unclosed '[' at column 9"),
        ("metadata['name", "unclosed quote at column 10"),
        ("metadata['name\\", "unclosed quote at column 10"),
        ("metadata.name\\", "backslash at the end at column 14"),
        ("{.metadata.name", "unclosed '{' at column 1"),
        (".metadata.name}", "'}' without its counterpart at column 15"),
        ("{.metadata.name}{.kind}", "second group of braces at column 17: a path is one expression"),
        ("{.metadata.name} x", "text after '}' at column 17: a path is one expression"),
        ("name: {.metadata.name}", "unexpected space at column 6"),
        ("x{.metadata.name}", "text before '{' at column 1: a path is one expression"),
        ("{range .items[*]}", "template command 'range' at column 2: a path is one expression, use [*]"),
        ("metadata]", "']' without its counterpart at column 9"),
        ("ä.b]", "']' without its counterpart at column 4"),
        ("a['b'c]", "expected ']', found 'c' at column 6"),
        ("a[(@.length-1)]", "script expression at column 3: use a filter, [?(…)]"),
        (
            "a.b*",
            "unexpected '*' at column 4: write such a name in brackets and quotes, or put a backslash before the character",
        ),
        ("$.a.k8s-app", "unexpected '-' at column 8: write a.k8s-app"),
        (
            "$.a.0",
            "unexpected '0' at column 5: after '$', a name with such a character is written in brackets and quotes",
        ),
        ("$.a['b\\.c']", "unknown escape at column 7: after '$', dots in quotes need no backslash"),
        ("$a", "unexpected 'a' at column 2: expected '.' or '['"),
    ] {
        check_error(text, expected);
    }
}

#[test]
fn c73_characters_other_dialects_refuse() {
    check("metadata.labels.k8s-app", "metadata.labels.k8s-app");
    check("metadata.labels.web/html", "metadata.labels['web/html']");
    check("metadata.annotations.a:b", "metadata.annotations['a:b']");
    check("metadata.annotations['a b']", "metadata.annotations['a b']");
    check(r"metadata.annotations.a\ b", "metadata.annotations['a b']");
    check(r#"data["it's"]"#, r"data['it\'s']");
    check(r"data['it\'s']", r"data['it\'s']");
    check(r"data['back\\slash']", r"data['back\\slash']");
    check("data.größe", "data.größe");
    check("data.日本", "data.日本");
    check("data['']", "data['']");
    check("data['*']", "data['*']");
    check(r"data.\*", "data['*']");
}

#[test]
fn what_needs_a_query_engine_says_so() {
    for (text, column) in [
        ("..name", 1),
        ("$..name", 2),
        ("a[0:2]", 2),
        ("a[:2]", 2),
        ("$.a[ 1 : 2 ]", 4),
        ("a['b','c']", 2),
        ("a[*,0]", 2),
        ("a[0,1]", 2),
        ("a[?(@.type==\"Ready\")].status", 2),
        ("$.a[?@.b]", 4),
    ] {
        let error = error(text);
        assert!(error.needs_query(), "{text:?}: {error}");
        assert_eq!(error.column(), column, "{text:?}");
    }
    assert!(!error("a[").needs_query());
}

#[test]
fn canonical_text_of_what_lies_below_a_label_parses() {
    for (text, canonical) in [
        ("a.metadata.labels['b'].c", "a.metadata.labels['b'].c"),
        ("metadata.annotations['b']['c'].d", "metadata.annotations['b'].c.d"),
        ("metadata.labels['metadata']['labels']['x'].y", "metadata.labels['metadata'].labels['x'].y"),
        ("metadata['labels'].b", "metadata.labels.b"),
    ] {
        assert_eq!(path(text).to_string(), canonical);
        assert_eq!(path(canonical), path(text));
    }
}

#[test]
fn rfc_escapes() {
    assert_eq!(path(r"$['\u0061\t\ud83d\ude00\'']").steps(), [Step::Member("a\t😀'".into())]);
    check_error(r"$['\ud83d']", "invalid unicode escape at column 4");
    check_error(r"$['\u00zz']", "invalid unicode escape at column 4");
    check_error("$['a\nb']", "control character in quotes at column 5");
    check_error("$[01]", "index with a leading zero at column 3");
    check_error("$[-0]", "index with a leading zero at column 3");
}

#[test]
fn covers_itself_and_what_lies_below() {
    for (own, other, expected) in [
        ("metadata", "metadata.name", true),
        ("metadata.name", "metadata.name", true),
        ("metadata.name", "metadata", false),
        ("metadata.*", "metadata.name", true),
        ("status.conditions[*].lastProbeTime", "status.conditions[0].lastProbeTime", true),
        ("status.conditions[*].lastProbeTime", "status.conditions[*].lastProbeTime.x", true),
        ("status.conditions[0]", "status.conditions[*].type", false),
        ("status.conditions[-1]", "status.conditions[0].type", false),
        ("metadata.labels", "metadata.label", false),
    ] {
        assert_eq!(path(own).covers(&path(other)), expected, "{own} covers {other}");
    }
    assert!(path("a.b").is_prefix_of(&path("a.b[0]")));
    assert!(!path("a[*]").is_prefix_of(&path("a[0]")));
    assert!(Path::from_steps([]).covers(&path("a")));
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        "metadata|labels|annotations|data|a/b".prop_map(|name| Step::Member(name.into())),
        "[a-zA-Z0-9_./: \\\\'\"*$@{}\\[\\]ä日-]{0,8}".prop_map(|name| Step::Member(name.into())),
        any::<String>().prop_map(|name| Step::Member(name.into())),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Step::Index),
        Just(Step::Wildcard),
    ]
}

proptest! {
    #![proptest_config(test_support::cases(512))]

    #[test]
    fn canonical_text_parses_to_the_same_path(steps in prop::collection::vec(step(), 1..6)) {
        let path = Path::from_steps(steps);
        let text = path.to_string();
        let parsed = text.parse::<Path>().map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        prop_assert_eq!(parsed, path);
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = text.parse::<Path>();
    }

    #[test]
    fn texts_of_the_grammar_never_panic_and_columns_lie_inside(text in "[$@{}.*a-c0'\"\\[\\]\\\\:,? ä/u-]{0,16}") {
        match text.parse::<Path>() {
            Ok(path) => {
                let again: Path = path.to_string().parse()?;
                prop_assert_eq!(again, path);
            }
            Err(error) => prop_assert!(error.column() >= 1 && error.column() <= text.chars().count() + 1),
        }
    }
}
