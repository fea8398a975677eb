//! The history: one revision counter, the present objects of every kind, and the events that led to them.
//!
//! What was true at an earlier revision follows from the present state and the events since. Versions, replay,
//! conflicts, bookmarks and 410 all come out of this one place.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::kind::ResourceKind;
use crate::stored::{Prepared, Stored};

/// Names a registered kind; never used again for another one.
pub(crate) type TableId = u32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Added,
    Modified,
    Deleted,
}

/// One write.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) op: Op,
    /// The new object; of a delete the last one, under the revision of the delete.
    pub(crate) object: Arc<Stored>,
    pub(crate) previous: Option<Arc<Stored>>,
}

/// The present objects of a kind and the kept part of its history.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) kind: Arc<ResourceKind>,
    pub(crate) objects: BTreeMap<Box<str>, Arc<Stored>>,
    events: VecDeque<Event>,
    /// How many events were trimmed before the first kept one.
    trimmed: u64,
    pub(crate) notify: Arc<Notify>,
}

/// The whole state. One owner behind one lock, held for map operations only.
#[derive(Debug)]
pub(crate) struct Log {
    revision: u64,
    /// Requests that need the history at or before an earlier revision are told 410.
    horizon: u64,
    limit: usize,
    order: VecDeque<(u64, TableId)>,
    tables: BTreeMap<TableId, Table>,
    names: HashMap<String, TableId>,
    next_id: TableId,
    /// Raised when running watches are to end.
    pub(crate) epoch: u64,
}

