//! When a callback is due: [`Debouncer`], a pure machine that takes the time and decides.
//!
//! A burst of events shall lead to few callbacks, the first of them at once and none of them
//! late. That is a *leading edge* and a *refractory period*: the first event fires
//! immediately, and until the interval has passed **since the start of that callback** further
//! events are collected. A timer that starts again on each event (a trailing debounce) can be
//! starved by a steady stream of events; this one cannot, since the time of the next callback
//! depends on the last callback alone.

use std::time::Duration;

use tokio::time::Instant;

/// How far in the future a moment lies that is never meant to come.
const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// What [`Debouncer::poll`] wants its owner to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Take everything collected so far, call [`Debouncer::started`], and run the callback.
    Fire,
    /// Something is collected, and the interval has not passed yet: ask again at this moment
    /// (or after the next event; the moment does not move).
    WaitUntil(Instant),
    /// Nothing to wait for on the clock. Either nothing is collected, or a callback runs and
    /// [`Debouncer::finished`] will be the time to ask again.
    Idle,
}

/// Decides when a callback runs; knows nothing of what the callback is given.
///
/// Guarantees, for an owner that polls after each call and at each [`Decision::WaitUntil`]:
///
/// - **Leading edge**: an event after a quiet time fires at once.
/// - **Bounded rate**: two callbacks start at least the interval apart, unless the later one was
///   [forced](Debouncer::force).
/// - **No starvation, bounded latency**: an event is covered by a callback that starts at most
///   one interval later, or as soon as the running callback ends if that takes longer.
/// - **Nothing lost**: an event that arrives while a callback runs leads to another callback.
///   An event belongs to the callback whose [`started`](Debouncer::started) came after it, so
///   an owner that hands over its accumulator at `started` delivers each event exactly once.
/// - **Never two at once**: [`Decision::Fire`] is not returned while a callback runs.
///
/// With a zero interval there is no refractory period: each event fires at once, or right after
/// the running callback.
///
/// ```
/// use std::time::Duration;
/// use k8s_watcher::{Debouncer, Decision};
/// use tokio::time::Instant;
///
/// let start = Instant::now();
/// let at = |ms| start + Duration::from_millis(ms);
/// let mut debouncer = Debouncer::new(Duration::from_millis(100));
/// assert_eq!(debouncer.poll(at(0)), Decision::Idle);
///
/// debouncer.event(at(0));
/// assert_eq!(debouncer.poll(at(0)), Decision::Fire);
/// debouncer.started(at(0));
/// debouncer.event(at(10)); // while the callback runs: the next one covers it
/// debouncer.finished();
/// assert_eq!(debouncer.poll(at(20)), Decision::WaitUntil(at(100)));
/// assert_eq!(debouncer.poll(at(100)), Decision::Fire);
/// ```
#[derive(Clone, Debug)]
pub struct Debouncer {
    interval: Duration,
    /// When the oldest event came that no callback covers yet.
    pending: Option<Instant>,
    forced: bool,
    running: bool,
    last_start: Option<Instant>,
}

impl Debouncer {
    /// A debouncer that lets callbacks start at most once per `interval`.
    ///
    /// [`Duration::ZERO`] switches the refractory period off.
    #[must_use]
    pub const fn new(interval: Duration) -> Self {
        Self { interval, pending: None, forced: false, running: false, last_start: None }
    }

    /// The interval given to [`new`](Self::new).
    #[must_use]
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// Something happened that a callback has to cover.
    pub fn event(&mut self, now: Instant) {
        self.pending.get_or_insert(now);
    }

    /// Asks for a callback as soon as none runs, whatever the interval says, and even if nothing
    /// happened. Several requests before the next start are one.
    pub fn force(&mut self, now: Instant) {
        self.forced = true;
        self.pending.get_or_insert(now);
    }

    /// What to do at `now`. Changes nothing, so it may be asked at any time and any number of
    /// times.
    #[must_use]
    pub fn poll(&self, now: Instant) -> Decision {
        if self.running || self.pending.is_none() {
            return Decision::Idle;
        }
        let Some(last_start) = self.last_start.filter(|_| !self.forced) else {
            return Decision::Fire;
        };
        match last_start.checked_add(self.interval) {
            Some(due) if due <= now => Decision::Fire,
            Some(due) => Decision::WaitUntil(due),
            // An interval beyond the range of the clock: only a forced callback comes.
            None => Decision::WaitUntil(now + NEVER),
        }
    }

    /// A callback starts and takes everything collected up to here; the refractory period begins.
    pub fn started(&mut self, now: Instant) {
        self.pending = None;
        self.forced = false;
        self.running = true;
        self.last_start = Some(now);
    }

    /// A callback of another kind starts, one that takes nothing and begins no refractory period
    /// (`on_sync_complete`). Until [`finished`](Self::finished) nothing fires.
    pub fn hold(&mut self) {
        self.running = true;
    }

    /// The running callback has ended, by returning or by a panic. Poll afterwards: what came
    /// meanwhile may be due at once.
    pub fn finished(&mut self) {
        self.running = false;
    }

    /// Forgets what was collected, because it reached the user in another way. The refractory
    /// period and a running callback are not touched.
    pub fn clear(&mut self) {
        self.pending = None;
        self.forced = false;
    }

    /// Whether a callback runs.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.running
    }

    /// When the oldest event came that no callback covers yet: how long the user has been waiting.
    #[must_use]
    pub const fn pending_since(&self) -> Option<Instant> {
        self.pending
    }
}

#[cfg(test)]
mod tests;
