//! What the server shows → the store, and what changed for those who listen. Sole owner of the writer.

mod held;

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use k8s_indexer::FieldSelector;
use k8s_packed::Encoder;
use k8s_store::{KeyIssues, Writer};
use k8s_types::{Change, ChangeStats, Object, ObjectKey, SelfWriteFilter};
use tokio::time::Instant;

use self::held::{Decided, Event, Held};
use crate::cache_link::CacheLink;
use crate::driver::{Later, Origin, Outlived, Sink};
use crate::frame::BadObject;
use crate::handle::Shared;
use crate::status::Status;
use crate::transition::{Proof, Reported, Transition, gone, shown};

/// How far apart commits of the initial load are at least.
const LOAD_COMMITS: Duration = Duration::from_millis(20);

/// Fills the store of a watcher.
pub(crate) struct Applier {
    writer: Writer,
    selector: Option<Arc<FieldSelector>>,
    held: Held,
    /// The cache of whole objects, where the store keeps only references.
    cache: CacheLink,
    /// Objects that came through a restore without being readable.
    outlived: Outlived,
    shared: Arc<Shared>,
    /// What changed since the last commit.
    batch: Vec<Change>,
    /// The store differs from what readers see.
    is_dirty: bool,
    is_loaded: bool,
    committed: Instant,
    /// What was wrong with keys, as far as it was told.
    told: KeyIssues,
    /// What happened in all.
    changes: ChangeStats,
}

impl Applier {
    pub(crate) fn new(
        writer: Writer,
        selector: Option<Arc<FieldSelector>>,
        own_writes: Option<Arc<dyn SelfWriteFilter>>,
        cache: CacheLink,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            writer,
            selector,
            held: Held::new(own_writes, shared.control.clone()),
            cache,
            outlived: Outlived::default(),
            shared,
            batch: vec![],
            is_dirty: false,
            is_loaded: false,
            committed: Instant::now(),
            told: KeyIssues::default(),
            changes: ChangeStats::default(),
        }
    }

    fn take(&mut self, event: Event, origin: Origin) -> Option<Later> {
        let decided = if origin == Origin::Live { self.held.admit(event) } else { Some((event, false)) };
        decided.and_then(|(event, is_own)| self.apply(event, origin, is_own))
    }

    /// Takes an event over, unless what is kept is later; `is_own` if it is the echo of our own write.
    fn apply(&mut self, event: Event, origin: Origin, is_own: bool) -> Option<Later> {
        let object = event.object();
        let origin = if self.outlived.end(object.namespace(), object.name()) {
            // Nor can what was read of it meanwhile be measured by its version.
            self.cache.gone(object.namespace(), object.name());
            Origin::FROM_SCRATCH
        } else {
            origin
        };
        let previous = self.writer.get(object.namespace(), object.name());
        let mut later = origin.later(object.resource_version(), previous);
        if later.is_some() {
            self.writer.touch(object.namespace(), object.name());
            return later;
        }
        let (transition, object) = match event {
            Event::Shown(object) => {
                let matches = self.selector.as_ref().is_none_or(|s| s.matches(&object));
                let proof = Proof { version: origin.versions_hold(), content: !self.cache.is_some() };
                if matches {
                    // What was read may be ahead of the watch.
                    later = self.cache.shown(&object).filter(|_| origin.versions_hold());
                } else {
                    self.cache.gone(object.namespace(), object.name());
                }
                (shown(previous, object.clone(), matches, proof), object)
            }
            Event::Gone(object) => {
                self.cache.gone(object.namespace(), object.name());
                (gone(previous, Some(object.clone())), object)
            }
        };
        self.carry_out(transition, &object, origin, is_own);
        later
    }

    /// What comes now may be later than what was held, and must not go before it.
    fn apply_released(&mut self, released: Vec<Decided>) {
        for (event, is_own) in released {
            self.apply(event, Origin::Live, is_own);
        }
    }

    fn carry_out(&mut self, transition: Transition, shown: &Object, origin: Origin, is_own: bool) {
        match transition {
            Transition::Keep => {
                self.writer.touch(shown.namespace(), shown.name());
                return;
            }
            Transition::Refresh(object) => {
                self.writer.upsert(object);
            }
            Transition::Store(object, reported) => {
                if !origin.versions_hold() {
                    // The writer would take an equal version for the same object and keep the one it has.
                    self.writer.remove(shown.namespace(), shown.name());
                }
                self.writer.upsert(object.clone());
                if !is_own {
                    match reported {
                        Reported::Created => self.batch.push(Change::Created(object)),
                        Reported::Modified(old) => self.batch.push(Change::Modified { old, new: object }),
                        Reported::Replaced(old) => {
                            self.batch.push(Change::Deleted(old));
                            self.batch.push(Change::Created(object));
                        }
                    }
                }
            }
            Transition::Remove(change) => {
                self.writer.remove(shown.namespace(), shown.name());
                if !is_own {
                    self.batch.push(change);
                }
            }
        }
        self.is_dirty = true;
    }

    /// What is wrong with keys is said once, and again only when it is something else.
    fn tell_key_issues(&mut self) {
        let now = self.writer.key_issues();
        let resource = &self.shared.control.resource;
        if now.not_scalar > 0 && self.told.not_scalar == 0 {
            tracing::warn!(%resource, objects = now.not_scalar, "arrays or objects where an index wants a key: taken for missing");
        }
        if now.overflowed > 0 && self.told.overflowed == 0 {
            tracing::warn!(%resource, objects = now.overflowed, "more keys in an index than an object may have: the rest is left out");
        }
        self.told = now;
    }
}

