//! What `cargo metadata` says about the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::run::{cargo, output};

/// The answer of `cargo metadata`, kept as JSON: the tasks read few of its fields.
#[derive(Debug)]
pub(crate) struct Metadata(Value);

impl Metadata {
    /// Asks cargo. `--locked`: a Cargo.lock that does not fit the manifests is an error here.
    pub(crate) fn load() -> Result<Self> {
        let text = output(&mut cargo(["metadata", "--format-version", "1", "--all-features", "--locked"]))?;
        Ok(Self(serde_json::from_str(&text)?))
    }

    /// Our own crates, by name.
    pub(crate) fn members(&self) -> BTreeMap<&str, &Value> {
        let ids: BTreeSet<_> = list(&self.0["workspace_members"]).filter_map(Value::as_str).collect();
        list(&self.0["packages"])
            .filter(|p| p["id"].as_str().is_some_and(|id| ids.contains(id)))
            .map(|p| (p["name"].as_str().unwrap_or_default(), p))
            .collect()
    }

    /// Where cargo builds.
    pub(crate) fn target_directory(&self) -> Result<PathBuf> {
        let folder = self.0["target_directory"].as_str().context("no target directory in the metadata")?;
        Ok(folder.into())
    }

    /// Those of our crates that may be published.
    pub(crate) fn published(&self) -> BTreeMap<&str, &Value> {
        let mut members = self.members();
        members.retain(|_, p| p["publish"].is_null());
        members
    }

    /// The `rust-version` that our crates promise.
    pub(crate) fn oldest_rust(&self) -> Result<&str> {
        let published = self.published();
        let version = published.values().find_map(|p| p["rust_version"].as_str());
        version.context("no crate has a rust-version")
    }

    /// Every package that a published crate needs to be built, itself included; dev-dependencies are not needed.
    pub(crate) fn needed_by_published(&self) -> Vec<&Value> {
        let packages: BTreeMap<_, _> = list(&self.0["packages"]).map(|p| (p["id"].as_str(), p)).collect();
        let nodes: BTreeMap<_, _> = list(&self.0["resolve"]["nodes"]).map(|n| (n["id"].as_str(), n)).collect();
        let mut open: Vec<_> = self.published().values().map(|p| p["id"].as_str()).collect();
        let mut seen = BTreeSet::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let Some(node) = nodes.get(&id) else { continue };
            for dependency in list(&node["deps"]) {
                if list(&dependency["dep_kinds"]).any(|k| k["kind"].as_str() != Some("dev")) {
                    open.push(dependency["pkg"].as_str());
                }
            }
        }
        seen.iter().filter_map(|id| packages.get(id).copied()).collect()
    }
}

/// The items of a JSON array; nothing if it is none.
pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
