//! The watch and answers that are under way: what is given out, and what is kept.
use std::time::Duration;

use k8s_store::{CacheConfig, Error, FetchError};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::world::{Script, World, names, object, seconds, within};

type Found = Result<Option<String>, Error>;

/// A read of the one object, as a task; gives its `version` and uid's last letter, such as `10a`.
fn read(world: &World) -> JoinHandle<Found> {
    let store = world.store.clone();
    tokio::spawn(async move {
        let found = store.by_name(Some("ns"), "o-0000").await?;
        Ok(found.map(|object| {
            let uid = object.uid().unwrap_or_default();
            format!("{}{}", object.resource_version().unwrap_or_default(), uid.trim_start_matches("uid-"))
        }))
    })
}

fn of(version: impl ToString, uid: &str) -> Value {
    let mut object = object("ns", "o-0000", 0);
    object["metadata"]["resourceVersion"] = json!(version.to_string());
    object["metadata"]["uid"] = json!(format!("uid-{uid}"));
    object
}

fn world() -> World {
    let mut world = World::new(CacheConfig::default());
    world.change(&of(10, "a"));
    world
}

/// The server answers with this a second after it was asked.
fn answer(world: &World, object: Option<Value>) {
    world.server.script("o-0000", Script::Answer(seconds(1), object));
}

async fn pause() {
    sleep(Duration::from_millis(500)).await;
}

async fn ends(task: JoinHandle<Found>) -> Found {
    within(task).await.expect("no panic")
}

