//! What clients ask before they ask for objects: groups, resources, version, health.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::body::ResponseBody;
use crate::core::Core;
use crate::kind::ResourceKind;
use crate::route::Route;
use crate::status::Status;
use crate::verb::{self, refuse};

const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The version that `/version` names: the release whose behaviour this server follows.
pub(crate) const GIT_VERSION: &str = "v1.36.3";

pub(crate) fn answer(core: &Core, route: &Route) -> Response<ResponseBody> {
    let kinds = core.log.lock().kinds();
    match route {
        Route::Root => json_answer(&root(&kinds)),
        Route::Version => json_answer(&version()),
        Route::Health => text(StatusCode::OK, "ok"),
        Route::Core => json_answer(&json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:0" }],
        })),
        Route::Groups => {
            let groups: Vec<Value> = groups(&kinds).iter().map(|(name, versions)| group(name, versions)).collect();
            json_answer(&json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups }))
        }
        Route::Group(name) => match groups(&kinds).get(name.as_str()) {
            Some(versions) => {
                let mut value = group(name, versions);
                value["kind"] = "APIGroup".into();
                value["apiVersion"] = "v1".into();
                json_answer(&value)
            }
            None => page_not_found(),
        },
        Route::Resources(group, version) => resources(&kinds, group, version),
        Route::Resource(_) | Route::Unknown => page_not_found(),
    }
}

/// What the real server says of paths that are none of its API.
pub(crate) fn page_not_found() -> Response<ResponseBody> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

fn text(code: StatusCode, body: &'static str) -> Response<ResponseBody> {
    verb::answer(code, "text/plain; charset=utf-8", ResponseBody::full(body))
}

fn json_answer(value: &Value) -> Response<ResponseBody> {
    verb::json(StatusCode::OK, format!("{value}\n"))
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35", "gitVersion": GIT_VERSION, "gitCommit": "", "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "k8s-fake-apiserver", "platform": "any",
    })
}

fn root(kinds: &[Arc<ResourceKind>]) -> Value {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for (group, versions) in groups(kinds) {
        paths.push(format!("/apis/{group}"));
        paths.extend(versions.iter().map(|v| format!("/apis/{group}/{v}")));
    }
    paths.extend(["/healthz", "/livez", "/readyz", "/version"].map(str::to_owned));
    json!({ "paths": paths })
}

/// The named groups with their versions.
fn groups(kinds: &[Arc<ResourceKind>]) -> BTreeMap<&str, Vec<&str>> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kind in kinds.iter().filter(|k| !k.group.is_empty()) {
        let versions = groups.entry(&kind.group).or_default();
        if !versions.contains(&kind.version.as_str()) {
            versions.push(&kind.version);
        }
    }
    groups
}

fn group(name: &str, versions: &[&str]) -> Value {
    let version = |v: &&str| json!({ "groupVersion": format!("{name}/{v}"), "version": v });
    let list: Vec<Value> = versions.iter().map(version).collect();
    json!({ "name": name, "versions": list, "preferredVersion": list.first() })
}

fn resources(kinds: &[Arc<ResourceKind>], group: &str, version: &str) -> Response<ResponseBody> {
    let mut list = Vec::new();
    for kind in kinds.iter().filter(|k| k.group == group && k.version == version) {
        let mut entry = json!({
            "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind, "verbs": VERBS,
        });
        if !kind.short_names.is_empty() {
            entry["shortNames"] = kind.short_names.clone().into();
        }
        if !kind.categories.is_empty() {
            entry["categories"] = kind.categories.clone().into();
        }
        list.push(entry);
        if kind.status {
            list.push(json!({
                "name": format!("{}/status", kind.plural), "singularName": "", "namespaced": kind.namespaced, "kind": kind.kind,
                "verbs": ["get", "patch", "update"],
            }));
        }
    }
    if list.is_empty() {
        let known = group.is_empty() || kinds.iter().any(|k| k.group == group);
        return if known { refuse(&Status::no_such_path()) } else { page_not_found() };
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut answer = json!({ "kind": "APIResourceList", "groupVersion": group_version, "resources": list });
    if !group.is_empty() {
        answer["apiVersion"] = "v1".into();
    }
    json_answer(&answer)
}
