//! How long to wait after the n-th failure in a row.

use std::time::Duration;

use tokio::time::Instant;

/// The shortest first step: a configuration cannot ask for a hot loop.
const SHORTEST: Duration = Duration::from_millis(10);
/// A server's Retry-After is obeyed up to here; a mistyped one must not blind the cache for days.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(600);
/// How far in the future a moment lies that is never meant to come.
const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Exponential steps with jitter from a seeded generator, so that a run can be repeated.
#[derive(Debug)]
pub(crate) struct Backoff {
    initial: Duration,
    max: Duration,
    factor: f64,
    rng: fastrand::Rng,
}

impl Backoff {
    pub(crate) fn new(initial: Duration, max: Duration, factor: f64, seed: u64) -> Self {
        let initial = initial.max(SHORTEST);
        Self {
            initial,
            max: max.max(initial),
            // Also when it is no number.
            factor: if factor >= 1.0 { factor } else { 1.0 },
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// The wait before attempt `attempt` (from zero): `initial × factor^attempt`, at most `max`,
    /// of which up to a quarter is taken off at random. The jitter only shortens, so that `max`
    /// is a promise.
    pub(crate) fn step(&mut self, attempt: u32) -> Duration {
        let exponent = i32::try_from(attempt).unwrap_or(i32::MAX);
        let seconds = self.initial.as_secs_f64() * self.factor.powi(exponent);
        let full = if seconds < self.max.as_secs_f64() { Duration::from_secs_f64(seconds) } else { self.max };
        full.mul_f64(1.0 - 0.25 * self.rng.f64())
    }

    /// At least what the server asked for, at most a tenth and a bit more, so that all clients
    /// that were sent away together do not come back together.
    pub(crate) fn retry_after(&mut self, asked: Duration) -> Duration {
        let asked = asked.min(LONGEST_RETRY_AFTER);
        let spread = asked.mul_f64(0.1).max(Duration::from_millis(100));
        asked + spread.mul_f64(self.rng.f64())
    }

    /// A watch timeout between `least` and twice that, in whole seconds, at least one: watches
    /// that began together shall not end together.
    pub(super) fn watch_seconds(&mut self, least: Duration) -> u64 {
        let seconds = least.as_secs().max(1);
        seconds.saturating_add(self.rng.u64(0..=seconds))
    }
}

/// `from + wait`, or a moment that never comes where the clock ends.
pub(super) fn later(from: Instant, wait: Duration) -> Instant {
    from.checked_add(wait).unwrap_or_else(|| from + NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_grow_to_the_maximum_and_never_exceed_it() {
        let mut backoff = Backoff::new(Duration::from_millis(800), Duration::from_secs(30), 2.0, 1);
        for (attempt, full) in [(0, 0.8), (1, 1.6), (5, 25.6), (6, 30.0), (u32::MAX, 30.0)] {
            for _ in 0..100 {
                let step = backoff.step(attempt).as_secs_f64();
                assert!(step <= full + 1e-9 && step >= full * 0.75 - 1e-9, "{attempt}: {step}");
            }
        }
    }

    #[test]
    fn no_configuration_makes_a_hot_loop_or_a_panic() {
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            let mut backoff = Backoff::new(Duration::ZERO, Duration::ZERO, factor, 1);
            for attempt in [0, 1, 1_000, u32::MAX] {
                let step = backoff.step(attempt);
                assert!(step >= Duration::from_millis(7) && step <= SHORTEST, "{factor} {step:?}");
            }
        }
        let mut backoff = Backoff::new(Duration::MAX, Duration::MAX, 2.0, 1);
        assert!(later(Instant::now(), backoff.step(9)) > Instant::now());
    }

    #[test]
    fn c09_retry_after_is_a_minimum() {
        let mut backoff = Backoff::new(Duration::ZERO, Duration::ZERO, 2.0, 1);
        for seconds in [0, 1, 7, 600] {
            let asked = Duration::from_secs(seconds);
            let wait = backoff.retry_after(asked);
            assert!(wait >= asked && wait <= asked.mul_f64(1.1) + Duration::from_millis(100));
        }
        assert!(backoff.retry_after(Duration::MAX) < Duration::from_secs(700));
    }

    #[test]
    fn watch_timeouts_are_spread_and_never_zero() {
        let mut backoff = Backoff::new(Duration::ZERO, Duration::ZERO, 2.0, 1);
        for _ in 0..100 {
            assert!((290..=580).contains(&backoff.watch_seconds(Duration::from_secs(290))));
            assert!((1..=2).contains(&backoff.watch_seconds(Duration::ZERO)));
            assert!(backoff.watch_seconds(Duration::MAX) > 0);
        }
    }
}
