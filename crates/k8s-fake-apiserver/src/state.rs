//! Direct access to the objects, past HTTP: what a test sets up and looks at.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::core::Core;
use crate::error::Error;
use crate::kind::ResourceKind;
use crate::log::TableId;
use crate::stored::{Prepared, Stored, key};
use crate::verb::create::make_namespace;
use crate::verb::prepare::{self, meta, metadata};

pub(crate) fn apply_all(core: &Core, objects: impl IntoIterator<Item = Value>) -> Result<(), Error> {
    for (index, object) in objects.into_iter().enumerate() {
        apply(core, object, index)?;
    }
    Ok(())
}

/// Stores the object as it is, status and all; makes or replaces it.
pub(crate) fn apply(core: &Core, object: Value, index: usize) -> Result<Arc<Stored>, Error> {
    let (table, kind) = kind_of(core, &object, index)?;
    let mut object = complete(core, &kind, object, index)?;
    let namespace = meta(&object, "namespace").to_owned();
    if kind.namespaced
        && !core.log.lock().named("v1/namespaces").is_some_and(|t| t.objects.contains_key(namespace.as_str()))
    {
        make_namespace(core, &namespace).map_err(|status| refused(&object, status))?;
    }
    let key = key(kind.namespaced.then_some(namespace.as_str()), meta(&object, "name"));
    let mut log = core.log.lock();
    let old = log.table(table).and_then(|t| t.objects.get(&*key)).map(|o| o.value());
    identify(core, &kind, old.as_ref(), &mut object);
    log.put(table, Prepared::new(&kind, &object)).ok_or_else(|| unknown(kind.resource()))
}

/// Checks what every object must have, and fills in namespace and defaults.
pub(crate) fn complete(core: &Core, kind: &ResourceKind, object: Value, index: usize) -> Result<Value, Error> {
    // The object is used up if it is refused.
    let names = json!({"kind": object["kind"], "metadata": {
        "namespace": object["metadata"]["namespace"], "name": object["metadata"]["name"]
    }});
    let mut object = prepare::typed(kind, object).map_err(|status| refused(&names, status))?;
    if meta(&object, "name").is_empty() {
        return Err(Error::Incomplete { index, field: "metadata.name" });
    }
    if kind.namespaced && meta(&object, "namespace").is_empty() {
        metadata(&mut object).insert("namespace".into(), core.options.default_namespace.as_str().into());
    }
    if !kind.namespaced {
        metadata(&mut object).remove("namespace");
    }
    prepare::defaults(kind, &mut object);
    Ok(object)
}

/// uid, time and generation: those given, else those of the object that was there, else new ones.
pub(crate) fn identify(core: &Core, kind: &ResourceKind, old: Option<&Value>, object: &mut Value) {
    let changed = old.is_some_and(|old| prepare::spec_differs(kind, old, object));
    let generation = match old.map(|o| o["metadata"]["generation"].as_i64().unwrap_or_default()) {
        Some(before) => before + i64::from(changed),
        None => 1,
    };
    let kept = |name: &str| old.map(|o| meta(o, name).to_owned()).filter(|t| !t.is_empty());
    let uid = kept("uid").unwrap_or_else(|| core.rng.lock().uid());
    let created = kept("creationTimestamp").unwrap_or_else(|| core.clock.timestamp());
    let metadata = metadata(object);
    metadata.entry("uid").or_insert(uid.into());
    metadata.entry("creationTimestamp").or_insert(created.into());
    if kind.rules.generation {
        metadata.entry("generation").or_insert(generation.into());
    }
}

pub(crate) fn kind_of(core: &Core, object: &Value, index: usize) -> Result<(TableId, Arc<ResourceKind>), Error> {
    let text = |name: &'static str| {
        object[name].as_str().filter(|t| !t.is_empty()).ok_or(Error::Incomplete { index, field: name })
    };
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    let log = core.log.lock();
    let found = log.kinds().into_iter().find(|k| k.kind == kind && k.api_version() == api_version);
    found
        .and_then(|k| Some((log.id(k.resource())?, k)))
        .ok_or_else(|| Error::UnknownKind { api_version: api_version.to_owned(), kind: kind.to_owned() })
}

pub(crate) fn unknown(resource: &str) -> Error {
    Error::UnknownResource { resource: resource.to_owned() }
}

fn refused(object: &Value, status: crate::status::Status) -> Error {
    let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
    let slash = if namespace.is_empty() { "" } else { "/" };
    let name = format!("{} {namespace}{slash}{name}", object["kind"].as_str().unwrap_or("object"));
    Error::Refused { object: name, status: Box::new(status) }
}
