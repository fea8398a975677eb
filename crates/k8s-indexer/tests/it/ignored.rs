//! Ignored fields beside what indexes and selectors read.

use k8s_indexer::{Expression, Indexer, ignored_paths};

fn covered(expression: &str, ignored: &str) -> bool {
    let paths = ignored_paths([ignored]).unwrap_or_else(|error| panic!("{ignored}: {}", error.error()));
    let expression: Expression = expression.parse().unwrap_or_else(|error| panic!("{expression}: {error}"));
    expression.covered_by(&paths).is_some()
}

#[test]
fn a_path_that_takes_away_what_is_read_is_found() {
    for (expression, ignored, expected) in [
        ("metadata.labels.team", "metadata.labels", true),
        ("metadata.labels.team", "metadata.labels['team']", true),
        ("metadata.labels.team", "metadata.labels.other", false),
        ("metadata.labels.team", "metadata.annotations", false),
        ("status.conditions[0].status", "status.conditions[*].status", true),
        ("status.conditions[0].status", "status.conditions[*].lastProbeTime", false),
        ("status.conditions[*].status", "status.conditions[0]", false),
        // What the query engine evaluates.
        ("status.conditions[?(@.type==\"Ready\")].status", "status", true),
        ("status.conditions[?(@.type==\"Ready\")].status", "status.conditions[*].status", true),
        ("status.conditions[?(@.type==\"Ready\")].status", "status.conditions[*].type", true),
        ("status.conditions[?(@.type==\"Ready\")].status", "status.conditions[*].lastProbeTime", false),
        ("status.conditions[0:2].status", "status.conditions[*].status", true),
        ("$.status.conditions[?(@.type=='Ready')].status", "status.conditions", true),
        ("spec..name", "spec", true),
        ("spec..name", "spec.name", false),
        ("..name", "spec", false),
    ] {
        assert_eq!(covered(expression, ignored), expected, "{expression} without {ignored}");
    }
    let index = Indexer::new(["metadata.namespace", "status.phase"]).expect("index");
    let ignored = ignored_paths(["spec", "status"]).expect("paths");
    assert_eq!(index.covered_by(&ignored), Some((1, &ignored[1])));
    assert_eq!(index.covered_by(&ignored[..1]), None);
}

#[test]
fn metadata_is_told_from_the_rest() {
    for (text, expected) in [
        ("metadata.name", true),
        ("kind", true),
        ("apiVersion", true),
        ("metadata.ownerReferences[?(@.kind==\"Node\")].name", true),
        ("$.metadata.labels['a']", true),
        ("$.metadata..name", true),
        ("spec.nodeName", false),
        ("..name", false),
        ("['metadata','spec'].name", false),
        ("*.name", false),
    ] {
        let expression: Expression = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(expression.reads_only_metadata(), expected, "{text}");
    }
}

#[test]
fn the_identity_cannot_be_ignored() {
    for text in [
        "metadata",
        "metadata.name",
        "metadata.uid",
        "metadata.resourceVersion",
        "metadata.*",
        "*",
        "$.metadata.namespace",
    ] {
        let error = ignored_paths([text]).expect_err(text);
        assert!(error.error().message().contains("which identifies the object"), "{text}");
    }
    for text in ["metadata.labels", "metadata.*.a", "metadata.generation"] {
        assert!(ignored_paths([text]).is_ok(), "{text}");
    }
}

#[test]
fn only_plain_paths_can_be_ignored() {
    for (text, expected) in [
        ("..name", "more than a plain path at column 1: ignored fields have members, indexes and [*] only"),
        (
            "status.conditions[?(@.a)]",
            "more than a plain path at column 18: ignored fields have members, indexes and [*] only",
        ),
        ("$.a[0:1]", "more than a plain path at column 4: ignored fields have members, indexes and [*] only"),
        ("a[", "unclosed '[' at column 2"),
    ] {
        assert_eq!(ignored_paths([text]).expect_err(text).error().to_string(), expected);
    }
}
