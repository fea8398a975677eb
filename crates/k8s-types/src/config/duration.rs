//! Durations in serde form: text such as `100ms`, `1m30s` or `2.5s`; numbers are seconds.

use std::{fmt, time::Duration};

use serde::{Deserializer, Serializer, de};

use crate::error::ParseError;

/// Units in nanoseconds. Longer names come first where one begins with another.
const UNITS: [(&str, u128); 9] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Text(*duration))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    struct Visitor;
    impl de::Visitor<'_> for Visitor {
        type Value = Duration;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a duration such as \"100ms\" or \"1m30s\", or a number of seconds")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
            parse(text).map_err(E::custom)
        }

        fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Duration, E> {
            Ok(Duration::from_secs(seconds))
        }

        fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Duration, E> {
            u64::try_from(seconds).map(Duration::from_secs).map_err(|_| E::custom("negative duration"))
        }

        fn visit_f64<E: de::Error>(self, seconds: f64) -> Result<Duration, E> {
            Duration::try_from_secs_f64(seconds).map_err(E::custom)
        }
    }
    deserializer.deserialize_any(Visitor)
}

/// The shortest text with one whole number and one unit, which loses nothing.
struct Text(Duration);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let (unit, size) = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)]
            .into_iter()
            .find(|(_, size)| nanos.is_multiple_of(*size))
            .unwrap_or(("ns", 1));
        write!(f, "{}{unit}", nanos / size)
    }
}

fn parse(text: &str) -> Result<Duration, ParseError> {
    let mut rest = text;
    let mut total: u128 = 0;
    loop {
        let at = text.len() - rest.len();
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let name = tail.len() - tail.trim_start_matches(|c: char| c.is_alphabetic()).len();
        let (unit, tail) = tail.split_at(name);
        if number.is_empty() {
            return Err(ParseError::at(text, at, "number missing in a duration"));
        }
        let Some((_, size)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            let message = match unit {
                "" => "unit missing in a duration".to_owned(),
                unit => format!("unknown unit {unit:?} in a duration"),
            };
            return Err(ParseError::at(text, at + digits, message).hint("one of ns, us, ms, s, m, h, d, as in '1m30s'"));
        };
        let nanos = scale(number, *size)
            .ok_or_else(|| ParseError::at(text, at, format!("invalid number {number:?} in a duration")))?;
        total = total.saturating_add(nanos);
        rest = tail;
        if rest.is_empty() {
            break;
        }
    }
    let seconds = u64::try_from(total / 1_000_000_000).map_err(|_| ParseError::at(text, 0, "duration too long"))?;
    Ok(Duration::new(seconds, (total % 1_000_000_000) as u32))
}

/// `number` times `size`, exact down to the nanosecond; digits below that are cut.
fn scale(number: &str, size: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let mut nanos = whole.parse::<u128>().ok()?.checked_mul(size)?;
    let mut unit = size;
    for digit in fraction.chars() {
        unit /= 10;
        nanos = nanos.checked_add(unit * u128::from(digit.to_digit(10)?))?;
    }
    (!fraction.is_empty()).then_some(nanos)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(transparent)]
    struct Timed(#[serde(with = "super")] Duration);

    #[test]
    fn texts_and_numbers() {
        for (value, millis) in [
            (json!("100ms"), 100),
            (json!("0s"), 0),
            (json!("1m30s"), 90_000),
            (json!("2.5s"), 2_500),
            (json!("1h1m1s1ms"), 3_661_001),
            (json!("1d"), 86_400_000),
            (json!("1500us"), 1),
            (json!(3), 3_000),
            (json!(0.25), 250),
        ] {
            let timed: Timed = serde_json::from_value(value.clone()).expect("duration");
            assert_eq!(timed.0.as_millis(), millis, "{value}");
        }
    }

    #[test]
    fn wrong_ones() {
        for (text, expected) in [
            ("", "number missing in a duration at column 1"),
            ("s", "number missing in a duration at column 1"),
            ("5", "unit missing in a duration at column 2: one of ns, us, ms, s, m, h, d, as in '1m30s'"),
            ("5 s", "unit missing in a duration at column 2: one of ns, us, ms, s, m, h, d, as in '1m30s'"),
            ("1s5x", "unknown unit \"x\" in a duration at column 4: one of ns, us, ms, s, m, h, d, as in '1m30s'"),
            ("-1s", "number missing in a duration at column 1"),
            ("1.2.3s", "invalid number \"1.2.3\" in a duration at column 1"),
            ("1.s", "invalid number \"1.\" in a duration at column 1"),
            ("99999999999999999999s", "duration too long at column 1"),
        ] {
            assert_eq!(super::parse(text).expect_err(text).to_string(), expected);
        }
        assert!(serde_json::from_value::<Timed>(json!(-1)).is_err());
        assert!(serde_json::from_value::<Timed>(json!(-0.5)).is_err());
        assert!(serde_json::from_value::<Timed>(json!(null)).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_duration_round_trips(seconds in any::<u64>(), nanos in 0_u32..1_000_000_000) {
            let timed = Timed(Duration::new(seconds, nanos));
            let text = serde_json::to_string(&timed)?;
            prop_assert_eq!(serde_json::from_str::<Timed>(&text)?, timed);
        }

        #[test]
        fn arbitrary_text_never_panics(text in any::<String>(), likely in "[0-9.a-zµ]{0,12}") {
            let _ = (super::parse(&text), super::parse(&likely));
        }
    }
}
