//! What the server itself writes into an object: identity, times, generation, defaults.

use http::HeaderMap;
use serde_json::{Map, Value, json};

use crate::base64;
use crate::kind::ResourceKind;
use crate::status::{FieldError, Status};

/// Reads a request body as an object of this kind. Type fields may be missing, but not wrong.
pub(crate) fn parse(kind: &ResourceKind, headers: &HeaderMap, body: &[u8]) -> Result<Value, Status> {
    if !is_json(headers) {
        return Err(Status::unknown_format("application/json"));
    }
    let value: Value = serde_json::from_slice(body).map_err(|e| {
        let shown = String::from_utf8_lossy(&body[..body.len().min(100)]);
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: {e} ({shown})",
            kind.kind
        ))
    })?;
    for (member, shown) in [("kind", "Kind"), ("apiVersion", "apiVersion")] {
        if !kind.rules.built_in && value.is_object() && value.get(member).is_none_or(|v| v == "") {
            let text = String::from_utf8_lossy(body);
            return Err(Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): Object '{shown}' is missing in '{text}' ({text})",
                kind.kind
            )));
        }
    }
    typed(kind, value)
}

/// Bodies without a content type are taken for JSON. Protobuf and YAML are not understood.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(http::header::CONTENT_TYPE) else { return true };
    let value = value.to_str().unwrap_or_default();
    matches!(value.split(';').next().unwrap_or_default().trim(), "" | "application/json" | "*/*")
}

/// Checks and fills in `kind`, `apiVersion` and the shape of `metadata`.
pub(crate) fn typed(kind: &ResourceKind, mut value: Value) -> Result<Value, Status> {
    let Some(root) = value.as_object_mut() else {
        return Err(Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {})",
            kind.kind
        )));
    };
    let text = |v: Option<&Value>| v.and_then(Value::as_str).unwrap_or_default().to_owned();
    let (found, version) = (text(root.get("kind")), text(root.get("apiVersion")));
    if !found.is_empty() && found != kind.kind && !kind.rules.built_in {
        let error = FieldError::invalid("kind", &format!("{found:?}"), &format!("must be {}", kind.kind));
        let name = root.get("metadata").and_then(|m| text(m.get("name")).into());
        return Err(Status::invalid(&kind.group, &found, &name.unwrap_or_default(), &[error]));
    }
    if !found.is_empty() && found != kind.kind {
        return Err(Status::bad_request(format!(
            "{found} in version {version:?} cannot be handled as a {}: converting ({}.{found}) to ({}.{}): unknown conversion",
            kind.kind,
            version.rsplit('/').next().unwrap_or_default(),
            if kind.group.is_empty() { "core" } else { &kind.group },
            kind.kind
        )));
    }
    if !version.is_empty() && version != kind.api_version() && kind.rules.built_in {
        return Err(Status::bad_request(format!(
            "{0} in version {1:?} cannot be handled as a {0}: no kind {0:?} is registered for version {version:?} in scheme \
             \"pkg/runtime/scheme.go:111\"",
            kind.kind,
            version.rsplit('/').next().unwrap_or_default()
        )));
    }
    if !version.is_empty() && version != kind.api_version() {
        return Err(Status::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({})",
            kind.api_version()
        )));
    }
    root.insert("kind".into(), kind.kind.as_str().into());
    root.insert("apiVersion".into(), kind.api_version().into());
    let metadata = root.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    let Some(metadata) = metadata.as_object_mut() else {
        return Err(unreadable(kind, metadata, &format!("{}.metadata of type v1.ObjectMeta", kind.kind)));
    };
    for name in ["name", "generateName", "namespace", "uid", "resourceVersion"] {
        match metadata.get(name) {
            Some(Value::Null) => drop(metadata.remove(name)),
            Some(Value::String(_)) | None => {}
            Some(other) => return Err(wrong_type(kind, other, name, "string")),
        }
    }
    for name in ["labels", "annotations"] {
        match metadata.get(name) {
            Some(Value::Object(map)) => {
                if let Some(wrong) = map.values().find(|v| !v.is_string()) {
                    return Err(wrong_type(kind, wrong, name, "string"));
                }
            }
            Some(Value::Null) => drop(metadata.remove(name)),
            None => {}
            Some(other) => return Err(wrong_type(kind, other, name, "map[string]string")),
        }
    }
    Ok(value)
}

fn wrong_type(kind: &ResourceKind, found: &Value, field: &str, wanted: &str) -> Status {
    let path = if kind.rules.built_in { "ObjectMeta.metadata" } else { "ObjectMeta" };
    unreadable(kind, found, &format!("{path}.{field} of type {wanted}"))
}

fn unreadable(kind: &ResourceKind, found: &Value, wanted: &str) -> Status {
    let (kind, version, found) = (&kind.kind, &kind.version, go_name(found));
    Status::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: json: cannot unmarshal {found} into Go struct field {wanted}"
    ))
}

/// What the real server's JSON parser calls a value.
pub(crate) fn go_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    match &mut object["metadata"] {
        Value::Object(map) => map,
        _ => unreachable!("metadata was made an object above"),
    }
}

/// A text of the metadata; empty when absent.
pub(crate) fn meta<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"][name].as_str().unwrap_or_default()
}

