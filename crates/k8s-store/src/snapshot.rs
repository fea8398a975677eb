//! The immutable view of a store at one moment.
use std::fmt;

use k8s_packed::Object;
use k8s_types::ObjectKey;

use crate::bytes::StoreBytes;
use crate::error::Error;
use crate::objects::Objects;
use crate::state::State;
use crate::sync::Arc;

/// All objects of a store at one moment, with their indexes. It never changes.
///
/// Taking and cloning one costs a pointer, whatever the size of the store. It keeps what it shows in memory for as long
/// as it is held: what has changed since is then there twice, the rest once.
///
/// Every read is answered from the same moment, so reads of one snapshot agree with each other: an object whose key
/// changes is seen under its old key or under its new one, never under both and never under none.
///
/// # Examples
///
/// ```
/// use k8s_packed::object;
/// use k8s_store::{MemoryStore, StorePlan};
///
/// let plan = StorePlan::index_by(["metadata.namespace", "spec.nodeName"])?;
/// let pod = |name, node| object!({
///     "metadata": {"namespace": "shop", "name": (name)}, "spec": {"nodeName": (node)}
/// });
/// let store = MemoryStore::from_objects(plan, [pod("cart", "n1"), pod("web", "n1"), pod("db", "n2")])?;
///
/// let snapshot = store.snapshot();
/// assert_eq!(snapshot.get(["shop", "n1"])?.len(), 2);
/// assert_eq!(snapshot.get(["shop"])?.len(), 3);
/// assert_eq!(snapshot.by_name(Some("shop"), "db").unwrap().name(), "db");
/// assert_eq!(
///     snapshot.get(["shop", "n1", "x"]).unwrap_err().to_string(),
///     "3 key segments for an index of 2 expressions",
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Snapshot {
    state: Arc<State>,
}

impl Snapshot {
    pub(crate) fn new(state: Arc<State>) -> Self {
        Self { state }
    }

    /// The objects that the primary index files under a key.
    ///
    /// - As many segments as the index has expressions: an exact read. One hash, no allocation, no sort. An object that
    ///   lacks a component of the key is never found this way.
    /// - Fewer: a prefix read, the objects whose keys begin with these segments; those that lack a later component
    ///   are among them. `O(log n + k)`; results of several keys are put in order, unless the one segment is the
    ///   namespace. An object is given once, however many of its keys match.
    /// - None (or [`list`](Self::list)): everything.
    ///
    /// Segments are compared as they are; nothing is joined or split.
    ///
    /// # Errors
    ///
    /// [`Error::TooManySegments`] for more segments than the index has expressions.
    #[inline]
    pub fn get<S: AsRef<str>>(&self, segments: impl AsRef<[S]>) -> Result<Objects<'_>, Error> {
        self.state.get(0, segments.as_ref())
    }

    /// The object with this name; no namespace (or an empty one) for a cluster-scoped object. In a store of such objects
    /// a namespace is ignored, as the API server does.
    ///
    /// One hash, no allocation.
    #[must_use]
    #[inline]
    pub fn by_name(&self, namespace: Option<&str>, name: &str) -> Option<&Object> {
        self.state.by_name(namespace, name).or_else(|| self.outside_namespaces(namespace, name))
    }

    #[cold]
    fn outside_namespaces(&self, namespace: Option<&str>, name: &str) -> Option<&Object> {
        let is_ignored = namespace.is_some_and(|n| !n.is_empty()) && self.is_cluster_scoped();
        if is_ignored { self.state.by_name(None, name) } else { None }
    }

    /// Whether all objects are outside namespaces, so that one that is asked for means nothing.
    pub(crate) fn is_cluster_scoped(&self) -> bool {
        self.state.is_cluster_scoped()
    }

    /// The object with this key; as [`by_name`](Self::by_name).
    #[must_use]
    pub fn by_key(&self, key: &ObjectKey) -> Option<&Object> {
        self.by_name(key.namespace(), key.name())
    }

    /// A named index.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownIndex`], which lists the names that exist.
    pub fn index(&self, name: &str) -> Result<IndexView<'_>, Error> {
        let index = self.state.plan().named(name)?;
        let state = &self.state;
        Ok(IndexView { state, index })
    }

    /// All objects, ordered by namespace, then name. Nothing is sorted or copied.
    pub fn list(&self) -> Objects<'_> {
        self.state.list()
    }

    /// Number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.len()
    }

    /// Whether there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of objects, indexes and symbols.
    ///
    /// Counts the nodes of the indexes: about a millisecond for 100,000 objects. Several snapshots share most of what
    /// is counted here for each.
    #[must_use]
    pub fn bytes(&self) -> StoreBytes {
        StoreBytes {
            objects: self.state.object_bytes(),
            indexes: self.state.index_bytes(),
            symbols: self.state.symbol_bytes,
        }
    }

    /// Number of commits so far; two snapshots of one store with equal versions are the same.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.state.version
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("version", &self.version()).field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A named index of a [`Snapshot`].
#[derive(Clone, Copy)]
pub struct IndexView<'a> {
    state: &'a State,
    index: usize,
}

impl<'a> IndexView<'a> {
    /// The objects that this index files under a key; as [`Snapshot::get`].
    ///
    /// # Errors
    ///
    /// [`Error::TooManySegments`] for more segments than the index has expressions.
    pub fn get<S: AsRef<str>>(&self, segments: impl AsRef<[S]>) -> Result<Objects<'a>, Error> {
        self.state.get(self.index, segments.as_ref())
    }
}

impl fmt::Debug for IndexView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexView")
            .field("version", &self.state.version)
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}
