//! Kept objects whose versions mean nothing any more: a server that was restored shows them in a form that cannot be
//! held, so the last good state stays, from before.

use std::collections::HashSet;

use k8s_types::ObjectKey;

/// Their names; each is in the store, so there are no more than objects.
#[derive(Default)]
pub(crate) struct Outlived(HashSet<ObjectKey>);

impl Outlived {
    pub(crate) fn note(&mut self, namespace: Option<&str>, name: &str) {
        self.0.insert(ObjectKey::new(namespace, name));
    }

    pub(crate) fn has(&self, namespace: Option<&str>, name: &str) -> bool {
        // There is hardly ever one: nothing is built to find that out.
        !self.0.is_empty() && self.0.contains(&ObjectKey::new(namespace, name))
    }

    /// The object came in a form that can be held, or is gone; says whether it was one of these.
    pub(crate) fn end(&mut self, namespace: Option<&str>, name: &str) -> bool {
        !self.0.is_empty() && self.0.remove(&ObjectKey::new(namespace, name))
    }
}
