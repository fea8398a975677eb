//! The whole content of a store at one moment: objects, identity, indexes.
//!
//! Cloning shares everything, so a published state and the writer's next one differ by what has changed between them.
use std::cmp::Ordering;

use k8s_indexer::Keys;
use k8s_packed::Object;
use k8s_types::IndexKey;
use triomphe::Arc;

use crate::error::Error;
use crate::identity::Identity;
use crate::index::Index;
use crate::issues::KeyIssues;
use crate::names::Name;
use crate::objects::Objects;
use crate::persistent::{Ids, OrdTree, Slab};
use crate::plan::{Lookup, Plan};

/// All that readers see.
#[derive(Clone)]
pub(crate) struct State {
    plan: Arc<Plan>,
    objects: Slab<Object>,
    identity: Identity,
    /// Those of the plan's indexes that identity does not answer.
    indexes: Vec<Index>,
    object_bytes: usize,
    pub(crate) symbol_bytes: usize,
    pub(crate) version: u64,
}

/// What the writer knows beside a state: which ids are free, and what was wrong with keys.
#[derive(Default)]
pub(crate) struct Ledger {
    objects: Ids,
    entries: Vec<Ids>,
    old: Keys,
    new: Keys,
    pub(crate) issues: KeyIssues,
}

impl Ledger {
    /// For a state that is empty again.
    pub(crate) fn clear(&mut self) {
        let issues = self.issues;
        *self = Self { issues, ..Self::default() };
    }

    /// All ids of objects are smaller than this.
    pub(crate) fn bound(&self) -> u32 {
        self.objects.bound()
    }
}

/// The identity of an object, borrowed.
pub(crate) fn name_of(object: &Object) -> Name<'_> {
    name(object.namespace(), object.name())
}

#[inline]
fn name<'a>(namespace: Option<&'a str>, name: &'a str) -> Name<'a> {
    (namespace.unwrap_or_default().as_bytes(), name.as_bytes())
}

// === reading ===

impl State {
    pub(crate) fn new(plan: Arc<Plan>) -> Self {
        let indexes = vec![Index::default(); plan.stored()];
        Self {
            plan,
            objects: Slab::default(),
            identity: Identity::default(),
            indexes,
            object_bytes: 0,
            symbol_bytes: 0,
            version: 0,
        }
    }

    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    pub(crate) fn len(&self) -> usize {
        self.identity.len()
    }

    pub(crate) fn object_bytes(&self) -> usize {
        self.object_bytes
    }

    /// Bytes of everything but the objects and their symbols. Visits each node.
    pub(crate) fn index_bytes(&self) -> usize {
        let indexes: usize = self.indexes.iter().map(Index::bytes).sum();
        self.objects.node_bytes() + self.identity.bytes() + indexes
    }

    /// The id of a name.
    #[inline]
    pub(crate) fn id(&self, namespace: Option<&str>, object: &str) -> Option<u32> {
        self.find(name(namespace, object))
    }

    /// The object behind an id, if the id is in use.
    #[inline]
    pub(crate) fn object(&self, id: u32) -> Option<&Object> {
        self.objects.get(id)
    }

    #[inline]
    pub(crate) fn by_name(&self, namespace: Option<&str>, object: &str) -> Option<&Object> {
        self.object(self.id(namespace, object)?)
    }

    /// Whether all objects are outside namespaces, as those of a cluster-scoped kind.
    pub(crate) fn is_cluster_scoped(&self) -> bool {
        // They come first, so mostly one look is enough.
        let first = self.list().first();
        first.is_some_and(|o| o.namespace().is_none()) && self.identity.of_namespace(b"").len() == self.len()
    }

    /// The ids of a namespace, or all, in order.
    pub(crate) fn ids(&self, namespace: Option<&str>) -> impl Iterator<Item = u32> {
        match namespace {
            Some(namespace) => self.identity.of_namespace(namespace.as_bytes()),
            None => self.identity.iter(),
        }
    }

    pub(crate) fn list(&self) -> Objects<'_> {
        Objects::shared(&self.objects, self.identity.iter())
    }

    /// The objects of the index `index` of the plan whose keys begin with `segments`.
    #[inline]
    pub(crate) fn get<S: AsRef<str>>(&self, index: usize, segments: &[S]) -> Result<Objects<'_>, Error> {
        let (expressions, lookup) = self.plan.lookup(index);
        if let (Lookup::Identity, 2, [namespace, object]) = (lookup, expressions, segments) {
            let id = match namespace.as_ref() {
                // An object without a namespace lacks this component of its key.
                "" => None,
                namespace => self.id(Some(namespace), object.as_ref()),
            };
            return Ok(Objects::one(&self.objects, id));
        }
        self.get_several(index, segments)
    }

    fn get_several<S: AsRef<str>>(&self, index: usize, segments: &[S]) -> Result<Objects<'_>, Error> {
        let (expressions, lookup) = self.plan.lookup(index);
        if segments.len() > expressions {
            return Err(Error::TooManySegments { given: segments.len(), expressions });
        }
        Ok(match (lookup, segments) {
            (_, []) => self.list(),
            (Lookup::Identity, [namespace, ..]) => self.of_namespace(namespace.as_ref()),
            (Lookup::Index { at, .. }, _) if segments.len() == expressions => {
                let hash = self.plan.hash(segments.iter().map(|segment| segment.as_ref().as_bytes()));
                match self.indexes[at].exact(hash, segments) {
                    Some(objects) => Objects::shared(&self.objects, objects.iter()),
                    None => Objects::one(&self.objects, None),
                }
            }
            (Lookup::Index { by_namespace: true, .. }, [namespace]) => self.of_namespace(namespace.as_ref()),
            (Lookup::Index { at, .. }, _) => self.collected(self.indexes[at].prefix(segments)),
        })
    }

    /// The objects whose first key component is this namespace.
    fn of_namespace(&self, namespace: &str) -> Objects<'_> {
        match namespace {
            "" => Objects::one(&self.objects, None),
            namespace => Objects::shared(&self.objects, self.identity.of_namespace(namespace.as_bytes())),
        }
    }

    /// The objects of several keys, each once, in order.
    fn collected<'a>(&'a self, mut keys: impl Iterator<Item = &'a OrdTree>) -> Objects<'a> {
        let Some(first) = keys.next() else {
            return Objects::one(&self.objects, None);
        };
        let Some(second) = keys.next() else {
            return Objects::shared(&self.objects, first.iter());
        };
        let runs = [first, second].into_iter().chain(keys);
        let mut named: Vec<(Name<'a>, u32)> =
            runs.flat_map(OrdTree::iter).map(|id| (self.identity.name(id), id)).collect();
        // The stable sort merges the runs that are in order already.
        named.sort_by_key(|(name, _)| *name);
        named.dedup_by_key(|(_, id)| *id);
        Objects::collected(&self.objects, named.into_iter().map(|(_, id)| id).collect())
    }

    #[inline]
    fn find(&self, name: Name<'_>) -> Option<u32> {
        self.identity.find(self.plan.hash([name.0, name.1]), name)
    }
}

