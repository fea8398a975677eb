//! One index: from keys to the objects filed under them.
//!
//! A key has one entry. The entry is found by the hash of the key (exact reads) and by its place among the keys (prefix
//! reads), and holds the ids of its objects ordered by (namespace, name).
use k8s_types::IndexKey;
use triomphe::Arc;

use crate::persistent::{HashTrie, Ids, OrdTree, Slab};

/// The persistent index; cloning is one step.
#[derive(Clone, Default)]
pub(crate) struct Index {
    entries: Slab<Entry>,
    by_hash: HashTrie,
    /// Entries by key.
    in_order: OrdTree,
}

#[derive(Clone)]
struct Entry {
    key: Arc<IndexKey>,
    objects: OrdTree,
}

impl Index {
    /// The objects under exactly this key.
    #[inline]
    pub(crate) fn exact<S: AsRef<str>>(&self, hash: u64, segments: &[S]) -> Option<&OrdTree> {
        let mut objects = None;
        self.by_hash.find(hash, |id| match self.entries.get(id) {
            Some(entry) if entry.key.segments().eq(segments.iter().map(AsRef::as_ref)) => {
                objects = Some(&entry.objects);
                true
            }
            _ => false,
        });
        objects
    }

    /// The objects under each key that begins with these segments, key by key.
    pub(crate) fn prefix<S: AsRef<str>>(&self, prefix: &[S]) -> impl Iterator<Item = &OrdTree> {
        let start = |id| {
            let key = self.key(id);
            key.segments().take(prefix.len()).cmp(prefix.iter().map(AsRef::as_ref))
        };
        let from = self.in_order.partition_point(|id| start(id).is_lt());
        let to = self.in_order.partition_point(|id| start(id).is_le());
        let entries = self.in_order.range(from..to);
        entries.filter_map(|id| self.entries.get(id).map(|entry| &entry.objects))
    }

    /// Files `object` under `key`. `before` holds for the objects that come before it.
    pub(crate) fn add(
        &mut self,
        ids: &mut Ids,
        (hash, key): (u64, IndexKey),
        object: u32,
        before: impl FnMut(u32) -> bool,
    ) {
        let known = self.find(hash, &key);
        if let Some(entry) = known.and_then(|id| self.entries.get_mut(id)) {
            let place = entry.objects.partition_point(before);
            entry.objects.insert(place, object);
            return;
        }
        let place = self.in_order.partition_point(|id| *self.key(id) < key);
        let mut objects = OrdTree::default();
        objects.insert(0, object);
        let key = Arc::new(key);
        let id = ids.take();
        self.entries.set(id, Entry { key, objects });
        self.by_hash.insert(hash, id);
        self.in_order.insert(place, id);
    }

    /// Takes `object` away from `key`, and the key away with its last object. `before` holds for the objects that come
    /// before it.
    pub(crate) fn remove(
        &mut self,
        ids: &mut Ids,
        (hash, key): (u64, &IndexKey),
        object: u32,
        before: impl FnMut(u32) -> bool,
    ) {
        let Some(id) = self.find(hash, key) else {
            return;
        };
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let place = entry.objects.partition_point(before);
        if entry.objects.get(place) == Some(object) {
            entry.objects.remove(place);
        }
        if entry.objects.len() > 0 {
            return;
        }
        let place = self.in_order.partition_point(|id| *self.key(id) < *key);
        self.in_order.remove(place);
        self.by_hash.remove(hash, id);
        self.entries.take(id);
        ids.give_back(id);
    }

    /// Bytes of nodes and keys. Visits each entry.
    pub(crate) fn bytes(&self) -> usize {
        // The count beside the key in its allocation, the key, its text.
        let key = |key: &IndexKey| size_of::<usize>() + size_of::<IndexKey>() + key.size();
        let entries = self.entries.bytes_with(|entry| key(&entry.key) + entry.objects.node_bytes());
        entries + self.by_hash.node_bytes() + self.in_order.node_bytes()
    }

    fn find(&self, hash: u64, key: &IndexKey) -> Option<u32> {
        self.by_hash.find(hash, |id| self.key(id) == key)
    }

    /// The key of an entry whose id stands in `by_hash` or `in_order`.
    fn key(&self, id: u32) -> &IndexKey {
        match self.entries.get(id) {
            Some(entry) => &entry.key,
            None => unreachable!("an entry leaves all three structures together"),
        }
    }
}
