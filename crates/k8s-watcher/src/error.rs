//! What can go wrong for those who wait: a sync that does not come.

use std::time::Duration;

use k8s_types::Gvr;

use crate::status::{Phase, WatchError};

/// Why [`wait_for_sync`](crate::WatcherHandle::wait_for_sync) gave up. The last failure of the watch is the source.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The initial load was not complete in time. The watcher goes on.
    #[error("{resource} is not synced after {waited:?}: {phase}")]
    Deadline {
        /// What was waited for.
        resource: Gvr,
        /// How long.
        waited: Duration,
        /// What the watcher was doing.
        phase: Phase,
        /// The last failure, if there was one.
        #[source]
        last: Option<Box<WatchError>>,
    },
    /// The watcher has ended, or was dropped, before its initial load was complete.
    #[error("the watcher of {resource} ended before it was synced")]
    Stopped {
        /// What was waited for.
        resource: Gvr,
        /// The last failure, if there was one.
        #[source]
        last: Option<Box<WatchError>>,
    },
}

impl SyncError {
    /// The last failure of the watch before the wait ended: what to tell an operator.
    pub fn last_watch_error(&self) -> Option<&WatchError> {
        match self {
            Self::Deadline { last, .. } | Self::Stopped { last, .. } => last.as_deref(),
        }
    }
}
