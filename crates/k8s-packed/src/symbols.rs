//! What objects of one store share: key texts and repeated values, by number.
//!
//! [`Symbols`] is what readers see: append-only, read without a lock, held by every object that uses it.
//! [`Interner`] is the writer's side: it finds a number by content and decides what deserves one.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::layout::{MAX_KEYS, SYMBOL_BYTES};
use crate::seen::Seen;

/// Values longer than this are never shared: they are rarely equal, and comparing them costs.
const MAX_VALUE_BYTES: usize = 2048;
/// Keys longer than this are never shared: label keys are shorter, and the table must not fill with texts.
const MAX_KEY_BYTES: usize = 512;
/// Values shorter than this are written in place.
const MIN_VALUE_BYTES: usize = SYMBOL_BYTES + 2;
/// What a shared value costs besides its bytes: slot, allocation, entry in the writer's table.
const ENTRY_BYTES: usize = 56;
/// Below this size a table is not worth a compaction.
const SMALL_TABLE: usize = 256 << 10;

/// The table that objects refer to. Numbers are given by the [`Interner`] and never change their meaning.
#[derive(Default)]
pub(crate) struct Symbols {
    keys: Slots<Box<str>>,
    values: Slots<Box<[u8]>>,
}

impl Symbols {
    /// The text of a key; empty for a number that was never given.
    #[inline]
    pub(crate) fn key(&self, id: u32) -> &str {
        self.keys.get(id).map_or("", |k| k)
    }

    /// The bytes of a shared value, which may refer to further symbols; null for a number never given.
    #[inline]
    pub(crate) fn value(&self, id: u32) -> &[u8] {
        self.values.get(id).map_or(&[], |v| v)
    }
}

/// An append-only vector whose items never move: chunks that double in size, each item written once.
struct Slots<T> {
    chunks: [OnceLock<Box<[OnceLock<T>]>>; 26],
    len: AtomicUsize,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { chunks: [const { OnceLock::new() }; 26], len: AtomicUsize::new(0) }
    }
}

impl<T> Slots<T> {
    const FIRST: u32 = 64;

    /// The chunk that holds item `id`, and its place in it.
    #[inline]
    fn place(id: u32) -> (usize, usize) {
        let chunk = (id / Self::FIRST + 1).ilog2();
        let start = Self::FIRST * ((1 << chunk) - 1);
        (chunk as usize, (id - start) as usize)
    }

    #[inline]
    fn get(&self, id: u32) -> Option<&T> {
        let (chunk, at) = Self::place(id);
        self.chunks.get(chunk)?.get()?.get(at)?.get()
    }

    fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Adds an item and gives its number. Only the one interner that owns the table calls this.
    fn push(&self, item: T) -> u32 {
        let id = self.len.fetch_add(1, Ordering::Relaxed) as u32;
        let (chunk, at) = Self::place(id);
        let chunk = self.chunks[chunk].get_or_init(|| {
            let len = (Self::FIRST as usize) << chunk;
            (0..len).map(|_| OnceLock::new()).collect()
        });
        let _ = chunk[at].set(item);
        id
    }

    fn slot_bytes(&self) -> usize {
        let per_slot = size_of::<OnceLock<T>>();
        self.chunks.iter().filter_map(|c| c.get()).map(|c| c.len() * per_slot).sum()
    }
}

/// The writer's side of a [`Symbols`] table: one for each store.
pub(crate) struct Interner {
    symbols: Arc<Symbols>,
    key_ids: HashTable<u32>,
    value_ids: HashTable<u32>,
    /// Key texts and value bytes in the table.
    content: usize,
    /// `memory()` right after the last compaction.
    baseline: usize,
    seen: Seen,
    hasher: RandomState,
    pending: Vec<Candidate>,
    pending_bytes: Vec<u8>,
}

/// What the table has for a value.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    Symbol(u32),
    /// Nothing yet; the value's hash.
    Candidate(u64),
    /// Too short or too long to be shared.
    Unfit,
}

/// Something that had no number when the present object used it.
struct Candidate {
    hash: u64,
    start: usize,
    end: usize,
    is_key: bool,
}

impl Default for Interner {
    fn default() -> Self {
        Self {
            symbols: Arc::default(),
            key_ids: HashTable::new(),
            value_ids: HashTable::new(),
            content: 0,
            baseline: 0,
            seen: Seen::default(),
            hasher: RandomState::default(),
            pending: vec![],
            pending_bytes: vec![],
        }
    }
}

/// Without what `Hash` adds to tell sequences apart: there is one only.
#[inline]
fn hash_of(hasher: &RandomState, bytes: &[u8]) -> u64 {
    let mut state = hasher.build_hasher();
    state.write(bytes);
    state.finish()
}

impl Interner {
    pub(crate) fn symbols(&self) -> &Arc<Symbols> {
        &self.symbols
    }

    /// The number of a key, if it has one; else the key becomes a candidate.
    #[inline]
    pub(crate) fn key(&mut self, text: &str) -> Option<u32> {
        if text.len() > MAX_KEY_BYTES {
            return None;
        }
        let hash = hash_of(&self.hasher, text.as_bytes());
        let symbols = &self.symbols;
        let found = self.key_ids.find(hash, |&id| symbols.key(id) == text).copied();
        if found.is_none() && (self.symbols.keys.len() as u32) < MAX_KEYS {
            self.candidate(hash, text.as_bytes(), true);
        }
        found
    }

