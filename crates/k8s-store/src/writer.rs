//! The single writer of a store.
use std::fmt;

use k8s_packed::{Encoder, Object};

use crate::issues::KeyIssues;
use crate::memory::MemoryStore;
use crate::plan::{Plan, StorePlan};
use crate::relist::Relist;
use crate::snapshot::Snapshot;
use crate::state::{Ledger, State};
use crate::sync::{Arc, Published};

/// Objects that one step of a compaction encodes again.
const COMPACTION_STEP: usize = 512;

/// Makes an empty store: its one writer, and a reader of which there may be many.
///
/// # Examples
///
/// ```
/// use k8s_packed::Encoder;
/// use k8s_store::{StorePlan, memory_store};
///
/// let plan = StorePlan::index_by(["metadata.namespace", "metadata.name"])?;
/// let (mut writer, store) = memory_store(plan, Encoder::new());
///
/// let object = writer.encoder().encode(br#"{"metadata": {"namespace": "shop", "name": "cart"}}"#)?;
/// writer.upsert(object);
/// assert_eq!(store.snapshot().len(), 0); // not before the commit
/// writer.commit();
/// assert_eq!(store.snapshot().get(["shop", "cart"])?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn memory_store(plan: StorePlan, encoder: Encoder) -> (Writer, MemoryStore) {
    let state = State::new(Plan::new(plan).into());
    let published = Arc::new(Published::new(Arc::new(state.clone())));
    let writer = Writer {
        encoder,
        state,
        published: published.clone(),
        ledger: Ledger::default(),
        pending: false,
        relists: vec![],
        compaction: None,
    };
    (writer, MemoryStore::new(published))
}

/// The one owner of a store's content. It changes a state of its own and publishes it with [`commit`](Self::commit).
///
/// A batch is any number of changes between two commits; readers see all of it or nothing. The writer also owns the
/// [`Encoder`] that makes the store's objects, so what objects share is shared within one store.
///
/// # Cost
///
/// A change costs `O(log n)`; replacing an object whose keys stay the same touches no index. Structures that no
/// snapshot holds are changed in place, so a batch copies each node at most once.
pub struct Writer {
    encoder: Encoder,
    state: State,
    published: Arc<Published<State>>,
    ledger: Ledger,
    /// Whether the state differs from the published one.
    pending: bool,
    relists: Vec<Relist>,
    /// The id at which a running compaction goes on.
    compaction: Option<u32>,
}

impl Writer {
    /// The encoder of this store's objects.
    pub fn encoder(&mut self) -> &mut Encoder {
        &mut self.encoder
    }

    /// A reader of this store.
    #[must_use]
    pub fn store(&self) -> MemoryStore {
        MemoryStore::new(self.published.clone())
    }

    /// The object with this name, changes that are not committed included.
    #[must_use]
    pub fn get(&self, namespace: Option<&str>, name: &str) -> Option<&Object> {
        self.state.by_name(namespace, name)
    }

    /// Number of objects, changes that are not committed included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.len()
    }

    /// Whether there is no object, changes that are not committed included.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was wrong with keys so far, in all upserts.
    #[must_use]
    pub fn key_issues(&self) -> KeyIssues {
        self.ledger.issues
    }

    /// Puts an object in the place of the one with its namespace and name, and gives that one back.
    ///
    /// The object leaves all its former keys and is filed under its new ones in the same commit. One without a name is
    /// stored under the empty name; whoever calls this decides whether that is an error.
    ///
    /// Within a [relist](Self::begin_relist) the object counts as seen; if it has the uid and the resourceVersion of
    /// the stored one, the stored one stays and the new one is dropped.
    pub fn upsert(&mut self, object: Object) -> Option<Object> {
        let namespace = object.namespace();
        let relisted = self.relists.iter().any(|relist| relist.covers(namespace));
        if relisted
            && let Some(id) = self.state.id(namespace, object.name())
            && let Some(stored) = self.state.object(id)
            && same_version(stored, &object)
        {
            let stored = stored.clone();
            self.mark(id, &stored);
            return Some(stored);
        }
        self.pending = true;
        let put = self.state.put(&mut self.ledger, object.clone());
        if relisted {
            self.mark(put.id, &object);
        }
        put.previous
    }

    /// Counts the object with this name as seen by the relists that cover it, as it is; says whether there is one.
    ///
    /// For a list that shows an object in a state that the caller has better reasons not to take.
    pub fn touch(&mut self, namespace: Option<&str>, name: &str) -> bool {
        let Some(id) = self.state.id(namespace, name) else { return false };
        for relist in self.relists.iter_mut().filter(|relist| relist.covers(namespace)) {
            relist.mark(id);
        }
        true
    }

    /// Removes the object with this name and gives it back.
    pub fn remove(&mut self, namespace: Option<&str>, name: &str) -> Option<Object> {
        let id = self.state.id(namespace, name)?;
        self.remove_id(id)
    }

    /// Removes everything and ends all relists.
    pub fn clear(&mut self) {
        let plan = self.state.plan().clone();
        let version = self.state.version;
        self.pending |= self.state.len() > 0;
        self.state = State::new(plan);
        self.state.version = version;
        self.ledger.clear();
        self.relists.clear();
        if self.compaction.take().is_some() {
            self.encoder.finish_compaction();
        }
    }

    /// Publishes the changes since the last commit, all at once, and gives the state that readers now see.
    ///
    /// Costs the same whatever the size of the batch and of the store. Without changes nothing is published and the
    /// version stays. The state that is replaced is dropped here unless a snapshot holds it, after the lock is free.
    pub fn commit(&mut self) -> Snapshot {
        if !self.pending {
            return Snapshot::new(self.published.load());
        }
        self.pending = false;
        self.state.version += 1;
        self.state.symbol_bytes = self.encoder.memory();
        let state = Arc::new(self.state.clone());
        let replaced = self.published.swap(state.clone());
        drop(replaced);
        Snapshot::new(state)
    }

    fn remove_id(&mut self, id: u32) -> Option<Object> {
        self.pending = true;
        self.state.remove(&mut self.ledger, id)
    }

    fn mark(&mut self, id: u32, object: &Object) {
        let namespace = object.namespace();
        let relists = self.relists.iter_mut();
        for relist in relists.filter(|relist| relist.covers(namespace)) {
            relist.mark(id);
        }
    }
}

