//! What the applier tells the cache of a cached store; nothing for a store that has everything in memory.

use k8s_types::Object;

/// The way to the cache, if there is one.
#[derive(Default)]
pub(crate) struct CacheLink {
    #[cfg(feature = "cached")]
    invalidator: Option<k8s_store::Invalidator>,
}

#[cfg(feature = "cached")]
impl CacheLink {
    pub(crate) fn new(invalidator: k8s_store::Invalidator) -> Self {
        Self { invalidator: Some(invalidator) }
    }

    /// Whether the store keeps references only.
    pub(crate) fn is_some(&self) -> bool {
        self.invalidator.is_some()
    }

    /// The server shows this version; gives that of what was read of the object, if it is later.
    pub(crate) fn shown(&mut self, object: &Object) -> Option<String> {
        let (uid, version) = (object.uid(), object.resource_version());
        self.invalidator.as_mut()?.shown(object.namespace(), object.name(), uid, version, None)
    }

    /// The object is gone, or no longer selected.
    pub(crate) fn gone(&mut self, namespace: Option<&str>, name: &str) {
        if let Some(invalidator) = &mut self.invalidator {
            invalidator.gone(namespace, name);
        }
    }

    /// Versions of before mean nothing any more.
    pub(crate) fn forget(&mut self) {
        if let Some(invalidator) = &mut self.invalidator {
            invalidator.forget();
        }
    }
}

#[cfg(not(feature = "cached"))]
#[expect(clippy::unused_self, reason = "there is no cache without the feature")]
impl CacheLink {
    pub(crate) fn is_some(&self) -> bool {
        false
    }

    pub(crate) fn shown(&mut self, _object: &Object) -> Option<String> {
        None
    }

    pub(crate) fn gone(&mut self, _namespace: Option<&str>, _name: &str) {}

    pub(crate) fn forget(&mut self) {}
}
