//! Reading for code that does not care which store it reads.
use std::fmt;

use k8s_packed::Object;

use crate::error::Error;

/// Marks the stores of this crate.
pub trait Sealed {}

/// Reads of any store, for generic code: the answer may have to be fetched, so every read is async and can fail.
///
/// A [`MemoryStore`](crate::MemoryStore) answers at once; where the type is known its own methods are better, since they
/// are synchronous, and [`snapshot`](crate::MemoryStore::snapshot) is better for several reads that must agree. The
/// trait is sealed: it grows with the stores of this crate.
///
/// # Cancel safety
///
/// All reads are cancel safe: dropping one loses nothing but its answer.
///
/// # Examples
///
/// ```
/// use k8s_store::{Error, StoreReader};
///
/// async fn endpoints<S: StoreReader>(slices: &S, service: &str) -> Result<usize, Error> {
///     Ok(slices.get(&["shop", service]).await?.len())
/// }
/// ```
pub trait StoreReader: Clone + fmt::Debug + Send + Sync + 'static + Sealed {
    /// The objects that the primary index files under a key: exact with as many segments as the index has
    /// expressions, else those whose keys begin with the segments. Ordered by namespace, then name.
    ///
    /// # Errors
    ///
    /// [`Error::TooManySegments`] for more segments than the index has expressions; other kinds as the store documents.
    fn get(&self, segments: &[&str]) -> impl Future<Output = Result<Vec<Object>, Error>> + Send;

    /// The objects that a named index files under a key.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownIndex`], and as [`get`](Self::get).
    fn by_index(&self, index: &str, segments: &[&str]) -> impl Future<Output = Result<Vec<Object>, Error>> + Send;

    /// The object with this name, if there is one.
    ///
    /// # Errors
    ///
    /// None for a [`MemoryStore`](crate::MemoryStore); else as the store documents.
    fn by_name(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> impl Future<Output = Result<Option<Object>, Error>> + Send;

    /// All objects, ordered by namespace, then name: complete, or an error.
    ///
    /// # Errors
    ///
    /// None for a [`MemoryStore`](crate::MemoryStore); else as the store documents.
    fn list(&self) -> impl Future<Output = Result<Vec<Object>, Error>> + Send;

    /// Number of objects.
    fn len(&self) -> usize;

    /// Whether there is no object.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
