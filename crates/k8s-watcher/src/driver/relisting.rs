//! A full list that is under way, and whether what it shows fits to what is known.

use std::cmp::Ordering;
use std::collections::HashMap;

use k8s_types::{Object, ObjectKey, compare_resource_versions};

use super::{Later, Origin, Sink};
use crate::frame::BadObject;

/// A list at some version shows what was known of an object at that version or before, or something later; not at once
/// perhaps: initial events of a server that lags may show less, until later ones catch up. If it shows something
/// older in the end, history was set back though its versions were not: etcd raises them when a backup is restored
/// with `--bump-revision`. What is known at a version after the list's proves nothing.
pub(super) struct Relisting {
    pub(super) from_scratch: bool,
    /// What was shown last as older than what is known, with the version of that; no more than there are objects.
    older: HashMap<ObjectKey, (Later, Older)>,
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

    /// Takes note of what was shown of an object, if that is older than what is known.
    pub(super) fn note(&mut self, namespace: Option<&str>, name: &str, older: Option<(Later, Older)>) {
        match older {
            Some(older) => drop(self.older.insert(ObjectKey::new(namespace, name), older)),
            None if self.older.is_empty() => {}
            None => drop(self.older.remove(&ObjectKey::new(namespace, name))),
        }
    }

    /// At the end of the list, with its version: what is older is the truth all the same, where that is proved. Says
    /// whether there was anything.
    pub(super) fn settle(mut self, version: &str, sink: &mut impl Sink) -> bool {
        let is_later = |known: &str| compare_resource_versions(known, version).is_none_or(Ordering::is_gt);
        self.older.retain(|_, (known, _)| !is_later(known));
        if self.older.is_empty() {
            return false;
        }
        sink.forget_versions();
        for (_, older) in self.older.into_values() {
            match older {
                Older::Shown(object) => sink.show(object, Origin::FROM_SCRATCH),
                Older::Gone(object) => sink.hide(object, Origin::FROM_SCRATCH),
                Older::Bad { bad, is_delete } => sink.skip(&bad, is_delete, Origin::FROM_SCRATCH),
            };
        }
        true
    }
}
