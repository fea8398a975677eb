//! delete and deletecollection

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::prepare::{meta, metadata};
use super::{Answer, Call, answer, json as json_answer};
use crate::query::{ListOptions, dry_run};
use crate::selector::Filter;
use crate::status::{Status, deleted};
use crate::stored::{Prepared, Stored};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DeleteOptions {
    preconditions: Option<Preconditions>,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    grace_period_seconds: Option<i64>,
    dry_run: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

enum Outcome {
    /// Marked for deletion; finalizers or a grace period hold it.
    Held(Arc<Stored>),
    /// The object as it was when it went.
    Gone(Arc<Stored>),
}

impl DeleteOptions {
    fn read(call: &Call) -> Result<Self, Status> {
        let mut options: Self = if call.body.trim_ascii().is_empty() {
            Self::default()
        } else if !super::prepare::is_json(&call.headers) {
            return Err(Status::unknown_format("application/json"));
        } else {
            serde_json::from_slice(&call.body).map_err(|e| Status::bad_request(e.to_string()))?
        };
        if dry_run(&call.query, "DeleteOptions")? {
            options.dry_run.push("All".into());
        }
        let text = |name: &str| Some(call.query.get(name)).filter(|t| !t.is_empty());
        options.propagation_policy = options.propagation_policy.or(text("propagationPolicy").map(str::to_owned));
        options.grace_period_seconds =
            options.grace_period_seconds.or(text("gracePeriodSeconds").and_then(|t| t.parse().ok()));
        Ok(options)
    }

    fn is_dry(&self) -> bool {
        !self.dry_run.is_empty()
    }

    /// The finalizer by which the garbage collector learns of a policy.
    fn policy_finalizer(&self) -> Option<&'static str> {
        match self.propagation_policy.as_deref() {
            Some("Foreground") => Some("foregroundDeletion"),
            Some("Orphan") => Some("orphan"),
            _ if self.orphan_dependents == Some(true) => Some("orphan"),
            _ => None,
        }
    }
}

pub(crate) fn delete(call: &Call) -> Answer {
    let options = DeleteOptions::read(call)?;
    match delete_one(call, &call.key(), &options)? {
        Outcome::Held(object) => Ok(call.object(StatusCode::OK, &object)),
        Outcome::Gone(object) if call.kind.rules.returns_deleted => Ok(call.object(StatusCode::OK, &object)),
        Outcome::Gone(object) => {
            let body = deleted(&call.kind.group, &call.kind.plural, object.name(), &object.uid);
            Ok(json_answer(StatusCode::OK, body))
        }
    }
}

pub(crate) fn delete_collection(call: Call) -> Answer {
    let options = DeleteOptions::read(&call)?;
    let list = ListOptions::new(&call.query, false, true)?;
    let filter = Filter::new(&call.kind, call.namespace(), &list.labels, &list.fields)?;
    let (found, revision) = {
        let log = call.core.log.lock();
        let table = log.table(call.table).ok_or_else(Status::no_such_path)?;
        let found: Vec<_> = table.at(log.revision(), filter.prefix(), "").filter(|o| filter.matches(o)).collect();
        (found, log.revision())
    };
    let mut items = Vec::with_capacity(found.len());
    for object in found {
        match delete_one(&call, &object.key, &options) {
            Ok(Outcome::Held(object)) => items.push(object),
            Ok(Outcome::Gone(_)) => items.push(object),
            Err(status) if status.code() == 404 => {}
            Err(status) => return Err(status),
        }
    }
    let metadata = json!({ "resourceVersion": revision.to_string() });
    Ok(answer(StatusCode::OK, "application/json", super::list::body(call, &metadata, items)))
}

