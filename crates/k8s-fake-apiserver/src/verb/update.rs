//! update, and what patch shares with it.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Map, Value};

use super::prepare::{self, meta, metadata};
use super::{Answer, Call};
use crate::query::dry_run;
use crate::status::{FieldError, Status};
use crate::stored::{Partial, Prepared, Stored, Touched};

const MODIFIED: &str = "the object has been modified; please apply your changes to the latest version and try again";

pub(crate) fn update(call: &Call) -> Answer {
    let dry = dry_run(&call.query, "UpdateOptions")?;
    let mut object = prepare::parse(&call.kind, &call.headers, &call.body)?;
    if meta(&object, "name").is_empty() {
        metadata(&mut object).insert("name".into(), call.name().into());
    }
    match apply(call, dry, &Touched::All, |_| Ok(object.clone())) {
        Err(status)
            if status.code() == 404 && call.kind.rules.create_on_update && call.target.subresource.is_none() =>
        {
            check_name(call, &object)?;
            check_uid(call, meta(&object, "uid"), "")?;
            // Whatever version was read, there is nothing now that could have changed since.
            metadata(&mut object).remove("resourceVersion");
            let stored = super::create::new_object(&call.core, &call.kind, call.table, object, call.namespace(), dry)?;
            Ok(super::create::created(call, &stored, dry))
        }
        Err(status) => Err(status),
        Ok(stored) => Ok(call.object(StatusCode::OK, &stored)),
    }
}

/// Reads, changes and writes one object, again and again until no other write came between.
///
/// `change` sees, and may change, only what is touched.
pub(crate) fn apply(
    call: &Call,
    dry: bool,
    touched: &Touched,
    change: impl Fn(&Value) -> Result<Value, Status>,
) -> Result<Arc<Stored>, Status> {
    // The rules for these kinds look at members that the patch does not name; and Events are selected by several.
    let whole = ["v1/secrets", "v1/namespaces", "v1/events"].contains(&call.kind.resource());
    let touched = if whole { &Touched::All } else { touched };
    let key = call.key();
    loop {
        let current = {
            let log = call.core.log.lock();
            log.table(call.table).and_then(|t| t.objects.get(&*key).cloned()).ok_or_else(|| call.not_found())?
        };
        let partial = Partial::new(&current, touched);
        let old = partial.value();
        let new = merge_rules(call, &old, change(&old)?)?;
        if same(&new, &old) {
            return Ok(current);
        }
        let gone = is_finished(call, &new);
        let prepared = Prepared::with_rest(&call.kind, &new, &partial);
        if dry {
            return Ok(Arc::new(prepared.finish(current.revision)));
        }
        let mut log = call.core.log.lock();
        let table = log.table(call.table).ok_or_else(Status::no_such_path)?;
        if !table.objects.get(&*key).is_some_and(|now| Arc::ptr_eq(now, &current)) {
            continue;
        }
        if gone {
            log.remove(call.table, &key);
            // The answer is the object as it went, under its last stored version, as the real server has it.
            return Ok(Arc::new(prepared.finish(current.revision)));
        }
        return log.put(call.table, prepared).ok_or_else(Status::no_such_path);
    }
}

/// Equal but for the type, which is not part of what was parsed in parts.
fn same(new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else { return false };
    let typed = |name: &str| matches!(name, "kind" | "apiVersion");
    let count = |map: &Map<String, Value>| map.keys().filter(|n| !typed(n)).count();
    count(new) == count(old) && new.iter().all(|(name, value)| typed(name) || old.get(name) == Some(value))
}

/// Deletion was asked for, and the last finalizer is gone.
fn is_finished(call: &Call, object: &Value) -> bool {
    let metadata = &object["metadata"];
    let empty = |v: &Value| v.as_array().is_none_or(Vec::is_empty);
    let namespace_held = call.kind.is("v1/namespaces") && !empty(&object["spec"]["finalizers"]);
    metadata["deletionTimestamp"].is_string()
        && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0
        && empty(&metadata["finalizers"])
        && !namespace_held
}

