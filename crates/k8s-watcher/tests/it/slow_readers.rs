//! Those who listen and stall: for an hour, each at a pace of its own, for ever. The reading waits for none of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use k8s_fake_apiserver::{FakeApiServer, List, Watch};
use k8s_types::{Change, Object, SingleWatcherConfig};
use k8s_watcher::{Backlog, Batch, Changes, SingleWatcher, SyncGroup, Watcher, WatcherHandle};

use crate::support::*;

const OBJECTS: usize = 300;
const MINUTES: usize = 60;

/// Of which uid each name is.
type Known = BTreeMap<String, String>;

fn known(snapshot: &k8s_store::Snapshot) -> Known {
    let uid = |object: &Object| object.uid().unwrap_or_default().to_owned();
    snapshot.list().iter().map(|object| (object.name().to_owned(), uid(object))).collect()
}

/// An hour in a busy namespace: each minute some are changed, some go, some of those come back, and some only visit.
struct Hour<'a> {
    server: &'a FakeApiServer,
    rng: fastrand::Rng,
    writes: usize,
}

impl<'a> Hour<'a> {
    fn new(server: &'a FakeApiServer) -> Self {
        Self { server, rng: fastrand::Rng::with_seed(7), writes: 0 }
    }

    fn put(&mut self, name: &str) {
        self.writes += 1;
        self.server.apply(config_map(name, &self.writes.to_string())).unwrap();
    }

    fn delete(&self, name: &str) {
        self.server.delete(MAPS, Some("shop"), name).unwrap();
    }

    async fn minute(&mut self) {
        for part in 0..6 {
            for _ in 0..15 {
                let name = format!("m{:04}", self.rng.usize(..OBJECTS));
                match self.rng.u8(..10) {
                    0 => self.delete(&name),
                    1 => {
                        self.delete(&name);
                        self.put(&name);
                    }
                    _ => self.put(&name),
                }
            }
            let visitor = format!("visitor-{}", self.writes);
            self.put(&visitor);
            if part % 2 == 0 {
                settle(ms(10)).await;
            }
            self.delete(&visitor);
            settle(secs(10)).await;
        }
    }
}

/// One watch for all of it, as long as the server has no reason to close it.
fn config() -> WatcherConfig {
    crate::support::config().watch_timeout(secs(3 * 3_600))
}

async fn start() -> FakeApiServer {
    fake().objects(many(OBJECTS)).history(2_000).slow_watchers(500, secs(2)).start().await.unwrap()
}