/// The namespace of the object must be that of the request; it is filled in when missing.
pub(crate) fn place(kind: &ResourceKind, object: &mut Value, namespace: Option<&str>) -> Result<(), Status> {
    let namespace = namespace.unwrap_or_default();
    let given = meta(object, "namespace");
    if !given.is_empty() && given != namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if kind.namespaced && given.is_empty() {
        metadata(object).insert("namespace".into(), namespace.into());
    }
    Ok(())
}

/// What the real server fills in that selectors, kubectl or controllers look at. Not every default there is.
pub(crate) fn defaults(kind: &ResourceKind, object: &mut Value) {
    match kind.resource() {
        "v1/namespaces" => {
            let name = meta(object, "name").to_owned();
            set(object, &["metadata", "labels", "kubernetes.io/metadata.name"], name.into());
            set(object, &["spec", "finalizers"], json!(["kubernetes"]));
            set(object, &["status", "phase"], "Active".into());
        }
        "v1/secrets" => {
            merge_string_data(object);
            set(object, &["type"], "Opaque".into());
        }
        "v1/pods" => {
            set(object, &["spec", "restartPolicy"], "Always".into());
            set(object, &["spec", "dnsPolicy"], "ClusterFirst".into());
            set(object, &["spec", "schedulerName"], "default-scheduler".into());
            set(object, &["spec", "terminationGracePeriodSeconds"], 30.into());
            set(object, &["spec", "enableServiceLinks"], true.into());
            set(object, &["spec", "securityContext"], json!({}));
            set(object, &["status", "phase"], "Pending".into());
            set(object, &["status", "qosClass"], "BestEffort".into());
            complete_conditions(object);
        }
        "v1/services" => {
            set(object, &["spec", "type"], "ClusterIP".into());
            set(object, &["spec", "sessionAffinity"], "None".into());
            set(object, &["status", "loadBalancer"], json!({}));
        }
        "discovery.k8s.io/v1/endpointslices" => {
            set(object, &["endpoints"], Value::Null);
            set(object, &["ports"], Value::Null);
        }
        "networking.k8s.io/v1/ingresses" => set(object, &["status", "loadBalancer"], json!({})),
        "apps/v1/deployments" => {
            set(object, &["spec", "replicas"], 1.into());
            set(object, &["status"], json!({}));
        }
        "apps/v1/replicasets" | "apps/v1/statefulsets" => {
            set(object, &["spec", "replicas"], 1.into());
            set(object, &["status", "replicas"], 0.into());
        }
        "batch/v1/jobs" | "batch/v1/cronjobs" => set(object, &["status"], json!({})),
        _ => {}
    }
}

/// Defaults that updates get as well.
pub(crate) fn defaults_on_update(kind: &ResourceKind, object: &mut Value) {
    if kind.is("v1/secrets") {
        merge_string_data(object);
        set(object, &["type"], "Opaque".into());
    }
    if kind.is("v1/pods") {
        complete_conditions(object);
    }
}

/// A Pod's conditions have their times always, null if need be.
fn complete_conditions(pod: &mut Value) {
    let Some(conditions) = pod.pointer_mut("/status/conditions").and_then(Value::as_array_mut) else { return };
    for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
        condition.entry("lastProbeTime").or_insert(Value::Null);
        condition.entry("lastTransitionTime").or_insert(Value::Null);
    }
}

fn merge_string_data(secret: &mut Value) {
    let Some(plain) = secret.as_object_mut().and_then(|o| o.remove("stringData")) else { return };
    for (name, value) in plain.as_object().into_iter().flatten() {
        let coded = base64::encode(value.as_str().unwrap_or_default().as_bytes());
        if !secret["data"].is_object() {
            secret["data"] = json!({});
        }
        secret["data"][name] = coded.into();
    }
}

/// Sets a member unless something stands there.
fn set(object: &mut Value, path: &[&str], value: Value) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut at = object;
    for name in parents {
        if at.get(name).is_none_or(Value::is_null) {
            at[*name] = json!({});
        }
        if !at[*name].is_object() {
            return;
        }
        at = &mut at[*name];
    }
    if at.get(last).is_none_or(Value::is_null) {
        at[*last] = value;
    }
}

/// Whether something other than metadata and (with a status subresource, or built in) status differs.
pub(crate) fn spec_differs(kind: &ResourceKind, a: &Value, b: &Value) -> bool {
    let status = kind.status || kind.rules.built_in;
    let skip = |name: &str| matches!(name, "kind" | "apiVersion" | "metadata") || (name == "status" && status);
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return a != b };
    let subset = |x: &Map<String, Value>, y: &Map<String, Value>| x.iter().all(|(k, v)| skip(k) || y.get(k) == Some(v));
    !(subset(a, b) && subset(b, a))
}

/// New finalizers may not come to an object that is being deleted.
pub(crate) fn check_finalizers(kind: &ResourceKind, old: &Value, new: &Value) -> Result<(), Status> {
    if meta(old, "deletionTimestamp").is_empty() {
        return Ok(());
    }
    let list = |o: &Value| o["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let before = list(old);
    let added: Vec<String> = list(new).iter().filter(|f| !before.contains(f)).map(ToString::to_string).collect();
    if added.is_empty() {
        return Ok(());
    }
    let text = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    // The real server checks this twice, once for all kinds and once for each, and says so.
    let error = FieldError::forbidden("metadata.finalizers", &text);
    Err(Status::invalid(&kind.group, &kind.kind, meta(new, "name"), &[error.clone(), error]))
}
