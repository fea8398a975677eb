//! What the server shows → the one object, and what of it is news.

use std::sync::Arc;

use k8s_packed::Encoder;
use k8s_types::{ChangeStats, Object};
use tokio::time::Instant;

use super::Shared;
use crate::driver::{Later, Origin, Sink};
use crate::frame::BadObject;
use crate::status::Status;
use crate::transition::{Proof, Reported, Transition, gone, shown};

/// Members of the metadata that move with each write, whatever it is about.
const MOVING: [&str; 2] = ["resourceVersion", "managedFields"];

pub(super) struct SingleSink {
    encoder: Encoder,
    namespace: Option<String>,
    name: String,
    skip_status_updates: bool,
    current: Option<Object>,
    /// Whether the list that is under way has shown it.
    seen: bool,
    /// Whether what is known is from before a restore, since it cannot be read any more.
    is_outlived: bool,
    changes: ChangeStats,
    shared: Arc<Shared>,
}

impl SingleSink {
    pub(super) fn new(
        encoder: Encoder,
        namespace: Option<String>,
        name: String,
        skip_status_updates: bool,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            encoder,
            namespace,
            name,
            skip_status_updates,
            current: None,
            seen: false,
            is_outlived: false,
            changes: ChangeStats::default(),
            shared,
        }
    }

    /// Whether this is the object. The server was asked for the name; a namespace is checked, since a kind of the
    /// cluster has none.
    fn is_it(&self, namespace: Option<&str>, name: &str) -> bool {
        name == self.name && (namespace.is_none() || namespace == self.namespace.as_deref())
    }

    /// What is shown in a form that can be held ends what was outlived.
    fn origin_of_shown(&mut self, origin: Origin) -> Origin {
        if std::mem::take(&mut self.is_outlived) { Origin::FROM_SCRATCH } else { origin }
    }

    fn carry_out(&mut self, transition: Transition) {
        let mut news = self.shared.news.lock();
        match transition {
            Transition::Keep => return,
            Transition::Refresh(object) => {
                self.current = Some(object.clone());
                news.moved_on(object, false);
            }
            Transition::Store(object, reported) => {
                self.current = Some(object.clone());
                match reported {
                    Reported::Created => {
                        self.changes.created += 1;
                        news.appeared(object);
                    }
                    Reported::Replaced(_) => {
                        self.changes.deleted += 1;
                        self.changes.created += 1;
                        news.appeared(object);
                    }
                    Reported::Modified(old) => {
                        self.changes.modified += 1;
                        let is_skipped = self.skip_status_updates && is_status_update(&old, &object);
                        news.moved_on(object, !is_skipped);
                    }
                }
            }
            Transition::Remove(_) => {
                self.current = None;
                self.changes.deleted += 1;
                news.gone();
            }
        }
        drop(news);
        self.shared.wake.notify_one();
    }
}

/// Whether an update left all but the status alone, as far as the kind counts generations. Labels and annotations do
/// not count as status.
fn is_status_update(old: &Object, new: &Object) -> bool {
    let members = |o: &Object| o.metadata().iter().filter(|(key, _)| !MOVING.contains(key)).count();
    let mut kept = old.metadata().iter().filter(|(key, _)| !MOVING.contains(key));
    new.generation().is_some()
        && old.generation() == new.generation()
        && members(old) == members(new)
        && kept.all(|(key, value)| new.metadata().get(key) == Some(value))
}

impl Sink for SingleSink {
    fn encoder(&mut self) -> &mut Encoder {
        &mut self.encoder
    }

    fn show(&mut self, object: Object, origin: Origin) -> Option<Later> {
        if !self.is_it(object.namespace(), object.name()) {
            return None;
        }
        self.seen = true;
        let origin = self.origin_of_shown(origin);
        let later = origin.later(object.resource_version(), self.current.as_ref());
        if later.is_none() {
            let proof = Proof { version: origin.versions_hold(), content: true };
            self.carry_out(shown(self.current.as_ref(), object, true, proof));
        }
        later
    }

    fn hide(&mut self, object: Object, origin: Origin) -> Option<Later> {
        if !self.is_it(object.namespace(), object.name()) {
            return None;
        }
        let origin = self.origin_of_shown(origin);
        let later = origin.later(object.resource_version(), self.current.as_ref());
        if later.is_none() {
            self.carry_out(gone(self.current.as_ref(), Some(object)));
        }
        later
    }

    fn skip(&mut self, bad: &BadObject, is_delete: bool, origin: Origin) -> Option<Later> {
        if !bad.name.as_deref().is_some_and(|name| self.is_it(bad.namespace.as_deref(), name)) {
            return None;
        }
        self.seen = true;
        self.is_outlived |= !origin.versions_hold();
        let origin = if self.is_outlived { Origin::FROM_SCRATCH } else { origin };
        let later = origin.later(bad.resource_version.as_deref(), self.current.as_ref());
        if is_delete && later.is_none() {
            self.carry_out(gone(self.current.as_ref(), None));
        }
        later
    }

    fn begin_relist(&mut self, _namespace: Option<&str>, _from_scratch: bool) {
        self.seen = false;
    }

    fn abort_relist(&mut self, _namespace: Option<&str>) {}

    fn finish_relist(&mut self, _namespace: Option<&str>) {
        if !self.seen {
            self.carry_out(gone(self.current.as_ref(), None));
        }
    }

    fn loaded(&mut self) {
        self.shared.loaded.cancel();
        self.shared.wake.notify_one();
    }

    /// What is shown is readable at once.
    fn commit_due(&self) -> Option<Instant> {
        None
    }

    fn commit(&mut self) {}

    fn tidy(&mut self) -> bool {
        let live = self.current.as_ref().map_or(0, Object::size);
        if self.encoder.wants_compaction(live) {
            self.encoder.start_compaction();
            self.current = self.current.take().map(|object| self.encoder.reencode(&object));
            if let Some(object) = &self.current {
                self.shared.news.lock().moved_on(object.clone(), false);
            }
            self.encoder.finish_compaction();
        }
        false
    }

    fn report(&self, status: &mut Status) {
        status.objects = usize::from(self.current.is_some());
        status.changes = self.changes;
    }
}

#[cfg(test)]
mod tests {
    use k8s_packed::object;

    use super::*;

    #[test]
    fn c29_what_counts_as_a_status_update() {
        let old = object!({"metadata": {"name": "a", "generation": 1, "resourceVersion": "1"}, "spec": 1, "status": 1});
        let check = |new: Object, expected: bool| assert_eq!(is_status_update(&old, &new), expected, "{new:?}");
        check(
            object!({"metadata": {"name": "a", "generation": 1, "resourceVersion": "2"}, "spec": 1, "status": 2}),
            true,
        );
        check(
            object!({"metadata": {"name": "a", "generation": 2, "resourceVersion": "2"}, "spec": 2, "status": 1}),
            false,
        );
        check(
            object!({"metadata": {"name": "a", "generation": 1, "resourceVersion": "2", "labels": {"x": "y"}}}),
            false,
        );
        check(object!({"metadata": {"name": "a", "resourceVersion": "2"}}), false);
        let secret = object!({"metadata": {"name": "a", "resourceVersion": "1"}, "data": {"x": "1"}});
        let newer = object!({"metadata": {"name": "a", "resourceVersion": "2"}, "data": {"x": "2"}});
        assert!(!is_status_update(&secret, &newer));
    }
}
