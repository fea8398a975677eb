//! What the server shows → the store, and what changed for those who listen. Sole owner of the writer.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_indexer::FieldSelector;
use k8s_packed::Encoder;
use k8s_store::Writer;
use k8s_types::{Change, ChangeStats, Object, SelfWriteFilter};
use tokio::time::Instant;

use crate::engine::version;
use crate::frame::BadObject;
use crate::handle::Shared;
use crate::transition::{Reported, Transition, gone, shown};

/// How far apart commits of the initial load are at least.
const LOAD_COMMITS: Duration = Duration::from_millis(20);

/// How many names of undecodable objects are remembered so that each is logged once.
const REMEMBERED_BAD: usize = 1024;

pub(super) struct Applier {
    writer: Writer,
    selector: Option<FieldSelector>,
    own_writes: Option<Arc<dyn SelfWriteFilter>>,
    shared: Arc<Shared>,
    /// What changed since the last commit.
    batch: Vec<Change>,
    /// The store differs from what readers see.
    is_dirty: bool,
    is_loaded: bool,
    committed: Instant,
    skipped: u64,
    last_skipped: Option<String>,
    known_bad: HashSet<(Option<String>, Option<String>)>,
    pub(super) last_event: Option<Instant>,
}

/// How an object came to us.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Origin {
    /// By a list, in pages or as initial events; `from_scratch` if versions of before mean nothing any more.
    List { from_scratch: bool },
    /// By a watch event.
    Live,
}

