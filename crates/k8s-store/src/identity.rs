//! Who is in a store: from names to ids, and all ids in the order of names.
use std::ops::Range;

use crate::names::{Name, Names};
use crate::persistent::{HashTrie, IdsInOrder, OrdTree};

/// The persistent identity map; cloning is one step.
#[derive(Clone, Default)]
pub(crate) struct Identity {
    names: Names,
    by_hash: HashTrie,
    in_order: OrdTree,
}

impl Identity {
    pub(crate) fn len(&self) -> usize {
        self.in_order.len()
    }

    /// The id with this name.
    #[inline]
    pub(crate) fn find(&self, hash: u64, name: Name<'_>) -> Option<u32> {
        self.by_hash.find(hash, |id| self.names.get(id) == Some(name))
    }

    /// The name of an id that is in use.
    #[inline]
    pub(crate) fn name(&self, id: u32) -> Name<'_> {
        self.names.get(id).unwrap_or_default()
    }

    /// All ids, ordered by name.
    pub(crate) fn iter(&self) -> IdsInOrder<'_> {
        self.in_order.iter()
    }

    /// The ids of a namespace, ordered by name.
    pub(crate) fn of_namespace(&self, namespace: &[u8]) -> IdsInOrder<'_> {
        let from = self.in_order.partition_point(|id| self.name(id).0 < namespace);
        let to = self.in_order.partition_point(|id| self.name(id).0 <= namespace);
        self.in_order.range(Range { start: from, end: to })
    }

    pub(crate) fn insert(&mut self, hash: u64, id: u32, name: Name<'_>) {
        let place = self.in_order.partition_point(|other| self.name(other) < name);
        self.names.set(id, name);
        self.by_hash.insert(hash, id);
        self.in_order.insert(place, id);
    }

    pub(crate) fn remove(&mut self, hash: u64, id: u32) {
        let name = self.name(id);
        let place = self.in_order.partition_point(|other| self.name(other) < name);
        self.in_order.remove(place);
        self.by_hash.remove(hash, id);
        self.names.remove(id);
    }

    /// Bytes of everything. Visits each node.
    pub(crate) fn bytes(&self) -> usize {
        self.names.bytes() + self.by_hash.node_bytes() + self.in_order.node_bytes()
    }
}
