//! The Lease as the election reads and writes it: a JSON object of which it knows a few fields and keeps all others.

use std::time::{Duration, SystemTime};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

/// How far behind the lease a clock may be and still be taken for one that stands still.
const STANDSTILL: SignedDuration = SignedDuration::from_secs(60);

/// A Lease as the server has it, under a resource version.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    object: Map<String, Value>,
}

/// What a candidate writes about itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim<'a> {
    pub(crate) identity: &'a str,
    pub(crate) seconds: u64,
    /// By this machine's wall clock: for people to read, never for a decision.
    pub(crate) now: SystemTime,
}

impl Record {
    /// Reads an answer of the server. None when it is no object with a resource version: whoever writes without one
    /// overwrites whatever came between.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let Ok(Value::Object(object)) = serde_json::from_slice(body) else { return None };
        let version = object.get("metadata")?.get("resourceVersion")?.as_str()?;
        (!version.is_empty()).then_some(Self { object })
    }

    /// Who holds the lease; none when it was released.
    pub(crate) fn holder(&self) -> Option<&str> {
        self.spec("holderIdentity")?.as_str().filter(|h| !h.is_empty())
    }

    /// How long the holder's claim is good for without a change; none when it does not say so.
    pub(crate) fn duration(&self) -> Option<Duration> {
        self.spec("leaseDurationSeconds")?.as_u64().filter(|s| *s > 0).map(Duration::from_secs)
    }

    /// Whether the two say the same about the election. Labels, for instance, may differ.
    pub(crate) fn says_the_same_as(&self, other: &Self) -> bool {
        self.object.get("spec") == other.object.get("spec")
    }

    fn spec(&self, field: &str) -> Option<&Value> {
        self.object.get("spec")?.get(field)
    }

    /// The first Lease of its name.
    pub(crate) fn first(namespace: &str, name: &str, claim: Claim<'_>) -> Value {
        let now = micros(timestamp(claim.now));
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "namespace": namespace, "name": name },
            "spec": {
                "holderIdentity": claim.identity,
                "leaseDurationSeconds": claim.seconds,
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            },
        })
    }

    /// This Lease, renewed by its holder or taken by another.
    pub(crate) fn claimed(&self, claim: Claim<'_>) -> Value {
        let is_mine = self.holder() == Some(claim.identity);
        let now = self.next_renewal(claim.now);
        let transitions = self.transitions();
        self.with(|spec| {
            spec.insert("holderIdentity".into(), claim.identity.into());
            spec.insert("leaseDurationSeconds".into(), claim.seconds.into());
            spec.insert("renewTime".into(), now.clone());
            if is_mine {
                spec.entry("acquireTime").or_insert(now);
            } else {
                spec.insert("acquireTime".into(), now);
                spec.insert("leaseTransitions".into(), transitions.saturating_add(1).into());
            }
        })
    }

    /// This Lease, given up by its holder, as client-go writes it: any candidate takes it at once.
    pub(crate) fn released(&self, now: SystemTime) -> Value {
        let now = self.next_renewal(now);
        self.with(|spec| {
            spec.insert("holderIdentity".into(), "".into());
            spec.insert("leaseDurationSeconds".into(), 1.into());
            spec.insert("acquireTime".into(), now.clone());
            spec.insert("renewTime".into(), now);
        })
    }

    fn with(&self, change: impl FnOnce(&mut Map<String, Value>)) -> Value {
        let mut object = self.object.clone();
        let mut spec = match object.remove("spec") {
            Some(Value::Object(spec)) => spec,
            _ => Map::new(),
        };
        change(&mut spec);
        object.insert("spec".into(), spec.into());
        object.into()
    }

    fn transitions(&self) -> i32 {
        let count = self.spec("leaseTransitions").and_then(Value::as_i64).unwrap_or_default();
        i32::try_from(count).unwrap_or(i32::MAX).max(0)
    }

    /// The time of a renewal: a microsecond after the former one where the clock stands still or was set back a
    /// little. A renewal that changed nothing would not be seen by anybody, nor would two that give back what was there.
    fn next_renewal(&self, now: SystemTime) -> Value {
        let now = timestamp(now);
        let former = self.spec("renewTime").and_then(Value::as_str).and_then(|text| text.parse::<Timestamp>().ok());
        let next = former.and_then(|former| former.checked_add(SignedDuration::from_micros(1)).ok());
        micros(next.filter(|next| *next > now && next.duration_since(now) < STANDSTILL).unwrap_or(now))
    }
}

