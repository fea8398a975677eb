//! The reader of a store that holds references in memory and fetches whole objects.
use std::fmt;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use k8s_packed::{Encoder, Object};
use k8s_types::ObjectKey;
use tokio::time::Instant;

use super::core::Core;
use super::name::Name;
use super::{CacheConfig, CacheStats, CachedBytes, Fetch, Invalidator};
use crate::error::{Error, FetchError};
use crate::plan::StorePlan;
use crate::reader::{Sealed, StoreReader};
use crate::snapshot::Snapshot;
use crate::writer::{Writer, memory_store};

/// After so many failures a read of several objects does not ask for more.
const MAX_FAILURES: usize = 10;

/// Makes an empty store of references with a cache beside it: the writer of the references, the watch's side of the
/// cache, and a reader of which there may be many.
///
/// References are what the writer is given: objects of the `stub_encoder`, which [keeps
/// only](Encoder::keep_only) the identity and what the plan's indexes read. Whole objects are fetched as JSON and made by
/// the rules of the `full_encoder`. The configuration is taken as it is, see [`CacheConfig::validate`]; one fetch at a
/// time is the least.
#[must_use]
pub fn cached_store(
    plan: StorePlan,
    stub_encoder: Encoder,
    full_encoder: Encoder,
    config: CacheConfig,
    fetch: impl Fetch,
) -> (Writer, Invalidator, CachedStore) {
    let (writer, refs) = memory_store(plan, stub_encoder);
    let core = Arc::new(Core::new(refs, full_encoder, config, fetch));
    (writer, Invalidator::new(core.clone()), CachedStore { core })
}

/// Reads a store that holds references in memory and fetches whole objects when they are asked for. Clones read the
/// same store and share its cache.
///
/// For kinds whose objects are big and rarely read, such as Secrets: who is there and by which keys is known at all
/// times and costs a few hundred bytes an object; the objects themselves are fetched one by one and held for a while.
/// A [`MemoryStore`](crate::MemoryStore) is better where most objects are read, or read by code that cannot wait.
///
/// # What a reader may rely on
///
/// - **Never older than the watch.** An object that is given out is at least as new as what the watch had shown when the
///   read began, and never one whose end it had shown by then. It may be newer: an object may be given under a key that
///   its newest version has no longer, and one that was made again has another uid than the reference.
/// - **At most one fetch an object** is under way, shared by all who wait for it. Who stops waiting disturbs nobody; with
///   the last one the fetch ends.
/// - **404 is an answer:** the object does not exist, which is remembered for a short time and forgotten at once when
///   the watch shows it. Every other failure is an error, and nothing of it is remembered.
/// - **Complete or an error.** A read of several objects leaves out only those that do not exist any more.
/// - **Bounded:** the bytes of the cache, the fetches at the same time, and the time of each; see [`CacheConfig`].
///   Objects are not held by the store while they are neither cached nor being fetched.
/// - **Not held up.** What is cached is answered at once, whatever else is being fetched, and so is everything that only
///   needs references.
///
/// Keys are those of the references, so [`get`](Self::get) finds what the watch has shown;
/// [`by_name`](Self::by_name) also asks for names that the watch has not shown (yet).
///
/// # Cancel safety
///
/// All reads are cancel safe: dropping one loses nothing but its answer. They run on a tokio runtime with time.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use bytes::Bytes;
/// use k8s_packed::Encoder;
/// use k8s_store::{CacheConfig, FetchFuture, StorePlan, cached_store};
///
/// // The watcher of `k8s-watcher` does this for an API server; here is a world of one Secret.
/// const SECRET: &[u8] = br#"{"metadata": {"namespace": "shop", "name": "tls", "resourceVersion": "7"},
///     "data": {"tls.key": "c2VjcmV0"}}"#;
/// fn fetch(_namespace: Option<&str>, name: &str) -> FetchFuture {
///     let found = (name == "tls").then_some(Bytes::from_static(SECRET));
///     Box::pin(async { Ok(found) })
/// }
/// let plan = StorePlan::index_by(["metadata.namespace", "metadata.name"])?;
/// let stubs = Encoder::new().keep_only([]);
/// let (mut writer, mut invalidator, secrets) =
///     cached_store(plan, stubs, Encoder::new(), CacheConfig::default(), fetch);
///
/// let stub = writer.encoder().encode(SECRET)?;
/// invalidator.shown(stub.namespace(), stub.name(), stub.uid(), stub.resource_version(), None);
/// writer.upsert(stub);
/// writer.commit();
///
/// assert_eq!(secrets.len(), 1);
/// let found = secrets.get(["shop", "tls"]).await?; // asked for
/// assert!(found[0].get(&"data['tls.key']".parse()?).is_some());
/// assert!(secrets.by_name(Some("shop"), "tls").await?.is_some()); // cached
/// assert_eq!(secrets.stats().fetches, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CachedStore {
    core: Arc<Core>,
}

