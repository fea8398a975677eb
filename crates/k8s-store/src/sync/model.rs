//! Every order in which a writer and readers can meet at the hand-over, by loom: `cargo xtask loom`.
//!
//! Loom sees the lock and the count of holders of a published state. The nodes below it, which states share, are not
//! its business: the writer never changes one that a published state reaches, which the stress tests and miri look at.

use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_indexer::Indexer;
use k8s_packed::{Encoder, Object, object};
use loom::thread;

use super::{Arc, Published};
use crate::{MemoryStore, Snapshot, StorePlan, memory_store};

const TEAMS: [&str; 3] = ["a", "b", "c"];

/// Two objects that are always of the same team, in two indexes.
fn twins(team: &str) -> [Object; 2] {
    ["x", "y"].map(|name| object!({"metadata": {"namespace": "n", "name": name, "labels": {"team": team}}}))
}

/// The team of both, by either index; none before the first commit.
fn team(snapshot: &Snapshot) -> Option<usize> {
    let zones = snapshot.index("again").expect("known");
    let members = |team: &str| {
        let (one, other) = (snapshot.get([team]).expect("one").len(), zones.get([team]).expect("one").len());
        assert_eq!(one, other, "both indexes are of one moment");
        one
    };
    let found = TEAMS.map(members);
    assert!(found.iter().all(|n| [0, 2].contains(n)) && found.iter().sum::<usize>() == snapshot.len(), "{found:?}");
    found.iter().position(|n| *n == 2)
}

fn read_twice(store: &MemoryStore) {
    let (first, second) = (store.snapshot(), store.snapshot());
    assert!(first.version() <= second.version() && team(&first) <= team(&second), "time runs forwards");
}

/// A writer that commits these batches, beside as many readers.
fn write_beside(readers: usize, batches: &[&str]) {
    let key = || Indexer::new(["metadata.labels.team"]).expect("a path");
    let plan = StorePlan::new(key()).named("again", key()).expect("a new name");
    let (mut writer, store) = memory_store(plan, Encoder::new());
    let reader = |store: MemoryStore| thread::spawn(move || read_twice(&store));
    let readers: Vec<_> = (0..readers).map(|_| reader(store.clone())).collect();
    for batch in batches {
        twins(batch).into_iter().for_each(|object| drop(writer.upsert(object)));
        assert!(team(&writer.commit()).is_some());
    }
    readers.into_iter().for_each(|reader| reader.join().expect("no reader fails"));
    assert_eq!(team(&store.snapshot()), Some(batches.len() - 1), "who comes later sees the last");
}

#[test]
fn loom_a_reader_sees_whole_batches_and_never_an_older_one_again() {
    loom::model(|| write_beside(1, &TEAMS));
}

#[test]
fn loom_readers_do_not_disturb_each_other() {
    let mut bounded = loom::model::Builder::new();
    // Three switches against the will of a thread, at any three places: all orders would take hours.
    bounded.preemption_bound = Some(3);
    bounded.check(|| write_beside(2, &TEAMS));
}

/// A value that looks at the place it was published in when it is dropped.
struct Curious {
    place: std::sync::Weak<Published<Option<Curious>>>,
    drops: std::sync::Arc<AtomicUsize>,
}

impl Drop for Curious {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
        if let Some(place) = self.place.upgrade() {
            drop(place.load());
        }
    }
}

#[test]
fn loom_what_is_replaced_is_dropped_once_and_by_nobody_who_holds_the_lock() {
    loom::model(|| {
        let drops = std::sync::Arc::new(AtomicUsize::new(0));
        let place = std::sync::Arc::new(Published::new(Arc::new(None)));
        let curious = || Some(Curious { place: std::sync::Arc::downgrade(&place), drops: drops.clone() });
        drop(place.swap(Arc::new(curious())));
        let reader = {
            let place = place.clone();
            thread::spawn(move || drop(place.load()))
        };
        drop(place.swap(Arc::new(curious())));
        reader.join().expect("no reader fails");
        assert_eq!(drops.load(Ordering::Relaxed), 1, "the first is gone, the second is there");
        drop(place.swap(Arc::new(None)));
        assert_eq!(drops.load(Ordering::Relaxed), 2);
    });
}
