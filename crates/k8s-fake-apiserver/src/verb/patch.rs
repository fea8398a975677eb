//! patch, in its four forms.

use http::StatusCode;
use serde_json::{Value, json};

use super::prepare;
use super::update::apply;
use super::{Answer, Call};
use crate::kind::ResourceKind;
use crate::patch::{json_patch, merge, strategic};
use crate::query::dry_run;
use crate::status::{FieldError, Status};
use crate::stored::Touched;

pub(crate) fn patch(call: &Call) -> Answer {
    let dry = dry_run(&call.query, "PatchOptions")?;
    let content_type = call.headers.get(http::header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let stored = match content_type.split(';').next().unwrap_or_default().trim() {
        "application/merge-patch+json" => {
            let patch = decode(&call.body)?;
            apply(call, dry, &touched(&patch), |old| {
                let mut new = old.clone();
                merge(&mut new, &patch);
                readable(&call.kind, new)
            })?
        }
        "application/strategic-merge-patch+json" if call.kind.rules.built_in => {
            let patch = decode(&call.body)?;
            apply(call, dry, &touched(&patch), |old| {
                let mut new = old.clone();
                strategic(&mut new, &patch).map_err(Status::bad_request)?;
                Ok(new)
            })?
        }
        "application/json-patch+json" => {
            let patch = serde_json::from_slice(&call.body)
                .map_err(|e| Status::bad_request(format!("error decoding patch: {e}")))?;
            apply(call, dry, &touched_by_operations(&call.body), |old| {
                readable(&call.kind, json_patch(old, &patch).map_err(|_| Status::unprocessable())?)
            })?
        }
        "application/apply-patch+yaml" | "application/apply-patch+json" => return server_side_apply(call, dry),
        "application/strategic-merge-patch+json" => {
            let accepted = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
            return Err(Status::unknown_format(accepted));
        }
        _ => return Err(Status::unsupported_media_type()),
    };
    Ok(call.object(StatusCode::OK, &stored))
}

fn decode(body: &[u8]) -> Result<Value, Status> {
    match serde_json::from_slice(body) {
        Ok(patch @ Value::Object(_)) => Ok(patch),
        Ok(other) => Err(Status::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            prepare::go_name(&other)
        ))),
        Err(e) => Err(Status::bad_request(format!("error decoding patch: {e}"))),
    }
}

/// A patch that leads to an object of wrong types is itself what is wrong.
fn readable(kind: &ResourceKind, new: Value) -> Result<Value, Status> {
    let Err(status) = prepare::typed(kind, new.clone()) else { return Ok(new) };
    let Some((_, why)) = status.message().split_once(": json: ") else { return Err(status) };
    let error = FieldError::invalid("patch", &format!("{:?}", new.to_string()), &format!("json: {why}"));
    Err(Status::invalid("", "", "", &[error]))
}

/// Most patches change a label or a status: the rest of a big object need not be parsed for them.
fn touched(patch: &Value) -> Touched {
    let Some(patch) = patch.as_object() else { return Touched::All };
    let metadata = patch.get("metadata");
    // `$patch` and its like may concern everything.
    if patch.keys().any(|k| k.starts_with('$')) || metadata.is_some_and(|m| !is_plain_metadata(m)) {
        return Touched::All;
    }
    Touched::Only(patch.keys().cloned().collect())
}

fn is_plain_metadata(metadata: &Value) -> bool {
    metadata.as_object().is_some_and(|m| !m.contains_key("managedFields") && !m.keys().any(|k| k.starts_with('$')))
}

fn touched_by_operations(body: &[u8]) -> Touched {
    let Ok(Value::Array(operations)) = serde_json::from_slice(body) else { return Touched::All };
    let mut members = Vec::new();
    for pointer in operations.iter().flat_map(|o| [o.get("path"), o.get("from")]).flatten() {
        let mut parts = pointer.as_str().unwrap_or_default().split('/').skip(1);
        match (parts.next(), parts.next()) {
            (None | Some("kind" | "apiVersion"), _) | (Some("metadata"), None | Some("managedFields")) => {
                return Touched::All;
            }
            // An escaped name: rare enough to look at everything.
            (Some(member), _) if member.contains('~') => return Touched::All,
            (Some(member), _) => members.push(member.to_owned()),
        }
    }
    Touched::Only(members)
}

/// Merges what is applied into the object, or creates it. Fields that an earlier apply set and this one leaves out stay.
fn server_side_apply(call: &Call, dry: bool) -> Answer {
    if call.query.get("fieldManager").is_empty() {
        let error = FieldError::required("fieldManager", "is required for apply patch");
        return Err(Status::invalid("meta.k8s.io", "PatchOptions", "", &[error]));
    }
    let patch: Value = serde_json::from_slice(&call.body)
        .map_err(|e| Status::bad_request(format!("error decoding patch (only JSON is understood): {e}")))?;
    let applied = apply(call, dry, &Touched::All, |old| {
        let mut new = old.clone();
        if call.kind.rules.built_in {
            strategic(&mut new, &patch).map_err(Status::bad_request)?;
        } else {
            merge(&mut new, &patch);
        }
        Ok(new)
    });
    match applied {
        Err(status) if status.code() == 404 && call.target.subresource.is_none() => {
            let mut object = prepare::typed(&call.kind, patch)?;
            object["metadata"]["name"] = json!(call.name());
            let stored = super::create::new_object(&call.core, &call.kind, call.table, object, call.namespace(), dry)?;
            Ok(super::create::created(call, &stored, dry))
        }
        Err(status) => Err(status),
        Ok(stored) => Ok(call.object(StatusCode::OK, &stored)),
    }
}
