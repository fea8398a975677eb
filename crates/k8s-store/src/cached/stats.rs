//! What a cache has done, and what it takes.
use crate::bytes::StoreBytes;

/// Counts of a cache since it was made, and its present size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Reads of an object that were answered from memory, also by the memory that it does not exist.
    pub hits: u64,
    /// Reads of an object that had to wait for a fetch, their own or one that was under way.
    pub misses: u64,
    /// Requests.
    pub fetches: u64,
    /// Requests that failed or ran out of time, and answers that were no object or another one.
    pub fetch_errors: u64,
    /// Objects that made room for others.
    pub evictions: u64,
    /// What is held: objects, and names that are known not to exist.
    pub entries: u64,
    /// Bytes of what is held.
    pub bytes: u64,
}

/// Bytes that a cached store takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CachedBytes {
    /// The references and all indexes.
    pub references: StoreBytes,
    /// The whole objects that are cached at the moment; bounded by
    /// [`CacheConfig::max_bytes`](crate::CacheConfig::max_bytes).
    pub cached: usize,
}

impl CachedBytes {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> usize {
        self.references.total() + self.cached
    }
}
