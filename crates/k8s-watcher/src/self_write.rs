//! The registry of our own writes.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use k8s_types::{Gvr, SelfWriteFilter};
use parking_lot::Mutex;

/// How many writes are remembered; the oldest is forgotten first.
const CAPACITY: usize = 4096;

/// Remembers the versions that this program wrote, so that a watcher recognises their echoes.
///
/// Clones share one registry. It holds the last 4,096 writes. A recognised echo brings the store up to date and is
/// reported to nobody; only a live watch event can be an echo, what a relist finds is always reported. Recognising
/// does not use a record up: the same version may come to several watchers.
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
    /// A write that changed nothing is answered with the version that was there before; recording it does no harm,
    /// since the event of that version was delivered long ago and no later one carries it.
    pub fn record(&self, gvr: &Gvr, namespace: Option<&str>, name: &str, resource_version: &str) {
        if resource_version.is_empty() {
            return;
        }
        let record = Arc::new(Record::new(gvr, namespace, name, resource_version));
        let mut records = self.records.lock();
        *records.counts.entry(record.clone()).or_default() += 1;
        records.order.push_back(record);
        if records.order.len() > CAPACITY {
            let Some(oldest) = records.order.pop_front() else { return };
            if let Some(count) = records.counts.get_mut(&oldest) {
                *count -= 1;
                if *count == 0 {
                    records.counts.remove(&oldest);
                }
            }
        }
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

impl SelfWriteFilter for SelfWrites {
    fn is_own(&self, gvr: &Gvr, namespace: Option<&str>, name: &str, resource_version: &str) -> bool {
        let records = self.records.lock();
        // Most programs write little: nothing is built when there is nothing to find.
        !records.counts.is_empty() && records.counts.contains_key(&Record::new(gvr, namespace, name, resource_version))
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
