//! The lead, as long as it lasts: what the work holds in its hand.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// One term of leading: given to the work, and good until it is lost once. A cheap handle.
///
/// # What work must check
///
/// The token is cancelled by a task, and a task can be late: when its thread is blocked, the machine swaps, or the
/// process is stopped and continued. So before anything that must not happen twice, ask [`is_leader`](Self::is_leader),
/// which compares with the clock, and see that it takes less time than [`remaining`](Self::remaining).
///
/// Not even that helps against a stall between the question and the deed, or a machine that is suspended together
/// with its clock. What must be safe from that too needs a check where the deed is done, such as a write with the
/// `resourceVersion` that was read.
#[derive(Clone)]
pub struct Lead {
    term: Arc<Term>,
}

struct Term {
    until: Mutex<Instant>,
    token: CancellationToken,
}

impl Lead {
    pub(crate) fn new(until: Instant) -> Self {
        Self { term: Arc::new(Term { until: Mutex::new(until), token: CancellationToken::new() }) }
    }

    /// Whether this term lasts at this moment. Compares with the clock: no task has to notice anything first. Once
    /// false it stays false.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// For how long this term lasts even if it is not renewed; zero once it is lost. While all is well it is at least
    /// the renew deadline less 1.2 retry periods: 7.6 s by default.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        let until = *self.until();
        if self.term.token.is_cancelled() { Duration::ZERO } else { until.saturating_duration_since(Instant::now()) }
    }

    /// Waits until the work is to end: the lead is lost, or the elector is stopped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn cancelled(&self) {
        self.term.token.cancelled().await;
    }

    /// A token that is cancelled when the work is to end, to hand on. Cancelling it oneself has no effect on the lead.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.term.token.child_token()
    }

    /// When the term ends unless it is renewed.
    pub(crate) fn expires_at(&self) -> Instant {
        *self.until()
    }

    /// Makes the term longer, unless it is over already: false.
    pub(crate) fn extend(&self, until: Instant) -> bool {
        let mut current = self.until();
        let lasts = Instant::now() < *current && !self.term.token.is_cancelled();
        if lasts {
            *current = until.max(*current);
        }
        lasts
    }

    /// Ends the term: first for those who ask, then for those who wait.
    pub(crate) fn end(&self) {
        let now = Instant::now();
        {
            let mut until = self.until();
            *until = now.min(*until);
        }
        self.term.token.cancel();
    }

    fn until(&self) -> MutexGuard<'_, Instant> {
        self.term.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Lead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lead").field("remaining", &self.remaining()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead() -> Lead {
        Lead::new(Instant::now() + Duration::from_secs(10))
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_alone_ends_a_term_and_nothing_revives_it() {
        let lead = lead();
        tokio::time::advance(Duration::from_millis(9_999)).await;
        assert!(lead.is_leader());
        assert_eq!(lead.remaining(), Duration::from_millis(1));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!lead.is_leader() && !lead.token().is_cancelled(), "nobody has told the token yet");
        assert!(!lead.extend(Instant::now() + Duration::from_secs(10)));
        assert!(!lead.is_leader());
    }

    #[tokio::test(start_paused = true)]
    async fn a_term_that_was_ended_is_over_for_those_who_ask_and_those_who_wait() {
        let lead = lead();
        assert!(lead.extend(Instant::now() + Duration::from_secs(20)));
        assert!(lead.extend(Instant::now()), "it never becomes shorter");
        assert_eq!(lead.remaining(), Duration::from_secs(20));
        let handed_on = lead.token();
        lead.end();
        assert!(!lead.is_leader() && handed_on.is_cancelled());
        lead.cancelled().await;
        assert!(!lead.extend(Instant::now() + Duration::from_secs(10)));
        lead.end();
        assert_eq!(format!("{lead:?}"), "Lead { remaining: 0ns, .. }");
    }

    #[tokio::test(start_paused = true)]
    async fn the_works_own_token_is_no_way_to_end_the_lead() {
        let lead = lead();
        lead.token().cancel();
        assert!(lead.is_leader());
    }
}