fn delete_one(call: &Call, key: &str, options: &DeleteOptions) -> Result<Outcome, Status> {
    loop {
        let current = {
            let log = call.core.log.lock();
            log.table(call.table).and_then(|t| t.objects.get(key).cloned()).ok_or_else(|| call.not_found())?
        };
        let old = current.value();
        check_preconditions(call, options, &old)?;
        let new = mark(call, options, &old);
        if options.is_dry() {
            return Ok(new.map_or(Outcome::Gone(current.clone()), |new| {
                Outcome::Held(Arc::new(Prepared::new(&call.kind, &new).finish(current.revision)))
            }));
        }
        let prepared = new.as_ref().filter(|new| **new != old).map(|new| Prepared::new(&call.kind, new));
        let mut log = call.core.log.lock();
        let table = log.table(call.table).ok_or_else(Status::no_such_path)?;
        if !table.objects.get(key).is_some_and(|now| Arc::ptr_eq(now, &current)) {
            continue;
        }
        return match (new, prepared) {
            // Marked before: nothing to write.
            (Some(_), None) => Ok(Outcome::Held(current)),
            (Some(_), Some(prepared)) => {
                log.put(call.table, prepared).map(Outcome::Held).ok_or_else(Status::no_such_path)
            }
            (None, _) => {
                let gone = log.remove(call.table, key).ok_or_else(|| call.not_found())?;
                Ok(Outcome::Gone(if call.kind.is("v1/pods") {
                    Arc::new(ended(call, &old, gone.revision))
                } else {
                    gone
                }))
            }
        };
    }
}

fn check_preconditions(call: &Call, options: &DeleteOptions, old: &Value) -> Result<(), Status> {
    let Some(wanted) = &options.preconditions else { return Ok(()) };
    let conflict = |why: String| Err(Status::conflict(&call.kind.group, &call.kind.kind, meta(old, "name"), &why));
    if let Some(uid) = &wanted.uid
        && uid != meta(old, "uid")
    {
        return conflict(format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            meta(old, "uid")
        ));
    }
    if let Some(version) = &wanted.resource_version
        && version != meta(old, "resourceVersion")
    {
        return conflict(format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The object might have been modified",
            meta(old, "resourceVersion")
        ));
    }
    Ok(())
}

/// The object as it waits for its end; `None` when nothing holds it.
fn mark(call: &Call, options: &DeleteOptions, old: &Value) -> Option<Value> {
    let grace = grace_period(call, options, old);
    let mut finalizers = old["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    if let Some(finalizer) = options.policy_finalizer()
        && !finalizers.iter().any(|f| f == finalizer)
    {
        finalizers.push(finalizer.into());
    }
    let namespace = call.kind.is("v1/namespaces");
    let held = namespace && old["spec"]["finalizers"].as_array().is_some_and(|f| !f.is_empty());
    if finalizers.is_empty() && grace == 0 && !held {
        return None;
    }
    let mut new = old.clone();
    let map = metadata(&mut new);
    if !finalizers.is_empty() {
        map.insert("finalizers".into(), finalizers.into());
    }
    let first = !map.contains_key("deletionTimestamp");
    let shorter = map.get("deletionGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|before| grace < before);
    if first || shorter {
        let at = call.core.clock.timestamp_in(Duration::from_secs(grace.unsigned_abs()));
        map.insert("deletionTimestamp".into(), at.into());
        if !namespace {
            map.insert("deletionGracePeriodSeconds".into(), grace.into());
        }
        if first && let Some(generation) = map.get("generation").and_then(Value::as_i64) {
            map.insert("generation".into(), (generation + 1).into());
        }
        if namespace {
            new["status"]["phase"] = "Terminating".into();
        }
    }
    Some(new)
}

/// A Pod that went at once is answered as if its grace period had been nothing.
fn ended(call: &Call, old: &Value, revision: u64) -> Stored {
    let mut new = old.clone();
    let map = metadata(&mut new);
    if !map.contains_key("deletionTimestamp") {
        map.insert("deletionTimestamp".into(), call.core.clock.timestamp().into());
        let generation = map.get("generation").and_then(Value::as_i64).unwrap_or_default();
        map.insert("generation".into(), (generation + 1).into());
    }
    map.insert("deletionGracePeriodSeconds".into(), 0.into());
    Prepared::new(&call.kind, &new).finish(revision)
}

/// Only Pods that a kubelet may be running get time to end.
fn grace_period(call: &Call, options: &DeleteOptions, old: &Value) -> i64 {
    if !call.kind.is("v1/pods") {
        return 0;
    }
    let scheduled = old["spec"]["nodeName"].as_str().is_some_and(|n| !n.is_empty());
    let ended = matches!(old["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    if !scheduled || ended {
        return 0;
    }
    let own = old["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    let asked = options.grace_period_seconds.map(|g| if g < 0 { 1 } else { g });
    match (old["metadata"]["deletionGracePeriodSeconds"].as_i64(), asked) {
        // A grace period can only be shortened.
        (Some(before), asked) => asked.unwrap_or(before).min(before),
        (None, asked) => asked.unwrap_or(own),
    }
}
