//! A full list that is under way, and whether what it shows fits to what is kept.

use std::collections::HashMap;

use k8s_types::{Object, ObjectKey};

use super::{Origin, Sink};
use crate::frame::BadObject;

/// A list that is not older than anything that is kept shows nothing in a state from before the one that is kept, not
/// in the end: initial events of a server that lags may, until later ones catch up. If it does, history was set back
/// though its versions were not: etcd raises them when a backup is restored with `--bump-revision`.
pub(super) struct Relisting {
    pub(super) from_scratch: bool,
    /// What was shown last as older than what is kept; each is in the store, so there are no more than objects.
    older: HashMap<ObjectKey, Older>,
}

/// What was not taken over.
pub(super) enum Older {
    Shown(Object),
    Gone(Object),
    Bad { bad: BadObject, is_delete: bool },
}

impl Relisting {
    pub(super) fn new(from_scratch: bool) -> Self {
        Self { from_scratch, older: HashMap::new() }
    }

    /// Takes note of what was shown of an object, if that is older than what is kept.
    pub(super) fn note(&mut self, namespace: Option<&str>, name: &str, older: Option<Older>) {
        match older {
            Some(older) => drop(self.older.insert(ObjectKey::new(namespace, name), older)),
            None if self.older.is_empty() => {}
            None => drop(self.older.remove(&ObjectKey::new(namespace, name))),
        }
    }

    /// At the end of the list: what is older is the truth all the same. Says whether there was anything.
    pub(super) fn settle(self, sink: &mut impl Sink) -> bool {
        let is_set_back = !self.older.is_empty();
        if is_set_back {
            sink.forget_versions();
        }
        let origin = Origin::List { from_scratch: true };
        for older in self.older.into_values() {
            match older {
                Older::Shown(object) => sink.show(object, origin),
                Older::Gone(object) => sink.hide(object, origin),
                Older::Bad { bad, is_delete } => sink.skip(&bad, is_delete, origin),
            };
        }
        is_set_back
    }
}
