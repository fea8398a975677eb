//! A watcher of a kind: store, indexes, callbacks and the stream of changes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use k8s_fake_apiserver::{List, Watch};
use k8s_types::{Change, ListMode, Object};
use k8s_watcher::{Batch, RunningWatcher, Status, Watcher};

use super::cluster::Cluster;
use super::plan::Setup;
use super::play::Subject;
use super::truth::{Cursor, Place, Seen, Selection, Truth, View};
use crate::support::{MAPS, Record, check_index, ms, secs};

pub(crate) struct Many {
    watcher: RunningWatcher,
    view: View,
    record: Record,
    /// How many objects the end of the load announced, over all announcements.
    initial: Arc<AtomicU64>,
    reader: tokio::task::JoinHandle<usize>,
    cursor: Cursor,
    /// Which state of the store was looked at.
    looked_at: Option<u64>,
}

impl Subject for Many {
    fn begin(setup: &Setup, cluster: &Cluster) -> Self {
        let (record, initial) = (Record::new(), Arc::new(AtomicU64::new(0)));
        let (on_change, count) = (record.clone(), initial.clone());
        let (slowness, most) = (Mutex::new(Rng::with_seed(setup.seed)), setup.slowness);
        let watcher = Watcher::builder(cluster.client(setup), setup.config())
            .on_change_async(move |change| {
                on_change.push(&change);
                tokio::time::sleep(ms(slowness.lock().expect("no panic under the lock").u64(0..=most)))
            })
            .on_sync_complete_async(move |_, objects| {
                count.fetch_add(objects as u64, Ordering::SeqCst);
                async {}
            })
            .spawn()
            .expect("a sound configuration");
        let mut changes = watcher.changes();
        let (mut pace, most) = (Rng::with_seed(setup.seed), setup.pace);
        let (truth, view) = (cluster.share_truth(), setup.view);
        let reader = tokio::spawn(async move {
            let mut reader = Reader { known: BTreeMap::new(), cursor: Cursor::default(), view };
            while let Some(batch) = changes.next().await {
                reader.take(&batch, &truth.lock().expect("no panic under the lock"));
                tokio::time::sleep(ms(pace.u64(0..=most))).await;
            }
            reader.known.len()
        });
        let cursor = Cursor::default();
        Self { watcher, view: setup.view, record, initial, reader, cursor, looked_at: None }
    }

    fn look(&mut self, cluster: &Cluster) {
        let snapshot = self.watcher.store().snapshot();
        if self.looked_at.replace(snapshot.version()) == Some(snapshot.version()) {
            return;
        }
        check_index(&snapshot);
        let truth = cluster.truth();
        let mut present: BTreeMap<Place, Seen> = BTreeMap::new();
        for object in snapshot.list() {
            present.insert(Place::of(object), Seen::whole(object, self.view));
        }
        for place in Place::all() {
            let seen = present.get(&place);
            // What is not loaded yet is not absent.
            if seen.is_some() || self.watcher.is_synced() {
                self.cursor.see(&truth, self.view, place, seen);
            }
        }
    }

    fn relist(&self) {
        self.watcher.relist();
    }

    async fn sync(&self) {
        self.watcher.wait_for_sync(secs(900)).await.expect("it syncs");
    }

    fn is_current(&self, cluster: &Cluster) -> bool {
        let snapshot = self.watcher.store().snapshot();
        let truth = cluster.truth();
        Place::all().all(|place| {
            let known = snapshot.by_name(Some(place.namespace), place.name);
            let known = known.map(|object| Seen::whole(object, self.view));
            is_same(known.as_ref(), &truth, self.view, place)
        })
    }

    fn status(&self) -> Status {
        self.watcher.status()
    }

    fn trouble(&self) -> String {
        format!("{:?}\n{:?}", self.watcher.status(), self.watcher.store().snapshot().list())
    }

