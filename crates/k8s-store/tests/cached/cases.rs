//! What went wrong elsewhere, by the numbers of the case list.
use std::sync::atomic::Ordering;
use std::time::Duration;

use k8s_packed::Object;
use k8s_store::{CacheConfig, Error};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::world::{Script, World, names, object, seconds, within};

#[tokio::test(start_paused = true)]
async fn c30_a_cluster_scoped_object_is_found_whatever_the_namespace() {
    let mut world = World::new(CacheConfig::default());
    // Before the watch has shown anything, and after.
    world.server.put(&object("", "n1", 10));
    for _ in 0..2 {
        for namespace in [None, Some(""), Some("default")] {
            let found = within(world.store.by_name(namespace, "n1")).await.expect("no error").expect("it is there");
            assert_eq!((found.namespace(), found.name()), (None, "n1"));
        }
        world.change(&object("", "n1", 10));
    }
    let before = world.server.asked("n1");
    // A change reaches a reader with a namespace too.
    world.change(&object("", "n1", 11));
    for _ in 0..2 {
        let found = within(world.store.by_name(Some("default"), "n1")).await.expect("no error").expect("it is there");
        assert_eq!((found.resource_version(), world.server.asked("n1")), (Some("11"), before + 1));
    }
    // So does its end, also when no reference is left to tell how the kind is scoped.
    world.server.delete(None, "n1");
    world.invalidator.gone(None, "n1");
    world.writer.remove(None, "n1");
    world.writer.commit();
    assert_eq!(within(world.store.by_name(Some("default"), "n1")).await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn c60_what_a_reader_holds_never_changes_and_fields_go_once() {
    let mut world = World::with(CacheConfig::default(), names(20));
    let held = within(world.store.list()).await.expect("complete");
    let snapshot = world.store.snapshot();
    let content = |objects: &[Object]| objects.iter().map(Object::to_value).collect::<Vec<_>>();
    let references = || content(&snapshot.list().to_vec());
    let before = (content(&held), references());

    for version in 11..61 {
        for name in names(20) {
            world.change(&object("ns", &name, version));
        }
        within(world.store.get(["ns"])).await.expect("complete");
    }
    world.writer.begin_relist(None);
    world.writer.finish_relist(None);
    world.writer.commit();
    assert!(world.store.is_empty());
    assert_eq!((content(&held), references()), before);

    // Ignored fields are gone, once and for all; references have the index's field and the identity.
    assert_eq!(before.0[0]["metadata"]["managedFields"], json!(null));
    assert_eq!(before.0[0]["data"]["key"], "o-0000-10");
    let identity = json!({
        "name": "o-0000", "namespace": "ns", "uid": "uid-o-0000", "resourceVersion": "10", "labels": {"team": "red"},
    });
    assert_eq!(before.1[0], json!({"metadata": identity}));
}

#[tokio::test(start_paused = true)]
async fn c61_200_readers_of_one_expired_object_make_one_fetch() {
    let world = World::with(CacheConfig::default(), names(1));
    world.server.script("o-0000", Script::Serve(seconds(1)));
    assert_eq!(world.version("o-0000").await.as_deref(), Some("10"));
    sleep(seconds(131)).await;

    let read = |store: k8s_store::CachedStore| async move { store.by_name(Some("ns"), "o-0000").await };
    let readers: Vec<_> = (0..200).map(|_| tokio::spawn(read(world.store.clone()))).collect();
    for reader in readers {
        let found = within(reader).await.expect("no panic").expect("no error").expect("it is there");
        assert_eq!(found.resource_version(), Some("10"));
    }
    assert_eq!(world.server.asked("o-0000"), 2);
}

#[tokio::test(start_paused = true)]
async fn c61_what_was_loaded_together_neither_expires_nor_is_fetched_together() {
    let world = World::with(CacheConfig::default(), names(1000));
    assert_eq!(within(world.store.list()).await.expect("complete").len(), 1000);
    let loaded = Instant::now();
    let first = world.server.times().len();
    // Somebody reads everything each second.
    let mut by_second = vec![];
    for _ in 0..130 {
        sleep(seconds(1)).await;
        let before = world.server.times().len();
        within(world.store.list()).await.expect("complete");
        by_second.push(world.server.times().len() - before);
    }
    assert_eq!(by_second.iter().sum::<usize>(), 1000);
    // Four fifths of the time nothing, then spread over the last fifth.
    assert!(by_second[..103].iter().all(|fetched| *fetched == 0), "{by_second:?}");
    assert!(by_second.iter().all(|fetched| *fetched < 100), "{by_second:?}");
    let early = world.server.times()[first..].iter().filter(|at| **at - loaded < seconds(104)).count();
    assert_eq!(early, 0);

    // All have expired; they are read at once.
    for name in names(1000) {
        world.server.script(&name, Script::Serve(seconds(1)));
    }
    sleep(seconds(140)).await;
    let before = world.server.times().len();
    let start = Instant::now();
    within(world.store.list()).await.expect("complete");
    assert_eq!(world.server.times().len() - before, 1000);
    assert_eq!(world.server.most_running.load(Ordering::SeqCst), 16);
    assert_eq!(start.elapsed().as_secs(), 1000_u64.div_ceil(16));
}

#[tokio::test(start_paused = true)]
async fn c61_a_reader_that_leaves_does_not_end_the_fetch_of_the_others() {
    let world = World::with(CacheConfig::default(), names(1));
    world.server.script("o-0000", Script::Serve(seconds(5)));
    let read = |store: k8s_store::CachedStore| async move { store.by_name(Some("ns"), "o-0000").await };
    let (first, second) = (tokio::spawn(read(world.store.clone())), tokio::spawn(read(world.store.clone())));
    sleep(seconds(1)).await;
    first.abort();
    assert!(first.await.expect_err("aborted").is_cancelled());
    let found = within(second).await.expect("no panic").expect("no error");
    assert_eq!(found.expect("it is there").resource_version(), Some("10"));
    assert_eq!((world.server.asked("o-0000"), world.server.running()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn c62_a_slow_fetch_holds_nobody_up() {
    let mut world = World::with(CacheConfig::default(), ["a", "b", "c"].map(str::to_owned));
    for name in ["b", "c"] {
        world.version(name).await;
    }
    world.server.script("a", Script::Serve(Duration::from_millis(9_900)));
    let slow = tokio::spawn({
        let store = world.store.clone();
        async move { store.by_name(Some("ns"), "a").await }
    });
    sleep(seconds(1)).await;
    assert_eq!(world.server.running(), 1);

    // Paused time stands still as long as there is something to do: all of this takes none of it.
    let start = Instant::now();
    for _ in 0..1000 {
        assert_eq!(world.version("b").await.as_deref(), Some("10"));
    }
    world.change(&object("ns", "c", 11));
    assert_eq!(world.store.len(), 3);
    assert_eq!(world.store.bytes().references, world.store.snapshot().bytes());
    assert_eq!(world.version("c").await.as_deref(), Some("11"));
    world.delete("c");
    assert_eq!(world.store.len(), 2);
    assert!(start.elapsed() < Duration::from_millis(5));
    assert!(within(slow).await.expect("no panic").expect("no error").is_some());
}

#[tokio::test(start_paused = true)]
async fn c63_what_does_not_exist_is_absent_and_asked_once() {
    let mut world = World::with(CacheConfig::default(), ["a", "b"].map(str::to_owned));
    // The object goes, and the watch has not shown it yet.
    world.server.delete(Some("ns"), "a");
    assert_eq!(within(world.store.by_name(Some("ns"), "a")).await, Ok(None));
    let listed = within(world.store.list()).await.expect("complete");
    assert_eq!(listed.iter().map(Object::name).collect::<Vec<_>>(), ["b"]);
    assert_eq!((world.server.asked("a"), world.store.len()), (1, 2));

    // A name that the watch has not shown.
    for _ in 0..100 {
        assert_eq!(world.version("z").await, None);
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(world.server.asked("z"), 1);
    world.change(&object("ns", "z", 20));
    assert_eq!(world.version("z").await.as_deref(), Some("20"));
    sleep(seconds(6)).await;
    assert_eq!(world.version("a").await, None);
    assert_eq!(world.server.asked("a"), 2);
}

#[tokio::test(start_paused = true)]
async fn c63_another_failure_is_an_error_and_not_remembered() {
    let world = World::with(CacheConfig::default(), ["a".to_owned()]);
    world.server.script("a", Script::Fail("500 Internal Server Error"));
    for asked in 1..=2 {
        let error = within(world.store.by_name(Some("ns"), "a")).await.expect_err("it fails");
        assert_eq!(error.to_string(), "object \"ns/a\" could not be fetched");
        let source = std::error::Error::source(&error).expect("a cause").to_string();
        assert_eq!((&*source, world.server.asked("a")), ("500 Internal Server Error", asked));
    }
    world.server.script("a", Script::Serve(Duration::ZERO));
    assert_eq!(world.version("a").await.as_deref(), Some("10"));
}

#[tokio::test(start_paused = true)]
async fn c66_a_list_is_complete_or_an_error_that_names_what_is_missing() {
    let world = World::with(CacheConfig::default(), names(10));
    world.server.script("o-0002", Script::Fail("500"));
    world.server.script("o-0005", Script::Fail("500"));
    world.server.delete(Some("ns"), "o-0006");
    world.server.script("o-0007", Script::Serve(seconds(60)));
    let start = Instant::now();
    let error = within(world.store.list()).await.expect_err("three are missing");
    assert_eq!(start.elapsed().as_secs(), 10);
    assert_eq!(error.to_string(), "3 of 10 objects could not be fetched: ns/o-0002, ns/o-0005, ns/o-0007");
    let Error::Incomplete { failed: 3, untried: 0, wanted: 10, source, .. } = error else { panic!("{error:?}") };
    assert_eq!(source.to_string(), "500");

    for name in ["o-0002", "o-0005", "o-0007"] {
        world.server.script(name, Script::Serve(Duration::ZERO));
    }
    assert_eq!(within(world.store.list()).await.expect("complete").len(), 9);
    // What could be fetched the first time was cached.
    assert_eq!(world.server.asked("o-0001"), 1);
}

#[tokio::test(start_paused = true)]
async fn c66_a_server_that_does_not_answer_costs_one_time_out() {
    let world = World::with(CacheConfig::default(), names(500));
    for name in names(500) {
        world.server.script(&name, Script::Serve(seconds(60)));
    }
    let start = Instant::now();
    let error = within(world.store.list()).await.expect_err("nothing answers");
    assert_eq!(start.elapsed().as_secs(), 10);
    let Error::Incomplete { failed: 10, untried: 490, wanted: 500, objects, source } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((objects.len(), source.to_string()), (10, "no answer within 10s".to_owned()));
    assert!(error.to_string().ends_with("; 490 were not tried"), "{error}");
    sleep(seconds(1)).await;
    assert_eq!(world.server.running(), 0);
}
