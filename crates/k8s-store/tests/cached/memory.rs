//! What the cache takes, and that it takes no more.
use k8s_store::CacheConfig;
use serde_json::json;

use crate::world::{World, names, object, seconds, within};

/// An object of about 20 KB.
fn big(name: &str, version: u32) -> serde_json::Value {
    let mut big = object("ns", name, version);
    let parts = (0..100).map(|i| (format!("part-{i}"), json!(format!("{name}{i}{}", "x".repeat(190)))));
    big["data"] = parts.collect::<serde_json::Map<_, _>>().into();
    big
}

#[tokio::test(start_paused = true)]
async fn the_cache_is_bounded_by_bytes() {
    let mut world = World::new(CacheConfig::default().max_bytes(1 << 20));
    for name in names(200) {
        world.change(&big(&name, 10));
    }
    for _ in 0..3 {
        for name in names(200) {
            world.version(&name).await;
            assert!(world.store.stats().bytes <= 1 << 20);
        }
    }
    let stats = world.store.stats();
    assert!((40..=55).contains(&stats.entries), "{stats:?}");
    assert!(stats.bytes > 800 << 10, "{stats:?}");
    assert!(stats.evictions >= 145, "{stats:?}");
    assert_eq!(world.store.bytes().cached as u64, stats.bytes);
    // Everything can be read all the same.
    assert_eq!(within(world.store.list()).await.expect("complete").len(), 200);
}

#[tokio::test(start_paused = true)]
async fn an_object_bigger_than_the_cache_is_fetched_for_each_read() {
    let mut world = World::new(CacheConfig::default().max_bytes(10 << 10));
    world.change(&big("a", 10));
    for asked in 1..=3 {
        assert_eq!(world.version("a").await.as_deref(), Some("10"));
        assert_eq!(world.server.asked("a"), asked);
        assert_eq!(world.store.stats().bytes, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_never_asked_for_takes_nothing() {
    let mut world = World::with(CacheConfig::default(), names(50));
    let whole = k8s_packed::Object::from_value(&object("ns", "o-0000", 11)).expect("an object");
    world.invalidator.shown(Some("ns"), "o-0000", whole.uid(), Some("11"), Some(&whole));
    world.show_gone("o-0001");
    world.invalidator.forget();
    assert_eq!(world.store.stats(), k8s_store::CacheStats::default());
    assert_eq!(world.store.bytes().cached, 0);
    assert!(world.server.times().is_empty());
}

#[tokio::test(start_paused = true)]
async fn names_that_do_not_exist_are_bounded_too() {
    let world = World::new(CacheConfig::default().max_bytes(64 << 10).negative_ttl(seconds(3600)));
    for i in 0..1000 {
        assert_eq!(world.version(&format!("missing-{i}")).await, None);
    }
    let stats = world.store.stats();
    assert!(stats.bytes <= 64 << 10 && stats.entries < 250, "{stats:?}");
}

#[tokio::test(start_paused = true)]
async fn reads_are_counted() {
    let mut world = World::with(CacheConfig::default(), names(2));
    world.version("o-0000").await;
    world.version("o-0000").await;
    world.version("missing").await;
    world.version("missing").await;
    within(world.store.list()).await.expect("complete");
    let stats = world.store.stats();
    assert_eq!((stats.hits, stats.misses), (3, 3));
    assert_eq!((stats.fetches, stats.fetch_errors), (3, 0));
    assert_eq!((stats.entries, stats.evictions), (3, 0));
    world.delete("o-0000");
    assert_eq!(world.store.stats().entries, 2);
    world.change(&object("ns", "missing", 11));
    assert_eq!(world.store.stats().entries, 1);
}
