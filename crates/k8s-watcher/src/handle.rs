//! What everybody may hold of a watcher: reads, waits, asks; keeps nothing alive but the data.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_store::MemoryStore;
use k8s_types::Gvr;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::changes::{Changes, Feed};
use crate::error::SyncError;
use crate::notify::Mailbox;
use crate::status::{Phase, Status, WatchError};

/// The readable side of a watcher. Clones are cheap and stay valid after the watcher has ended.
///
/// Everything here may be called from inside a callback: nothing waits for the watcher's own task, apart from
/// [`wait_for_sync`](Self::wait_for_sync), which inside `on_change` of the initial load would wait for that very
/// callback.
#[derive(Clone)]
pub struct WatcherHandle {
    shared: Arc<Shared>,
}

/// What the parts of a watcher have in common.
pub(crate) struct Shared {
    pub(crate) resource: Gvr,
    pub(crate) store: MemoryStore,
    pub(crate) feed: Feed,
    pub(crate) mailbox: Mailbox,
    pub(crate) status: StatusCell,
    pub(crate) stop: CancellationToken,
    /// Somebody wants everything to be read again.
    pub(crate) relist: Notify,
}

impl Shared {
    pub(crate) fn new(resource: Gvr, store: MemoryStore, mailbox: Mailbox) -> Self {
        let feed = Feed::new(store.snapshot());
        Self {
            resource,
            store,
            feed,
            mailbox,
            status: StatusCell::new(),
            stop: CancellationToken::new(),
            relist: Notify::new(),
        }
    }
}

/// The status, written by the driver and the notifier, read by everybody.
///
/// Where a watcher is in its life has a channel of its own: who waits for the sync is not to be woken by each
/// batch of a load.
pub(crate) struct StatusCell {
    status: watch::Sender<Status>,
    life: watch::Sender<Life>,
}

/// Where a watcher is in its life.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Life {
    Loading,
    /// The initial load is complete, with this many objects.
    Synced(usize),
    /// It has ended before the initial load was complete.
    Stopped,
}

impl StatusCell {
    fn new() -> Self {
        Self { status: watch::Sender::new(Status::default()), life: watch::Sender::new(Life::Loading) }
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Status)) {
        self.status.send_modify(change);
    }

    /// The initial load is complete and told.
    pub(crate) fn synced(&self, objects: usize) {
        self.update(|s| {
            s.synced = true;
            s.synced_at = Some(Instant::now());
            s.initial_objects = Some(objects);
        });
        self.life.send_replace(Life::Synced(objects));
    }

    /// The watcher has ended.
    pub(crate) fn stopped(&self) {
        self.update(|s| s.phase = Phase::Stopped);
        self.life.send_if_modified(|life| {
            let is_loading = *life == Life::Loading;
            if is_loading {
                *life = Life::Stopped;
            }
            is_loading
        });
    }
}

impl WatcherHandle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The kind that is watched.
    pub fn resource(&self) -> &Gvr {
        &self.shared.resource
    }

    /// The store: what the watcher knows. Complete from the initial sync on, readable at any time.
    pub fn store(&self) -> &MemoryStore {
        &self.shared.store
    }

    /// A new subscription to the changes: the present state first, once the initial load is complete, then what
    /// changes, merged as far as the reader is slow. Each subscription is independent of the others and of
    /// callbacks; dropping it ends it.
    pub fn changes(&self) -> Changes {
        self.shared.feed.subscribe()
    }

    /// The watcher's state at this moment.
    pub fn status(&self) -> Status {
        self.shared.status.status.borrow().clone()
    }

    /// The watcher's state as it changes; the last value wins.
    pub fn status_changes(&self) -> watch::Receiver<Status> {
        self.shared.status.status.subscribe()
    }

    /// Whether the initial load is complete and callbacks have been told of it. Stays true.
    pub fn is_synced(&self) -> bool {
        self.shared.status.status.borrow().synced
    }

    /// Whether the watcher has ended.
    pub fn is_stopped(&self) -> bool {
        self.shared.status.status.borrow().phase == Phase::Stopped
    }

    /// The last failure of a list or a watch, kept after recovery.
    pub fn last_watch_error(&self) -> Option<WatchError> {
        self.shared.status.status.borrow().last_watch_error.clone()
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
        let mut life = self.shared.status.life.subscribe();
        let decided = life.wait_for(|life| *life != Life::Loading);
        let ended = match tokio::time::timeout(deadline, decided).await {
            Ok(Ok(life)) => match *life {
                Life::Synced(objects) => return Ok(objects),
                Life::Loading | Life::Stopped => true,
            },
            Ok(Err(_)) => true,
            Err(_) => false,
        };
        if ended {
            let last = self.last_watch_error().map(Box::new);
            return Err(SyncError::Stopped { resource: self.shared.resource.clone(), last });
        }
        let now = self.status();
        Err(SyncError::Deadline {
            resource: self.shared.resource.clone(),
            waited: deadline,
            phase: now.phase,
            last: now.last_watch_error.map(Box::new),
        })
    }

    /// Asks for a call of `on_change` now, with the statistics so far, even if they are empty and even in the
    /// refractory period of the debounce. It comes as soon as no callback runs. Without `on_change` this does
    /// nothing; before the sync it does nothing unless `call_on_change_during_sync` is on.
    pub fn force_sync(&self) {
        self.shared.mailbox.force();
    }

    /// Asks the watcher to end, like the token given to `run`. What was collected since the last callback is
    /// still delivered. May be called any number of times.
    pub fn stop(&self) {
        self.shared.stop.cancel();
    }

    /// Asks the watcher to read everything again from the server and to report what is different, in the way of a
    /// repair: a difference means that a watch event was missed or invented. Nothing happens while a list is under
    /// way.
    pub fn relist(&self) {
        self.shared.relist.notify_one();
    }
}

impl fmt::Debug for WatcherHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatcherHandle")
            .field("resource", &self.shared.resource)
            .field("phase", &self.status().phase)
            .finish_non_exhaustive()
    }
}
