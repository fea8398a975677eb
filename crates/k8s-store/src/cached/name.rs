//! A name that is looked up without being copied.
use std::hash::Hash;

use equivalent::Equivalent;
use k8s_packed::Object;
use k8s_types::ObjectKey;

/// A name, borrowed; hashes and compares like an [`ObjectKey`].
#[derive(Clone, Copy, Hash)]
pub(super) struct Name<'a>(Option<&'a str>, &'a str);

impl<'a> Name<'a> {
    pub(super) fn new(namespace: Option<&'a str>, name: &'a str) -> Self {
        Self(namespace.filter(|namespace| !namespace.is_empty()), name)
    }

    pub(super) fn of(object: &'a Object) -> Self {
        Self(object.namespace(), object.name())
    }

    pub(super) fn of_key(key: &'a ObjectKey) -> Self {
        Self(key.namespace(), key.name())
    }

    pub(super) fn to_key(self) -> ObjectKey {
        ObjectKey::new(self.0, self.1)
    }
}

impl Equivalent<ObjectKey> for Name<'_> {
    fn equivalent(&self, key: &ObjectKey) -> bool {
        (self.0, self.1) == (key.namespace(), key.name())
    }
}
