//! What a store weighs, and what its reads cost in memory.
use k8s_indexer::Indexer;
use k8s_store::{MemoryStore, StorePlan};

use crate::fixture::{Fixture, TEAM, empty, plan};

fn pods(count: usize) -> impl Iterator<Item = k8s_packed::Object> {
    (0..count).map(|i| {
        let namespace = format!("team-{:03}", i / 200);
        Fixture::new(&namespace, &format!("web-7d4b9c6f5-{:05x}", i * 7919 % 1_048_576))
            .team(&format!("t{}", i % 50))
            .object()
    })
}

fn index_bytes_per_object(plan: StorePlan) -> f64 {
    const COUNT: usize = 10_000;
    let store = MemoryStore::from_objects(plan, pods(COUNT)).expect("valid");
    store.snapshot().bytes().indexes as f64 / COUNT as f64
}

#[test]
fn an_index_of_namespace_and_name_costs_nothing_beside_identity() {
    let identity = index_bytes_per_object(StorePlan::default());
    let indexed = StorePlan::index_by(["metadata.namespace", "metadata.name"]).expect("valid");
    let indexed = index_bytes_per_object(indexed);
    assert!(identity <= 64.0, "{identity} bytes");
    assert!(indexed <= identity + 0.5, "{indexed} bytes");
}

#[test]
fn an_index_of_few_keys_costs_a_few_bytes_an_object_and_one_of_distinct_keys_its_keys() {
    let identity = index_bytes_per_object(StorePlan::default());
    let teams = index_bytes_per_object(StorePlan::index_by([TEAM]).expect("valid"));
    assert!(teams - identity <= 8.0, "{} bytes", teams - identity);
    let uids = index_bytes_per_object(StorePlan::index_by(["metadata.uid"]).expect("valid"));
    assert!(uids - identity <= 150.0, "{} bytes", uids - identity);
}

#[test]
fn bytes_follow_what_is_stored() {
    let by_uid = Indexer::new(["metadata.uid"]).expect("valid");
    let plan = plan().named("by-uid", by_uid).expect("new name");
    let (mut writer, _) = empty(plan);
    let start = writer.commit().bytes();
    assert_eq!(start.objects, 0);
    let mut last = start;
    let mut objects = 0;
    for (i, object) in pods(3000).enumerate() {
        objects += object.size();
        writer.upsert(object);
        if i % 500 == 499 {
            let now = writer.commit().bytes();
            assert_eq!(now.objects, objects);
            assert!(now.indexes > last.indexes, "{now:?} after {last:?}");
            assert_eq!(now.total(), now.objects + now.indexes + now.symbols);
            last = now;
        }
    }
    // The same again, then half of it, then nothing.
    for object in pods(3000) {
        writer.upsert(object);
    }
    assert_eq!(writer.commit().bytes(), last);
    for object in pods(3000).step_by(2) {
        writer.remove(object.namespace(), object.name());
    }
    let half = writer.commit().bytes();
    assert!(half.objects < last.objects * 6 / 10);
    assert!(half.indexes < last.indexes * 8 / 10);
    for object in pods(3000) {
        writer.remove(object.namespace(), object.name());
    }
    let end = writer.commit().bytes();
    assert_eq!((end.objects, end.indexes), (start.objects, start.indexes));
}

#[test]
fn sizes_read_well() {
    let snapshot = MemoryStore::from_objects(StorePlan::default(), []).expect("no objects").snapshot();
    let text = snapshot.bytes().to_string();
    assert_eq!(text, "0.0 MiB (objects 0.0, indexes 0.0, symbols 0.0)");
}
