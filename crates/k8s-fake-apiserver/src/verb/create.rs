//! create

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::prepare::{self, meta, metadata};
use super::{Answer, Call};
use crate::core::Core;
use crate::kind::ResourceKind;
use crate::log::TableId;
use crate::names;
use crate::query::dry_run;
use crate::status::Status;
use crate::stored::{Prepared, Stored};

/// The real server tries this often to find a free generated name.
const NAME_TRIES: usize = 8;

pub(crate) fn create(call: &Call) -> Answer {
    let dry = dry_run(&call.query, "CreateOptions")?;
    let object = prepare::parse(&call.kind, &call.headers, &call.body)?;
    let stored = new_object(&call.core, &call.kind, call.table, object, call.namespace(), dry)?;
    Ok(created(call, &stored, dry))
}

pub(crate) fn created(call: &Call, stored: &Stored, dry: bool) -> http::Response<crate::body::ResponseBody> {
    if dry {
        // What was not stored has no version.
        let mut value = stored.value();
        metadata(&mut value).remove("resourceVersion");
        return super::json(StatusCode::CREATED, format!("{value}\n"));
    }
    call.object(StatusCode::CREATED, stored)
}

/// Checks, completes and stores an object as a client's create does.
pub(crate) fn new_object(
    core: &Core,
    kind: &ResourceKind,
    table: TableId,
    mut object: Value,
    namespace: Option<&str>,
    dry: bool,
) -> Result<Arc<Stored>, Status> {
    prepare::place(kind, &mut object, namespace)?;
    if !meta(&object, "resourceVersion").is_empty() {
        return Err(Status::new(500, "", "resourceVersion should not be set on objects to be created"));
    }
    let prefix = meta(&object, "generateName").to_owned();
    let generated = meta(&object, "name").is_empty() && !prefix.is_empty();
    if !generated && let Some(error) = names::check(kind, meta(&object, "name")) {
        return Err(Status::invalid(&kind.group, &kind.kind, meta(&object, "name"), &[error]));
    }
    if let Some(namespace) = namespace {
        check_namespace(core, kind, meta(&object, "name"), namespace, dry)?;
    }
    if let Some(root) = object.as_object_mut()
        && kind.status
    {
        root.remove("status");
    }
    let created = core.clock.timestamp();
    let meta_map = metadata(&mut object);
    for name in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        meta_map.remove(name);
    }
    meta_map.insert("creationTimestamp".into(), created.into());
    if kind.rules.generation {
        meta_map.insert("generation".into(), 1.into());
    }
    for _ in 0..NAME_TRIES {
        {
            let mut rng = core.rng.lock();
            let map = metadata(&mut object);
            map.insert("uid".into(), rng.uid().into());
            if generated {
                map.insert("name".into(), format!("{prefix}{}", rng.suffix(5)).into());
            }
        }
        if generated && let Some(error) = names::check(kind, meta(&object, "name")) {
            return Err(Status::invalid(&kind.group, &kind.kind, meta(&object, "name"), &[error]));
        }
        prepare::defaults(kind, &mut object);
        assign_cluster_ip(core, kind, &mut object);
        let prepared = Prepared::new(kind, &object);
        let mut log = core.log.lock();
        let exists = log.table(table).ok_or_else(Status::no_such_path)?.objects.contains_key(prepared.key());
        match (exists, generated) {
            (true, true) => continue,
            (true, false) => break,
            (false, _) if dry => return Ok(Arc::new(prepared.finish(log.revision()))),
            (false, _) => return log.put(table, prepared).ok_or_else(Status::no_such_path),
        }
    }
    Err(Status::already_exists(&kind.group, &kind.plural, meta(&object, "name")))
}

/// The namespace must be there and stay there; unless the server is strict, a missing one is made.
fn check_namespace(core: &Core, kind: &ResourceKind, name: &str, namespace: &str, dry: bool) -> Result<(), Status> {
    let missing = {
        let log = core.log.lock();
        let Some(table) = log.named("v1/namespaces") else { return Ok(()) };
        match table.objects.get(namespace) {
            Some(found) if is_terminating(found) => {
                return Err(Status::namespace_terminating(&kind.group, &kind.plural, name, namespace));
            }
            found => found.is_none(),
        }
    };
    if !missing {
        return Ok(());
    }
    if core.options.strict_namespaces {
        return Err(Status::not_found("", "namespaces", namespace));
    }
    if dry { Ok(()) } else { make_namespace(core, namespace) }
}

fn is_terminating(namespace: &Stored) -> bool {
    // Cheap first: the text is in no other namespace.
    namespace.json.windows(17).any(|w| w == b"deletionTimestamp")
        && !meta(&namespace.value(), "deletionTimestamp").is_empty()
}

pub(crate) fn make_namespace(core: &Core, name: &str) -> Result<(), Status> {
    let found = {
        let log = core.log.lock();
        log.id("v1/namespaces").and_then(|id| Some((id, log.table(id)?.kind.clone())))
    };
    let Some((table, kind)) = found else { return Ok(()) };
    let object = json!({ "kind": "Namespace", "apiVersion": "v1", "metadata": { "name": name } });
    match new_object(core, &kind, table, object, None, false) {
        Err(status) if status.code() != 409 => Err(status),
        // Somebody else was faster.
        _ => Ok(()),
    }
}

/// Services get an address of the service range, as the real allocator gives them.
fn assign_cluster_ip(core: &Core, kind: &ResourceKind, object: &mut Value) {
    if !kind.is("v1/services") || object["spec"]["type"] == "ExternalName" || object["spec"].get("clusterIP").is_some()
    {
        return;
    }
    let n = core.rng.lock().below(65_000) + 10;
    let ip = format!("10.96.{}.{}", n >> 8, n & 255);
    object["spec"]["clusterIPs"] = json!([ip]);
    object["spec"]["clusterIP"] = ip.into();
}
