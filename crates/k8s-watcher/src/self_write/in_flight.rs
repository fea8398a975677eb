//! Writes whose answer has not come yet.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Waker};

use k8s_types::Gvr;
use parking_lot::Mutex;

use super::{Record, Records};

/// How many versions are remembered as waiting; more than a watcher lets wait.
const SEEN: usize = 2048;

/// A write that is under way: see [`SelfWrites::begin`](super::SelfWrites::begin).
#[must_use = "dropping the guard ends the write"]
pub struct WriteInFlight {
    records: Arc<Mutex<Records>>,
    target: Target,
    id: u64,
}

/// Which object is written.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Target {
    gvr: Gvr,
    namespace: Option<String>,
    name: Name,
}

#[derive(Clone, PartialEq, Eq)]
enum Name {
    Exactly(String),
    /// The server makes one of this.
    Prefix(String),
}

/// All writes under way. As many as the program has at a time, so a list is quick enough.
#[derive(Default)]
pub(super) struct Flights {
    next: u64,
    list: Vec<Flight>,
    /// The last write that had begun when a version was first asked about: later ones cannot have made it. The oldest
    /// is forgotten first.
    seen: HashMap<Arc<Record>, u64>,
    order: VecDeque<Arc<Record>>,
}

struct Flight {
    id: u64,
    target: Target,
    waiting: Vec<Waker>,
}

impl WriteInFlight {
    pub(super) fn begin(records: Arc<Mutex<Records>>, target: Target) -> Self {
        let id = records.lock().flights.begin(target.clone());
        Self { records, target, id }
    }

    /// The answer has come: records its `resourceVersion`, and lets the events of the object go on. An empty version
    /// is ignored, as are answers to a create with a generated name, which need
    /// [`answered_as`](Self::answered_as).
    pub fn answered(self, resource_version: &str) {
        if let Name::Exactly(name) = &self.target.name {
            self.record(name, resource_version);
        }
    }

    /// As [`answered`](Self::answered), with the name that the answer has.
    pub fn answered_as(self, name: &str, resource_version: &str) {
        self.record(name, resource_version);
    }

    fn record(&self, name: &str, resource_version: &str) {
        if !resource_version.is_empty() {
            let Target { gvr, namespace, .. } = &self.target;
            let record = Record::new(gvr, namespace.as_deref(), name, resource_version);
            self.records.lock().push(Arc::new(record));
        }
    }
}

impl Drop for WriteInFlight {
    fn drop(&mut self) {
        let waiting = self.records.lock().flights.end(self.id);
        // Not under the lock: a waker may run anything.
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for WriteInFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target { gvr, namespace, name } = &self.target;
        let (name, generated) = match name {
            Name::Exactly(name) => (name, false),
            Name::Prefix(prefix) => (prefix, true),
        };
        f.debug_struct("WriteInFlight")
            .field("resource", &gvr.to_string())
            .field("namespace", namespace)
            .field("name", name)
            .field("generated", &generated)
            .finish_non_exhaustive()
    }
}

impl Target {
    pub(super) fn named(gvr: &Gvr, namespace: Option<&str>, name: &str) -> Self {
        Self::new(gvr, namespace, Name::Exactly(name.to_owned()))
    }

    pub(super) fn generated(gvr: &Gvr, namespace: Option<&str>, prefix: &str) -> Self {
        Self::new(gvr, namespace, Name::Prefix(prefix.to_owned()))
    }

    fn new(gvr: &Gvr, namespace: Option<&str>, name: Name) -> Self {
        Self { gvr: gvr.clone(), namespace: namespace.filter(|n| !n.is_empty()).map(str::to_owned), name }
    }

    fn is(&self, gvr: &Gvr, namespace: Option<&str>, name: &str) -> bool {
        let same_name = match &self.name {
            Name::Exactly(own) => own == name,
            Name::Prefix(prefix) => name.starts_with(&**prefix),
        };
        same_name
            && self.gvr.group() == gvr.group()
            && self.gvr.resource() == gvr.resource()
            && self.namespace.as_deref() == namespace.filter(|n| !n.is_empty())
    }
}

impl Flights {
    fn begin(&mut self, target: Target) -> u64 {
        self.next += 1;
        self.list.push(Flight { id: self.next, target, waiting: vec![] });
        self.next
    }

    fn end(&mut self, id: u64) -> Vec<Waker> {
        let Some(at) = self.list.iter().position(|flight| flight.id == id) else { return vec![] };
        self.list.swap_remove(at).waiting
    }

    /// Whether a write that may have made this version is under way; if so, the task is woken when one of them ends.
    pub(super) fn wait(
        &mut self,
        gvr: &Gvr,
        namespace: Option<&str>,
        name: &str,
        resource_version: &str,
        cx: &Context<'_>,
    ) -> bool {
        if !self.list.iter().any(|flight| flight.target.is(gvr, namespace, name)) {
            return false;
        }
        // Or a program that writes without a pause would never hear of others.
        let latest = self.latest_at_first_sight(Record::new(gvr, namespace, name, resource_version));
        let mut any = false;
        let made = |flight: &&mut Flight| flight.id <= latest && flight.target.is(gvr, namespace, name);
        for flight in self.list.iter_mut().filter(made) {
            any = true;
            if !flight.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                flight.waiting.push(cx.waker().clone());
            }
        }
        any
    }

    /// Forgets which versions were asked about, but for those of others.
    pub(super) fn forget(&mut self, is_other: impl Fn(&Record) -> bool) {
        self.order.retain(|version| is_other(version));
        self.seen.retain(|version, _| is_other(version));
    }

    fn latest_at_first_sight(&mut self, version: Record) -> u64 {
        if let Some(latest) = self.seen.get(&version) {
            return *latest;
        }
        let version = Arc::new(version);
        self.seen.insert(version.clone(), self.next);
        self.order.push_back(version);
        if self.order.len() > SEEN
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        self.next
    }
}
