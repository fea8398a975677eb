//! The cache itself: what is kept, what is under way, and the fetches.
//!
//! What is kept stands in moka, which bounds it by bytes; what is under way in a table of its own, one entry for each
//! fetch that somebody waits for. Both change under one lock, which is held for a few steps and never across I/O or the
//! work on a body; a hit does not touch it.
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use foldhash::quality::RandomState;
use futures_util::future::{Shared, WeakShared};
use hashbrown::HashMap;
use k8s_packed::{Encoder, Object};
use k8s_types::ObjectKey;
use moka::notification::RemovalCause;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::flying::{Answer, Flying, Outcome};
use super::name::Name;
use super::slot::{Flight, Floor, Kept, Read, Slot, Version};
use super::{CacheConfig, CacheStats, Fetch};
use crate::error::FetchError;
use crate::memory::MemoryStore;

/// Bytes that an entry takes beside its key's text and its object: key, entry and its places in moka's map and queues,
/// by the resident set.
const ENTRY_BYTES: usize = 580;
/// An entry expires up to this part of its time earlier.
const JITTER: f64 = 0.2;
/// More than any time to live, and less than any clock's end.
const AGES: Duration = Duration::from_secs(100 * 365 * 86_400);
/// How often a reader joins a fetch before it gives up.
const MAX_FETCHES: usize = 3;

pub(super) type Table = HashMap<ObjectKey, UnderWay, RandomState>;

/// A fetch that somebody waits for. The table does not keep it running: it ends with the last who waits.
pub(super) struct UnderWay {
    pub(super) id: u64,
    flight: Flight,
    answer: WeakShared<Answer>,
}

#[derive(Default)]
pub(super) struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
    pub(super) fetches: AtomicU64,
    pub(super) fetch_errors: AtomicU64,
    evictions: AtomicU64,
}

pub(super) struct Core {
    pub(super) refs: MemoryStore,
    pub(super) encoder: Encoder,
    pub(super) fetch: Box<dyn Fetch>,
    pub(super) config: CacheConfig,
    pub(super) kept: moka::sync::Cache<ObjectKey, Kept, RandomState>,
    pub(super) under_way: Mutex<Table>,
    pub(super) permits: Semaphore,
    next_id: AtomicU64,
    pub(super) counters: Arc<Counters>,
}

impl Core {
    pub(super) fn new(refs: MemoryStore, encoder: Encoder, mut config: CacheConfig, fetch: impl Fetch) -> Self {
        config.max_parallel_fetches = config.max_parallel_fetches.clamp(1, Semaphore::MAX_PERMITS);
        config.ttl = config.ttl.min(AGES);
        config.negative_ttl = config.negative_ttl.min(AGES);
        let counters = Arc::new(Counters::default());
        let seen = counters.clone();
        let kept = moka::sync::Cache::builder()
            .max_capacity(config.max_bytes)
            .weigher(|key: &ObjectKey, kept: &Kept| {
                let text = key.namespace().map_or(0, str::len) + key.name().len();
                let object = kept.object.as_ref().map_or(0, Object::size);
                u32::try_from(ENTRY_BYTES + text + object).unwrap_or(u32::MAX)
            })
            // Whether an entry has expired is decided here, by tokio's clock. This only frees what nobody reads again.
            .time_to_live(config.ttl.max(config.negative_ttl))
            .eviction_listener(move |_, _, cause| {
                seen.evictions.fetch_add(u64::from(cause == RemovalCause::Size), Relaxed);
            })
            .build_with_hasher(RandomState::default());
        let permits = Semaphore::new(config.max_parallel_fetches);
        Self {
            refs,
            encoder,
            fetch: Box::new(fetch),
            config,
            kept,
            under_way: Mutex::default(),
            permits,
            next_id: AtomicU64::new(0),
            counters,
        }
    }

    pub(super) fn max_parallel(&self) -> usize {
        self.config.max_parallel_fetches
    }

    /// Bytes of what is kept.
    pub(super) fn bytes(&self) -> u64 {
        self.kept.run_pending_tasks();
        self.kept.weighted_size()
    }

    pub(super) fn stats(&self) -> CacheStats {
        let bytes = self.bytes();
        CacheStats {
            hits: self.counters.hits.load(Relaxed),
            misses: self.counters.misses.load(Relaxed),
            fetches: self.counters.fetches.load(Relaxed),
            fetch_errors: self.counters.fetch_errors.load(Relaxed),
            evictions: self.counters.evictions.load(Relaxed),
            entries: self.kept.entry_count(),
            bytes,
        }
    }
}

// === reading ===

impl Core {
    /// What a reader who knows this reference may have at once.
    #[inline]
    pub(super) fn cached(&self, name: Name<'_>, now: Instant, stub: Option<&Object>) -> Option<Option<Object>> {
        let kept = self.kept.get(&name).filter(|kept| kept.serves(now, stub))?;
        self.counters.hits.fetch_add(1, Relaxed);
        Some(kept.object)
    }