async fn next(changes: &mut Changes) -> Batch {
    tokio::time::timeout(secs(5), changes.next()).await.expect("something is new").expect("the watcher lives")
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stalls_for_an_hour_wakes_to_the_latest_state_and_every_delete() {
    let server = start().await;
    let watcher = Watcher::builder(server.client(), config()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    let mut stalled = watcher.changes();
    let mut replay = Replay::default();
    let first = next(&mut stalled).await;
    replay.apply(&first);
    let before = known(&first.snapshot);
    drop(first);
    let mut hour = Hour::new(&server);
    for _ in 0..MINUTES {
        hour.minute().await;
        same_as_served(&watcher, &server).await;
        // One entry for each object that it knows or that there is; visitors leave none.
        assert!(stalled.backlog() <= OBJECTS);
        assert_eq!(watcher.backlog().unread, [stalled.backlog()]);
    }
    assert!(hour.writes > 5_000, "{}", hour.writes);
    assert_eq!(server.journal().count(Watch::of(MAPS)), 1, "the watch was read all the time");

    let batch = next(&mut stalled).await;
    replay.apply(&batch);
    let now = known(&batch.snapshot);
    assert_eq!(stored(&batch.snapshot), served(&server, MAPS));
    let expected: BTreeSet<_> = before.iter().filter(|(name, uid)| now.get(*name) != Some(uid)).collect();
    let told: Vec<_> = batch.changes.iter().filter(|change| change.is_deleted()).map(Change::object).collect();
    let told_uids: BTreeSet<_> = told.iter().filter_map(|object| object.uid()).collect();
    assert_eq!(told_uids, expected.iter().map(|(_, uid)| uid.as_str()).collect(), "each object that is gone");
    assert_eq!(told.len(), expected.len(), "and each once");
    assert!(told.len() > OBJECTS / 2, "{}", told.len());
    assert_eq!((stalled.backlog(), watcher.backlog().is_empty()), (0, true));
    assert!(tokio::time::timeout(secs(60), stalled.next()).await.is_err(), "there is no more");
}

#[tokio::test(start_paused = true)]
async fn readers_of_any_pace_hear_of_the_same_and_hold_nobody_up() {
    let server = start().await;
    let watcher = Watcher::builder(server.client(), config()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    // How many minutes each lets pass between two batches; the last wakes at the end alone.
    let mut readers: Vec<_> = [1, 3, 10, 1_000].map(|pace| (pace, watcher.changes(), Replay::default(), 0)).into();
    let mut unread = watcher.changes();
    for (_, changes, replay, _) in &mut readers {
        replay.apply(&next(changes).await);
    }
    let mut hour = Hour::new(&server);
    for minute in 1..=MINUTES {
        hour.minute().await;
        same_as_served(&watcher, &server).await;
        let backlog = watcher.backlog();
        assert_eq!(backlog.unread[4], 0, "the state is its first batch");
        assert_eq!(backlog.longest_stream(), Some(backlog.unread[3]), "{backlog:?}");
        for (pace, changes, replay, total) in &mut readers {
            if minute % *pace == 0 {
                let batch = next(changes).await;
                *total += batch.stats.total();
                replay.apply(&batch);
            }
        }
    }
    let handle = watcher.handle().clone();
    watcher.shutdown().await;
    let mut totals = vec![];
    for (pace, changes, replay, total) in &mut readers {
        while let Some(batch) = changes.next().await {
            *total += batch.stats.total();
            replay.apply(&batch);
        }
        assert_eq!(replay.len(), handle.store().len(), "every {pace} minutes");
        totals.push(*total);
    }
    let all = handle.status().changes.total() - OBJECTS as u64;
    assert_eq!(totals, [all; 4], "what was counted does not depend on the pace");
    assert_eq!(unread.next().await.unwrap().changes.len(), handle.store().len());
    assert!(unread.next().await.is_none() && handle.backlog().is_empty());
    drop((readers, unread));
    assert_eq!(handle.backlog(), Backlog::default());
}

/// Plays some minutes, in which a callback must not stand in anybody's way.
async fn minutes_with_a_callback_that_hangs(watcher: &WatcherHandle, server: &FakeApiServer) {
    let mut hour = Hour::new(server);
    let mut fast = watcher.changes();
    let mut replay = Replay::default();
    replay.apply(&next(&mut fast).await);
    let mut total = 0;
    assert_eq!(watcher.backlog().untold.total(), 0, "the call that runs has been told");
    for _ in 0..10 {
        hour.minute().await;
        same_as_served(watcher, server).await;
        let batch = next(&mut fast).await;
        total += batch.stats.total();
        replay.apply(&batch);
        assert_eq!(watcher.backlog().untold.total(), total, "what waits for the callback can be read");
        assert!(!watcher.backlog().untold.is_initial_sync);
    }
    assert_eq!(server.journal().count(Watch::of(MAPS)), 1);
    assert!(!watcher.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn an_async_callback_that_never_returns_holds_up_nothing_but_the_next_call() {
    let server = start().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let watcher = Watcher::builder(server.client(), config())
        .on_change_async(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>()
        })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    server.apply(config_map("m0000", "first")).unwrap();
    settle(secs(1)).await;
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    minutes_with_a_callback_that_hangs(&watcher, &server).await;
    // Good order means to wait for the callback; whoever does not want to wait drops the watcher.
    let handle = watcher.handle().clone();
    assert!(tokio::time::timeout(secs(3_600), watcher.shutdown()).await.is_err());
    settle(ms(1)).await;
    assert!(handle.is_stopped());
    assert_eq!((calls.load(Ordering::SeqCst), Arc::strong_count(&calls)), (1, 1), "the callback is gone with it");
    assert!(handle.backlog().untold.total() > 800, "nobody was told");
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_keeps_its_thread_holds_up_nothing_but_the_next_call() {
    let server = start().await;
    let (entered, is_entered) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let watcher = Watcher::builder(server.client(), config())
        .on_change(move |change| {
            entered.send(change.stats.total()).unwrap();
            let _ = released.lock().unwrap().recv();
        })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    server.apply(config_map("m0000", "first")).unwrap();
    let entered_with = || async {
        for _ in 0..10_000_000 {
            if let Ok(total) = is_entered.try_recv() {
                return total;
            }
            tokio::task::yield_now().await;
        }
        panic!("not called");
    };
    assert_eq!(entered_with().await, 1);
    // The clock does not move by itself while a thread is blocked; it is moved.
    let mut total = 0;
    let mut hour = Hour::new(&server);
    for _ in 0..200 {
        for _ in 0..10 {
            let name = format!("m{:04}", hour.rng.usize(..OBJECTS));
            hour.put(&name);
            total += 1;
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        tokio::time::advance(secs(18)).await;
    }
    for _ in 0..1_000_000 {
        if watcher.backlog().untold.total() == total {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(watcher.backlog().untold.total(), total, "an hour of it");
    assert_eq!(stored(&watcher.snapshot()), served(&server, MAPS));
    release.send(()).unwrap();
    assert_eq!(entered_with().await, total, "one call has it all");
    assert!(watcher.backlog().is_empty());
    drop(release);
    watcher.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_held_back_for_a_group_can_be_read() {
    let server = start().await;
    let missing = server.faults().on(List::of("v1/secrets")).always().status(403);
    let also_missing = server.faults().on(Watch::of("v1/secrets")).always().status(403);
    let group = SyncGroup::new();
    let record = Record::new();
    let on_change = record.clone();
    let maps = Watcher::builder(server.client(), config())
        .sync_group(&group, "maps")
        .on_change_async(move |change| {
            on_change.push(&change);
            async {}
        })
        .spawn()
        .unwrap();
    let secrets = WatcherConfig::new("v1/secrets").index_by(["metadata.name"]);
    let secrets = Watcher::builder(server.client(), secrets).sync_group(&group, "secrets").spawn().unwrap();
    let one = SingleWatcher::builder(server.client(), SingleWatcherConfig::new(MAPS, "shop", "m0000"))
        .sync_group(&group, "one")
        .on_change_async(|_| async {})
        .spawn()
        .unwrap();
    maps.wait_for_sync(LONG).await.unwrap();
    one.wait_for_sync(LONG).await.unwrap();
    group.close();
    let mut hour = Hour::new(&server);
    for _ in 0..10 {
        hour.minute().await;
    }
    hour.delete("m0000");
    hour.put("m0000");
    settle(secs(1)).await;
    assert_eq!(record.len(), 0);
    let untold = maps.backlog().untold;
    assert!(untold.total() > 800, "{untold}");
    assert_eq!(one.backlog(), 2, "that it is gone, and the new one");
    missing.clear();
    also_missing.clear();
    secrets.wait_for_sync(LONG).await.unwrap();
    settle(secs(1)).await;
    assert_eq!(record.calls().iter().map(|(_, stats, _)| *stats).collect::<Vec<_>>(), [untold]);
    assert_eq!((maps.backlog().is_empty(), one.backlog()), (true, 0));
}

#[tokio::test(start_paused = true)]
async fn a_single_watcher_whose_callback_stalls_for_an_hour_tells_the_delete_and_the_latest() {
    let server = fake().object(config_map("a", "0")).slow_watchers(500, secs(2)).start().await.unwrap();
    let story = Story::default();
    let told = story.clone();
    let config = SingleWatcherConfig::new(MAPS, "shop", "a").watch_timeout(secs(3 * 3_600));
    let watcher = SingleWatcher::builder(server.client(), config)
        .on_change_async(move |object: Option<Object>| {
            told.tell(object.as_ref().and_then(|o| o.label("app")).unwrap_or("gone"));
            tokio::time::sleep(secs(3_600))
        })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    assert_eq!(watcher.backlog(), 0, "the first state was told otherwise");
    server.apply(config_map("a", "first")).unwrap();
    settle(secs(1)).await;
    assert_eq!((story.all(), watcher.backlog()), (vec!["first".to_owned()], 0));
    for i in 0..3_000 {
        if i % 100 == 99 {
            server.delete(MAPS, Some("shop"), "a").unwrap();
        }
        server.apply(config_map("a", &i.to_string())).unwrap();
        settle(secs(1)).await;
        assert_eq!(watcher.backlog(), if i < 99 { 1 } else { 2 }, "{i}");
        assert_eq!(watcher.object().unwrap().label("app"), Some(&*i.to_string()));
    }
    settle(secs(2 * 3_600)).await;
    assert_eq!(story.all(), ["first", "gone", "2999"]);
    assert_eq!(server.journal().count(Watch::of(MAPS)), 1);
    assert_eq!(watcher.backlog(), 0);
    // What came and went meanwhile is nothing to tell.
    server.apply(config_map("a", "last")).unwrap();
    settle(secs(1)).await;
    server.delete(MAPS, Some("shop"), "a").unwrap();
    server.apply(config_map("a", "new")).unwrap();
    settle(secs(1)).await;
    assert_eq!(watcher.backlog(), 2);
    server.delete(MAPS, Some("shop"), "a").unwrap();
    settle(secs(1)).await;
    assert_eq!(watcher.backlog(), 1, "that it is gone");
}

#[cfg(feature = "cached")]
#[tokio::test(start_paused = true)]
async fn who_stalls_beside_a_cached_store_gets_the_latest_references_and_every_delete() {
    let server = start().await;
    let calls = Record::new();
    let on_change = calls.clone();
    let watcher = Watcher::builder(server.client(), config())
        .cached(k8s_store::CacheConfig::default())
        .on_change_async(move |change: k8s_watcher::ChangeContext<k8s_store::CachedStore>| {
            on_change.push_stats(change.stats, change.snapshot.len());
            tokio::time::sleep(secs(3_600))
        })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    let mut stalled = watcher.changes();
    let before = known(&next(&mut stalled).await.snapshot);
    let mut hour = Hour::new(&server);
    for _ in 0..MINUTES - 1 {
        hour.minute().await;
        assert!(stalled.backlog() <= OBJECTS);
        // Reads are as fresh as ever.
        let name = format!("m{:04}", hour.rng.usize(..OBJECTS));
        let read = watcher.store().by_name(Some("shop"), &name).await.unwrap();
        let there = server.object(MAPS, Some("shop"), &name).unwrap();
        let value = there.as_ref().and_then(|o| o["metadata"]["labels"]["app"].as_str());
        assert_eq!(read.as_ref().and_then(|o| o.label("app")), value);
    }
    assert_eq!(calls.len(), 1);
    let (told, untold) = (calls.calls()[0].1.total(), watcher.backlog().untold.total());
    assert_eq!(told + untold, watcher.status().changes.total() - OBJECTS as u64);
    let batch = next(&mut stalled).await;
    let now = known(&batch.snapshot);
    assert_eq!(stored(&batch.snapshot), served(&server, MAPS));
    let gone = before.iter().filter(|(name, uid)| now.get(*name) != Some(uid)).count();
    assert_eq!(batch.changes.iter().filter(|change| change.is_deleted()).count(), gone);
    assert!(gone > OBJECTS / 2);
    settle(secs(3_600)).await;
    assert_eq!(calls.calls().iter().map(|(_, stats, _)| stats.total()).sum::<u64>(), told + untold);
}
