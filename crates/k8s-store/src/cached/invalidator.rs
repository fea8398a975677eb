//! The watch's side of the cache.
use std::sync::Arc;

use k8s_packed::Object;

use super::core::Core;
use super::name::Name;
use super::slot::Version;

/// Tells a cache what the watch has shown. There is one; it is the watcher's, beside the [`Writer`](crate::Writer) of
/// the references.
///
/// Each change is told **before** the commit that makes it visible in the references: whoever then sees the new
/// reference finds nothing older in the cache. Nothing here waits, for I/O or for readers; for an object that is
/// neither cached nor being fetched it costs two look-ups and leaves nothing behind.
#[derive(Debug)]
pub struct Invalidator {
    core: Arc<Core>,
}

impl Invalidator {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The server shows this version of the object, in a watch event or in a list.
    ///
    /// What is cached and older is dropped, or replaced by `full`: the whole object, as the full encoder would make
    /// it, if the event brought it; its time begins anew. What is cached and as new stays. An object that was never
    /// asked for is not put into the cache.
    ///
    /// A fetch that is under way goes on; its answer counts only if it is not older than this version or, where that
    /// cannot be told, not at all: then it asks again.
    ///
    /// Gives the version of what is cached if that is later: the watch is behind what was read, or history was set back.
    pub fn shown(
        &mut self,
        namespace: Option<&str>,
        name: &str,
        uid: Option<&str>,
        resource_version: Option<&str>,
        full: Option<&Object>,
    ) -> Option<String> {
        self.core.shown(Name::new(namespace, name), || Version::new(uid, resource_version), full)
    }

    /// The object is gone: deleted, or no longer selected. What is cached of it is dropped, and an answer that is under
    /// way does not bring it back.
    pub fn gone(&mut self, namespace: Option<&str>, name: &str) {
        self.core.gone(Name::new(namespace, name));
    }

    /// Nothing that was shown before counts any more: the server has been restored and its versions have run
    /// backwards, or it is another one. Drops all that is cached and every answer that is still on its way.
    pub fn forget(&mut self) {
        self.core.forget();
    }
}
