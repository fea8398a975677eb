//! `metadata.managedFields` as the real server derives them from what a manager wrote.

use serde_json::{Map, Value, json};

/// Name, the top-level members that it wrote, subresource.
pub(super) type Manager<'a> = (&'a str, &'a [&'a str], &'a str);

/// Lists whose items are owned one by one, with the members that name an item.
const KEYED: &[(&str, &[&str])] = &[
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("env", &["name"]),
    ("volumes", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("imagePullSecrets", &["name"]),
    ("ports", &["containerPort", "port", "protocol"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    ("conditions", &["type"]),
    ("addresses", &["type"]),
    ("podIPs", &["ip"]),
    ("hostIPs", &["ip"]),
    ("ownerReferences", &["uid"]),
];

/// Metadata that managers own; the rest is the server's.
const OWNED_METADATA: &[&str] = &["annotations", "generateName", "labels", "ownerReferences", "finalizers"];

pub(super) fn fields(object: &Value, managers: &[Manager<'_>]) -> Value {
    let entries = managers.iter().map(|(name, members, subresource)| {
        let mut owned = Map::new();
        for member in *members {
            let Some(value) = object.get(*member) else { continue };
            owned.insert(
                format!("f:{member}"),
                if *member == "metadata" { metadata(value) } else { below(member, value) },
            );
        }
        let mut entry = json!({
            "manager": name, "operation": "Update", "apiVersion": object["apiVersion"],
            "time": object["metadata"]["creationTimestamp"], "fieldsType": "FieldsV1", "fieldsV1": owned,
        });
        if !subresource.is_empty() {
            entry["subresource"] = (*subresource).into();
        }
        entry
    });
    entries.collect()
}

fn metadata(value: &Value) -> Value {
    let mut owned = Map::new();
    for name in OWNED_METADATA {
        if let Some(value) = value.get(*name) {
            owned.insert(format!("f:{name}"), below(name, value));
        }
    }
    Value::Object(owned)
}

fn below(name: &str, value: &Value) -> Value {
    let mut owned = Map::new();
    match value {
        Value::Object(map) if name != "nodeSelector" && !map.is_empty() => {
            owned.insert(".".into(), json!({}));
            owned.extend(map.iter().map(|(k, v)| (format!("f:{k}"), below(k, v))));
        }
        Value::Array(items) => {
            let Some(keys) = KEYED.iter().find(|(list, _)| *list == name).map(|(_, keys)| *keys) else {
                return json!({});
            };
            owned.insert(".".into(), json!({}));
            for item in items {
                let id: Map<String, Value> =
                    keys.iter().filter_map(|k| Some(((*k).to_owned(), item.get(*k)?.clone()))).collect();
                owned.insert(format!("k:{}", Value::Object(id)), below("", item));
            }
        }
        _ => {}
    }
    Value::Object(owned)
}
