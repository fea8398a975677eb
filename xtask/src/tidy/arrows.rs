//! Which crate may use which of ours.

use serde_json::Value;

use crate::metadata::{Metadata, list};

/// A crate and those of ours that it may use. A new arrow is a decision about the design: it is made here, in sight.
const ARROWS: &[(&str, &[&str])] = &[
    ("k8s-packed", &[]),
    ("k8s-types", &["k8s-packed"]),
    ("k8s-indexer", &["k8s-packed", "k8s-types"]),
    ("k8s-store", &["k8s-indexer", "k8s-packed", "k8s-types"]),
    ("k8s-client", &["k8s-packed", "k8s-types"]),
    ("k8s-watcher", &["k8s-client", "k8s-indexer", "k8s-packed", "k8s-store", "k8s-types"]),
    ("k8s-leader-election", &["k8s-types"]),
    // Whoever tests with it would see two copies of their own types if it used any of ours.
    ("k8s-fake-apiserver", &[]),
    (
        "k8s-informer",
        &["k8s-client", "k8s-indexer", "k8s-leader-election", "k8s-packed", "k8s-store", "k8s-types", "k8s-watcher"],
    ),
    // A dev-dependency of any crate, so of none itself.
    ("test-support", &[]),
    ("xtask", &[]),
];

/// The unpublished package of scenarios, which may use everything.
const SCENARIOS: &str = "e2e";

/// Dev-dependencies on our own crates point anywhere but upwards, and by path only: they vanish on publish.
const TEST_SERVER: &str = "k8s-fake-apiserver";

pub(super) fn check(metadata: &Metadata) -> Vec<String> {
    let members = metadata.members();
    let mut wrong = Vec::new();
    for (&name, package) in &members {
        if name == SCENARIOS {
            continue;
        }
        let Some((_, allowed)) = ARROWS.iter().find(|(of, _)| *of == name) else {
            wrong.push(format!("{name}: not in the table of arrows; say there what it may use"));
            continue;
        };
        for dependency in list(&package["dependencies"]) {
            let on = dependency["name"].as_str().unwrap_or_default();
            if members.contains_key(on) {
                wrong.extend(check_arrow(name, on, allowed, dependency));
            }
        }
    }
    wrong
}

fn check_arrow(name: &str, on: &str, allowed: &[&str], dependency: &Value) -> Option<String> {
    if dependency["kind"].as_str() == Some("dev") {
        if name == TEST_SERVER {
            return Some(format!("{name}: uses {on} in its tests, but knows none of our crates"));
        }
        let by_path_only = dependency["req"].as_str() == Some("*") && dependency["path"].is_string();
        return (!by_path_only).then(|| format!("{name}: the dev-dependency on {on} needs a path and no version"));
    }
    (!allowed.contains(&on)).then(|| format!("{name}: must not use {on}; it may use {}", allowed.join(", ")))
}