fn found(text: &str) -> Found {
    Ok(Some(text.to_owned()))
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_overtaken_is_asked_for_again() {
    let mut world = world();
    answer(&world, Some(of(10, "a")));
    let reader = read(&world);
    pause().await;
    world.change(&of(11, "a"));
    answer(&world, Some(of(11, "a")));
    assert_eq!(ends(reader).await, found("11a"));
    assert_eq!(ends(read(&world)).await, found("11a"));
    assert_eq!(world.server.asked("o-0000"), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_ahead_of_the_watch_stays_when_the_watch_comes() {
    let mut world = world();
    answer(&world, Some(of(15, "a")));
    let reader = read(&world);
    pause().await;
    for version in [11, 12] {
        world.show(&of(version, "a"));
    }
    assert_eq!(ends(reader).await, found("15a"));
    for version in [13, 14, 15] {
        world.show(&of(version, "a"));
        assert_eq!(ends(read(&world)).await, found("15a"));
    }
    assert_eq!(world.server.asked("o-0000"), 1);
    world.show(&of(16, "a"));
    answer(&world, Some(of(16, "a")));
    assert_eq!(ends(read(&world)).await, found("16a"));
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_does_not_revive_a_deleted_object() {
    let mut world = world();
    answer(&world, Some(of(10, "a")));
    let reader = read(&world);
    pause().await;
    world.delete("o-0000");
    pause().await;
    answer(&world, None);
    assert_eq!(ends(reader).await, Ok(None));
    assert_eq!(ends(read(&world)).await, Ok(None));
    assert_eq!(world.server.asked("o-0000"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_late_404_does_not_hide_a_new_object() {
    let mut world = World::new(CacheConfig::default());
    answer(&world, None);
    let reader = read(&world);
    pause().await;
    world.change(&of(20, "b"));
    answer(&world, Some(of(20, "b")));
    assert_eq!(ends(reader).await, found("20b"));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_made_again_is_given_out_only_as_the_newer_one() {
    let mut world = world();
    // The reference still says `a`.
    answer(&world, Some(of(12, "b")));
    assert_eq!(ends(read(&world)).await, found("12b"));
    world.show_gone("o-0000");
    world.show(&of(12, "b"));

    // And an answer from before that is none.
    answer(&world, Some(of(10, "a")));
    let error = ends(read(&world)).await.expect_err("only old answers");
    assert!(matches!(error, Error::Fetch { source: FetchError::Overtaken, .. }), "{error:?}");
    assert_eq!(world.store.stats().entries, 0);
    answer(&world, Some(of(12, "b")));
    assert_eq!(ends(read(&world)).await, found("12b"));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changes_all_the_time_is_given_out_but_not_kept() {
    let mut world = world();
    let reader = read(&world);
    for version in 11..=13 {
        answer(&world, Some(of(version - 1, "a")));
        pause().await;
        world.change(&of(version, "a"));
        pause().await;
    }
    // Three answers, each overtaken; all are newer than what the watch had shown when the reader came.
    assert_eq!(ends(reader).await, found("12a"));
    assert_eq!((world.server.asked("o-0000"), world.store.stats().entries), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_reader_who_comes_later_may_expect_more() {
    let mut world = world();
    let first = read(&world);
    for version in 11..=13 {
        answer(&world, Some(of(version - 1, "a")));
        pause().await;
        world.change(&of(version, "a"));
        pause().await;
        if version == 12 {
            answer(&world, Some(of(12, "a")));
        }
        if version == 13 {
            break;
        }
    }
    answer(&world, Some(of(13, "a")));
    assert_eq!(ends(first).await, found("12a"));
    assert_eq!(ends(read(&world)).await, found("13a"));
}

#[tokio::test(start_paused = true)]
async fn a_reader_who_joins_may_expect_what_was_shown_and_is_not_committed_yet() {
    let mut world = world();
    // A replica that lags behind gives the same answer three times.
    answer(&world, Some(of(10, "a")));
    let first = read(&world);
    pause().await;
    world.invalidator.shown(Some("ns"), "o-0000", Some("uid-a"), Some("11"), None);
    let second = read(&world);
    sleep(seconds(2)).await;
    answer(&world, Some(of(11, "a")));
    assert_eq!(ends(first).await, found("10a"));
    assert_eq!(ends(second).await, found("11a"));
    assert_eq!(world.server.asked("o-0000"), 4);
}

#[tokio::test(start_paused = true)]
async fn an_event_with_the_whole_object_refreshes_what_is_cached() {
    let mut world = world();
    answer(&world, Some(of(10, "a")));
    assert_eq!(ends(read(&world)).await, found("10a"));
    let mut encoder = k8s_packed::Encoder::new();
    for version in 11..20 {
        let whole = encoder.encode(of(version, "a").to_string().as_bytes()).expect("an object");
        world.invalidator.shown(Some("ns"), "o-0000", whole.uid(), whole.resource_version(), Some(&whole));
        assert_eq!(ends(read(&world)).await, found(&format!("{version}a")));
        sleep(seconds(60)).await;
    }
    assert_eq!(world.server.asked("o-0000"), 1);
}

#[tokio::test(start_paused = true)]
async fn versions_that_cannot_be_ordered_go_by_arrival() {
    let mut world = World::new(CacheConfig::default());
    world.change(&of("x1", "a"));
    // Nothing was shown while it was under way.
    answer(&world, Some(of("x2", "a")));
    assert_eq!(ends(read(&world)).await, found("x2a"));
    // Which is newer, what is cached or what is shown, cannot be told.
    world.show(&of("x3", "a"));
    answer(&world, Some(of("x2", "a")));
    let reader = read(&world);
    pause().await;
    world.show(&of("x4", "a"));
    pause().await;
    answer(&world, Some(of("x4", "a")));
    assert_eq!(ends(reader).await, found("x4a"));
    world.show(&of("x4", "a"));
    let before = world.server.asked("o-0000");
    assert_eq!(ends(read(&world)).await, found("x4a"));
    assert_eq!(world.server.asked("o-0000"), before);
}

#[tokio::test(start_paused = true)]
async fn after_a_restore_nothing_from_before_is_given_out() {
    let mut world = World::with(CacheConfig::default(), names(3));
    world.change(&of(100, "a"));
    within(world.store.list()).await.expect("complete");
    answer(&world, Some(of(101, "a")));
    world.show(&of(101, "a"));
    let reader = read(&world);
    pause().await;
    // Versions have run backwards.
    world.invalidator.forget();
    answer(&world, Some(of(50, "a")));
    world.show(&of(50, "a"));
    // The reader who came before knows of a version that no answer reaches any more.
    let error = ends(reader).await.expect_err("history has changed");
    assert!(matches!(error, Error::Fetch { source: FetchError::Overtaken, .. }), "{error:?}");
    assert_eq!(ends(read(&world)).await, found("50a"));
    assert_eq!(world.store.stats().entries, 1);
}
