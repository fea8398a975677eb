//! A small fixed memory of what was met lately: decides which values deserve a symbol.

/// How often values came with different objects, by hash; forgets what does not come back.
///
/// A set-associative table of fixed size, like a processor's cache: endless unique values pass through it
/// without growing it, and a value that several objects bring is noticed as long as it comes back before
/// its place is taken. Being wrong costs a few bytes, never a wrong read.
#[derive(Default)]
pub(crate) struct Seen {
    sets: Vec<[Entry; WAYS]>,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    fingerprint: u32,
    /// The object that brought it last (24 bits) and the number of changes of object (8 bits).
    tag_and_count: u32,
}

const WAYS: usize = 4;
const MIN_SETS: usize = 1 << 8;
const MAX_SETS: usize = 1 << 14;

impl Seen {
    /// Notes that object `tag` brought the value with this hash; gives how often another object had before.
    pub(crate) fn observe(&mut self, hash: u64, tag: u32) -> usize {
        if self.sets.is_empty() {
            self.sets = vec![[Entry::default(); WAYS]; MIN_SETS];
        }
        let tag = tag & 0xff_ffff;
        let fingerprint = (hash >> 32) as u32 | 1;
        let at = hash as usize & (self.sets.len() - 1);
        let set = &mut self.sets[at];
        if let Some(entry) = set.iter_mut().find(|e| e.fingerprint == fingerprint) {
            let count = entry.tag_and_count & 0xff;
            if entry.tag_and_count >> 8 == tag {
                return count as usize;
            }
            let count = (count + 1).min(0xff);
            entry.tag_and_count = tag << 8 | count;
            return count as usize;
        }
        // A new value takes the place of the least proven one. Now and then the whole set loses a proof, so
        // that yesterday's favourites do not hold their places for ever.
        if hash >> 20 & 15 == 0 {
            for entry in set.iter_mut().filter(|e| e.tag_and_count & 0xff > 0) {
                entry.tag_and_count -= 1;
            }
        }
        if let Some(victim) = set.iter_mut().min_by_key(|e| e.tag_and_count & 0xff) {
            *victim = Entry { fingerprint, tag_and_count: tag << 8 };
        }
        0
    }

    /// A store with many shared values has many to come: gives them room, up to a limit.
    pub(crate) fn grow_with(&mut self, shared: usize) {
        let sets = (shared * 2).next_power_of_two().clamp(MIN_SETS, MAX_SETS);
        if sets <= self.sets.len() || self.sets.is_empty() {
            return;
        }
        let old = std::mem::take(&mut self.sets);
        let (mask, times) = (old.len() - 1, sets / old.len());
        // The new place of an entry is unknown without its hash, so each set is copied to all its successors.
        self.sets = Vec::with_capacity(sets);
        for _ in 0..times {
            self.sets.extend((0..=mask).map(|i| old[i]));
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.sets.capacity() * size_of::<[Entry; WAYS]>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_changes_of_object_and_stays_small() {
        let mut seen = Seen::default();
        assert_eq!(seen.observe(7 << 32, 1), 0);
        assert_eq!(seen.observe(7 << 32, 1), 0);
        assert_eq!(seen.observe(7 << 32, 2), 1);
        assert_eq!(seen.observe(7 << 32, 3), 2);
        // Enough to fill all of it; miri takes an hour for them.
        let many: u64 = if cfg!(miri) { 1_000 } else { 1_000_000 };
        for i in 0..many {
            seen.observe(i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i as u32);
            seen.grow_with(i as usize);
        }
        assert!(seen.memory() <= MAX_SETS * WAYS * 8);
    }
}