    /// The number of an encoded value, if it has one; else the value becomes a candidate.
    #[inline]
    pub(crate) fn value(&mut self, bytes: &[u8]) -> Found {
        if !(MIN_VALUE_BYTES..=MAX_VALUE_BYTES).contains(&bytes.len()) {
            return Found::Unfit;
        }
        let hash = hash_of(&self.hasher, bytes);
        let symbols = &self.symbols;
        let found = self.value_ids.find(hash, |&id| symbols.value(id) == bytes).copied();
        match found {
            Some(id) => Found::Symbol(id),
            None => {
                self.candidate(hash, bytes, false);
                Found::Candidate(hash)
            }
        }
    }

    fn candidate(&mut self, hash: u64, bytes: &[u8], is_key: bool) {
        let start = self.pending_bytes.len();
        self.pending_bytes.extend_from_slice(bytes);
        self.pending.push(Candidate { hash, start, end: start + bytes.len(), is_key });
    }

    /// How many candidates the present object has so far.
    pub(crate) fn candidates(&self) -> usize {
        self.pending.len()
    }

    /// Forgets the candidates beyond a number: they are parts of something that has a symbol.
    pub(crate) fn forget_candidates(&mut self, beyond: usize) {
        if let Some(first) = self.pending.get(beyond) {
            self.pending_bytes.truncate(first.start);
            self.pending.truncate(beyond);
        }
    }

    /// Forgets the candidates of an object that could not be encoded.
    pub(crate) fn abandon(&mut self) {
        self.forget_candidates(0);
    }

    /// Ends an object: candidates that enough other objects brought before get a number for the next ones.
    ///
    /// `identity` tells objects apart: a value that only ever comes back with the same object (its own
    /// address, its own hash) is never given a number, however often that object changes.
    pub(crate) fn settle(&mut self, identity: &[u8]) {
        let tag = hash_of(&self.hasher, identity) as u32;
        let pending = std::mem::take(&mut self.pending);
        let bytes = std::mem::take(&mut self.pending_bytes);
        for c in &pending {
            let content = &bytes[c.start..c.end];
            let saved = if c.is_key { content.len() + 1 } else { content.len() - SYMBOL_BYTES };
            let sightings = self.seen.observe(c.hash, tag);
            if sightings * saved >= ENTRY_BYTES + content.len() || (c.is_key && sightings > 0) {
                self.insert(c.hash, content, c.is_key);
            }
        }
        self.seen.grow_with(self.symbols.values.len());
        self.pending = pending;
        self.pending_bytes = bytes;
        self.abandon();
        // One huge object must not hold its buffer for ever.
        self.pending_bytes.shrink_to(256 << 10);
    }

    fn insert(&mut self, hash: u64, content: &[u8], is_key: bool) {
        let (symbols, hasher) = (&self.symbols, &self.hasher);
        if is_key {
            let Ok(text) = std::str::from_utf8(content) else { return };
            let known = self.key_ids.find(hash, |&id| symbols.key(id) == text).is_some();
            if known || symbols.keys.len() as u32 >= MAX_KEYS {
                return;
            }
            let id = symbols.keys.push(text.into());
            self.key_ids.insert_unique(hash, id, |&id| hash_of(hasher, symbols.key(id).as_bytes()));
        } else {
            if self.value_ids.find(hash, |&id| symbols.value(id) == content).is_some() {
                return;
            }
            let id = symbols.values.push(content.into());
            self.value_ids.insert_unique(hash, id, |&id| hash_of(hasher, symbols.value(id)));
        }
        // An allocation is rounded up to 16 bytes and has a header of 8.
        self.content += (content.len() + 8).next_multiple_of(16);
    }

    /// Bytes of the table that objects refer to, the writer's maps beside it included.
    pub(crate) fn memory(&self) -> usize {
        let ids = |t: &HashTable<u32>| t.allocation_size();
        self.content
            + self.symbols.keys.slot_bytes()
            + self.symbols.values.slot_bytes()
            + ids(&self.key_ids)
            + ids(&self.value_ids)
            + self.seen.memory()
    }

    /// Whether the table has grown out of proportion to the objects that use it.
    ///
    /// Nobody counts how often a symbol is used: that would cost a walk over each object that leaves. The
    /// table is instead held to half of what the live objects take, and a table that was just rebuilt must
    /// double before it is rebuilt again, so the work is a constant share of the encoding.
    pub(crate) fn wants_compaction(&self, live: usize) -> bool {
        let memory = self.content + self.symbols.values.slot_bytes();
        memory > SMALL_TABLE && memory > live / 2 && memory > self.baseline * 2
    }

    /// Begins an empty table. Objects made before keep the old one until they are encoded anew or dropped.
    pub(crate) fn start_table(&mut self) {
        self.symbols = Arc::default();
        self.key_ids = HashTable::new();
        self.value_ids = HashTable::new();
        self.content = 0;
        self.baseline = usize::MAX / 2;
    }

    /// Takes the present size as what the live objects need.
    pub(crate) fn settle_table(&mut self) {
        self.baseline = self.content + self.symbols.values.slot_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_keep_their_numbers_over_chunks() {
        let slots = Slots::default();
        for i in 0..10_000u32 {
            assert_eq!(slots.push(i), i);
        }
        assert!((0..10_000).all(|i| slots.get(i) == Some(&i)));
        assert_eq!(slots.get(10_000), None);
        assert_eq!(slots.get(u32::MAX), None);
    }

    #[test]
    fn a_value_gets_a_number_only_from_different_objects() {
        let mut interner = Interner::default();
        let value = b"\x2dregistry.test";
        for _ in 0..1000 {
            assert!(matches!(interner.value(value), Found::Candidate(_)));
            interner.settle(b"the same object");
        }
        for object in 0..20 {
            let _ = interner.value(value);
            interner.settle(format!("object {object}").as_bytes());
        }
        let Found::Symbol(id) = interner.value(value) else { panic!("twenty objects brought it") };
        assert_eq!(interner.symbols().value(id), value);
    }
}
