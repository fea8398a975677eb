//! What the applier tells the cache of a cached store; nothing for a store that has everything in memory.

use k8s_types::Object;

/// The way to the cache, if there is one.
#[derive(Default)]
pub(crate) struct CacheLink {
    #[cfg(feature = "cached")]
    invalidator: Option<k8s_store::Invalidator>,
}

#[cfg_attr(not(feature = "cached"), expect(clippy::unused_self, reason = "there is no cache without the feature"))]
impl CacheLink {
    /// Whether the store keeps references only.
    pub(crate) fn is_some(&self) -> bool {
        #[cfg(feature = "cached")]
        return self.invalidator.is_some();
        #[cfg(not(feature = "cached"))]
        false
    }

    /// The server shows this version.
    pub(crate) fn shown(&mut self, _object: &Object) {
        #[cfg(feature = "cached")]
        if let Some(invalidator) = &mut self.invalidator {
            let object = _object;
            let (uid, version) = (object.uid(), object.resource_version());
            invalidator.shown(object.namespace(), object.name(), uid, version, None);
        }
    }

    /// The object is gone, or no longer selected.
    pub(crate) fn gone(&mut self, _namespace: Option<&str>, _name: &str) {
        #[cfg(feature = "cached")]
        if let Some(invalidator) = &mut self.invalidator {
            invalidator.gone(_namespace, _name);
        }
    }
}
