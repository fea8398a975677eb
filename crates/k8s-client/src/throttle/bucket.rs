//! The token bucket: pure, told the time.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;

/// Credit is time: it grows as time passes, up to `full`, and each request costs `interval` of it. Whole nanoseconds,
/// so that nothing drifts.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    interval: Duration,
    full: Duration,
    credit: Duration,
    /// When `credit` was last true; the bucket starts full.
    as_of: Option<Instant>,
}

impl Bucket {
    pub(super) const SLOWEST: f64 = 0.001;
    pub(super) const FASTEST: f64 = 1_000_000.0;

    pub(super) fn new(qps: f64, burst: u32) -> Result<Self, Error> {
        // Not-a-number is in no range.
        if !(Self::SLOWEST..=Self::FASTEST).contains(&qps) {
            return Err(Error::InvalidSetting {
                field: "qps",
                value: qps.to_string(),
                expected: "between 0.001 and 1000000 requests a second",
            });
        }
        if burst == 0 {
            return Err(Error::InvalidSetting { field: "burst", value: "0".into(), expected: "at least 1" });
        }
        let interval = Duration::from_secs_f64(1.0 / qps);
        let full = interval.saturating_mul(burst);
        Ok(Self { interval, full, credit: full, as_of: None })
    }

    /// Takes one request's worth, or says how long it takes until there is one. Time that runs backwards stands still.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let passed = self.as_of.map_or(Duration::ZERO, |then| now.saturating_duration_since(then));
        self.as_of = Some(self.as_of.map_or(now, |then| then.max(now)));
        self.credit = self.credit.saturating_add(passed).min(self.full);
        match self.credit.checked_sub(self.interval) {
            Some(rest) => {
                self.credit = rest;
                Ok(())
            }
            None => Err(self.interval - self.credit),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::new(10.0, 3).unwrap();
        let cases = [
            // at (ms), expected
            (0, Ok(())),
            (0, Ok(())),
            (0, Ok(())),
            (0, Err(millis(100))),
            (40, Err(millis(60))),
            (100, Ok(())),
            (100, Err(millis(100))),
            // A long rest fills the bucket and no more.
            (60_000, Ok(())),
            (60_000, Ok(())),
            (60_000, Ok(())),
            (60_000, Err(millis(100))),
            // A clock that goes back gives nothing and costs nothing.
            (59_000, Err(millis(100))),
            (60_050, Err(millis(50))),
            (60_100, Ok(())),
        ];
        for (i, (at, expected)) in cases.into_iter().enumerate() {
            assert_eq!(bucket.take(start + millis(at)), expected, "step {i} at {at} ms");
        }
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let told = |qps, burst| Bucket::new(qps, burst).unwrap_err().to_string();
        for qps in [0.0, -1.0, f64::NAN, f64::INFINITY, 0.000_1, 1e9] {
            assert_eq!(
                told(qps, 1),
                format!("qps {qps} is not allowed: it must be between 0.001 and 1000000 requests a second")
            );
        }
        assert_eq!(told(5.0, 0), "burst 0 is not allowed: it must be at least 1");
        for (qps, burst) in [(0.001, u32::MAX), (1e6, 1), (0.5, 10)] {
            assert!(Bucket::new(qps, burst).is_ok(), "{qps} {burst}");
        }
    }

    /// The rule itself, from the history: a request may go when no stretch of time that ends with it and begins with
    /// an earlier one holds more than the burst and what the rate gives.
    fn conforms(sent: &[Instant], now: Instant, interval: Duration, burst: u32) -> bool {
        sent.iter().enumerate().all(|(i, &from)| {
            let requests = (sent.len() - i + 1) as u128;
            let gained = (now - from).as_nanos() / interval.as_nanos();
            requests <= u128::from(burst) + gained
        })
    }

    proptest! {
        #[test]
        fn grants_are_those_of_the_rule(
            interval in 1u64..50, burst in 1u32..6, steps in prop::collection::vec(0u64..120, 1..80)
        ) {
            let interval = millis(interval);
            let mut bucket = Bucket { interval, full: interval * burst, credit: interval * burst, as_of: None };
            let mut now = Instant::now();
            let mut sent = Vec::new();
            for step in steps {
                now += millis(step);
                let expected = conforms(&sent, now, interval, burst);
                match bucket.take(now) {
                    Ok(()) => {
                        prop_assert!(expected);
                        sent.push(now);
                    }
                    Err(wait) => {
                        prop_assert!(!expected);
                        prop_assert!(!wait.is_zero());
                        // Exactly then, and not a moment before.
                        prop_assert!(conforms(&sent, now + wait, interval, burst));
                        prop_assert!(!conforms(&sent, now + wait - Duration::from_nanos(1), interval, burst));
                    }
                }
            }
        }
    }
}
