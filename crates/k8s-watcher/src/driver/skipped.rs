//! Objects that could not be decoded: counted always, named once.

use std::collections::HashSet;

use k8s_types::{Gvr, Object};

use crate::frame::BadObject;
use crate::status::Status;

/// How many names are remembered so that each is logged once.
const REMEMBERED: usize = 1024;

#[derive(Default)]
pub(super) struct Skipped {
    count: u64,
    last: Option<String>,
    known: HashSet<(Option<String>, Option<String>)>,
}

impl Skipped {
    /// Counts an object, and names it unless it was named before or is gone with this.
    pub(super) fn record(&mut self, resource: &Gvr, bad: &BadObject, is_delete: bool) {
        self.count += 1;
        self.last = Some(bad.to_string());
        let identity = (bad.namespace.clone(), bad.name.clone());
        if is_delete {
            self.known.remove(&identity);
        } else if self.known.len() < REMEMBERED && self.known.insert(identity) {
            tracing::warn!(
                %resource,
                namespace = bad.namespace,
                name = bad.name,
                reason = bad.reason,
                "object cannot be decoded; skipped"
            );
        }
    }

    /// The object came in a form that can be held, or is gone: if it breaks again, that is news.
    pub(super) fn recovered(&mut self, object: &Object) {
        if !self.known.is_empty() {
            self.known.remove(&(object.namespace().map(str::to_owned), Some(object.name().to_owned())));
        }
    }

    pub(super) fn report(&self, status: &mut Status) {
        status.skipped = self.count;
        status.last_skipped.clone_from(&self.last);
    }
}