    /// What [`cached`](Self::cached) does not have, fetched, by whoever comes first.
    pub(super) async fn fetched(
        self: &Arc<Self>,
        key: &ObjectKey,
        stub: Option<&Object>,
    ) -> Result<Option<Object>, FetchError> {
        self.counters.misses.fetch_add(1, Relaxed);
        for _ in 0..MAX_FETCHES {
            let (answer, floor) = match self.join(key, stub) {
                Joined::Hit(object) => return Ok(object),
                Joined::Wait(answer, floor) => (answer, floor),
            };
            match answer.await {
                Outcome::Settled(object) if !floor.refuses(object.as_ref()) => return Ok(object),
                // Newer answers exist, but this one is no older than what had been shown when the reader came.
                Outcome::Overtaken(object) if floor.accepts(object.as_ref()) => return Ok(object),
                Outcome::Failed(error) => return Err(error),
                Outcome::Settled(_) | Outcome::Overtaken(_) => {}
            }
        }
        Err(FetchError::Overtaken)
    }

    fn join(self: &Arc<Self>, key: &ObjectKey, stub: Option<&Object>) -> Joined {
        let mut under_way = self.under_way.lock();
        let running = under_way.get(key).and_then(|entry| entry.answer.upgrade());
        if running.is_none() {
            // Its last reader is just leaving.
            under_way.remove(key);
        }
        let read = self.change(&mut under_way, Name::of_key(key), |slot| slot.read(Instant::now(), stub));
        let joined = match (read, &running) {
            (Read::Hit(object), _) => Joined::Hit(object),
            (Read::Join(Floor::Nothing), Some(answer)) => Joined::Wait(answer.clone(), Floor::of(stub)),
            (Read::Join(floor), Some(answer)) => Joined::Wait(answer.clone(), floor),
            (Read::Join(_) | Read::Start, _) => {
                let id = self.next_id.fetch_add(1, Relaxed);
                let answer = Flying { core: self.clone(), key: key.clone(), id }.start();
                if let Some(weak) = answer.downgrade() {
                    under_way.insert(key.clone(), UnderWay { id, flight: Flight::default(), answer: weak });
                }
                Joined::Wait(answer, Floor::of(stub))
            }
        };
        drop(under_way);
        // Not before: it may be the last handle to a fetch, which takes the lock to sign off.
        drop(running);
        joined
    }
}

enum Joined {
    Hit(Option<Object>),
    Wait(Shared<Answer>, Floor),
}

// === the watch ===

impl Core {
    /// Tells of a version that the watch shows.
    pub(super) fn shown(
        &self,
        name: Name<'_>,
        version: impl FnOnce() -> Version,
        full: Option<&Object>,
    ) -> Option<String> {
        if !self.is_known(name) {
            return None;
        }
        let (version, full) = (version(), full.map(|object| self.keep(Some(object.detached()))));
        self.change(&mut self.under_way.lock(), name, |slot| slot.shown(version, full))
    }

    /// Tells of the end of an object.
    pub(super) fn gone(&self, name: Name<'_>) {
        if self.is_known(name) {
            self.change(&mut self.under_way.lock(), name, Slot::gone);
        }
    }

    /// Drops what is kept, and distrusts what is under way.
    pub(super) fn forget(&self) {
        let mut under_way = self.under_way.lock();
        let kept = self.kept.iter().map(|(key, _)| (*key).clone());
        let keys: Vec<ObjectKey> = under_way.keys().cloned().chain(kept).collect();
        for key in keys {
            self.change(&mut under_way, Name::of_key(&key), Slot::forget);
        }
    }

    /// Whether there is anything that an event could change. A fetch that starts after this asks after the event.
    fn is_known(&self, name: Name<'_>) -> bool {
        let under_way = self.under_way.lock();
        // Not a read: what the watch touches is not more popular for that.
        self.kept.contains_key(&name) || under_way.contains_key(&name)
    }
}

// === slots ===

impl Core {
    /// Takes one slot out of where its parts are, changes it, and puts it back.
    pub(super) fn change<T>(&self, under_way: &mut Table, name: Name<'_>, change: impl FnOnce(&mut Slot) -> T) -> T {
        let before = if self.kept.contains_key(&name) { self.kept.get(&name) } else { None };
        let flight = under_way.get(&name).map(|entry| entry.flight.clone());
        let mut slot = Slot { kept: before.clone(), flight };
        let result = change(&mut slot);
        match (before, slot.kept) {
            (Some(before), Some(kept)) if kept.is(&before) => {}
            (_, Some(kept)) => self.kept.insert(name.to_key(), kept),
            (Some(_), None) => self.kept.invalidate(&name),
            (None, None) => {}
        }
        match (under_way.get_mut(&name), slot.flight) {
            (Some(entry), Some(flight)) => entry.flight = flight,
            // The handle is a weak one: nothing of the fetch is dropped here.
            (Some(_), None) => drop(under_way.remove(&name)),
            // A fetch that starts: whoever asked enters it.
            (None, _) => {}
        }
        result
    }

    /// What to remember of an object, or of its absence.
    pub(super) fn keep(&self, object: Option<Object>) -> Kept {
        let ttl = match &object {
            Some(_) => self.config.ttl.mul_f64(1.0 - JITTER * fastrand::f64()),
            None => self.config.negative_ttl,
        };
        Kept { object, expires: Instant::now() + ttl }
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("entries", &self.kept.entry_count()).finish_non_exhaustive()
    }
}
