//! A full list that is under way, and whether what it shows fits to what is kept.

use std::collections::HashSet;

use k8s_types::ObjectKey;

/// A list that is not older than anything that is kept shows nothing in a state from before the one that is kept, not
/// in the end: initial events of a server that lags may, until later ones catch up. If it does, history was set back
/// though its versions were not: etcd raises them when a backup is restored with `--bump-revision`.
pub(super) struct Relisting {
    pub(super) from_scratch: bool,
    /// What it has shown as older so far; each is in the store, so there are no more than objects.
    older: HashSet<ObjectKey>,
}

impl Relisting {
    pub(super) fn new(from_scratch: bool) -> Self {
        Self { from_scratch, older: HashSet::new() }
    }

    /// Takes note of an object that was shown, older than what is kept or not.
    pub(super) fn shown(&mut self, namespace: Option<&str>, name: &str, is_older: bool) {
        if is_older {
            self.older.insert(ObjectKey::new(namespace, name));
        } else if !self.older.is_empty() {
            self.older.remove(&ObjectKey::new(namespace, name));
        }
    }

    /// At the end of the list.
    pub(super) fn is_set_back(&self) -> bool {
        !self.older.is_empty()
    }
}
