//! Changes as a stream: each subscriber gets what is new since it looked last, one entry an object.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use k8s_store::Snapshot;
use k8s_types::{Change, ChangeStats, Object, ObjectKey};
use parking_lot::Mutex;

/// How many waiting states one step of tidying looks at.
const TIDY_STEP: usize = 512;

/// Changes since the last batch, with the state that they led to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Batch {
    /// The state that includes exactly these changes.
    pub snapshot: Snapshot,
    /// What happened, counted: an object that was created and deleted in between is in both counts and in no
    /// entry of `changes`.
    pub stats: ChangeStats,
    /// What is different from the former batch, ordered by namespace and name: one entry an object, with the state
    /// that `snapshot` has. An object that is again as it was has none. One that was deleted and created again under
    /// its name (another uid) has two, the delete first. A delete has the object's last state. Own writes that a
    /// [`SelfWriteFilter`](k8s_types::SelfWriteFilter) recognised are left out: they are in `snapshot`, and a later entry
    /// may build on one.
    pub changes: Vec<Change>,
    /// This is the subscriber's first batch: `changes` has each present object as created, and `stats` count
    /// them.
    pub is_initial: bool,
}

/// A stream of coalesced changes; see [`WatcherHandle::changes`](crate::WatcherHandle::changes).
///
/// Ends when the watcher has ended and everything was read. Dropping it unsubscribes.
pub struct Changes {
    shared: Arc<Subscriber>,
}

/// Where the driver leaves what subscribers take.
pub(crate) struct Feed {
    state: Mutex<FeedState>,
}

struct FeedState {
    snapshot: Snapshot,
    loaded: bool,
    closed: bool,
    /// A subscriber has states that are not tidied.
    tidying: bool,
    subscribers: Vec<Weak<Subscriber>>,
}

struct Subscriber {
    pending: Mutex<Pending>,
}

struct Pending {
    snapshot: Snapshot,
    stats: ChangeStats,
    /// What the subscriber knows of each object that changed since. What is true now stands in the snapshot.
    net: BTreeMap<ObjectKey, Net>,
    /// Where tidying goes on, if it is not done.
    tidy_from: Option<Bound<ObjectKey>>,
    loaded: bool,
    /// The first batch was taken: changes count from there.
    primed: bool,
    closed: bool,
    waker: Option<Waker>,
}

/// What became of an object since the subscriber looked last.
struct Net {
    /// As the subscriber knows it; none if it did not exist.
    known: Option<Object>,
    /// The last state of that object, if it was deleted.
    last: Option<Object>,
}

// === impl Feed ===

impl Feed {
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        Self {
            state: Mutex::new(FeedState {
                snapshot,
                loaded: false,
                closed: false,
                tidying: false,
                subscribers: vec![],
            }),
        }
    }

    pub(crate) fn subscribe(&self) -> Changes {
        let mut state = self.state.lock();
        let shared = Arc::new(Subscriber {
            pending: Mutex::new(Pending {
                snapshot: state.snapshot.clone(),
                stats: ChangeStats::default(),
                net: BTreeMap::new(),
                tidy_from: None,
                loaded: state.loaded,
                primed: false,
                closed: state.closed,
                waker: None,
            }),
        });
        state.subscribers.retain(|s| s.strong_count() > 0);
        state.subscribers.push(Arc::downgrade(&shared));
        Changes { shared }
    }

    /// A commit: its state and what changed. Never waits for a reader.
    pub(crate) fn publish(&self, snapshot: &Snapshot, changes: &[Change]) {
        self.each(|state| state.snapshot = snapshot.clone(), |pending| pending.add(snapshot, changes));
    }

    /// The store has got rid of what nobody needs any more: in its former state it would live on until the next change,
    /// in the states that wait for readers for as long as these wait. [`tidy_step`](Self::tidy_step) takes it out of
    /// those.
    pub(crate) fn tidied(&self, snapshot: &Snapshot) {
        let own = |state: &mut FeedState| {
            state.snapshot = snapshot.clone();
            state.tidying = true;
        };
        self.each(own, |pending| {
            pending.add(snapshot, &[]);
            pending.tidy_from = Some(Bound::Unbounded);
        });
    }

    /// Does a slice of what [`tidied`](Self::tidied) began; says whether there is more.
    pub(crate) fn tidy_step(&self) -> bool {
        let mut state = self.state.lock();
        if state.tidying {
            let mut left = TIDY_STEP;
            let mut subscribers = state.subscribers.iter().filter_map(Weak::upgrade);
            state.tidying = subscribers.any(|subscriber| subscriber.pending.lock().tidy(&mut left));
        }
        state.tidying
    }

    /// How many objects have changed since the last batch of each subscriber.
    pub(crate) fn backlogs(&self) -> Vec<usize> {
        let subscribers: Vec<_> = self.state.lock().subscribers.iter().filter_map(Weak::upgrade).collect();
        subscribers.iter().map(|subscriber| subscriber.pending.lock().net.len()).collect()
    }

    /// The initial load is complete: first batches are due.
    pub(crate) fn loaded(&self) {
        self.each(|state| state.loaded = true, |pending| pending.loaded = true);
    }

    /// Nothing will come any more.
    pub(crate) fn close(&self) {
        self.each(|state| state.closed = true, |pending| pending.closed = true);
    }

    fn each(&self, own: impl FnOnce(&mut FeedState), theirs: impl Fn(&mut Pending)) {
        // The lock of the feed is held so that a new subscriber sees either all of a commit or nothing of it.
        let mut state = self.state.lock();
        own(&mut state);
        let mut waiting = vec![];
        state.subscribers.retain(|subscriber| {
            let Some(subscriber) = subscriber.upgrade() else { return false };
            let mut pending = subscriber.pending.lock();
            theirs(&mut pending);
            waiting.extend(pending.waker.take());
            true
        });
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }
}

