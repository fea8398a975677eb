//! Reads by key, index and name, as for any store.
use k8s_packed::Object;
use k8s_store::{CacheConfig, CacheStats, CachedBytes, CachedStore, Error, FetchError, Invalidator, StoreReader};

use crate::world::{World, names, object, within};

fn sendable<T: Send + Sync + Unpin>() {}
fn future<T: Send>(_: &T) {}

fn reads_can_be_sent<S: StoreReader>(store: &S) {
    future(&store.get(&["a"]));
    future(&store.by_index("i", &["a"]));
    future(&store.by_name(None, "a"));
    future(&store.list());
}

#[tokio::test(start_paused = true)]
async fn types_and_futures_can_be_sent_and_shared() {
    sendable::<CachedStore>();
    sendable::<Invalidator>();
    sendable::<CacheConfig>();
    sendable::<CacheStats>();
    sendable::<CachedBytes>();
    sendable::<FetchError>();
    let world = World::new(CacheConfig::default());
    reads_can_be_sent(&world.store);
    future(&world.store.get(["a"]));
    assert_eq!(size_of::<CachedStore>(), size_of::<usize>());
}

/// The same questions to any store.
async fn answers<S: StoreReader>(store: &S) -> Vec<Result<Vec<Object>, Error>> {
    let mut answers = vec![];
    for segments in [&["ns"][..], &["ns", "red"], &["ns", "blue"], &["x"], &[], &["ns", "red", "more"]] {
        answers.push(within(store.get(segments)).await);
    }
    for (index, segments) in [("by-team", &["red"][..]), ("by-team", &["a", "b"]), ("unknown", &["red"])] {
        answers.push(within(store.by_index(index, segments)).await);
    }
    for name in ["o-0001", "missing"] {
        answers.push(within(store.by_name(Some("ns"), name)).await.map(|found| found.into_iter().collect()));
    }
    answers.push(within(store.list()).await);
    answers
}

#[tokio::test(start_paused = true)]
async fn answers_are_those_of_a_memory_store() {
    let mut world = World::new(CacheConfig::default());
    let plan = k8s_store::StorePlan::index_by(["metadata.namespace", "metadata.labels.team"]).expect("valid");
    let by_team = k8s_indexer::Indexer::new(["metadata.labels.team"]).expect("valid");
    let (mut writer, memory) =
        k8s_store::memory_store(plan.named("by-team", by_team).expect("new"), k8s_packed::Encoder::new());
    for (i, name) in names(20).enumerate() {
        let mut object = object(if i % 4 == 0 { "other" } else { "ns" }, &name, 10);
        if i % 3 == 0 {
            object["metadata"]["labels"]["team"] = "blue".into();
        }
        world.change(&object);
        object["metadata"].as_object_mut().expect("a map").remove("managedFields");
        writer.upsert(Object::from_value(&object).expect("an object"));
    }
    writer.commit();
    // Cold, then warm.
    for _ in 0..2 {
        assert_eq!(answers(&world.store).await, answers(&memory).await);
    }
    assert_eq!((world.store.len(), StoreReader::is_empty(&world.store)), (memory.len(), false));
    assert_eq!(world.store.snapshot().get(["ns"]).expect("one").len(), 15);
}
