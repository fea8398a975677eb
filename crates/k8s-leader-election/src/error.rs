//! How an election can end badly.

use std::time::Duration;

pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why [`run`](crate::LeaderElector::run) ended, other than by its token or by work that was done.
///
/// Failures of the API server are not among the reasons: they are logged and tried again for ever.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The work returned an error while it had the lead, or while it was told to stop. It has ended; the lease was
    /// released.
    #[error("the work of the leader of {lease} failed")]
    WorkFailed {
        /// Namespace and name of the lease.
        lease: String,
        /// What the work returned.
        source: Cause,
    },
    /// The work panicked. It has ended; the lease was released.
    #[error("the work of the leader of {lease} panicked")]
    WorkPanicked {
        /// Namespace and name of the lease.
        lease: String,
    },
    /// The work, or `on_stopped` after it, had not ended a
    /// [`stop_timeout`](crate::LeaseConfig::stop_timeout) after the work's token was cancelled.
    ///
    /// The work was aborted, but nobody knows whether it has really ended: a thread cannot be aborted. So the lease
    /// was not released; it runs out by itself. What is left to do is to end the process.
    #[error("{what} of the leader of {lease} had not ended {waited:?} after it was told to")]
    Overdue {
        /// Namespace and name of the lease.
        lease: String,
        /// `the work` or `on_stopped`.
        what: &'static str,
        /// The stop timeout.
        waited: Duration,
    },
}
