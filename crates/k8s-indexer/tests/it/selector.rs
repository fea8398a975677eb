//! Field selectors.

use k8s_indexer::FieldSelector;
use k8s_packed::object;

fn selector(text: &str) -> FieldSelector {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn matching() {
    let object = object!({
        "metadata": {"name": "a", "labels": {"team": "red", "a=b": "c", "empty": ""}},
        "spec": {"nodeName": null, "replicas": 3, "whole": 3.0, "on": true, "hosts": ["x,y", "z", " s "], "eq": "=a"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    for (text, expected) in [
        ("metadata.name=a", true),
        ("metadata.name==a", true),
        ("metadata.name=b", false),
        ("{.metadata.name}=a", true),
        ("$.metadata.name=a", true),
        ("metadata.labels.team=red", true),
        ("metadata.labels['team']==red", true),
        ("metadata.labels['a=b']=c", true),
        (r"metadata.labels.a\=b=c", true),
        ("metadata.labels.empty=", true),
        ("metadata.labels.nope=", false),
        ("spec.nodeName=", false),
        ("spec.nodeName=null", false),
        ("spec.replicas=3", true),
        ("spec.replicas=3.0", false),
        ("spec.whole=3", true),
        ("spec.on=true", true),
        ("spec.hosts[0]='x,y'", true),
        ("spec.hosts[0]=\"x,y\"", true),
        ("spec.hosts[*]=z", false),
        ("spec.hosts[1]=z", true),
        ("spec.hosts[-1]=' s '", true),
        ("spec.eq='=a'", true),
        ("spec.eq===a", true),
        ("spec.hosts=x", false),
        ("status.conditions[?(@.type==\"Ready\")].status=True", true),
        ("status.conditions[?(@.type==\"Ready\")].status==False", false),
        ("status.conditions[?(@.type!=\"Ready\")].status=True", false),
    ] {
        let parsed = selector(text);
        assert_eq!(parsed.matches(&object), expected, "{text}");
        // The written form means the same.
        let again = selector(&parsed.to_string());
        assert_eq!((again.value(), again.expression().text()), (parsed.value(), parsed.expression().text()), "{text}");
    }
}

#[test]
fn wrong_texts_say_what_and_where() {
    for (text, expected) in [
        ("", "empty path at column 1"),
        ("=a", "empty path at column 1"),
        ("metadata.name", "'=' missing in a field selector at column 14: write path=value"),
        (
            "status.phase!=Running",
            "'!=' in a field selector at column 13: \
             the client selects by equality; a server field selector may have !=",
        ),
        (
            "a=b,c=d",
            "comma in a field selector at column 4: one path=value only; put quotes around a value with a comma",
        ),
        ("a,b=c", "comma in a field selector at column 2: one path=value only; put quotes around a value with a comma"),
        (
            "a='b',c=d",
            "comma in a field selector at column 6: one path=value only; put quotes around a value with a comma",
        ),
        ("a='b'c", "text after the quoted value at column 6"),
        ("a='b", "unclosed quote at column 3"),
        ("a= b", "blank around the value of a field selector at column 3: put quotes around it if it is meant"),
        ("a =b", "unexpected space at column 2"),
        ("metadata.labels['a=b", "unclosed quote at column 17"),
        (
            "metadata.labels.app.kubernetes.io/name=x",
            "unescaped dots in a label key at column 17: write metadata.labels['app.kubernetes.io/name']",
        ),
    ] {
        let error = text.parse::<FieldSelector>().expect_err(text);
        assert_eq!(error.to_string(), expected, "{text:?}");
    }
}

#[test]
fn what_it_reads_is_known() {
    assert_eq!(selector("spec.nodeName=a").path().map(ToString::to_string).as_deref(), Some("spec.nodeName"));
    let general = selector("spec.hosts[0:1]=a");
    assert_eq!(general.path(), None);
    let ignored = k8s_indexer::ignored_paths(["status", "spec.hosts"]).expect("paths");
    assert_eq!(general.expression().covered_by(&ignored), Some(&ignored[1]));
}
