//! patch, in its four forms.

use http::StatusCode;
use serde_json::{Value, json};

use super::prepare;
use super::update::apply;
use super::{Answer, Call};
use crate::patch::{json_patch, merge, strategic};
use crate::query::dry_run;
use crate::status::{FieldError, Status};

pub(crate) fn patch(call: &Call) -> Answer {
    let dry = dry_run(&call.query, "PatchOptions")?;
    let content_type = call.headers.get(http::header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let stored = match content_type.split(';').next().unwrap_or_default().trim() {
        "application/merge-patch+json" => {
            let patch = decode(&call.body)?;
            apply(call, dry, |old| Ok(merged(old, &patch)))?
        }
        "application/strategic-merge-patch+json" if call.kind.rules.built_in => {
            let patch = decode(&call.body)?;
            apply(call, dry, |old| {
                let mut new = old.clone();
                strategic(&mut new, &patch).map_err(Status::bad_request)?;
                Ok(new)
            })?
        }
        "application/json-patch+json" => {
            let patch = serde_json::from_slice(&call.body)
                .map_err(|e| Status::bad_request(format!("error decoding patch: {e}")))?;
            apply(call, dry, |old| json_patch(old, &patch).map_err(|_| Status::unprocessable()))?
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
        Ok(_) => Err(Status::bad_request(
            "error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}",
        )),
        Err(e) => Err(Status::bad_request(format!("error decoding patch: {e}"))),
    }
}

fn merged(old: &Value, patch: &Value) -> Value {
    let mut new = old.clone();
    merge(&mut new, patch);
    new
}

/// Merges what is applied into the object, or creates it. Fields that an earlier apply set and this one leaves out stay.
fn server_side_apply(call: &Call, dry: bool) -> Answer {
    if call.query.get("fieldManager").is_empty() {
        let error = FieldError::required("fieldManager", "is required for apply patch");
        return Err(Status::invalid("meta.k8s.io", "PatchOptions", "", &[error]));
    }
    let patch: Value = serde_json::from_slice(&call.body)
        .map_err(|e| Status::bad_request(format!("error decoding patch (only JSON is understood): {e}")))?;
    let applied = apply(call, dry, |old| {
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
