//! What everybody may hold of a watcher: reads, waits, asks; keeps nothing alive but the data.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_store::{MemoryStore, Snapshot};
use k8s_types::Gvr;
use tokio::time::Instant;

use crate::backlog::Backlog;
use crate::changes::{Changes, Feed};
use crate::control::Control;
use crate::error::SyncError;
use crate::notify::Mailbox;
use crate::status::{Phase, Status, WatchError};
use crate::sync::watch;

/// The readable side of a watcher. Clones are cheap and stay valid after the watcher has ended.
///
/// Everything here may be called from inside a callback: nothing waits for the watcher's own task, apart from
/// [`wait_for_sync`](Self::wait_for_sync), which inside `on_change` of the initial load would wait for that very
/// callback.
#[derive(Clone)]
pub struct WatcherHandle<S = MemoryStore> {
    shared: Arc<Shared>,
    store: S,
}

/// What the parts of a watcher have in common, whatever its store.
pub(crate) struct Shared {
    pub(crate) control: Arc<Control>,
    /// The store that the driver fills. For a cached store: the references.
    pub(crate) store: MemoryStore,
    pub(crate) feed: Feed,
    pub(crate) mailbox: Mailbox,
}

impl Shared {
    pub(crate) fn new(control: Arc<Control>, store: MemoryStore, mailbox: Mailbox) -> Self {
        let feed = Feed::new(store.snapshot());
        Self { control, store, feed, mailbox }
    }

    pub(crate) fn backlog(&self) -> Backlog {
        Backlog { untold: self.mailbox.untold(), unread: self.feed.backlogs() }
    }
}

impl<S> WatcherHandle<S> {
    pub(crate) fn new(shared: Arc<Shared>, store: S) -> Self {
        Self { shared, store }
    }

    /// The kind that is watched.
    pub fn resource(&self) -> &Gvr {
        &self.shared.control.resource
    }

    /// The store: what the watcher knows. Complete from the initial sync on, readable at any time.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The state at this moment, as callbacks and [`changes`](Self::changes) see it: one pointer. Of a cached store
    /// these are the references.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.store.snapshot()
    }

    /// A new subscription to the changes: the present state first, once the initial load is complete, then what
    /// changes, merged as far as the reader is slow. Each subscription is independent of the others and of
    /// callbacks; dropping it ends it.
    pub fn changes(&self) -> Changes {
        self.shared.feed.subscribe()
    }

    /// The watcher's state at this moment.
    pub fn status(&self) -> Status {
        self.shared.control.status.get()
    }

    /// The watcher's state as it changes; the last value wins.
    pub fn status_changes(&self) -> watch::Receiver<Status> {
        self.shared.control.status.subscribe()
    }

    /// What waits for callbacks and for readers of [`changes`](Self::changes): how far behind they are. Costs two short
    /// locks and one for each stream.
    ///
    /// # Examples
    ///
    /// A check that finds the callback that hangs:
    ///
    /// ```
    /// # use k8s_watcher::WatcherHandle;
    /// fn keeps_pace(watcher: &WatcherHandle) -> bool {
    ///     let backlog = watcher.backlog();
    ///     backlog.untold.total() < 100_000 && backlog.longest_stream().unwrap_or(0) < 10_000
    /// }
    /// ```
    pub fn backlog(&self) -> Backlog {
        self.shared.backlog()
    }

    /// Whether the initial load is complete and callbacks have been told of it. Stays true.
    pub fn is_synced(&self) -> bool {
        self.shared.control.status.read(|s| s.synced)
    }

    /// Whether the watcher was started. Stays true.
    pub fn is_started(&self) -> bool {
        self.shared.control.status.read(|s| s.started)
    }

    /// Whether the watcher has ended.
    pub fn is_stopped(&self) -> bool {
        self.shared.control.status.read(|s| s.phase == Phase::Stopped)
    }

    /// Whether the watcher is synced, runs, and was known to be current within this time: one answer for a readiness
    /// probe, for which five minutes is a good limit; see [`Status::is_healthy`].
    pub fn is_healthy(&self, within: Duration) -> bool {
        self.shared.control.status.read(|s| s.is_healthy(Instant::now(), within))
    }

    /// The last failure of a list or a watch, kept after recovery.
    pub fn last_watch_error(&self) -> Option<WatchError> {
        self.shared.control.status.read(|s| s.last_watch_error.clone())
    }

    /// Waits until the initial load is complete: store, indexes and the callbacks about it; gives the number of
    /// objects that it brought. Returns at once when that was earlier.
    ///
    /// # Errors
    ///
    /// [`SyncError::Deadline`] when it takes longer than `deadline`, with what the watcher was doing and its last
    /// failure (a missing right or kind shows up here; the watcher goes on trying). [`SyncError::Stopped`] when
    /// the watcher has ended before.
    ///
    /// # Cancel safety
    ///
    /// Nothing changes when the future is dropped.
    pub async fn wait_for_sync(&self, deadline: Duration) -> Result<usize, SyncError> {
        self.shared.control.wait_for_sync(deadline).await
    }

    /// Asks for a call of `on_change` now, with the statistics so far, even if they are empty and even in the
    /// refractory period of the debounce. It comes as soon as no callback runs. Without `on_change` this does
    /// nothing; before the sync it does nothing unless `call_on_change_during_sync` is on. In a
    /// [group](crate::SyncGroup) it waits until the group is complete.
    pub fn force_sync(&self) {
        self.shared.mailbox.force();
    }

    /// Asks the watcher to end, like the token given to `run`. What was collected since the last callback is
    /// still delivered. May be called any number of times.
    pub fn stop(&self) {
        self.shared.control.stop.cancel();
    }

    /// Asks the watcher to read everything again from the server and to report what is different, in the way of a
    /// repair: a difference means that a watch event was missed or invented. Nothing happens while a list is under
    /// way.
    pub fn relist(&self) {
        self.shared.control.relist.notify_one();
    }
}

#[cfg(feature = "metrics")]
impl<S> WatcherHandle<S> {
    pub(crate) fn source(&self) -> std::sync::Weak<dyn crate::metrics::Source> {
        let shared: Arc<dyn crate::metrics::Source> = self.shared.clone();
        Arc::downgrade(&shared)
    }
}

#[cfg(feature = "metrics")]
impl crate::metrics::Source for Shared {
    fn control(&self) -> &Control {
        &self.control
    }

    fn store_bytes(&self) -> Option<usize> {
        Some(self.store.snapshot().bytes().total())
    }

    fn backlog(&self) -> Backlog {
        self.backlog()
    }
}

impl<S> fmt::Debug for WatcherHandle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatcherHandle")
            .field("resource", &self.shared.control.resource)
            .field("phase", &self.status().phase)
            .finish_non_exhaustive()
    }
}
