//! Symbols that nobody uses any more are given back, a slice of the objects at a time.
use k8s_packed::Encoder;
use k8s_store::{MemoryStore, StorePlan, Writer, memory_store};
use serde_json::{Value, json};

const OBJECTS: usize = 1500;
const ROUNDS: usize = 40;

/// An object whose values are shared with its neighbours, but not with those of another round.
fn json(object: usize, round: usize) -> Vec<u8> {
    let data: serde_json::Map<String, Value> = (0..10)
        .map(|i| {
            let group = object / 10;
            let value = format!("a value of some length, of round {round}, group {group}, number {i}");
            (format!("key-{i}"), json!(value))
        })
        .collect();
    let value = json!({
        "metadata": {"namespace": "ns", "name": format!("o-{object:04}"), "labels": {"round": round.to_string()}},
        "data": data,
    });
    serde_json::to_vec(&value).expect("a value")
}

fn fill(writer: &mut Writer, objects: usize, round: usize) {
    for object in 0..objects {
        let object = writer.encoder().encode(&json(object, round)).expect("an object");
        writer.upsert(object);
    }
}

fn store() -> (Writer, MemoryStore) {
    let plan = StorePlan::index_by(["metadata.labels.round"]).expect("valid");
    memory_store(plan, Encoder::new())
}

#[test]
fn a_store_that_does_not_need_it_is_left_alone() {
    let (mut writer, store) = store();
    fill(&mut writer, 20, 0);
    writer.commit();
    let version = store.snapshot().version();
    assert!(!writer.compact_step());
    assert_eq!(store.snapshot().version(), version);
}

#[test]
fn compaction_goes_in_slices_and_changes_no_content() {
    let (mut writer, store) = store();
    fill(&mut writer, OBJECTS, 0);
    // Few objects with ever new values: the table is soon mostly dead.
    for round in 1..ROUNDS {
        fill(&mut writer, 300, round);
    }
    writer.commit();
    let held = store.snapshot();
    let content =
        |snapshot: &k8s_store::Snapshot| -> Vec<Value> { snapshot.list().map(|object| object.to_value()).collect() };
    let before = content(&held);
    let bytes = held.bytes();

    let mut steps = 0;
    let mut more = true;
    while more {
        more = writer.compact_step();
        steps += 1;
        let snapshot = store.snapshot();
        assert_eq!(snapshot.version(), held.version() + steps);
        assert_eq!(content(&snapshot), before);
        assert_eq!(snapshot.get([(ROUNDS - 1).to_string()]).expect("one").len(), 300);
    }
    assert!(steps >= 3, "{steps} steps for {OBJECTS} objects");
    assert!(!writer.compact_step(), "it is done");

    let after = store.snapshot().bytes();
    assert!(after.symbols < bytes.symbols / 2, "{after} after {bytes}");
    assert_eq!(content(&held), before);
}

#[test]
fn a_pending_batch_is_not_committed_by_a_compaction() {
    let (mut writer, store) = store();
    fill(&mut writer, OBJECTS, 0);
    for round in 1..ROUNDS {
        fill(&mut writer, 300, round);
    }
    writer.commit();
    let version = store.snapshot().version();
    writer.remove(Some("ns"), "o-0000");
    while writer.compact_step() {
        // Objects come and go between the steps.
        writer.remove(Some("ns"), "o-0001");
        let object = writer.encoder().encode(&json(OBJECTS, 99)).expect("an object");
        writer.upsert(object);
    }
    assert_eq!(store.snapshot().version(), version);
    assert_eq!(store.len(), OBJECTS);
    writer.commit();
    assert_eq!(store.len(), OBJECTS - 1);
    assert_eq!(store.snapshot().get(["99"]).expect("one").len(), 1);
}
