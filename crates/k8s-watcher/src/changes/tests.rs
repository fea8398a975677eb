use std::ops::Range;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use k8s_packed::Encoder;
use k8s_store::{MemoryStore, StorePlan, Writer, memory_store};
use serde_json::{Value, json};

use super::*;

const OBJECTS: usize = 600;

/// A store with its feed, as the applier keeps them.
struct World {
    writer: Writer,
    store: MemoryStore,
    feed: Feed,
    version: u64,
}

impl World {
    fn new() -> Self {
        let plan = StorePlan::index_by(["metadata.namespace"]).expect("valid");
        let (writer, store) = memory_store(plan, Encoder::new());
        let feed = Feed::new(store.snapshot());
        let mut world = Self { writer, store, feed, version: 0 };
        world.write(0..OBJECTS, 0);
        world.feed.loaded();
        world
    }

    /// Writes objects with values that ten others of the same round have too, and commits them.
    fn write(&mut self, objects: Range<usize>, round: usize) {
        let changes: Vec<Change> = objects.map(|object| self.upsert(object, round)).collect();
        self.feed.publish(&self.writer.commit(), &changes);
    }

    fn upsert(&mut self, object: usize, round: usize) -> Change {
        self.version += 1;
        let value = |i: usize| format!("value {i} of group {} in round {round}, and some more", object / 10);
        let data: serde_json::Map<String, Value> = (0..10).map(|i| (format!("key-{i}"), value(i).into())).collect();
        let json = json!({
            "metadata": {"namespace": "shop", "name": format!("o-{object:04}"), "uid": format!("uid-{object}"),
                "resourceVersion": self.version.to_string()},
            "data": data,
        });
        let object = self.writer.encoder().encode(json.to_string().as_bytes()).expect("an object");
        match self.writer.upsert(object.clone()) {
            Some(old) => Change::Modified { old, new: object },
            None => Change::Created(object),
        }
    }

    /// Writes some objects anew until the table is rebuilt; gives the next round.
    fn rebuild(&mut self, mut round: usize) -> usize {
        let version = |store: &MemoryStore| store.snapshot().version();
        loop {
            self.write(OBJECTS - 100..OBJECTS, round);
            round += 1;
            let before = version(&self.store);
            while self.writer.compact_step() {}
            if version(&self.store) > before {
                self.feed.tidied(&self.store.snapshot());
                while self.feed.tidy_step() {}
                return round;
            }
        }
    }
}

fn next(changes: &mut Changes) -> Batch {
    let mut cx = Context::from_waker(Waker::noop());
    match pin!(changes.next()).as_mut().poll(&mut cx) {
        Poll::Ready(Some(batch)) => batch,
        other => panic!("nothing to read: {:?}", other.is_ready()),
    }
}

#[test]
fn what_waits_for_a_reader_who_stalls_keeps_no_table_of_former_times_alive() {
    let mut world = World::new();
    let mut stalled = world.feed.subscribe();
    let first = next(&mut stalled);
    assert_eq!(first.changes.len(), OBJECTS);
    drop(first);
    let mut round = 1;
    // A few objects that change for the first time in each life of the table: each was in another one.
    for life in 0..6 {
        world.write(life * 50..life * 50 + 40, round);
        round = world.rebuild(round + 1);
    }
    let batch = next(&mut stalled);
    assert_eq!(batch.changes.len(), 6 * 40 + 100);
    let encoder = world.writer.encoder();
    for change in &batch.changes {
        let Change::Modified { old, new } = change else { panic!("{change:?}") };
        assert!(encoder.is_current(old) && encoder.is_current(new), "{old:?}");
        let value = old.to_value();
        assert!(value["data"]["key-3"].as_str().is_some_and(|text| text.contains("in round 0,")), "{value}");
    }
}

#[test]
fn what_is_read_while_the_waiting_states_are_tidied_is_complete() {
    let mut world = World::new();
    let (mut reader, mut other) = (world.feed.subscribe(), world.feed.subscribe());
    drop((next(&mut reader), next(&mut other)));
    world.write(0..OBJECTS, 1);
    world.feed.tidied(&world.store.snapshot());
    assert!(world.feed.tidy_step(), "it goes in slices");
    assert_eq!(next(&mut reader).changes.len(), OBJECTS);
    world.write(7..8, 2);
    while world.feed.tidy_step() {}
    world.write(5..6, 3);
    assert_eq!(next(&mut reader).changes.len(), 2);
    let all = next(&mut other);
    assert_eq!(all.changes.len(), OBJECTS);
    let names: Vec<_> = all.changes.iter().map(|change| change.object().name().to_owned()).collect();
    assert!(names.is_sorted());
    assert!(!world.feed.tidy_step(), "there is nothing left to do");
}

#[test]
fn a_delete_that_tells_of_a_later_state_does_not_change_what_the_reader_knows() {
    let mut world = World::new();
    let mut changes = world.feed.subscribe();
    drop(next(&mut changes));
    // The delete has the object as it was last, which nobody could read before; a backup brings back what was known.
    let last = World::new().upsert(0, 7).object().clone();
    world.writer.remove(Some("shop"), "o-0000");
    world.feed.publish(&world.writer.commit(), &[Change::Deleted(last)]);
    world.write(0..1, 0);
    let batch = next(&mut changes);
    assert_eq!((batch.stats.deleted, batch.stats.created), (1, 1));
    assert!(batch.changes.is_empty(), "{:?}", batch.changes);
}
