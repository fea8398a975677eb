//! What objects of one store share: key texts and repeated values, by number.
//!
//! This is what readers see: append-only, read without a lock, held by every object that uses it. Numbers are
//! given by the [`Interner`](crate::interner::Interner).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

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

    /// Adds a key and gives its number. Only the interner that owns the table adds to it.
    pub(crate) fn push_key(&self, text: &str) -> u32 {
        self.keys.push(text.into())
    }

    /// Adds a value and gives its number. Only the interner that owns the table adds to it.
    pub(crate) fn push_value(&self, bytes: &[u8]) -> u32 {
        self.values.push(bytes.into())
    }

    pub(crate) fn key_count(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn value_count(&self) -> usize {
        self.values.len()
    }

    /// Bytes of the slots, without what is in them: for keys and for values.
    pub(crate) fn slot_bytes(&self) -> (usize, usize) {
        (self.keys.slot_bytes(), self.values.slot_bytes())
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
}
