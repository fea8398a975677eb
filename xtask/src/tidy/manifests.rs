//! Manifests fit for publishing, and every feature explained where people look.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::metadata::{Metadata, list};

pub(super) fn check(metadata: &Metadata) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (name, package) in metadata.members() {
        let path = Path::new(package["manifest_path"].as_str().context("a package without manifest")?);
        let text = fs::read_to_string(path)?;
        let mut tell = |finding: String| wrong.push(format!("{name}: {finding}"));
        if !text.contains("[lints]\nworkspace = true") {
            tell("the workspace's lints are not on".into());
        }
        literal_versions(&text).into_iter().for_each(&mut tell);
        if package["publish"].is_null() {
            publishing(package).into_iter().for_each(&mut tell);
            let folder = path.parent().context("a manifest without folder")?;
            files(folder, name).into_iter().for_each(&mut tell);
            let readme = fs::read_to_string(folder.join("README.md")).unwrap_or_default();
            features(package, &text, &readme).into_iter().for_each(&mut tell);
        }
    }
    Ok(wrong)
}

/// Every version stands once, in the root manifest.
fn literal_versions(manifest: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut in_dependencies = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            in_dependencies = line.trim_end_matches(']').ends_with("dependencies");
        } else if in_dependencies
            && line.contains('=')
            && !line.starts_with('#')
            && !line.contains("workspace = true")
            && !line.contains("path = ")
        {
            wrong.push(format!("`{line}`: versions stand in the root Cargo.toml, use `workspace = true`"));
        }
    }
    wrong
}

fn publishing(package: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for field in ["description", "license", "repository", "readme", "rust_version"] {
        if !package[field].is_string() {
            wrong.push(format!("no {field}"));
        }
    }
    for field in ["keywords", "categories"] {
        if list(&package[field]).next().is_none() {
            wrong.push(format!("no {field}"));
        }
    }
    if package["edition"] != "2024" {
        wrong.push("edition is not 2024".into());
    }
    if package["metadata"]["docs"]["rs"]["all-features"] != true {
        wrong.push("[package.metadata.docs.rs] does not build all features".into());
    }
    wrong
}

fn files(folder: &Path, name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
    if !read("README.md").contains(name) {
        wrong.push("README.md is missing or does not name the crate".into());
    }
    if !read("CHANGELOG.md").contains("\n## Unreleased") {
        wrong.push("CHANGELOG.md has no section `## Unreleased`".into());
    }
    // The packed form is the one room that might ever earn an unsafe line.
    if name != "k8s-packed" && !read("src/lib.rs").contains("#![forbid(unsafe_code)]") {
        wrong.push("src/lib.rs does not forbid unsafe code".into());
    }
    wrong
}

/// A comment above each feature in the manifest, its name in code quotes in the README.
fn features(package: &Value, manifest: &str, readme: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let Some(features) = package["features"].as_object() else { return wrong };
    for feature in features.keys().filter(|f| *f != "default" && !f.starts_with("__")) {
        let lines: Vec<_> = manifest.lines().collect();
        let at = lines.iter().position(|l| l.starts_with(&format!("{feature} =")));
        if !at.is_some_and(|at| at > 0 && lines[at - 1].starts_with('#')) {
            wrong.push(format!("feature {feature} has no comment above it"));
        }
        if !readme.contains(&format!("`{feature}`")) {
            wrong.push(format!("feature {feature} is not in the README"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_version_beside_a_dependency_is_found() {
        let manifest = "[package]\nversion = \"1\"\n[dependencies]\na.workspace = true\nb = \"1\"\n\
                        c = { workspace = true, features = [\"x\"] }\n[dev-dependencies]\nd = { path = \"../d\" }\n";
        let wrong = literal_versions(manifest);
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].starts_with("`b = \"1\"`"));
    }

    #[test]
    fn a_feature_needs_a_comment_and_a_place_in_the_readme() {
        let package = json!({"features": {"default": [], "__test": [], "a": [], "b": []}});
        let wrong = features(&package, "[features]\ndefault = []\n# What a gives.\na = []\nb = []\n", "`a` gives a");
        assert_eq!(wrong, ["feature b has no comment above it", "feature b is not in the README"]);
    }
}
