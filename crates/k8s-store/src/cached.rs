//! Keys and references in memory, whole objects in a byte-bounded cache that fetches what it lacks.
mod config;
mod core;
mod fetch;
mod flying;
mod invalidator;
mod name;
mod slot;
mod stats;
mod store;

pub use config::CacheConfig;
pub use fetch::{Fetch, FetchFuture};
pub use invalidator::Invalidator;
pub use stats::{CacheStats, CachedBytes};
pub use store::{CachedStore, cached_store};