    async fn end(self, setup: &Setup, cluster: &Cluster) {
        let Self { watcher, view, record, initial, reader, .. } = self;
        assert_eq!(watcher.status().callback_panics, 0);
        let relists = watcher.status().relists;
        let handle = watcher.handle().clone();
        watcher.shutdown().await;
        let objects = handle.store().snapshot().len();
        check_statistics(&record, initial.load(Ordering::SeqCst), setup.during_sync, objects as u64);
        if let Some(from) = followed_from(setup, cluster, relists) {
            let live = record.calls().into_iter().map(|(_, stats, _)| stats).filter(|stats| !stats.is_initial_sync);
            let told = live.fold((0, 0, 0), |n, s| (n.0 + s.created, n.1 + s.modified, n.2 + s.deleted));
            assert_eq!(
                told,
                cluster.truth().changes(view, |at| at.revision > from),
                "created, modified, deleted since {from}"
            );
        }
        assert_eq!(reader.await.expect("every batch fits to the one before"), objects);
    }
}

/// Whether what is known of an object is what the server has.
pub(crate) fn is_same(known: Option<&Seen>, truth: &Truth, view: View, place: Place) -> bool {
    let Some(present) = truth.present(place, view) else { return known.is_none() };
    known.is_some_and(|known| known.is(present))
}

/// The revision since which every change came by a watch, one by one, if there is one: then each was told, and once.
fn followed_from(setup: &Setup, cluster: &Cluster, relists: u64) -> Option<u64> {
    let is_one_list = setup.list_mode == ListMode::Paged && !setup.view.is_narrow;
    if relists > 0 || !is_one_list || cluster.was_restored || cluster.was_unreadable {
        return None;
    }
    let journal = cluster.server.journal();
    // Pages after an expired one show what the first ones did not.
    if journal.matching(List::of(MAPS)).iter().any(|list| list.status == Some(410)) {
        return None;
    }
    journal.matching(Watch::of(MAPS)).first()?.query("resourceVersion")?.parse().ok()
}

fn check_statistics(record: &Record, initial: u64, during_sync: bool, objects: u64) {
    let (created, _, deleted) = record.totals();
    let from_start = if during_sync { 0 } else { initial };
    assert_eq!(
        from_start + created,
        objects + deleted,
        "created, initial, deleted: {created}, {from_start}, {deleted}"
    );
    let calls = record.calls();
    assert!(calls.iter().all(|(_, stats, _)| !stats.is_empty()), "nobody forced a call");
    let initial_calls = calls.iter().take_while(|(_, stats, _)| stats.is_initial_sync);
    assert!(during_sync || initial_calls.clone().count() == 0);
    let net = initial_calls.fold(0, |n, (_, stats, _)| n + stats.created - stats.deleted);
    assert!(!during_sync || net == initial, "{net} told of {initial} in the load");
    let last_initial = calls.iter().rposition(|(_, stats, _)| stats.is_initial_sync).map_or(0, |at| at + 1);
    assert!(calls[..last_initial].iter().all(|(_, stats, _)| stats.is_initial_sync));
}

/// What somebody knows who applies batch after batch.
struct Reader {
    known: BTreeMap<Place, Object>,
    cursor: Cursor,
    view: View,
}

impl Reader {
    fn take(&mut self, batch: &Batch, truth: &Truth) {
        for change in &batch.changes {
            let place = Place::of(change.object());
            let known = self.known.get(&place);
            match change {
                Change::Created(object) => {
                    assert!(known.is_none(), "{place:?} was there");
                    self.cursor.see(truth, self.view, place, Some(&Seen::whole(object, self.view)));
                    self.known.insert(place, object.clone());
                }
                Change::Modified { old, new } => {
                    let known = known.expect("it was there");
                    assert!(known.uid() == old.uid() && known.same_content(old), "{place:?} was not like this");
                    assert!(old.uid() == new.uid() && !old.same_content(new), "{place:?} did not change");
                    self.cursor.see(truth, self.view, place, Some(&Seen::whole(new, self.view)));
                    self.known.insert(place, new.clone());
                }
                Change::Deleted(object) => {
                    assert_eq!(known.expect("it was there").uid(), object.uid());
                    // Which may be one that was not selected, if the change to it could not be read.
                    let any = View { selection: Selection::All, ..self.view };
                    self.cursor.see(truth, any, place, Some(&Seen::last(object, self.view)));
                    self.cursor.see(truth, self.view, place, None);
                    self.known.remove(&place);
                }
            }
        }
        let state = batch.snapshot.list();
        assert_eq!(self.known.len(), state.len());
        for object in state {
            let known = &self.known[&Place::of(object)];
            assert!(known.uid() == object.uid() && known.same_content(object), "{object:?} changed unsaid");
        }
    }
}
