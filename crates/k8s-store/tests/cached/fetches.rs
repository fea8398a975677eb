//! Fetches: how many, for how long, and what else can come of them.
use std::sync::atomic::Ordering;
use std::time::Duration;

use k8s_store::{CacheConfig, CachedStore, Error, FetchError};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::world::{Script, World, names, object, seconds, within};

type Found = Result<Option<k8s_packed::Object>, Error>;

fn read(store: &CachedStore, name: &str) -> JoinHandle<Found> {
    let (store, name) = (store.clone(), name.to_owned());
    tokio::spawn(async move { store.by_name(Some("ns"), &name).await })
}

fn source(found: Found) -> FetchError {
    match found {
        Err(Error::Fetch { source, .. }) => source,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_fetches_run_than_allowed_and_single_reads_get_their_turn() {
    let world = World::with(CacheConfig::default().max_parallel_fetches(4), names(100));
    for name in names(100) {
        world.server.script(&name, Script::Serve(seconds(1)));
    }
    let store = world.store.clone();
    let list = tokio::spawn(async move { store.list().await });
    sleep(Duration::from_millis(3500)).await;
    // Behind the four that the list has asked for next, not behind all of it.
    let start = Instant::now();
    let single = within(read(&world.store, "o-0099")).await.expect("no panic");
    assert!(single.expect("no error").is_some());
    assert!(start.elapsed() < seconds(3), "{:?}", start.elapsed());
    assert_eq!(within(list).await.expect("no panic").expect("complete").len(), 100);
    assert_eq!((world.server.most_running.load(Ordering::SeqCst), world.server.times().len()), (4, 100));
}

#[tokio::test(start_paused = true)]
async fn the_last_reader_that_leaves_ends_the_fetch() {
    let world = World::with(CacheConfig::default().max_parallel_fetches(1), names(2));
    world.server.script("o-0000", Script::Serve(seconds(9)));
    let readers = [read(&world.store, "o-0000"), read(&world.store, "o-0000")];
    sleep(seconds(1)).await;
    assert_eq!(world.server.running(), 1);
    readers.iter().for_each(JoinHandle::abort);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(world.server.running(), 0);
    // Its turn is free, and so is its place.
    let start = Instant::now();
    assert_eq!(world.version("o-0001").await.as_deref(), Some("10"));
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(world.version("o-0000").await.as_deref(), Some("10"));
    assert_eq!(world.server.asked("o-0000"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_is_put_aside_holds_nobody_up() {
    let world = World::with(CacheConfig::default().max_parallel_fetches(1), names(2));
    world.server.script("o-0000", Script::Serve(seconds(1)));
    let mut aside = Box::pin(world.store.by_name(Some("ns"), "o-0000"));
    assert!(tokio::time::timeout(Duration::from_millis(1), &mut aside).await.is_err());
    // Not polled any more, it still ends, and gives its turn back.
    assert_eq!(world.version("o-0001").await.as_deref(), Some("10"));
    let found = within(aside).await.expect("no error").expect("it is there");
    assert_eq!((found.resource_version(), world.server.asked("o-0000")), (Some("10"), 1));
}

#[tokio::test(start_paused = true)]
async fn a_fetch_has_its_time_and_no_more() {
    let world = World::with(CacheConfig::default().fetch_timeout(seconds(2)).max_parallel_fetches(1), names(2));
    for name in names(2) {
        world.server.script(&name, Script::Serve(seconds(60)));
    }
    let start = Instant::now();
    let (first, second) = (read(&world.store, "o-0000"), read(&world.store, "o-0001"));
    for reader in [first, second] {
        let error = source(within(reader).await.expect("no panic"));
        assert_eq!(error, FetchError::Timeout { after: seconds(2) });
    }
    // The time of the second began with its turn.
    assert_eq!(start.elapsed().as_secs(), 4);
    assert_eq!(world.store.stats().fetch_errors, 2);
    world.server.script("o-0000", Script::Serve(Duration::ZERO));
    assert_eq!(world.version("o-0000").await.as_deref(), Some("10"));
}

#[tokio::test(start_paused = true)]
async fn a_fetch_that_panics_is_an_error_for_all_who_wait() {
    let world = World::with(CacheConfig::default(), names(1));
    world.server.script("o-0000", Script::Panic);
    for reader in [read(&world.store, "o-0000"), read(&world.store, "o-0000")] {
        assert_eq!(source(within(reader).await.expect("the reader does not panic")), FetchError::Ended);
    }
    world.server.script("o-0000", Script::Serve(Duration::ZERO));
    assert_eq!(world.version("o-0000").await.as_deref(), Some("10"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_object_or_another_one_is_an_error_without_content() {
    let world = World::with(CacheConfig::default(), names(1));
    let fetched = async |answer: Value| {
        world.server.script("o-0000", Script::Answer(Duration::ZERO, Some(answer)));
        source(within(world.store.by_name(Some("ns"), "o-0000")).await)
    };
    let error = fetched(json!(["hunter2"])).await;
    assert_eq!(error.to_string(), "the answer is no object");
    assert!(!format!("{error:?}").contains("hunter2"));

    assert_eq!(fetched(object("ns", "other", 1)).await, FetchError::OtherObject { object: "ns/other".into() });
    assert_eq!(fetched(object("elsewhere", "o-0000", 1)).await.to_string(), {
        "the answer is another object, \"elsewhere/o-0000\""
    });
    assert_eq!(world.store.stats().entries, 0);
}

#[tokio::test(start_paused = true)]
async fn time_counts_from_the_fetch_and_not_from_the_last_read() {
    let world = World::with(CacheConfig::default().ttl(seconds(100)), names(1));
    for second in 0..300_usize {
        world.version("o-0000").await;
        let (least, most) = (1 + second / 100, 1 + second / 80);
        assert!((least..=most).contains(&world.server.asked("o-0000")), "second {second}");
        sleep(seconds(1)).await;
    }
}
