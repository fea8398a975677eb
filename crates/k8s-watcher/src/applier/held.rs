//! Live events of objects that this program is writing: they wait until it is known whose they are.
//!
//! The echo of a write may overtake the answer to it. Until the answer has come, or the write has failed, the events
//! of that object wait here in their order; nothing else waits. What is held is bounded, in number and in time:
//! beyond that, and when a list of their namespace begins, events are decided by what is known then.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use k8s_types::{Object, ObjectKey, SelfWriteFilter};
use tokio::time::{Instant, Sleep};

use crate::control::Control;

/// How many events of one object wait.
const PER_OBJECT: usize = 64;

/// How many events wait in all.
const IN_ALL: usize = 1024;

/// How long an event waits for the answer to a write.
const LIMIT: Duration = Duration::from_secs(10);

/// A watch event about an object.
pub(super) enum Event {
    Shown(Object),
    Gone(Object),
}

/// An event, and whether it is the echo of our own write.
pub(super) type Decided = (Event, bool);

pub(super) struct Held {
    filter: Option<Arc<dyn SelfWriteFilter>>,
    control: Arc<Control>,
    waiting: BTreeMap<ObjectKey, VecDeque<Waiting>>,
    len: usize,
    timer: Option<Pin<Box<Sleep>>>,
}

struct Waiting {
    event: Event,
    since: Instant,
}

impl Held {
    pub(super) fn new(filter: Option<Arc<dyn SelfWriteFilter>>, control: Arc<Control>) -> Self {
        Self { filter, control, waiting: BTreeMap::new(), len: 0, timer: None }
    }

    /// What was written before may be anybody's now.
    pub(super) fn forget_versions(&self) {
        if let Some(filter) = &self.filter {
            guarded(&self.control, || filter.set_back(&self.control.resource));
        }
    }

    /// Takes an event in; gives it back if nothing has to be waited for.
    pub(super) fn admit(&mut self, event: Event) -> Option<Decided> {
        let Some(filter) = &self.filter else { return Some((event, false)) };
        let key = (!self.waiting.is_empty()).then(|| ObjectKey::of(event.object()));
        // Behind an event that waits nothing of the same object may pass.
        if !key.is_some_and(|key| self.waiting.contains_key(&key)) {
            let mut cx = Context::from_waker(Waker::noop());
            if let Poll::Ready(own) = poll_own(&**filter, &self.control, &event, &mut cx) {
                return Some((event, own));
            }
        }
        let key = ObjectKey::of(event.object());
        self.waiting.entry(key).or_default().push_back(Waiting { event, since: Instant::now() });
        self.len += 1;
        None
    }

    /// The next event that need not wait any longer.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Decided> {
        let Some(filter) = &self.filter else { return Poll::Pending };
        let mut oldest: Option<Instant> = None;
        let now = Instant::now();
        let found = self.waiting.iter().find_map(|(key, events)| {
            let Waiting { event, since } = events.front()?;
            match poll_own(&**filter, &self.control, event, cx) {
                Poll::Ready(own) => Some((key.clone(), own)),
                Poll::Pending if events.len() > PER_OBJECT || self.len > IN_ALL || *since + LIMIT <= now => {
                    Some((key.clone(), false))
                }
                Poll::Pending => {
                    oldest = Some(oldest.map_or(*since, |oldest| oldest.min(*since)));
                    None
                }
            }
        });
        if let Some(decided) = found.and_then(|(key, own)| Some((self.pop(&key)?, own))) {
            return Poll::Ready(decided);
        }
        self.timer = oldest.map(|oldest| Box::pin(tokio::time::sleep_until(oldest + LIMIT)));
        match self.timer.as_mut().map(|timer| timer.as_mut().poll(cx)) {
            // It has come meanwhile: look again.
            Some(Poll::Ready(())) => self.poll_next(cx),
            _ => Poll::Pending,
        }
    }

    /// Everything, in the order of each object's events, decided by what is known now.
    pub(super) fn release(&mut self) -> Vec<Decided> {
        self.len = 0;
        let events = std::mem::take(&mut self.waiting).into_values().flatten();
        self.decide(events)
    }

    /// Everything of a namespace, or of all, as [`release`](Self::release).
    pub(super) fn release_in(&mut self, namespace: Option<&str>) -> Vec<Decided> {
        if namespace.is_none() {
            return self.release();
        }
        let keys: Vec<_> = self.waiting.keys().filter(|key| key.namespace() == namespace).cloned().collect();
        keys.iter().flat_map(|key| self.release_of(key)).collect()
    }

    /// Everything of one object, as [`release`](Self::release).
    pub(super) fn release_of(&mut self, key: &ObjectKey) -> Vec<Decided> {
        let events = self.waiting.remove(key).unwrap_or_default();
        self.len -= events.len();
        self.decide(events)
    }

    fn decide(&self, events: impl IntoIterator<Item = Waiting>) -> Vec<Decided> {
        let mut cx = Context::from_waker(Waker::noop());
        let decide = |Waiting { event, .. }: Waiting| {
            let own = self.filter.as_ref().map(|filter| poll_own(&**filter, &self.control, &event, &mut cx));
            let own = matches!(own, Some(Poll::Ready(true)));
            (event, own)
        };
        events.into_iter().map(decide).collect()
    }

    fn pop(&mut self, key: &ObjectKey) -> Option<Event> {
        let events = self.waiting.get_mut(key)?;
        let event = events.pop_front()?.event;
        if events.is_empty() {
            self.waiting.remove(key);
        }
        self.len -= 1;
        Some(event)
    }
}

/// Asks the filter. It is the user's, and the only code of theirs on the reading task: one that panics is no reason to
/// stop reading.
fn poll_own(filter: &dyn SelfWriteFilter, control: &Control, event: &Event, cx: &mut Context<'_>) -> Poll<bool> {
    let object = event.object();
    let Some(version) = object.resource_version() else { return Poll::Ready(false) };
    let (resource, namespace, name) = (&control.resource, object.namespace(), object.name());
    guarded(control, || filter.poll_own(resource, namespace, name, version, cx)).unwrap_or(Poll::Ready(false))
}

/// Calls a filter, which is user code; none if it panics.
fn guarded<T>(control: &Control, call: impl FnOnce() -> T) -> Option<T> {
    let result = catch_unwind(AssertUnwindSafe(call));
    if result.is_err() {
        control.status.update(|s| s.callback_panics += 1);
        tracing::error!(resource = %control.resource, "the filter of own writes panicked; taken for an answer of no");
    }
    result.ok()
}

impl Event {
    pub(super) fn object(&self) -> &Object {
        match self {
            Self::Shown(object) | Self::Gone(object) => object,
        }
    }
}