impl Applier {
    pub(super) fn new(
        writer: Writer,
        selector: Option<FieldSelector>,
        own_writes: Option<Arc<dyn SelfWriteFilter>>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            writer,
            selector,
            own_writes,
            shared,
            batch: vec![],
            is_dirty: false,
            is_loaded: false,
            committed: Instant::now(),
            skipped: 0,
            last_skipped: None,
            known_bad: HashSet::new(),
            last_event: None,
        }
    }

    pub(super) fn encoder(&mut self) -> &mut Encoder {
        self.writer.encoder()
    }

    /// The server shows an object.
    pub(super) fn show(&mut self, object: Object, origin: Origin) {
        let (namespace, name) = (object.namespace(), object.name());
        if !self.known_bad.is_empty() {
            self.known_bad.remove(&(namespace.map(str::to_owned), Some(name.to_owned())));
        }
        let previous = self.writer.get(namespace, name);
        let transition = if origin.is_stale(&object, previous) {
            Transition::Keep
        } else {
            let matches = self.selector.as_ref().is_none_or(|s| s.matches(&object));
            shown(previous, object.clone(), matches, origin.versions_hold())
        };
        self.carry_out(transition, &object, origin);
    }

    /// The server says that an object is gone. That may be older than what the store has: the watch after a list
    /// begins at the version of its first page.
    pub(super) fn hide(&mut self, object: Object, origin: Origin) {
        let previous = self.writer.get(object.namespace(), object.name());
        let transition =
            if origin.is_stale(&object, previous) { Transition::Keep } else { gone(previous, Some(object.clone())) };
        self.carry_out(transition, &object, origin);
    }

    /// The server shows an object that cannot be held: the last good state stays, and it is named once.
    pub(super) fn skip(&mut self, bad: &BadObject, is_delete: bool) {
        self.skipped += 1;
        self.last_skipped = Some(bad.to_string());
        let identity = (bad.namespace.clone(), bad.name.clone());
        if self.known_bad.len() < REMEMBERED_BAD && self.known_bad.insert(identity) {
            tracing::warn!(
                resource = %self.shared.resource,
                namespace = bad.namespace,
                name = bad.name,
                reason = bad.reason,
                "object cannot be decoded; skipped"
            );
        }
        let Some((namespace, name)) = bad.name.as_deref().map(|name| (bad.namespace.as_deref(), name)) else { return };
        let is_stale = is_before(bad.resource_version.as_deref(), self.writer.get(namespace, name));
        if !is_delete || is_stale {
            self.writer.touch(namespace, name);
        } else if let Some(last) = self.writer.remove(namespace, name) {
            self.is_dirty = true;
            self.batch.push(Change::Deleted(last));
        }
    }

    fn carry_out(&mut self, transition: Transition, shown: &Object, origin: Origin) {
        let is_echo = || {
            let (filter, version) = (self.own_writes.as_ref()?, shown.resource_version()?);
            let is_own = filter.is_own(&self.shared.resource, shown.namespace(), shown.name(), version);
            Some(is_own && origin == Origin::Live)
        };
        match transition {
            Transition::Keep => {
                self.writer.touch(shown.namespace(), shown.name());
                return;
            }
            Transition::Refresh(object) => {
                self.writer.upsert(object);
            }
            Transition::Store(object, reported) => {
                if !is_echo().unwrap_or(false) {
                    match reported {
                        Reported::Created => self.batch.push(Change::Created(object.clone())),
                        Reported::Modified(old) => self.batch.push(Change::Modified { old, new: object.clone() }),
                        Reported::Replaced(old) => {
                            self.batch.push(Change::Deleted(old));
                            self.batch.push(Change::Created(object.clone()));
                        }
                    }
                }
                if !origin.versions_hold() {
                    // The writer would take an equal version for the same object and keep the one it has.
                    self.writer.remove(shown.namespace(), shown.name());
                }
                self.writer.upsert(object);
            }
            Transition::Remove(change) => {
                self.writer.remove(shown.namespace(), shown.name());
                if !is_echo().unwrap_or(false) {
                    self.batch.push(change);
                }
            }
        }
        self.is_dirty = true;
    }

    pub(super) fn begin_relist(&mut self, namespace: Option<&str>) {
        self.writer.begin_relist(namespace);
    }

    pub(super) fn abort_relist(&mut self, namespace: Option<&str>) {
        self.writer.cancel_relist(namespace);
    }

    /// What the list did not show is gone.
    pub(super) fn finish_relist(&mut self, namespace: Option<&str>) {
        let gone = self.writer.finish_relist(namespace);
        self.is_dirty |= !gone.is_empty();
        self.batch.extend(gone.into_iter().map(Change::Deleted));
    }

    /// The initial load is complete in all scopes: what gathered so far belongs to it, what follows does not.
    pub(super) fn loaded(&mut self) {
        self.commit();
        self.is_loaded = true;
        self.shared.mailbox.loaded(self.writer.len());
    }

    /// When what is there has to be committed, if there is anything: at once, but during the initial load, which
    /// nobody may take for complete, not for each portion that a slow server sends.
    pub(super) fn commit_due(&self) -> Option<Instant> {
        let pause = if self.is_loaded { Duration::ZERO } else { LOAD_COMMITS };
        self.is_dirty.then(|| self.committed + pause)
    }

    /// Readers see everything so far, in one step; listeners learn of it.
    pub(super) fn commit(&mut self) {
        if !self.is_dirty {
            return;
        }
        self.committed = Instant::now();
        self.is_dirty = false;
        let snapshot = self.writer.commit();
        self.shared.feed.publish(&snapshot, &self.batch);
        let mut stats = ChangeStats::default();
        self.batch.iter().for_each(|change| stats.record(change));
        stats.is_initial_sync = !self.is_loaded;
        self.batch.clear();
        self.batch.shrink_to(1024);
        if !stats.is_empty() {
            self.shared.mailbox.changed(&stats);
        }
    }

    /// Does a slice of the store's housekeeping; says whether there is more.
    pub(super) fn tidy(&mut self) -> bool {
        let before = self.shared.store.snapshot().version();
        let more = self.writer.compact_step();
        if !more {
            let tidy = self.shared.store.snapshot();
            if tidy.version() != before {
                // Or the former state would live on in the feed until the next change.
                self.shared.feed.publish(&tidy, &[]);
            }
        }
        more
    }

    /// Publishes what the applier knows of the state, with what the caller adds.
    pub(super) fn report(&self, more: impl FnOnce(&mut crate::Status)) {
        self.shared.status.update(|s| {
            s.objects = self.writer.len();
            s.skipped = self.skipped;
            s.last_skipped.clone_from(&self.last_skipped);
            s.last_event = self.last_event;
            more(s);
        });
    }
}

// === impl Origin ===

impl Origin {
    /// Whether versions can be compared with those of the store.
    fn versions_hold(self) -> bool {
        self != Self::List { from_scratch: true }
    }

    /// Whether what came is older than what the store has, as a lagging server may show it.
    fn is_stale(self, object: &Object, stored: Option<&Object>) -> bool {
        self.versions_hold() && is_before(object.resource_version(), stored)
    }
}

fn is_before(version: Option<&str>, stored: Option<&Object>) -> bool {
    let stored = stored.and_then(Object::resource_version);
    version.zip(stored).is_some_and(|(version, stored)| version::is_before(version, stored))
}
