//! The registry of our own writes.

mod api;
mod in_flight;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use k8s_types::{Gvr, SelfWriteFilter};
use parking_lot::Mutex;

pub use self::in_flight::WriteInFlight;
use self::in_flight::{Flights, Target};

/// How many writes are remembered; the oldest is forgotten first.
const CAPACITY: usize = 4096;

/// Remembers the versions that this program wrote, so that a watcher recognises their echoes.
///
/// Clones share one registry. It holds the last 4,096 writes. A recognised echo brings the store up to date and is
/// reported to nobody; only a live watch event can be an echo, what a relist finds is always reported. Recognising
/// does not use a record up: the same version may come to several watchers.
///
/// # Writing
///
/// The methods that are named after those of `kube::Api` write through one and record the version in the answer:
/// [`create`](Self::create), [`replace`](Self::replace), [`patch`](Self::patch), [`patch_status`](Self::patch_status),
/// [`replace_status`](Self::replace_status), [`delete`](Self::delete); [`during`](Self::during) does so for any other
/// write. While one of these is under way, a watcher lets the events of that object wait, since the echo may overtake
/// the answer: until the answer has come or the write has failed, and never longer than ten seconds. An event does not
/// wait for writes that begin after it came. Whatever else
/// writes calls [`begin`](Self::begin) before and [`WriteInFlight::answered`] after it, or at least
/// [`record`](Self::record), which leaves the small chance that the echo was there first and was reported.
///
/// A foreign change has another version and is not taken for an echo, with one exception: a write that changes nothing
/// is answered with the version that was there before. If a foreign writer made it and its event is still on its way,
/// that event is taken for the echo. [`replace`](Self::replace) and [`replace_status`](Self::replace_status) of an
/// object with its `resourceVersion` notice this; a patch cannot, so one that may be empty is better compared first,
/// or sent through the plain API. A foreign change that comes between our write and the next look at the object, as in
/// a relist, is reported together with ours.
///
/// # Examples
///
/// ```
/// use k8s_types::{Gvr, SelfWriteFilter};
/// use k8s_watcher::SelfWrites;
///
/// let own = SelfWrites::default();
/// let ingresses: Gvr = "networking.k8s.io/v1/ingresses".parse()?;
/// own.record(&ingresses, Some("shop"), "cart", "50");
/// assert!(own.is_own(&ingresses, Some("shop"), "cart", "50"));
/// assert!(!own.is_own(&ingresses, Some("shop"), "cart", "51"));
/// # Ok::<(), k8s_types::ParseError>(())
/// ```
#[derive(Clone, Default)]
pub struct SelfWrites {
    records: Arc<Mutex<Records>>,
}

#[derive(Default)]
struct Records {
    order: VecDeque<Arc<Record>>,
    /// How often each is in `order`.
    counts: HashMap<Arc<Record>, usize>,
    /// Writes whose answer has not come.
    flights: Flights,
}

/// A write. The API's version is left out: an object written as `v1` comes back as `v1beta1` too.
#[derive(PartialEq, Eq, Hash)]
struct Record {
    group: String,
    resource: String,
    namespace: Option<String>,
    name: String,
    resource_version: String,
}

impl Record {
    fn new(gvr: &Gvr, namespace: Option<&str>, name: &str, resource_version: &str) -> Self {
        Self {
            group: gvr.group().to_owned(),
            resource: gvr.resource().to_owned(),
            namespace: namespace.filter(|n| !n.is_empty()).map(str::to_owned),
            name: name.to_owned(),
            resource_version: resource_version.to_owned(),
        }
    }
}

impl SelfWrites {
    /// Remembers a write by the `resourceVersion` of the server's answer. An empty version is ignored.
    ///
    /// A write that changed nothing is answered with the version that was there before, which is not to be recorded
    /// where it can be told: it hides no later event, but that of this version if it is foreign and has not come yet.
    pub fn record(&self, gvr: &Gvr, namespace: Option<&str>, name: &str, resource_version: &str) {
        if resource_version.is_empty() {
            return;
        }
        let record = Arc::new(Record::new(gvr, namespace, name, resource_version));
        self.records.lock().push(record);
    }

    /// Tells watchers that a write of this object is under way, until the guard is [answered](WriteInFlight::answered)
    /// or dropped. Begin before the request is sent.
    ///
    /// A guard that is dropped without an answer records nothing: if the server had taken the write all the same,
    /// its event is reported like a foreign one.
    #[must_use = "dropping the guard ends the write"]
    pub fn begin(&self, gvr: &Gvr, namespace: Option<&str>, name: &str) -> WriteInFlight {
        WriteInFlight::begin(self.records.clone(), Target::named(gvr, namespace, name))
    }

