//! Where the cache gets objects from.
use std::pin::Pin;

use bytes::Bytes;

use crate::error::FetchError;

/// What a [`Fetch`] gives back; see there.
pub type FetchFuture = Pin<Box<dyn Future<Output = Result<Option<Bytes>, FetchError>> + Send>>;

/// Reads one object from wherever the watch has its events from: the JSON of the object as it is, or that there is
/// none.
///
/// The answer has to be the state of the object at some moment after the call, not that of a cache that lags behind;
/// from an API server that is a plain `GET` without a `resourceVersion`. A kind whose objects are in no namespace
/// ignores one that is given.
///
/// Nothing is asked of it before the future is polled, and it is dropped when nobody waits for it any more or its time
/// is up. Closures of this shape are `Fetch`.
///
/// # Examples
///
/// ```
/// use k8s_store::{Fetch, FetchFuture};
///
/// // Nothing exists.
/// fn nothing(_namespace: Option<&str>, _name: &str) -> FetchFuture {
///     Box::pin(async { Ok(None) })
/// }
/// fn takes(_: impl Fetch) {}
/// takes(nothing);
/// ```
pub trait Fetch: Send + Sync + 'static {
    /// The object with this name; none if it does not exist (404).
    ///
    /// # Errors
    ///
    /// Everything else: nothing of it is remembered, the next read asks again. The error's text is shown to users and
    /// must have nothing of an object's content.
    fn fetch(&self, namespace: Option<&str>, name: &str) -> FetchFuture;
}

impl<F> Fetch for F
where
    F: Fn(Option<&str>, &str) -> FetchFuture + Send + Sync + 'static,
{
    fn fetch(&self, namespace: Option<&str>, name: &str) -> FetchFuture {
        self(namespace, name)
    }
}