/// Whether two objects are one version of one object, by the word of the API server.
fn same_version(a: &Object, b: &Object) -> bool {
    let known = |text: Option<&str>| text.is_some_and(|text| !text.is_empty());
    known(a.uid()) && known(a.resource_version()) && (a.uid(), a.resource_version()) == (b.uid(), b.resource_version())
}

// === relists ===

/// # Relists
///
/// A list that replaces what is known arrives in pages. [`begin_relist`](Self::begin_relist) starts a set of marks,
/// each [`upsert`](Self::upsert) marks its object, and [`finish_relist`](Self::finish_relist) removes what the list did
/// not have. Pages may be committed as they come; readers see old and new objects until the end, never an empty store.
/// The marks take one bit an object, so the peak is one page and not one list. Relists of several namespaces may run at
/// the same time.
impl Writer {
    /// Starts a relist of one namespace, or of everything. One that is running for the same scope starts anew.
    pub fn begin_relist(&mut self, scope: Option<&str>) {
        self.cancel_relist(scope);
        self.relists.push(Relist::new(scope));
    }

    /// Ends a relist and removes the objects of its scope that it has not brought. Gives them back, ordered by name.
    ///
    /// Without a relist of this scope nothing is removed.
    pub fn finish_relist(&mut self, scope: Option<&str>) -> Vec<Object> {
        let Some(at) = self.position(scope) else {
            return vec![];
        };
        let relist = self.relists.swap_remove(at);
        let ids = self.state.ids(scope);
        let gone: Vec<u32> = ids.filter(|&id| !relist.has_seen(id)).collect();
        gone.into_iter().filter_map(|id| self.remove_id(id)).collect()
    }

    /// Gives up a relist: nothing is removed, what it brought stays.
    pub fn cancel_relist(&mut self, scope: Option<&str>) {
        if let Some(at) = self.position(scope) {
            self.relists.swap_remove(at);
        }
    }

    fn position(&self, scope: Option<&str>) -> Option<usize> {
        self.relists.iter().position(|relist| relist.scope.as_deref() == scope)
    }
}

// === compaction ===

/// # Compaction
///
/// Objects refer to the symbols of the encoder. Values that come and go leave dead symbols behind, so from time to time
/// the live objects are encoded into a fresh table.
impl Writer {
    /// Does one slice of a compaction if one runs or is due; says whether there is more to do at once.
    ///
    /// Encodes up to 512 objects into the encoder's new table and commits them, unless a batch is pending: then they
    /// are part of it and become visible with its commit. The content of no object changes, nor do its keys; a reader
    /// can tell only by the version of the snapshot. Call it between batches: it costs a comparison when nothing is to
    /// be done.
    pub fn compact_step(&mut self) -> bool {
        let start = match self.compaction {
            Some(start) => start,
            None if self.encoder.wants_compaction(self.state.object_bytes()) => {
                self.encoder.start_compaction();
                0
            }
            None => return false,
        };
        let batch_pending = self.pending;
        let mut left = COMPACTION_STEP;
        let mut id = start;
        let bound = self.ledger.bound();
        while id < bound && left > 0 {
            if let Some(object) = self.state.object(id)
                && !self.encoder.is_current(object)
            {
                let object = self.encoder.reencode(object);
                self.state.replace_equal(id, object);
                self.pending = true;
                left -= 1;
            }
            id += 1;
        }
        let more = id < bound;
        self.compaction = more.then_some(id);
        if !more {
            self.encoder.finish_compaction();
        }
        if !batch_pending {
            self.commit();
        }
        more
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("len", &self.len())
            .field("version", &self.state.version)
            .field("pending", &self.pending)
            .finish_non_exhaustive()
    }
}
