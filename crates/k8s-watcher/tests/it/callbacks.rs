//! Callbacks: their order at the end of the load, what they may do, and what becomes of their faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use k8s_fake_apiserver::{List, Watch};
use k8s_watcher::{Phase, Watcher};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn c42_at_the_end_of_the_load_everything_happens_in_order() {
    for during_sync in [true, false] {
        let server = server(many(500)).await;
        let story = Story::default();
        let (on_change, on_sync, waiter) = (story.clone(), story.clone(), story.clone());
        let config = paged().page_size(100).call_on_change_during_sync(during_sync);
        let watcher = Watcher::builder(server.client(), config)
            .on_change_async(move |change| {
                let story = on_change.clone();
                async move {
                    tokio::time::sleep(ms(2)).await;
                    assert_eq!(change.watcher.is_synced(), !change.stats.is_initial_sync);
                    let part = if change.stats.is_initial_sync { "initial" } else { "live" };
                    story.tell(format!("{part} {}", change.snapshot.len()));
                }
            })
            .on_sync_complete_async(move |context, count| {
                let story = on_sync.clone();
                async move {
                    story.tell(format!("complete {count} {}", context.watcher.is_synced()));
                    tokio::time::sleep(ms(100)).await;
                    story.tell("complete ends");
                }
            })
            .spawn()
            .unwrap();
        let handle = watcher.handle().clone();
        let waiting = tokio::spawn(async move {
            let count = handle.wait_for_sync(LONG).await.unwrap();
            check_index(&handle.snapshot());
            assert_eq!(handle.store().get(["shop"]).unwrap().len(), count, "each of them is in the index");
            waiter.tell(format!("synced {count}, store {}", handle.store().len()));
        });
        waiting.await.unwrap();
        server.apply(config_map("late", "x")).unwrap();
        settle(secs(1)).await;
        let told = story.all();
        let initial = told.iter().take_while(|t| t.starts_with("initial")).count();
        assert_eq!(initial > 0, during_sync, "{told:?}");
        if during_sync {
            assert_eq!(told[initial - 1], "initial 500", "{told:?}");
        }
        // Waiters wake before `on_sync_complete` is called, which runs beside them.
        let mut end: Vec<_> = told[initial..].to_vec();
        end[..2].sort();
        assert_eq!(end, ["complete 500 true", "synced 500, store 500", "complete ends", "live 501"], "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn during_the_load_calls_are_marked_initial_and_add_up() {
    let server = server(many(1_000)).await;
    server.faults().on(List::of(MAPS)).always().delay(ms(100));
    let (builder, record) = recorded(&server, paged().page_size(100).call_on_change_during_sync(true));
    let watcher = builder.spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    let calls = record.calls();
    assert_eq!(calls.len(), 10, "one for each page");
    assert!(calls.iter().all(|(_, stats, _)| stats.is_initial_sync));
    assert_eq!(record.totals(), (1_000, 0, 0));
    server.apply(config_map("late", "x")).unwrap();
    settle(secs(1)).await;
    let (_, last, len) = record.calls().pop().unwrap();
    assert_eq!((last.created, last.is_initial_sync, len), (1, false, 1_001));
}

#[tokio::test(start_paused = true)]
async fn what_happens_while_the_callback_of_the_load_runs_is_not_initial() {
    let server = server(many(10)).await;
    let entered = Arc::new(AtomicBool::new(false));
    let record = Record::new();
    let (on_change, enter) = (record.clone(), entered.clone());
    let watcher = Watcher::builder(server.client(), config().call_on_change_during_sync(true))
        .on_change_async(move |change| {
            on_change.push(&change);
            let first = !enter.swap(true, Ordering::SeqCst);
            async move {
                if first {
                    tokio::time::sleep(secs(10)).await;
                }
            }
        })
        .spawn()
        .unwrap();
    while !entered.load(Ordering::SeqCst) {
        settle(ms(1)).await;
    }
    for i in 0..20 {
        server.apply(config_map("live", &i.to_string())).unwrap();
    }
    server.delete(MAPS, Some("shop"), "m0001").unwrap();
    same_as_served(&watcher, &server).await;
    assert!(!watcher.is_synced(), "the callback of the load still runs");
    watcher.wait_for_sync(LONG).await.unwrap();
    settle(secs(1)).await;
    let calls = record.calls();
    let (initial, live): (Vec<_>, Vec<_>) = calls.iter().partition(|(_, stats, _)| stats.is_initial_sync);
    let created: u64 = initial.iter().map(|(_, s, _)| s.created).sum();
    assert_eq!((created, initial.iter().map(|(_, s, _)| s.total()).sum::<u64>()), (10, 10));
    let sum = |part: fn(&k8s_types::ChangeStats) -> u64| live.iter().map(|(_, s, _)| part(s)).sum::<u64>();
    assert_eq!((sum(|s| s.created), sum(|s| s.modified), sum(|s| s.deleted)), (1, 19, 1));
    assert_eq!(watcher.status().initial_objects, Some(10));
}

#[tokio::test(start_paused = true)]
async fn every_accessor_works_inside_every_callback() {
    let server = server(many(3)).await;
    let story = Story::default();
    let use_all = |story: Story, from: &'static str| {
        move |context: k8s_watcher::ChangeContext| {
            let handle = &context.watcher;
            let status = handle.status();
            let seen = (
                handle.is_synced(),
                handle.is_stopped(),
                handle.last_watch_error().is_some(),
                handle.resource().to_string(),
                handle.store().len() >= context.snapshot.len(),
                status.callback_panics,
                handle.changes().backlog(),
                handle.status_changes().borrow().objects >= 3,
            );
            assert_eq!((seen.1, seen.2, seen.4, seen.5, seen.6, seen.7), (false, false, true, 0, 0, true));
            story.tell(format!("{from} {}", seen.0));
            if from == "complete" {
                handle.force_sync();
                handle.relist();
            }
            let _ = format!("{context:?}");
        }
    };
    let (blocking, complete) = (use_all(story.clone(), "change"), use_all(story.clone(), "complete"));
    let watcher = Watcher::builder(server.client(), config().call_on_change_during_sync(true))
        .on_change(blocking)
        .on_sync_complete(move |context, _| complete(context))
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    settle(secs(60)).await;
    assert_eq!(story.all(), ["change false", "complete true", "change true"]);
    // Waiting for what is there already waits for nothing; stopping from inside is possible too.
    let story = Story::default();
    let told = story.clone();
    let stopping = Watcher::builder(server.client(), config())
        .on_sync_complete_async(move |context, count| {
            let story = told.clone();
            async move {
                assert_eq!(context.watcher.wait_for_sync(Duration::ZERO).await.unwrap(), count);
                context.watcher.stop();
                story.tell("stopped");
            }
        })
        .spawn()
        .unwrap();
    stopping.join().await;
    assert_eq!(story.all(), ["stopped"]);
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_blocks_its_thread_blocks_nothing_else() {
    let server = server(many(3)).await;
    let (entered, is_entered) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let record = Record::new();
    let on_change = record.clone();
    let watcher = Watcher::builder(server.client(), config())
        .on_change(move |change| {
            on_change.push(&change);
            entered.send(()).unwrap();
            let _ = released.lock().unwrap().recv();
        })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    server.apply(config_map("a", "x")).unwrap();
    while is_entered.try_recv().is_err() {
        tokio::task::yield_now().await;
    }
    for i in 0..200 {
        server.apply(config_map("b", &i.to_string())).unwrap();
        tokio::task::yield_now().await;
    }
    while label(&watcher, "b").as_deref() != Some("199") {
        tokio::task::yield_now().await;
    }
    assert_eq!(record.len(), 1, "never two at once");
    release.send(()).unwrap();
    while is_entered.try_recv().is_err() {
        tokio::task::yield_now().await;
    }
    drop(release);
    settle(secs(1)).await;
    assert_eq!(record.len(), 2, "one more call has all of it");
    assert_eq!(record.totals(), (2, 199, 0));
}

#[tokio::test(start_paused = true)]
async fn c52_a_callback_that_takes_a_minute_stops_neither_reading_nor_server() {
    let server = fake().objects(many(1_000)).slow_watchers(1_000, secs(2)).history(100_000).start().await.unwrap();
    let record = Record::new();
    let on_change = record.clone();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, max) = (running.clone(), most.clone());
    let watcher = Watcher::builder(server.client(), config().debounce(ms(100)))
        .on_change_async(move |change| {
            on_change.push(&change);
            max.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let now = now.clone();
            async move {
                tokio::time::sleep(secs(60)).await;
                now.fetch_sub(1, Ordering::SeqCst);
            }
        })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    let mut changes = watcher.changes();
    changes.next().await.unwrap();
    server.apply(config_map("m0000", "first")).unwrap();
    settle(ms(10)).await;
    assert_eq!(record.len(), 1);
    for round in 0..50 {
        for i in 0..1_000 {
            server.apply(config_map(&format!("m{i:04}"), &round.to_string())).unwrap();
        }
        settle(ms(500)).await;
        assert_eq!(label(&watcher, "m0999"), Some(round.to_string()), "the store is current during the block");
        assert!(changes.backlog() <= 1_000);
    }
    assert_eq!(record.len(), 1, "the first call still runs");
    settle(secs(61)).await;
    assert_eq!(record.len(), 2, "one more call");
    assert_eq!(record.totals(), (0, 50_001, 0));
    assert_eq!(server.journal().count(Watch::of(MAPS)), 1, "the server had no reason to close the watch");
    assert_eq!(most.load(Ordering::SeqCst), 1);
    let batch = changes.next().await.unwrap();
    assert_eq!((batch.changes.len(), batch.stats.modified), (1_000, 50_001));
}

#[tokio::test(start_paused = true)]
async fn c51_a_panic_is_counted_and_the_watcher_lives() {
    let server = server(many(3)).await;
    for sync in [true, false] {
        let calls = Arc::new(AtomicUsize::new(0));
        let count = calls.clone();
        let third = move || assert_ne!(count.fetch_add(1, Ordering::SeqCst), 2, "the third call panics");
        let builder = Watcher::builder(server.client(), config());
        let builder = if sync {
            let builder = builder.on_change(move |_| third());
            builder.on_sync_complete(|_, count| assert_eq!(count, 0, "on_sync_complete panics"))
        } else {
            let third = Arc::new(third);
            let builder = builder.on_change_async(move |_| {
                let third = third.clone();
                async move { third() }
            });
            builder.on_sync_complete_async(|_, count| async move { assert_eq!(count, 0, "on_sync_complete panics") })
        };
        let watcher = builder.spawn().unwrap();
        watcher.wait_for_sync(LONG).await.unwrap();
        settle(secs(1)).await;
        assert_eq!(watcher.status().callback_panics, 1);
        for i in 0..10 {
            server.apply(config_map("a", &format!("{sync}{i}"))).unwrap();
            settle(ms(10)).await;
        }
        same_as_served(&watcher, &server).await;
        assert_eq!(calls.load(Ordering::SeqCst), 10);
        assert_eq!(watcher.status().callback_panics, 2);
        assert_eq!(watcher.status().phase, Phase::Watching);
        watcher.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c51_a_panic_before_the_future_of_an_async_callback_is_caught_as_well() {
    async fn nothing() {}
    let server = server(many(1)).await;
    let watcher = Watcher::builder(server.client(), config().call_on_change_during_sync(true))
        .on_change_async(|change| {
            assert!(!change.stats.is_initial_sync, "no future");
            nothing()
        })
        .spawn()
        .unwrap();
    assert_eq!(watcher.wait_for_sync(secs(1)).await.unwrap(), 1);
    assert_eq!(watcher.status().callback_panics, 1);
    watcher.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_of_a_callback_stops_nothing_and_is_no_panic() {
    let server = server(many(1)).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let (sync_calls, async_calls) = (calls.clone(), calls.clone());
    let failing = Watcher::builder(server.client(), config())
        .on_change(move |_| -> Result<(), String> {
            sync_calls.fetch_add(1, Ordering::SeqCst);
            Err("no".into())
        })
        .on_sync_complete_async(move |_, _| {
            async_calls.fetch_add(1, Ordering::SeqCst);
            async { Err::<(), _>(std::io::Error::other("no")) }
        })
        .spawn()
        .unwrap();
    failing.wait_for_sync(LONG).await.unwrap();
    for i in 0..3 {
        server.apply(config_map("a", &i.to_string())).unwrap();
        settle(ms(10)).await;
    }
    assert_eq!(calls.load(Ordering::SeqCst), 4);
    assert_eq!(failing.status().callback_panics, 0);
    failing.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_watcher_without_callbacks_serves_reads_and_streams() {
    let server = server(many(2)).await;
    let watcher = Watcher::builder(server.client(), config().call_on_change_during_sync(true)).spawn().unwrap();
    assert_eq!(watcher.wait_for_sync(LONG).await.unwrap(), 2);
    watcher.force_sync();
    server.apply(config_map("a", "x")).unwrap();
    eventually(&watcher, "a", |s| s.len() == 3).await;
    watcher.shutdown().await;
}