impl Log {
    pub(crate) fn new(revision: u64, limit: usize) -> Self {
        Self {
            revision,
            horizon: 0,
            limit,
            order: VecDeque::new(),
            tables: BTreeMap::new(),
            names: HashMap::new(),
            next_id: 0,
            epoch: 0,
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn horizon(&self) -> u64 {
        self.horizon
    }

    pub(crate) fn register(&mut self, kind: ResourceKind) -> TableId {
        if let Some(id) = self.names.get(kind.resource()) {
            return *id;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.names.insert(kind.resource().to_owned(), id);
        let table = Table {
            kind: Arc::new(kind),
            objects: BTreeMap::new(),
            events: VecDeque::new(),
            trimmed: 0,
            notify: Arc::default(),
        };
        self.tables.insert(id, table);
        id
    }

    /// Forgets the kind, its objects and its history; its watches end.
    pub(crate) fn unregister(&mut self, resource: &str) -> bool {
        let Some(id) = self.names.remove(resource) else { return false };
        if let Some(table) = self.tables.remove(&id) {
            table.notify.notify_waiters();
        }
        true
    }

    pub(crate) fn id(&self, resource: &str) -> Option<TableId> {
        self.names.get(resource).copied()
    }

    pub(crate) fn table(&self, id: TableId) -> Option<&Table> {
        self.tables.get(&id)
    }

    pub(crate) fn named(&self, resource: &str) -> Option<&Table> {
        self.tables.get(&self.id(resource)?)
    }

    pub(crate) fn kinds(&self) -> Vec<Arc<ResourceKind>> {
        self.tables.values().map(|t| t.kind.clone()).collect()
    }

    /// Stores a new revision of an object. `None` when the kind is gone.
    pub(crate) fn put(&mut self, id: TableId, prepared: Prepared) -> Option<Arc<Stored>> {
        let revision = self.revision + 1;
        let table = self.tables.get_mut(&id)?;
        let object = Arc::new(prepared.finish(revision));
        let previous = table.objects.insert(object.key.clone(), object.clone());
        let op = if previous.is_some() { Op::Modified } else { Op::Added };
        self.append(id, Event { revision, op, object: object.clone(), previous });
        Some(object)
    }

    /// Removes an object; gives it back under the revision of the removal.
    pub(crate) fn remove(&mut self, id: TableId, key: &str) -> Option<Arc<Stored>> {
        let revision = self.revision + 1;
        let previous = self.tables.get_mut(&id)?.objects.remove(key)?;
        let object = Arc::new(previous.with_revision(revision));
        self.append(id, Event { revision, op: Op::Deleted, object: object.clone(), previous: Some(previous) });
        Some(object)
    }

    fn append(&mut self, id: TableId, event: Event) {
        self.revision = event.revision;
        self.order.push_back((event.revision, id));
        if let Some(table) = self.tables.get_mut(&id) {
            table.events.push_back(event);
            table.notify.notify_waiters();
        }
        while self.order.len() > self.limit {
            let Some((revision, id)) = self.order.pop_front() else { break };
            self.horizon = self.horizon.max(revision);
            if let Some(table) = self.tables.get_mut(&id)
                && table.events.front().is_some_and(|e| e.revision == revision)
            {
                table.events.pop_front();
                table.trimmed += 1;
            }
        }
    }

    /// From now on everything before `revision` is too old to be asked for. Events that running watches have not
    /// sent yet stay, as they are in the buffers of a real server.
    pub(crate) fn compact(&mut self, revision: u64) {
        self.horizon = self.horizon.max(revision.min(self.revision));
    }

    /// Moves the counter without a write, as other resources of a busy cluster do.
    pub(crate) fn advance(&mut self, by: u64) {
        self.revision += by;
        self.wake_all();
    }

    /// Drops everything and starts again at `revision`; every watch ends.
    pub(crate) fn restart(&mut self, revision: u64) {
        self.revision = revision;
        self.horizon = revision;
        self.order.clear();
        self.epoch += 1;
        for table in self.tables.values_mut() {
            table.trimmed += table.events.len() as u64;
            table.events.clear();
            table.objects.clear();
        }
        self.wake_all();
    }

    /// Puts an object into place without an event; for a restart.
    pub(crate) fn place(&mut self, id: TableId, prepared: Prepared, revision: u64) {
        if let Some(table) = self.tables.get_mut(&id) {
            let object = Arc::new(prepared.finish(revision));
            table.objects.insert(object.key.clone(), object);
        }
    }

    pub(crate) fn close_watches(&mut self) {
        self.epoch += 1;
        self.wake_all();
    }

    pub(crate) fn wake_all(&self) {
        for table in self.tables.values() {
            table.notify.notify_waiters();
        }
    }
}

impl Table {
    /// The number that the next event gets; a watch's place in the history.
    pub(crate) fn end(&self) -> u64 {
        self.trimmed + self.events.len() as u64
    }

    /// The place of the first event after `revision`.
    pub(crate) fn place_after(&self, revision: u64) -> u64 {
        self.trimmed + self.events.partition_point(|e| e.revision <= revision) as u64
    }

    /// The event at a place: `Err` when it was trimmed, `Ok(None)` when it has not happened yet.
    pub(crate) fn event(&self, place: u64) -> Result<Option<&Event>, Trimmed> {
        let index = place.checked_sub(self.trimmed).ok_or(Trimmed)?;
        Ok(usize::try_from(index).ok().and_then(|i| self.events.get(i)))
    }

    /// Objects at `revision` whose keys begin with `prefix` and are not before `start`, in key order.
    ///
    /// `revision` must not be older than the horizon. Costs the events since then plus what is taken.
    pub(crate) fn at<'a>(
        &'a self,
        revision: u64,
        prefix: &'a str,
        start: &'a str,
    ) -> impl Iterator<Item = Arc<Stored>> + 'a {
        let mut before: BTreeMap<&str, Option<&Arc<Stored>>> = BTreeMap::new();
        let first = self.events.partition_point(|e| e.revision <= revision);
        for event in self.events.range(first..) {
            before.entry(&event.object.key).or_insert(event.previous.as_ref());
        }
        let from = if start > prefix { start } else { prefix };
        let mut past = before
            .iter()
            .filter_map(|(k, o)| Some((*k, (*o)?.clone())))
            .filter(|(k, _)| *k >= from && k.starts_with(prefix))
            .collect::<Vec<_>>()
            .into_iter()
            .peekable();
        let mut present = self
            .objects
            .range::<str, _>((Bound::Included(from), Bound::Unbounded))
            .take_while(move |(k, _)| k.starts_with(prefix))
            .filter(move |(k, _)| !before.contains_key(&***k))
            .peekable();
        std::iter::from_fn(move || match (present.peek(), past.peek()) {
            (Some((a, _)), Some((b, _))) if ***a < **b => present.next().map(|(_, o)| o.clone()),
            (Some(_), None) => present.next().map(|(_, o)| o.clone()),
            _ => past.next().map(|(_, o)| o),
        })
    }
}

/// The history does not reach back that far.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Trimmed;
