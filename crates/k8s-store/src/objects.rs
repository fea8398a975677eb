//! What a read gives: borrowed objects in order.
use std::fmt;

use k8s_packed::Object;

use crate::persistent::{IdsInOrder, Slab};

/// The objects of one read, ordered by namespace, then name; an object without a namespace comes first.
///
/// An iterator over borrowed objects that knows its length. It borrows from the snapshot and copies nothing; only a
/// prefix read that gathers several keys of an index holds a list of its own (four bytes an object). Cloning starts a
/// second iteration from the same point.
///
/// # Examples
///
/// ```
/// # use k8s_store::{MemoryStore, StorePlan};
/// # let object = |name| k8s_packed::object!({"metadata": {"namespace": "shop", "name": (name)}});
/// # let plan = StorePlan::index_by(["metadata.namespace"])?;
/// # let snapshot = MemoryStore::from_objects(plan, ["b", "a"].map(object))?.snapshot();
/// let objects = snapshot.get(["shop"])?;
/// assert_eq!(objects.len(), 2);
/// let names: Vec<&str> = objects.iter().map(|object| object.name()).collect();
/// assert_eq!(names, ["a", "b"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use = "reading has no effect but its result"]
pub struct Objects<'a> {
    objects: &'a Slab<Object>,
    ids: Ids<'a>,
}

#[derive(Clone)]
enum Ids<'a> {
    Shared(IdsInOrder<'a>),
    One(Option<u32>),
    Collected(std::vec::IntoIter<u32>),
}

impl<'a> Objects<'a> {
    #[inline]
    pub(crate) fn one(objects: &'a Slab<Object>, id: Option<u32>) -> Self {
        Self { objects, ids: Ids::One(id) }
    }

    pub(crate) fn shared(objects: &'a Slab<Object>, ids: IdsInOrder<'a>) -> Self {
        let ids = Ids::Shared(ids);
        Self { objects, ids }
    }

    pub(crate) fn collected(objects: &'a Slab<Object>, ids: Vec<u32>) -> Self {
        let ids = Ids::Collected(ids.into_iter());
        Self { objects, ids }
    }

    /// Number of objects left. `O(1)`.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        match &self.ids {
            Ids::Shared(ids) => ids.len(),
            Ids::One(id) => usize::from(id.is_some()),
            Ids::Collected(ids) => ids.len(),
        }
    }

    /// Whether no object is left.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates without consuming `self`.
    #[inline]
    pub fn iter(&self) -> Self {
        self.clone()
    }

    /// The first object, if there is one.
    #[must_use]
    pub fn first(&self) -> Option<&'a Object> {
        self.iter().next()
    }

    /// The objects by themselves, independent of the snapshot. Copies handles, not content.
    #[must_use]
    pub fn to_vec(&self) -> Vec<Object> {
        self.iter().cloned().collect()
    }
}

impl<'a> Iterator for Objects<'a> {
    type Item = &'a Object;

    #[inline]
    fn next(&mut self) -> Option<&'a Object> {
        let id = match &mut self.ids {
            Ids::Shared(ids) => ids.next(),
            Ids::One(id) => id.take(),
            Ids::Collected(ids) => ids.next(),
        };
        self.objects.get(id?)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

impl ExactSizeIterator for Objects<'_> {}

impl std::iter::FusedIterator for Objects<'_> {}

impl<'a> IntoIterator for &Objects<'a> {
    type Item = &'a Object;
    type IntoIter = Objects<'a>;

    fn into_iter(self) -> Objects<'a> {
        self.iter()
    }
}

/// Names the objects; never their content.
impl fmt::Debug for Objects<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