impl Sink for Applier {
    fn encoder(&mut self) -> &mut Encoder {
        self.writer.encoder()
    }

    fn show(&mut self, object: Object, origin: Origin) -> Option<Later> {
        self.take(Event::Shown(object), origin)
    }

    fn hide(&mut self, object: Object, origin: Origin) -> Option<Later> {
        self.take(Event::Gone(object), origin)
    }

    fn skip(&mut self, bad: &BadObject, is_delete: bool, origin: Origin) -> Option<Later> {
        let name = bad.name.as_deref()?;
        let namespace = bad.namespace.as_deref();
        if is_delete {
            let released = self.held.release_of(&ObjectKey::new(namespace, name));
            self.apply_released(released);
        }
        let kept = self.writer.get(namespace, name)?;
        let origin = if self.outlived.has(namespace, name) { Origin::FROM_SCRATCH } else { origin };
        let later = origin.later(bad.resource_version.as_deref(), Some(kept));
        if !is_delete || later.is_some() {
            self.writer.touch(namespace, name);
            if !origin.versions_hold() {
                self.outlived.note(namespace, name);
            }
        } else if let Some(last) = self.writer.remove(namespace, name) {
            self.cache.gone(namespace, name);
            self.outlived.end(namespace, name);
            self.is_dirty = true;
            self.batch.push(Change::Deleted(last));
        }
        later
    }

    fn poll_held(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut any = Poll::Pending;
        while let Poll::Ready((event, is_own)) = self.held.poll_next(cx) {
            self.apply(event, Origin::Live, is_own);
            any = Poll::Ready(());
        }
        any
    }

    fn begin_relist(&mut self, namespace: Option<&str>, from_scratch: bool) {
        let released = self.held.release_in(namespace);
        self.apply_released(released);
        if from_scratch {
            self.forget_versions();
        } else if !self.is_loaded {
            // What was read before the first list may be from before a restore that nobody could notice.
            self.cache.forget();
        }
        self.writer.begin_relist(namespace);
    }

    fn abort_relist(&mut self, namespace: Option<&str>) {
        self.writer.cancel_relist(namespace);
    }

    fn finish_relist(&mut self, namespace: Option<&str>) {
        let gone = self.writer.finish_relist(namespace);
        self.is_dirty |= !gone.is_empty();
        for object in &gone {
            self.cache.gone(object.namespace(), object.name());
            self.outlived.end(object.namespace(), object.name());
        }
        self.batch.extend(gone.into_iter().map(Change::Deleted));
    }

    fn forget_versions(&mut self) {
        self.held.forget_versions();
        self.cache.forget();
    }

    fn loaded(&mut self) {
        self.commit();
        self.is_loaded = true;
        self.shared.mailbox.loaded(self.writer.len());
    }

    fn commit_due(&self) -> Option<Instant> {
        // At once; but the initial load, which nobody may take for complete, not for each portion that a slow
        // server sends.
        let pause = if self.is_loaded { Duration::ZERO } else { LOAD_COMMITS };
        self.is_dirty.then(|| self.committed + pause)
    }

    fn commit(&mut self) {
        if !self.is_dirty {
            return;
        }
        self.committed = Instant::now();
        self.is_dirty = false;
        let snapshot = self.writer.commit();
        self.tell_key_issues();
        self.shared.feed.publish(&snapshot, &self.batch);
        let mut stats = ChangeStats::default();
        self.batch.iter().for_each(|change| stats.record(change));
        self.changes.merge(&stats);
        stats.is_initial_sync = !self.is_loaded;
        self.batch.clear();
        self.batch.shrink_to(1024);
        if !stats.is_empty() {
            self.shared.mailbox.changed(&stats);
        }
    }

    fn tidy(&mut self) -> bool {
        let before = self.shared.store.snapshot().version();
        if self.writer.compact_step() {
            return true;
        }
        let tidy = self.shared.store.snapshot();
        if tidy.version() != before {
            self.shared.feed.tidied(&tidy);
        }
        self.shared.feed.tidy_step()
    }

    fn report(&self, status: &mut Status) {
        status.objects = self.writer.len();
        status.key_issues = self.told;
        status.changes = self.changes;
    }

    fn close(&mut self) {
        let released = self.held.release();
        self.apply_released(released);
        self.commit();
    }
}