    /// As [`begin`](Self::begin), for a create with `generateName`: the guard stands for all names with this prefix.
    #[must_use = "dropping the guard ends the write"]
    pub fn begin_generated(&self, gvr: &Gvr, namespace: Option<&str>, prefix: &str) -> WriteInFlight {
        WriteInFlight::begin(self.records.clone(), Target::generated(gvr, namespace, prefix))
    }

    /// How many writes are remembered.
    pub fn len(&self) -> usize {
        self.records.lock().order.len()
    }

    /// Whether no write is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Records {
    fn push(&mut self, record: Arc<Record>) {
        *self.counts.entry(record.clone()).or_default() += 1;
        self.order.push_back(record);
        if self.order.len() > CAPACITY {
            let Some(oldest) = self.order.pop_front() else { return };
            if let Some(count) = self.counts.get_mut(&oldest) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&oldest);
                }
            }
        }
    }

    fn forget(&mut self, gvr: &Gvr) {
        let is_other = |r: &Record| r.group != gvr.group() || r.resource != gvr.resource();
        self.order.retain(|record| is_other(record));
        self.counts.retain(|record, _| is_other(record));
        self.flights.forget(is_other);
    }

    fn has(&self, gvr: &Gvr, namespace: Option<&str>, name: &str, resource_version: &str) -> bool {
        // Most programs write little: nothing is built when there is nothing to find.
        !self.counts.is_empty() && self.counts.contains_key(&Record::new(gvr, namespace, name, resource_version))
    }
}

impl SelfWriteFilter for SelfWrites {
    fn is_own(&self, gvr: &Gvr, namespace: Option<&str>, name: &str, resource_version: &str) -> bool {
        self.records.lock().has(gvr, namespace, name, resource_version)
    }

    fn poll_own(
        &self,
        gvr: &Gvr,
        namespace: Option<&str>,
        name: &str,
        resource_version: &str,
        cx: &mut Context<'_>,
    ) -> Poll<bool> {
        // One lock for both: an answer that comes in between would be missed.
        let mut records = self.records.lock();
        if records.has(gvr, namespace, name, resource_version) {
            return Poll::Ready(true);
        }
        if records.flights.wait(gvr, namespace, name, resource_version, cx) {
            Poll::Pending
        } else {
            Poll::Ready(false)
        }
    }

    fn set_back(&self, gvr: &Gvr) {
        self.records.lock().forget(gvr);
    }
}

impl fmt::Debug for SelfWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelfWrites").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c49_only_that_version_of_that_object_is_own() {
        let own = SelfWrites::default();
        let v1: Gvr = "networking.k8s.io/v1/ingresses".parse().unwrap();
        let beta: Gvr = "networking.k8s.io/v1beta1/ingresses".parse().unwrap();
        let other: Gvr = "v1/services".parse().unwrap();
        own.record(&v1, Some("shop"), "a", "50");
        own.record(&v1, Some("shop"), "a", "");
        assert!(own.is_own(&v1, Some("shop"), "a", "50") && own.is_own(&v1, Some("shop"), "a", "50"));
        assert!(own.is_own(&beta, Some("shop"), "a", "50"));
        for (gvr, namespace, name, version) in [
            (&v1, Some("shop"), "a", "51"),
            (&v1, Some("shop"), "a", ""),
            (&v1, Some("shop"), "b", "50"),
            (&v1, Some("pay"), "a", "50"),
            (&v1, None, "a", "50"),
            (&other, Some("shop"), "a", "50"),
        ] {
            assert!(!own.is_own(gvr, namespace, name, version));
        }
    }

    #[test]
    fn c49_what_was_written_before_a_restore_is_forgotten_of_that_kind_alone() {
        let own = SelfWrites::default();
        let (pods, services): (Gvr, Gvr) = ("v1/pods".parse().unwrap(), "v1/services".parse().unwrap());
        for gvr in [&pods, &services, &pods] {
            own.record(gvr, Some("shop"), "a", "50");
        }
        own.set_back(&pods);
        assert_eq!(own.len(), 1);
        assert!(!own.is_own(&pods, Some("shop"), "a", "50") && own.is_own(&services, Some("shop"), "a", "50"));
        own.record(&pods, Some("shop"), "a", "51");
        assert!(own.is_own(&pods, Some("shop"), "a", "51"));
    }

    #[test]
    fn the_registry_is_bounded_and_forgets_the_oldest() {
        let (own, gvr) = (SelfWrites::default(), "v1/pods".parse().unwrap());
        for version in 0..10_000 {
            own.record(&gvr, Some("shop"), "a", &version.to_string());
            own.record(&gvr, Some("shop"), "a", "same");
        }
        assert_eq!(own.len(), CAPACITY);
        assert!(own.records.lock().counts.len() <= CAPACITY / 2 + 1);
        assert!(own.is_own(&gvr, Some("shop"), "a", "9999") && own.is_own(&gvr, Some("shop"), "a", "same"));
        assert!(!own.is_own(&gvr, Some("shop"), "a", "7000"));
    }
}
