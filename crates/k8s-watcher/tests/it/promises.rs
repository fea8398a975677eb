//! Promises that no other test is about.

use k8s_types::{Gvr, Object, SelfWriteFilter, SingleWatcherConfig};
use k8s_watcher::{RunningSingleWatcher, RunningWatcher, SingleWatcher, Watcher};

use crate::support::*;

/// Knows the program's own objects by their name.
struct ByName;

impl SelfWriteFilter for ByName {
    fn is_own(&self, _: &Gvr, _: Option<&str>, name: &str, _: &str) -> bool {
        name.starts_with("own-")
    }
}

#[tokio::test(start_paused = true)]
async fn any_rule_may_say_what_is_an_own_write() {
    let server = server([]).await;
    let (builder, record) = recorded(&server, config());
    let watcher = builder.self_writes(ByName).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    for name in ["own-a", "foreign", "own-b"] {
        server.apply(config_map(name, "x")).unwrap();
    }
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!(record.totals(), (1, 0, 0));
    watcher.shutdown().await;
}

/// A filter with a mistake.
struct Panics;

impl SelfWriteFilter for Panics {
    fn is_own(&self, _: &Gvr, _: Option<&str>, name: &str, _: &str) -> bool {
        assert_ne!(name, "bad", "a mistake");
        true
    }
}

#[tokio::test(start_paused = true)]
async fn c51_a_filter_that_panics_is_counted_and_the_watcher_lives() {
    let server = server([]).await;
    let (builder, record) = recorded(&server, config());
    let watcher = builder.self_writes(Panics).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    for name in ["own", "bad", "own-too"] {
        server.apply(config_map(name, "x")).unwrap();
    }
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!((record.totals(), watcher.status().callback_panics), ((1, 0, 0), 1));
    watcher.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_single_watcher_tells_each_change_at_once() {
    let server = server([]).await;
    let story = Story::default();
    let tell = story.clone();
    let watcher = SingleWatcher::builder(server.client(), SingleWatcherConfig::new(MAPS, "shop", "a"))
        .on_change_async(move |object: Option<Object>| {
            tell.tell(object.and_then(|o| o.label("app").map(str::to_owned)).unwrap_or_default());
            async {}
        })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    settle(secs(1)).await;
    // Far quicker than the bulk watcher's interval.
    let values: Vec<_> = (0..20).map(|i| i.to_string()).collect();
    for value in &values {
        server.apply(config_map("a", value)).unwrap();
        settle(ms(1)).await;
        assert_eq!(story.all().last(), Some(value));
    }
    assert_eq!(story.all(), values);
    watcher.shutdown().await;
}

/// Two implementations for a type that is `Clone`, so that naming one of them does not compile; one for others.
trait NotClone<Marker> {
    const HOLDS: bool = true;
}

impl<T: ?Sized> NotClone<()> for T {}
impl<T: Clone> NotClone<u8> for T {}

#[test]
fn starting_takes_the_watcher_so_that_none_is_started_twice() {
    let _: fn(Watcher) -> RunningWatcher = Watcher::spawn;
    let _: fn(SingleWatcher) -> RunningSingleWatcher = SingleWatcher::spawn;
    let run = |watcher: Watcher, single: SingleWatcher, token: tokio_util::sync::CancellationToken| {
        (watcher.run(token.clone()), single.run(token))
    };
    let _ = run;
    const { assert!(<Watcher as NotClone<_>>::HOLDS && <SingleWatcher as NotClone<_>>::HOLDS) };
}
