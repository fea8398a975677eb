//! Strategic merge patch, as kubectl sends it for built-in kinds.
//!
//! The real server reads from its types which lists are merged and by which key. Here the names of the lists decide,
//! which covers the lists of the built-in kinds that people patch.

use serde_json::{Map, Value};

use super::as_map;

/// Lists that are merged, and the members by which items are told apart (the first one that the items have).
const MERGE_KEYS: &[(&str, &[&str])] = &[
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("env", &["name"]),
    ("volumes", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("volumeDevices", &["devicePath"]),
    ("imagePullSecrets", &["name"]),
    ("secrets", &["name"]),
    ("ports", &["containerPort", "port"]),
    ("conditions", &["type"]),
    ("addresses", &["type"]),
    ("hostAliases", &["ip"]),
    ("podIPs", &["ip"]),
    ("hostIPs", &["ip"]),
    ("ownerReferences", &["uid"]),
    ("taints", &["key"]),
    ("topologySpreadConstraints", &["topologyKey"]),
    ("resourceClaims", &["name"]),
];

/// Lists of plain values that are united.
const SETS: &[&str] = &["finalizers"];

/// Applies the patch. The error says what is wrong with it.
pub(crate) fn strategic(target: &mut Value, patch: &Value) -> Result<(), String> {
    let Some(patch) = patch.as_object() else { return Err("error decoding patch: not an object".into()) };
    merge_map(as_map(target), patch)
}

fn merge_map(target: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), String> {
    match patch.get("$patch").and_then(Value::as_str) {
        Some("replace") => {
            target.clear();
            target.extend(patch.iter().filter(|(k, _)| *k != "$patch").map(|(k, v)| (k.clone(), v.clone())));
            return Ok(());
        }
        Some("delete") => {
            target.clear();
            return Ok(());
        }
        Some("merge") | None => {}
        Some(other) => return Err(format!("Unknown patch type found: {other}")),
    }
    if let Some(keep) = patch.get("$retainKeys").and_then(Value::as_array) {
        target.retain(|name, _| keep.iter().any(|k| k == name));
    }
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") {
            let gone = value.as_array().map(Vec::as_slice).unwrap_or_default();
            if let Some(list) = target.get_mut(list).and_then(Value::as_array_mut) {
                list.retain(|item| !gone.contains(item));
            }
        } else if name.starts_with('$') {
            // $patch, $retainKeys; $setElementOrder only sorts.
        } else if value.is_null() {
            target.remove(name);
        } else {
            merge_member(target, name, value)?;
        }
    }
    Ok(())
}

fn merge_member(target: &mut Map<String, Value>, name: &str, value: &Value) -> Result<(), String> {
    match (target.get_mut(name), value) {
        (Some(Value::Object(old)), Value::Object(new)) => merge_map(old, new),
        (Some(Value::Array(old)), Value::Array(new)) if SETS.contains(&name) => {
            let before = old.clone();
            for item in new.iter().filter(|item| !item.is_object()) {
                if !old.contains(item) {
                    old.push(item.clone());
                }
            }
            *old = in_order(std::mem::take(old), &before, new, |a, b| a == b);
            Ok(())
        }
        (Some(Value::Array(old)), Value::Array(new)) if merge_key(name, old, new).is_some() => {
            let key = merge_key(name, old, new).unwrap_or_default();
            merge_list(old, new, key)
        }
        (_, Value::Object(new)) => {
            let mut fresh = Map::new();
            merge_map(&mut fresh, new)?;
            target.insert(name.to_owned(), Value::Object(fresh));
            Ok(())
        }
        (_, Value::Array(new)) => {
            let items = new.iter().filter(|item| !is_directive(item)).cloned().collect();
            target.insert(name.to_owned(), Value::Array(items));
            Ok(())
        }
        (_, value) => {
            target.insert(name.to_owned(), value.clone());
            Ok(())
        }
    }
}

fn merge_key(name: &str, old: &[Value], new: &[Value]) -> Option<&'static str> {
    let keys = MERGE_KEYS.iter().find(|(list, _)| *list == name)?.1;
    let has = |key: &str| old.iter().chain(new).any(|item| item.get(key).is_some());
    keys.iter().copied().find(|key| has(key))
}

fn is_directive(item: &Value) -> bool {
    item.get("$patch").is_some()
}