impl CachedStore {
    /// The present references: who is there, in which order, under which keys, in which version; and no content beside
    /// what indexes read. Costs a pointer, whatever the size of the store.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.core.refs.snapshot()
    }

    /// The whole objects that the primary index files under a key, ordered by namespace, then name; see
    /// [`Snapshot::get`]. What is not cached is fetched, several at the same time.
    ///
    /// Which objects these are is told by one moment's references, when the future is first polled. An object that is
    /// found not to exist any more is left out, also before the watch shows its end.
    ///
    /// # Errors
    ///
    /// [`Error::TooManySegments`] for more segments than the index has expressions; [`Error::Incomplete`] if one of the
    /// objects could not be fetched. After ten failures no more is asked for, so against a server that does not answer
    /// this takes about one time-out, however many objects there are.
    pub async fn get<S: AsRef<str>>(&self, segments: impl AsRef<[S]>) -> Result<Vec<Object>, Error> {
        let references = self.core.refs.get(segments)?;
        self.whole(references).await
    }

    /// The whole objects that a named index files under a key; otherwise as [`get`](Self::get).
    ///
    /// # Errors
    ///
    /// [`Error::UnknownIndex`], and as [`get`](Self::get).
    pub async fn by_index<S: AsRef<str>>(&self, index: &str, segments: impl AsRef<[S]>) -> Result<Vec<Object>, Error> {
        let references = self.core.refs.by_index(index, segments)?;
        self.whole(references).await
    }

    /// The whole object with this name, whether or not there is a reference to it: a name that is not cached is asked
    /// for once, and that there is no such object is remembered for a short time.
    ///
    /// The server answers by name alone, so an object that the watch does not select is found too. A namespace is
    /// ignored for kinds whose objects are in none.
    ///
    /// # Errors
    ///
    /// [`Error::Fetch`] if it could not be fetched.
    pub async fn by_name(&self, namespace: Option<&str>, name: &str) -> Result<Option<Object>, Error> {
        let snapshot = self.snapshot();
        let reference = snapshot.by_name(namespace, name);
        let namespace = match reference {
            Some(reference) => reference.namespace(),
            None => namespace.filter(|_| !snapshot.is_cluster_scoped()),
        };
        let name = Name::new(namespace, name);
        if let Some(object) = self.core.cached(name, Instant::now(), reference) {
            return Ok(object);
        }
        let key = name.to_key();
        let fetched = self.core.fetched(&key, reference).await;
        fetched.map_err(|source| Error::Fetch { object: key.to_string(), source })
    }

    /// All objects, ordered by namespace, then name. **Fetches everything** that is not cached, and holds it all in
    /// memory at once: [`snapshot`](Self::snapshot) and single reads are cheaper for almost everything.
    ///
    /// # Errors
    ///
    /// [`Error::Incomplete`] as for [`get`](Self::get), never a list that is short.
    pub async fn list(&self) -> Result<Vec<Object>, Error> {
        self.whole(self.core.refs.list()).await
    }

    /// Number of references.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.refs.len()
    }

    /// Whether there is no reference.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of references and of what is cached, apart. Counts nodes as [`Snapshot::bytes`] does.
    #[must_use]
    pub fn bytes(&self) -> CachedBytes {
        let cached = usize::try_from(self.core.bytes()).unwrap_or(usize::MAX);
        CachedBytes { references: self.snapshot().bytes(), cached }
    }

    /// Counts of the cache.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.core.stats()
    }

    /// The objects behind references, in their order.
    async fn whole(&self, references: Vec<Object>) -> Result<Vec<Object>, Error> {
        let now = Instant::now();
        let read = |reference: &Object| self.core.cached(Name::of(reference), now, Some(reference));
        let mut found: Vec<Option<Option<Object>>> = references.iter().map(read).collect();
        let missing: Vec<usize> = (0..found.len()).filter(|at| found[*at].is_none()).collect();
        let mut failures: Vec<(usize, FetchError)> = vec![];

        let mut waiting = missing.into_iter();
        let mut reads = FuturesUnordered::new();
        while failures.len() < MAX_FAILURES {
            // No more than can be fetched at the same time, so that others get their turn in between.
            while reads.len() < self.core.max_parallel()
                && let Some(at) = waiting.next()
            {
                reads.push(read_one(self.core.clone(), at, references[at].clone()));
            }
            match reads.next().await {
                Some((at, Ok(object))) => found[at] = Some(object),
                Some((at, Err(error))) => failures.push((at, error)),
                None => break,
            }
        }
        failures.sort_by_key(|(at, _)| *at);
        let objects = failures.iter().map(|(at, _)| ObjectKey::of(&references[*at]).to_string()).collect();
        let failed = failures.len();
        match failures.into_iter().next() {
            Some((_, source)) => {
                let unread = found.iter().filter(|object| object.is_none()).count();
                Err(Error::Incomplete { failed, untried: unread - failed, wanted: found.len(), objects, source })
            }
            None => Ok(found.into_iter().flatten().flatten().collect()),
        }
    }
}

async fn read_one(core: Arc<Core>, at: usize, reference: Object) -> (usize, Result<Option<Object>, FetchError>) {
    (at, core.fetched(&ObjectKey::of(&reference), Some(&reference)).await)
}

impl fmt::Debug for CachedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedStore").field("references", &self.core.refs).finish_non_exhaustive()
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