/// A clock that is set to no date of this calendar gives 1970: it is only for people to read.
fn timestamp(time: SystemTime) -> Timestamp {
    Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// As Kubernetes writes a MicroTime: `2026-03-01T10:00:00.000000Z`.
fn micros(time: Timestamp) -> Value {
    format!("{time:.6}").into()
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn at(micros: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(1_772_359_200_000_000 + micros)
    }

    fn claim(identity: &str, micros: u64) -> Claim<'_> {
        Claim { identity, seconds: 15, now: at(micros) }
    }

    fn read(object: &Value) -> Record {
        Record::parse(object.to_string().as_bytes()).unwrap()
    }

    /// A Lease of `a` with more in it than the election knows.
    fn stored() -> Value {
        let mut object = Record::first("shop", "cart", claim("a", 0));
        object["metadata"]["resourceVersion"] = "7".into();
        object["metadata"]["labels"] = json!({"team": "red"});
        object["spec"]["preferredHolder"] = "b".into();
        object
    }

    #[test]
    fn the_first_lease() {
        let expected = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": "shop", "name": "cart"},
            "spec": {
                "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                "acquireTime": "2026-03-01T10:00:00.000001Z", "renewTime": "2026-03-01T10:00:00.000001Z",
            },
        });
        assert_eq!(Record::first("shop", "cart", claim("a", 1)), expected);
    }

    #[test]
    fn a_renewal_moves_one_time_and_keeps_everything_else() {
        let mut expected = stored();
        expected["spec"]["renewTime"] = "2026-03-01T10:00:02.500000Z".into();
        assert_eq!(read(&stored()).claimed(claim("a", 2_500_000)), expected);
    }

    #[test]
    fn a_take_over_counts_and_keeps_what_it_does_not_know() {
        let mut expected = stored();
        let now = "2026-03-01T10:01:00.000000Z";
        expected["spec"] = json!({
            "holderIdentity": "b", "leaseDurationSeconds": 15, "leaseTransitions": 1, "acquireTime": now,
            "renewTime": now, "preferredHolder": "b",
        });
        assert_eq!(read(&stored()).claimed(claim("b", 60_000_000)), expected);
    }

    #[test]
    fn a_release_names_nobody_and_keeps_the_count() {
        let released = read(&stored()).released(at(1));
        let now = "2026-03-01T10:00:00.000001Z";
        let mut expected = stored();
        expected["spec"] = json!({
            "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 0, "acquireTime": now,
            "renewTime": now, "preferredHolder": "b",
        });
        assert_eq!(released, expected);
        assert_eq!(read(&released).holder(), None);
        assert_eq!(read(&released).claimed(claim("b", 2))["spec"]["leaseTransitions"], 1);
    }

    #[test]
    fn a_renewal_is_seen_also_when_the_clock_shows_the_same_time_again() {
        let renewed = read(&stored()).claimed(claim("a", 0));
        assert_eq!(renewed["spec"]["renewTime"], "2026-03-01T10:00:00.000001Z");
        assert!(!read(&renewed).says_the_same_as(&read(&stored())));
    }

    #[test]
    fn a_clock_that_stands_still_gives_no_time_twice() {
        let (mut record, mut seen) = (read(&stored()), std::collections::BTreeSet::new());
        for _ in 0..10 {
            let renewed = record.claimed(claim("a", 0));
            assert!(seen.insert(renewed["spec"]["renewTime"].to_string()));
            record = read(&renewed);
        }
        // What others wrote by a clock of another year is not gone on with.
        let mut odd = stored();
        odd["spec"]["renewTime"] = "2999-01-01T00:00:00.000000Z".into();
        assert_eq!(read(&odd).claimed(claim("a", 0))["spec"]["renewTime"], "2026-03-01T10:00:00.000000Z");
    }

    #[test]
    fn labels_are_not_the_elections_business() {
        let mut other = stored();
        other["metadata"]["labels"]["team"] = "blue".into();
        other["metadata"]["resourceVersion"] = "8".into();
        assert!(read(&other).says_the_same_as(&read(&stored())));
    }

    #[test]
    fn a_lease_by_other_hands_is_no_panic() {
        for spec in [json!(null), json!([]), json!("x"), json!({}), json!({"holderIdentity": 7})] {
            let record = read(&json!({"metadata": {"resourceVersion": "1"}, "spec": spec}));
            assert_eq!((record.holder(), record.duration()), (None, None), "{spec}");
            assert_eq!(record.claimed(claim("a", 0))["spec"]["leaseTransitions"], 1, "{spec}");
            assert_eq!(record.released(at(0))["spec"]["holderIdentity"], "", "{spec}");
        }
        for (seconds, expected) in [(json!(0), None), (json!(-1), None), (json!("9"), None), (json!(9), Some(9))] {
            let spec = json!({"leaseDurationSeconds": seconds});
            let record = read(&json!({"metadata": {"resourceVersion": "1"}, "spec": spec}));
            assert_eq!(record.duration(), expected.map(Duration::from_secs), "{seconds}");
        }
        for (count, next) in [(json!(-5), 1), (json!(i64::MAX), i32::MAX), (json!(i32::MAX), i32::MAX)] {
            let record = read(&json!({"metadata": {"resourceVersion": "1"}, "spec": {"leaseTransitions": count}}));
            assert_eq!(record.claimed(claim("a", 0))["spec"]["leaseTransitions"], next, "{count}");
        }
        for body in ["", "{", "[]", "null", "{}", r#"{"metadata":{}}"#, r#"{"metadata":{"resourceVersion":""}}"#] {
            assert_eq!(Record::parse(body.as_bytes()), None, "{body}");
        }
    }

    #[test]
    fn a_clock_without_a_date_is_no_panic() {
        let far = UNIX_EPOCH + Duration::from_secs(1 << 60);
        let record = read(&stored());
        assert_eq!(
            record.claimed(Claim { now: far, ..claim("a", 0) })["spec"]["renewTime"],
            "1970-01-01T00:00:00.000000Z"
        );
    }
}