fn merge_list(old: &mut Vec<Value>, new: &[Value], key: &str) -> Result<(), String> {
    if new.iter().any(|item| item.get("$patch").and_then(Value::as_str) == Some("replace")) {
        *old = new.iter().filter(|item| !is_directive(item)).cloned().collect();
        return Ok(());
    }
    let before = old.clone();
    for item in new {
        let Some(id) = item.get(key) else {
            return Err(format!("map: {item} does not contain declared merge key: {key}"));
        };
        let found = old.iter().position(|o| o.get(key) == Some(id));
        match (item.get("$patch").and_then(Value::as_str), found) {
            (Some("delete"), Some(at)) => drop(old.remove(at)),
            (Some("delete"), None) => {}
            (_, Some(at)) => strategic(&mut old[at], item)?,
            (_, None) => {
                let mut fresh = Value::Null;
                strategic(&mut fresh, item)?;
                old.push(fresh);
            }
        }
    }
    *old = in_order(std::mem::take(old), &before, new, |a, b| a.get(key) == b.get(key));
    Ok(())
}

/// Items of the patch in the order of the patch; the others stay before those that they were before.
fn in_order(
    merged: Vec<Value>,
    before: &[Value],
    patch: &[Value],
    same: impl Fn(&Value, &Value) -> bool,
) -> Vec<Value> {
    let place = |list: &[Value], item: &Value| list.iter().position(|other| same(other, item));
    let (mut named, others): (Vec<_>, Vec<_>) = merged.into_iter().partition(|item| place(patch, item).is_some());
    named.sort_by_key(|item| place(patch, item));
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    std::iter::from_fn(|| match (named.peek(), others.peek()) {
        (Some(patched), Some(other)) => match (place(before, other), place(before, patched)) {
            (Some(a), Some(b)) if a < b => others.next(),
            _ => named.next(),
        },
        (Some(_), None) => named.next(),
        _ => others.next(),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn table() {
        let check = |before: Value, patch: Value, after: Value| {
            let mut value = before.clone();
            strategic(&mut value, &patch).unwrap();
            assert_eq!(value, after, "{before} patched with {patch}");
        };
        check(json!({"a": 1, "b": 2}), json!({"a": null, "c": {"d": null, "e": 1}}), json!({"b": 2, "c": {"e": 1}}));
        check(
            json!({"containers": [{"name": "a", "image": "1", "ports": [{"containerPort": 80}]}, {"name": "b"}]}),
            json!({"containers": [{"name": "a", "image": "2", "ports": [{"containerPort": 81}]}, {"name": "c"}]}),
            json!({"containers": [{"name": "a", "image": "2", "ports": [{"containerPort": 81}, {"containerPort": 80}]},
                {"name": "c"}, {"name": "b"}]}),
        );
        check(
            json!({"env": [{"name": "a"}, {"name": "b"}]}),
            json!({"env": [{"name": "a", "$patch": "delete"}]}),
            json!({"env": [{"name": "b"}]}),
        );
        check(
            json!({"env": [{"name": "a"}]}),
            json!({"env": [{"$patch": "replace"}, {"name": "z"}]}),
            json!({"env": [{"name": "z"}]}),
        );
        check(json!({"args": ["a"]}), json!({"args": ["b"]}), json!({"args": ["b"]}));
        check(json!({"finalizers": ["a"]}), json!({"finalizers": ["b", "a"]}), json!({"finalizers": ["b", "a"]}));
        check(
            json!({"finalizers": ["a", "b"]}),
            json!({"finalizers": ["c", "b"]}),
            json!({"finalizers": ["c", "a", "b"]}),
        );
        check(
            json!({"finalizers": ["a", "b"]}),
            json!({"$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": ["b"]}),
            json!({"finalizers": ["b"]}),
        );
        check(
            json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}}),
            json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}),
            json!({"strategy": {"type": "Recreate"}}),
        );
        check(json!({"x": {"a": 1}}), json!({"x": {"$patch": "replace", "b": 2}}), json!({"x": {"b": 2}}));
        check(
            json!({"conditions": [{"type": "Ready", "status": "False"}]}),
            json!({"conditions": [{"type": "Ready", "status": "True"}]}),
            json!({"conditions": [{"type": "Ready", "status": "True"}]}),
        );
    }

    #[test]
    fn wrong_patches_are_refused() {
        let mut value = json!({"env": [{"name": "a"}]});
        assert!(strategic(&mut value, &json!({"env": [{"value": "x"}]})).is_err());
        assert!(strategic(&mut value, &json!({"$patch": "no"})).is_err());
        assert!(strategic(&mut value, &json!([])).is_err());
    }
}
