//! How long a group is waited for.

use std::time::Duration;

use tokio::time::Instant;

use super::{GroupError, MemberProgress};

/// How long [`SyncGroup::wait`](crate::SyncGroup::wait) waits: up to a time, as long as there is progress, both, or
/// without an end.
///
/// Progress is an object read that was not counted before, or another member that is synced; trying again is none.
///
/// ```
/// use std::time::Duration;
/// use k8s_watcher::Deadline;
///
/// let patient = Deadline::no_progress(Duration::from_secs(20));
/// let both = Deadline::after(Duration::from_secs(300)).or_no_progress(Duration::from_secs(20));
/// # let _ = (patient, both);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    total: Option<Duration>,
    standstill: Option<Duration>,
}

impl Deadline {
    /// Up to this time after the call.
    #[must_use]
    pub const fn after(time: Duration) -> Self {
        Self { total: Some(time), standstill: None }
    }

    /// Until nothing has moved for this long.
    #[must_use]
    pub const fn no_progress(time: Duration) -> Self {
        Self { total: None, standstill: Some(time) }
    }

    /// For ever.
    #[must_use]
    pub const fn never() -> Self {
        Self { total: None, standstill: None }
    }

    /// Besides, until nothing has moved for this long.
    #[must_use]
    pub const fn or_no_progress(mut self, time: Duration) -> Self {
        self.standstill = Some(time);
        self
    }

    /// When to give up, if nothing moves from now on.
    pub(super) fn due(&self, begin: Instant, progressed: Instant) -> Option<Instant> {
        let total = self.total.and_then(|time| begin.checked_add(time));
        let standstill = self.standstill.and_then(|time| progressed.checked_add(time));
        total.into_iter().chain(standstill).min()
    }

    pub(super) fn error(&self, begin: Instant, now: Instant, missing: Vec<MemberProgress>) -> GroupError {
        match (self.total, self.standstill) {
            (Some(total), _) if begin.checked_add(total).is_some_and(|due| due <= now) => {
                GroupError::Deadline { waited: total, missing }
            }
            (_, standstill) => GroupError::NoProgress { standstill: standstill.unwrap_or_default(), missing },
        }
    }
}