// === changing ===

/// What became of an object that was put into a state.
pub(crate) struct Put {
    pub(crate) id: u32,
    pub(crate) previous: Option<Object>,
}

impl State {
    /// Puts an object in the place of the one with its name, or into a new place, and moves it to its keys.
    pub(crate) fn put(&mut self, ledger: &mut Ledger, object: Object) -> Put {
        let name = name_of(&object);
        let hash = self.plan.hash([name.0, name.1]);
        let id = match self.identity.find(hash, name) {
            Some(id) => id,
            None => {
                let id = ledger.objects.take();
                self.identity.insert(hash, id, name);
                id
            }
        };
        let previous = self.objects.set(id, object.clone());
        self.object_bytes += object.size();
        if let Some(previous) = &previous {
            self.object_bytes -= previous.size();
        }
        self.refile(ledger, id, previous.as_ref(), Some(&object));
        Put { id, previous }
    }

    /// Replaces an object by another form of the same content.
    pub(crate) fn replace_equal(&mut self, id: u32, object: Object) {
        self.object_bytes += object.size();
        if let Some(previous) = self.objects.set(id, object) {
            self.object_bytes -= previous.size();
        }
    }

    /// Removes the object behind an id from everywhere.
    pub(crate) fn remove(&mut self, ledger: &mut Ledger, id: u32) -> Option<Object> {
        let object = self.objects.take(id)?;
        self.object_bytes -= object.size();
        self.refile(ledger, id, Some(&object), None);
        let name = name_of(&object);
        self.identity.remove(self.plan.hash([name.0, name.1]), id);
        ledger.objects.give_back(id);
        Some(object)
    }

    /// Moves an object, whose name is known, from the keys of its old form to those of its new one.
    ///
    /// What it was filed under is computed from the old form again: objects never change, so this is exact, and nobody
    /// has to remember it.
    fn refile(&mut self, ledger: &mut Ledger, id: u32, old: Option<&Object>, new: Option<&Object>) {
        let Ledger { entries, old: old_keys, new: new_keys, issues, .. } = ledger;
        entries.resize_with(self.indexes.len(), Ids::default);
        let identity = &self.identity;
        let name = identity.name(id);
        let before = |other: u32| identity.name(other) < name;
        for (at, (index, ids)) in self.indexes.iter_mut().zip(entries).enumerate() {
            self.plan.keys(at, old, old_keys);
            self.plan.keys(at, new, new_keys);
            if new.is_some() {
                issues.count(new_keys);
            }
            if old_keys.as_slice() == new_keys.as_slice() {
                continue;
            }
            for change in differences(sorted(old_keys), sorted(new_keys)) {
                match change {
                    Difference::Gone(key) => {
                        let hash = self.plan.hash(key.segments());
                        index.remove(ids, (hash, &key), id, before);
                    }
                    Difference::Added(key) => {
                        let hash = self.plan.hash(key.segments());
                        index.add(ids, (hash, key), id, before);
                    }
                }
            }
        }
    }
}

fn sorted(keys: &mut Keys) -> Vec<IndexKey> {
    let mut keys: Vec<IndexKey> = keys.drain().collect();
    keys.sort_unstable();
    keys
}

enum Difference {
    Gone(IndexKey),
    Added(IndexKey),
}

/// What tells `new` from `old`; both are ordered and without repeats.
fn differences(old: Vec<IndexKey>, new: Vec<IndexKey>) -> impl Iterator<Item = Difference> {
    let (mut old, mut new) = (old.into_iter().peekable(), new.into_iter().peekable());
    std::iter::from_fn(move || {
        loop {
            let order = match (old.peek(), new.peek()) {
                (Some(gone), Some(added)) => gone.cmp(added),
                (Some(_), None) => Ordering::Less,
                (None, _) => Ordering::Greater,
            };
            match order {
                Ordering::Less => return old.next().map(Difference::Gone),
                Ordering::Greater => return new.next().map(Difference::Added),
                Ordering::Equal => {
                    old.next();
                    new.next();
                }
            }
        }
    })
}