// === impl Pending ===

impl Pending {
    fn add(&mut self, snapshot: &Snapshot, changes: &[Change]) {
        let before = std::mem::replace(&mut self.snapshot, snapshot.clone());
        if !self.primed {
            // The first batch is the state itself.
            return;
        }
        for change in changes {
            self.stats.record(change);
            match self.net.entry(ObjectKey::of(change.object())) {
                Entry::Vacant(entry) => {
                    let known = match change {
                        // A delete may tell of a state that nobody was told of before.
                        Change::Deleted(_) => before.by_key(entry.key()),
                        _ => change.previous(),
                    };
                    let mut net = Net { known: known.cloned(), last: None };
                    if net.heed(change) {
                        entry.insert(net);
                    }
                }
                Entry::Occupied(mut entry) => {
                    if !entry.get_mut().heed(change) {
                        entry.remove();
                    }
                }
            }
        }
    }

    /// Makes the next of the waiting states stand for themselves, as many as are left to do; says whether there are more.
    fn tidy(&mut self, left: &mut usize) -> bool {
        let Some(from) = self.tidy_from.take() else { return false };
        let mut entries = self.net.range_mut((from, Bound::Unbounded));
        for (key, net) in entries.by_ref().take(*left) {
            net.detach();
            *left -= 1;
            if *left == 0 {
                self.tidy_from = Some(Bound::Excluded(key.clone()));
            }
        }
        self.tidy_from.is_some()
    }

    fn take(&mut self) -> Option<Batch> {
        if !self.loaded {
            return None;
        }
        if !self.primed {
            self.primed = true;
            let changes: Vec<_> = self.snapshot.list().iter().cloned().map(Change::Created).collect();
            let mut stats = ChangeStats::default();
            stats.created = changes.len() as u64;
            return Some(Batch { snapshot: self.snapshot.clone(), stats, changes, is_initial: true });
        }
        if self.stats.is_empty() {
            return None;
        }
        let net = std::mem::take(&mut self.net);
        let mut changes = Vec::with_capacity(net.len());
        for (key, Net { known, last }) in net {
            match (known, self.snapshot.by_key(&key).cloned()) {
                (Some(old), Some(new)) if old.uid() == new.uid() => {
                    if !old.same_content(&new) {
                        changes.push(Change::Modified { old, new });
                    }
                }
                (old, new) => {
                    changes.extend(last.or(old).map(Change::Deleted));
                    changes.extend(new.map(Change::Created));
                }
            }
        }
        let stats = std::mem::take(&mut self.stats);
        Some(Batch { snapshot: self.snapshot.clone(), stats, changes, is_initial: false })
    }
}

// === impl Net ===

impl Net {
    /// Takes in what happened to the object; says whether the reader has to hear of it at all.
    fn heed(&mut self, change: &Change) -> bool {
        if let Change::Deleted(object) = change {
            match &self.known {
                // What came and went between two looks was never there for this reader.
                None => return false,
                Some(known) if known.uid() == object.uid() => self.last = Some(object.clone()),
                Some(_) => {}
            }
        }
        true
    }

    /// Lets go of the tables that the states share with others.
    fn detach(&mut self) {
        for object in [&mut self.known, &mut self.last].into_iter().flatten() {
            *object = object.detached();
        }
    }
}

// === impl Changes ===

impl Changes {
    /// The next batch: waits until something is new; none when the watcher has ended and all was read.
    ///
    /// The first batch comes when the initial load is complete and has the present state. A reader that is
    /// slow gets bigger batches, never more than one entry for an object (two where it was re-created).
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when the future is dropped: a batch is taken only when it is returned.
    pub async fn next(&mut self) -> Option<Batch> {
        std::future::poll_fn(|cx| self.poll_batch(cx)).await
    }

    /// How many objects have changed since the last batch: what a slow reader holds back. Others read it through
    /// [`WatcherHandle::backlog`](crate::WatcherHandle::backlog).
    pub fn backlog(&self) -> usize {
        self.shared.pending.lock().net.len()
    }

    fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Option<Batch>> {
        let mut pending = self.shared.pending.lock();
        if let Some(batch) = pending.take() {
            return Poll::Ready(Some(batch));
        }
        if pending.closed {
            return Poll::Ready(None);
        }
        pending.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Stream for Changes {
    type Item = Batch;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Batch>> {
        self.poll_batch(cx)
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("backlog", &self.backlog()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
