//! Wall time that follows tokio's clock, so that a paused clock gives steady timestamps.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// The time of the server: the wall clock at start plus what tokio's clock has moved since.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    base: SystemTime,
    started: Instant,
}

impl Clock {
    pub(crate) fn new(base: SystemTime) -> Self {
        Self { base, started: Instant::now() }
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.base + self.started.elapsed()
    }

    /// Since the start of the server.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// As Kubernetes writes times: `2026-03-01T10:00:00Z`.
    pub(crate) fn timestamp(&self) -> String {
        rfc3339(self.now())
    }

    pub(crate) fn timestamp_in(&self, after: Duration) -> String {
        rfc3339(self.now() + after)
    }
}

/// Whole seconds in UTC; times before 1970 are given as 1970.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Seconds since 1970 of a time as [`rfc3339`] writes it; `None` for anything else.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some(days_since_epoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

// Both directions count in years that begin in March, which puts the leap day at the end of the year.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

fn days_since_epoch(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        let check = |seconds: u64, text: &str| {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
            assert_eq!(parse(text), Some(seconds));
        };
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(1_772_359_200, "2026-03-01T10:00:00Z");
        check(4_107_542_399, "2100-02-28T23:59:59Z");
        check(4_107_542_400, "2100-03-01T00:00:00Z");
    }

    #[test]
    fn no_time_is_no_panic() {
        for text in ["", "2026", "2026-13-01T00:00:00Z", "0000-01-01T00:00:00Z", "äöü-éè-ßßT00:00:00Z"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
