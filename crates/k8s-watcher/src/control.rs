//! What the reading side of a watcher and those who hold its handle share: the status, and requests to stop or read again.

use std::time::Duration;

use k8s_types::Gvr;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::SyncError;
use crate::status::{Phase, Status};
use crate::sync::watch;

/// Between a driver and the holders of handles.
pub(crate) struct Control {
    pub(crate) resource: Gvr,
    pub(crate) status: StatusCell,
    pub(crate) stop: CancellationToken,
    /// Somebody wants everything to be read again.
    pub(crate) relist: Notify,
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
pub(crate) enum Life {
    Loading,
    /// The initial load is complete, with this many objects.
    Synced(usize),
    /// It has ended before the initial load was complete.
    Stopped,
}

// === impl Control ===

impl Control {
    pub(crate) fn new(resource: Gvr) -> Self {
        Self { resource, status: StatusCell::new(), stop: CancellationToken::new(), relist: Notify::new() }
    }

    /// Waits for the end of the initial load; gives how many objects it brought.
    pub(crate) async fn wait_for_sync(&self, deadline: Duration) -> Result<usize, SyncError> {
        let ended = match tokio::time::timeout(deadline, self.status.decided()).await {
            Ok(Life::Synced(objects)) => return Ok(objects),
            Ok(Life::Loading | Life::Stopped) => true,
            Err(_) => false,
        };
        let now = self.status.get();
        let (resource, last) = (self.resource.clone(), now.last_watch_error.map(Box::new));
        if ended {
            return Err(SyncError::Stopped { resource, last });
        }
        Err(SyncError::Deadline { resource, waited: deadline, phase: now.phase, last })
    }
}

// === impl StatusCell ===

impl StatusCell {
    fn new() -> Self {
        Self { status: watch::Sender::new(Status::default()), life: watch::Sender::new(Life::Loading) }
    }

    pub(crate) fn get(&self) -> Status {
        self.status.borrow().clone()
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&Status) -> T) -> T {
        read(&self.status.borrow())
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Status)) {
        self.status.send_modify(change);
    }

    /// Waits until the initial load is complete or never will be.
    pub(crate) async fn decided(&self) -> Life {
        let decided = self.life.subscribe().wait_for(|life| *life != Life::Loading).await.map(|life| *life);
        // The sender is ours: there is no other end.
        decided.unwrap_or(Life::Stopped)
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
