//! The patch formats.

mod strategic;

use serde_json::{Map, Value};

pub(crate) use strategic::strategic;

/// JSON merge patch (RFC 7396).
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    json_patch::merge(target, patch);
}

/// JSON patch (RFC 6902). All operations or none.
pub(crate) fn json_patch(target: &Value, patch: &json_patch::Patch) -> Result<Value, json_patch::PatchError> {
    let mut new = target.clone();
    json_patch::patch(&mut new, patch)?;
    Ok(new)
}

fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}