fn check_name(call: &Call, object: &Value) -> Result<(), Status> {
    let name = meta(object, "name");
    if name != call.name() {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name()
        )));
    }
    Ok(())
}

/// A uid that comes with an object is the condition that it is still that object, and not another of its name.
fn check_uid(call: &Call, wanted: &str, present: &str) -> Result<(), Status> {
    if wanted.is_empty() || wanted == present {
        return Ok(());
    }
    let kind = &call.kind;
    let folder = if kind.rules.built_in { kind.plural.clone() } else { format!("{}/{}", kind.group, kind.plural) };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{folder}/{}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {wanted}, UID in object meta: {present}",
        call.key(),
    );
    Err(Status::conflict(&kind.group, &kind.plural, call.name(), &why))
}

/// What a client may change of `old`, and what the server sets.
fn merge_rules(call: &Call, old: &Value, new: Value) -> Result<Value, Status> {
    let kind = &call.kind;
    let mut new = prepare::typed(kind, new)?;
    check_name(call, &new)?;
    prepare::place(kind, &mut new, call.namespace())?;
    let version = meta(&new, "resourceVersion");
    if version.is_empty() && !kind.rules.unconditional_update {
        let error = FieldError::invalid("metadata.resourceVersion", "0", "must be specified for an update");
        return Err(Status::invalid(&kind.group, &kind.plural, call.name(), &[error]));
    }
    if !matches!(version, "" | "0") && version != meta(old, "resourceVersion") {
        return Err(Status::conflict(&kind.group, &kind.plural, call.name(), MODIFIED));
    }
    check_uid(call, meta(&new, "uid"), meta(old, "uid"))?;
    limit_to_endpoint(call, old, &mut new);
    keep(
        old,
        &mut new,
        &[
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
            "resourceVersion",
        ],
    );
    prepare::defaults_on_update(kind, &mut new);
    prepare::check_finalizers(kind, old, &new)?;
    if kind.rules.generation && prepare::spec_differs(kind, old, &new) {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
        metadata(&mut new).insert("generation".into(), generation.into());
    }
    drop_empty(&mut new);
    Ok(new)
}

/// The main endpoint leaves the status alone, a subresource everything else.
fn limit_to_endpoint(call: &Call, old: &Value, new: &mut Value) {
    let kind = &call.kind;
    match call.target.subresource.as_deref() {
        None if kind.status => copy_member(old, new, "status"),
        None => {}
        Some("finalize") => {
            let mut result = old.clone();
            if let Some(spec) = new.get_mut("spec") {
                result["spec"]["finalizers"] = spec["finalizers"].take();
            }
            *new = result;
        }
        Some(_) => {
            let mut result = old.clone();
            copy_member(new, &mut result, "status");
            if kind.rules.built_in {
                // Typed kinds let the status endpoint change annotations and the like, but not who owns the object.
                let owners = old["metadata"]["ownerReferences"].clone();
                result["metadata"] = new["metadata"].take();
                let metadata = metadata(&mut result);
                metadata.remove("ownerReferences");
                if !owners.is_null() {
                    metadata.insert("ownerReferences".into(), owners);
                }
            }
            *new = result;
        }
    }
}

fn copy_member(from: &Value, to: &mut Value, name: &str) {
    let Some(to) = to.as_object_mut() else { return };
    match from.get(name) {
        Some(value) => drop(to.insert(name.into(), value.clone())),
        None => drop(to.remove(name)),
    }
}

fn keep(old: &Value, new: &mut Value, names: &[&str]) {
    let metadata = metadata(new);
    for name in names {
        match old["metadata"].get(*name) {
            Some(value) => drop(metadata.insert((*name).into(), value.clone())),
            None => drop(metadata.remove(*name)),
        }
    }
}

/// Typed metadata has no empty maps and lists: they are left out, so that taking the last label away is no trace.
fn drop_empty(object: &mut Value) {
    let metadata = metadata(object);
    for name in ["labels", "annotations", "finalizers", "ownerReferences", "managedFields"] {
        let empty = match metadata.get(name) {
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Null) => true,
            _ => false,
        };
        if empty {
            metadata.remove(name);
        }
    }
}
