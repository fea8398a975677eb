//! The writer's side of the table: finds a number by content and decides what deserves one.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::layout::{MAX_KEYS, SYMBOL_BYTES};
use crate::seen::Seen;
use crate::symbols::Symbols;

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

/// The writer's side of a [`Symbols`] table: one for each store.
#[derive(Default)]
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
        if found.is_none() && (self.symbols.key_count() as u32) < MAX_KEYS {
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
        self.seen.grow_with(self.symbols.value_count());
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
            if known || symbols.key_count() as u32 >= MAX_KEYS {
                return;
            }
            let id = symbols.push_key(text);
            self.key_ids.insert_unique(hash, id, |&id| hash_of(hasher, symbols.key(id).as_bytes()));
        } else {
            if self.value_ids.find(hash, |&id| symbols.value(id) == content).is_some() {
                return;
            }
            let id = symbols.push_value(content);
            self.value_ids.insert_unique(hash, id, |&id| hash_of(hasher, symbols.value(id)));
        }
        // An allocation is rounded up to 16 bytes and has a header of 8.
        self.content += (content.len() + 8).next_multiple_of(16);
    }

    /// Bytes of the table that objects refer to, the writer's maps beside it included.
    pub(crate) fn memory(&self) -> usize {
        let ids = |t: &HashTable<u32>| t.allocation_size();
        let (keys, values) = self.symbols.slot_bytes();
        self.content + keys + values + ids(&self.key_ids) + ids(&self.value_ids) + self.seen.memory()
    }

    /// Whether the table has grown out of proportion to the objects that use it.
    ///
    /// Nobody counts how often a symbol is used: that would cost a walk over each object that leaves. The
    /// table is instead held to half of what the live objects take, and a table that was just rebuilt must
    /// double before it is rebuilt again, so the work is a constant share of the encoding.
    pub(crate) fn wants_compaction(&self, live: usize) -> bool {
        let memory = self.content + self.symbols.slot_bytes().1;
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
        self.baseline = self.content + self.symbols.slot_bytes().1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
