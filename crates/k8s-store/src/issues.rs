//! What was wrong with the keys of objects.
use k8s_indexer::Keys;

/// Counts of what the indexes of a store could not take as it was, since the store was made. None of it loses an object:
/// it stays stored, listed and found by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyIssues {
    /// Keys that had more values than an index takes for one object ([`k8s_indexer::MAX_KEYS`]); the first ones are
    /// kept.
    pub overflowed: u64,
    /// Arrays and maps where a key needs a text, a number or a boolean; they count as missing.
    pub not_scalar: u64,
}

impl KeyIssues {
    pub(crate) fn count(&mut self, keys: &Keys) {
        self.overflowed += u64::from(keys.overflow());
        self.not_scalar += keys.not_scalar() as u64;
    }
}
