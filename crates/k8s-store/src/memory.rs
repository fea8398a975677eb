//! The reader of a store that holds all objects in memory.
use std::fmt;

use k8s_packed::{Encoder, Object};

use crate::error::Error;
use crate::plan::StorePlan;
use crate::reader::{Sealed, StoreReader};
use crate::snapshot::Snapshot;
use crate::state::State;
use crate::sync::{Arc, Published};
use crate::writer::memory_store;

/// Reads a store that holds all objects in memory. Clones read the same store.
///
/// [`snapshot`](Self::snapshot) is the way to read: borrowed objects, and several reads that agree with each other. The
/// reads here are for a single question; each takes a snapshot of its own and gives objects that stand by themselves.
/// No read waits for anything but the exchange of a pointer.
///
/// # Examples
///
/// A store for the tests of code that reads one:
///
/// ```
/// use k8s_packed::object;
/// use k8s_store::{MemoryStore, StorePlan};
///
/// let plan = StorePlan::index_by(["metadata.namespace", "metadata.labels['app']"])?;
/// let store = MemoryStore::from_objects(plan, [
///     object!({"metadata": {"namespace": "shop", "name": "cart-1", "labels": {"app": "cart"}}}),
///     object!({"metadata": {"namespace": "shop", "name": "bare"}}),
/// ])?;
/// assert_eq!(store.get(["shop", "cart"])?.len(), 1);
/// assert_eq!(store.get(["shop"])?.len(), 2);
/// assert!(store.by_name(Some("shop"), "bare").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    published: Arc<Published<State>>,
}

impl MemoryStore {
    pub(crate) fn new(published: Arc<Published<State>>) -> Self {
        Self { published }
    }

    /// A store with these objects, which nobody writes to any more.
    ///
    /// # Errors
    ///
    /// [`Error::Unnamed`] for an object without a name, [`Error::DuplicateObject`] for two with the same namespace and
    /// name.
    pub fn from_objects(plan: impl Into<StorePlan>, objects: impl IntoIterator<Item = Object>) -> Result<Self, Error> {
        let (mut writer, store) = memory_store(plan.into(), Encoder::new());
        for (position, object) in objects.into_iter().enumerate() {
            if object.name().is_empty() {
                return Err(Error::Unnamed { position });
            }
            if let Some(twin) = writer.upsert(object) {
                let object = k8s_types::ObjectKey::of(&twin).to_string();
                return Err(Error::DuplicateObject { object });
            }
        }
        writer.commit();
        Ok(store)
    }

    /// The present state. Costs a pointer, whatever the size of the store.
    #[must_use]
    #[inline]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.published.load())
    }

    /// The objects that the primary index files under a key; see [`Snapshot::get`].
    ///
    /// # Errors
    ///
    /// [`Error::TooManySegments`] for more segments than the index has expressions.
    pub fn get<S: AsRef<str>>(&self, segments: impl AsRef<[S]>) -> Result<Vec<Object>, Error> {
        Ok(self.snapshot().get(segments)?.to_vec())
    }

    /// The objects that a named index files under a key.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownIndex`], or [`Error::TooManySegments`] for more segments than the index has expressions.
    pub fn by_index<S: AsRef<str>>(&self, index: &str, segments: impl AsRef<[S]>) -> Result<Vec<Object>, Error> {
        Ok(self.snapshot().index(index)?.get(segments)?.to_vec())
    }

    /// The object with this name; see [`Snapshot::by_name`].
    #[must_use]
    pub fn by_name(&self, namespace: Option<&str>, name: &str) -> Option<Object> {
        self.snapshot().by_name(namespace, name).cloned()
    }

    /// All objects, ordered by namespace, then name. Copies a handle for each.
    #[must_use]
    pub fn list(&self) -> Vec<Object> {
        self.snapshot().list().to_vec()
    }

    /// Number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.snapshot().len()
    }

    /// Whether there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let snapshot = self.snapshot();
        f.debug_struct("MemoryStore")
            .field("version", &snapshot.version())
            .field("len", &snapshot.len())
            .finish_non_exhaustive()
    }
}

impl Sealed for MemoryStore {}

impl StoreReader for MemoryStore {
    async fn get(&self, segments: &[&str]) -> Result<Vec<Object>, Error> {
        self.get(segments)
    }

    async fn by_index(&self, index: &str, segments: &[&str]) -> Result<Vec<Object>, Error> {
        self.by_index(index, segments)
    }

    async fn by_name(&self, namespace: Option<&str>, name: &str) -> Result<Option<Object>, Error> {
        Ok(self.by_name(namespace, name))
    }

    async fn list(&self) -> Result<Vec<Object>, Error> {
        Ok(self.list())
    }

    fn len(&self) -> usize {
        self.len()
    }
}
