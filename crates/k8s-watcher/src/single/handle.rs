//! What everybody may hold of a watcher over one object.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_types::{Gvr, Object};
use tokio::time::Instant;

use super::Shared;
use crate::error::SyncError;
use crate::status::{Phase, Status, WatchError};
use crate::sync::watch;

/// The readable side of a [`SingleWatcher`](crate::SingleWatcher). Clones are cheap and stay valid after the watcher
/// has ended. Everything here may be called from inside a callback.
#[derive(Clone)]
pub struct SingleWatcherHandle {
    shared: Arc<Shared>,
}

impl SingleWatcherHandle {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The kind of the object.
    pub fn resource(&self) -> &Gvr {
        &self.shared.control.resource
    }

    /// The object as it is known now; none if it does not exist, or is not known yet. It may be newer than what
    /// `on_change` was told last.
    pub fn object(&self) -> Option<Object> {
        self.shared.news.lock().current().cloned()
    }

    /// Waits until it is known whether the object exists; gives it, as it is then, or none.
    ///
    /// # Errors
    ///
    /// [`SyncError::Deadline`] when it takes longer than `deadline`, with what the watcher was doing and its last
    /// failure (a missing right or kind, or a missing namespace, shows up here; the watcher goes on trying).
    /// [`SyncError::Stopped`] when the watcher has ended before.
    ///
    /// # Cancel safety
    ///
    /// Nothing changes when the future is dropped.
    pub async fn wait_for_sync(&self, deadline: Duration) -> Result<Option<Object>, SyncError> {
        self.shared.control.wait_for_sync(deadline).await?;
        Ok(self.object())
    }

    /// Whether it is known if the object exists. Stays true.
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

    /// When the last watch event about the object came; none before the first. What the initial list brings is no
    /// event.
    pub fn last_event_time(&self) -> Option<Instant> {
        self.shared.control.status.read(|s| s.last_event)
    }

    /// The last failure of a list or a watch, kept after recovery.
    pub fn last_watch_error(&self) -> Option<WatchError> {
        self.shared.control.status.read(|s| s.last_watch_error.clone())
    }

    /// How many calls of `on_change` wait, behind one that runs or for a [group](crate::SyncGroup) to be complete: two at
    /// most, a delete and the state that came after it. None before the sync, and none without `on_change`.
    pub fn backlog(&self) -> usize {
        self.shared.backlog()
    }

    /// The watcher's state at this moment.
    pub fn status(&self) -> Status {
        self.shared.control.status.get()
    }

    /// The watcher's state as it changes; the last value wins.
    pub fn status_changes(&self) -> watch::Receiver<Status> {
        self.shared.control.status.subscribe()
    }

    /// Asks the watcher to end, like the token given to `run`. What is known is still told. May be called any number
    /// of times.
    pub fn stop(&self) {
        self.shared.control.stop.cancel();
    }

    /// Asks the watcher to read the object again from the server and to tell what is different. Nothing happens while
    /// a list is under way.
    pub fn relist(&self) {
        self.shared.control.relist.notify_one();
    }
}

#[cfg(feature = "metrics")]
impl SingleWatcherHandle {
    pub(crate) fn source(&self) -> std::sync::Weak<dyn crate::metrics::Source> {
        let shared: Arc<dyn crate::metrics::Source> = self.shared.clone();
        Arc::downgrade(&shared)
    }
}

#[cfg(feature = "metrics")]
impl crate::metrics::Source for Shared {
    fn control(&self) -> &crate::control::Control {
        &self.control
    }

    fn store_bytes(&self) -> Option<usize> {
        None
    }

    fn backlog(&self) -> crate::Backlog {
        let mut backlog = crate::Backlog::default();
        backlog.untold.modified = self.backlog() as u64;
        backlog
    }
}

impl fmt::Debug for SingleWatcherHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleWatcherHandle")
            .field("resource", self.resource())
            .field("phase", &self.status().phase)
            .finish_non_exhaustive()
    }
}
