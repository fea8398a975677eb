//! How a watcher ends, and what those learn who wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_fake_apiserver::{Any, List, Watch};
use k8s_watcher::{Phase, SyncError, Watcher};
use tokio_util::sync::CancellationToken;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn shutdown_tells_what_was_not_told_and_waits_for_the_callback() {
    let server = server(many(3)).await;
    let record = Record::new();
    let (on_change, ended) = (record.clone(), Arc::new(AtomicBool::new(false)));
    let end = ended.clone();
    let watcher = Watcher::builder(server.client(), config().debounce(secs(60)))
        .on_change_async(move |change| {
            on_change.push(&change);
            let end = end.clone();
            async move {
                tokio::time::sleep(secs(3)).await;
                end.store(true, Ordering::SeqCst);
            }
        })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    server.apply(config_map("a", "1")).unwrap();
    settle(secs(5)).await;
    ended.store(false, Ordering::SeqCst);
    server.apply(config_map("a", "2")).unwrap();
    server.apply(config_map("b", "1")).unwrap();
    settle(secs(1)).await;
    assert_eq!(record.totals(), (1, 0, 0), "the interval has not passed");
    let handle = watcher.handle().clone();
    watcher.shutdown().await;
    assert!(ended.load(Ordering::SeqCst));
    assert_eq!(record.totals(), (2, 1, 0));
    assert_eq!(record.len(), 2);
    assert!(handle.is_stopped() && handle.is_synced());
    assert_eq!(handle.store().len(), 5, "the store can be read for ever");
    assert_eq!(handle.wait_for_sync(LONG).await.unwrap(), 3, "it was synced");
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_runs_at_the_end_is_followed_by_one_with_the_rest() {
    let server = server([]).await;
    let record = Record::new();
    let on_change = record.clone();
    let watcher = Watcher::builder(server.client(), config())
        .on_change_async(move |change| {
            on_change.push(&change);
            tokio::time::sleep(secs(10))
        })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    server.apply(config_map("a", "1")).unwrap();
    settle(secs(1)).await;
    server.apply(config_map("a", "2")).unwrap();
    settle(secs(1)).await;
    watcher.shutdown().await;
    assert_eq!(record.calls().iter().map(|c| c.0).collect::<Vec<_>>(), [secs(0), secs(10)]);
    assert_eq!(record.totals(), (1, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn stopping_before_the_sync_flushes_nothing_and_waiters_get_an_error() {
    for during_sync in [false, true] {
        let server = server(many(300)).await;
        let third = server.faults().on(List::of(MAPS)).skip(2).hold();
        let config = paged().page_size(100).call_on_change_during_sync(during_sync).debounce(secs(60));
        let (builder, record) = recorded(&server, config);
        let synced = Story::default();
        let told = synced.clone();
        let watcher = builder.on_sync_complete(move |_, _| told.tell("synced")).spawn().unwrap();
        third.wait_for(1).await;
        settle(secs(1)).await;
        assert_eq!(watcher.store().len(), 200, "the second page waits for the interval to pass");
        let before = record.len();
        assert_eq!(before, usize::from(during_sync));
        let handle = watcher.handle().clone();
        let waiter = tokio::spawn({
            let handle = handle.clone();
            async move { handle.wait_for_sync(LONG).await }
        });
        settle(secs(1)).await;
        watcher.shutdown().await;
        let error = waiter.await.unwrap().unwrap_err();
        assert!(matches!(error, SyncError::Stopped { .. }), "{error:?}");
        assert_eq!(error.to_string(), "the watcher of v1/configmaps ended before it was synced");
        assert!(handle.wait_for_sync(LONG).await.is_err());
        assert!(!handle.is_synced());
        settle(secs(120)).await;
        assert_eq!((record.len(), synced.all().len()), (before, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_ends_it_at_once_and_without_a_word() {
    let server = server(many(3)).await;
    let record = Record::new();
    let (on_change, aborted) = (record.clone(), Arc::new(()));
    let alive = aborted.clone();
    let watcher = Watcher::builder(server.client(), config().debounce(secs(60)))
        .on_change_async(move |change| {
            on_change.push(&change);
            let alive = alive.clone();
            async move {
                tokio::time::sleep(LONG).await;
                drop(alive);
            }
        })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    server.apply(config_map("a", "1")).unwrap();
    settle(secs(1)).await;
    server.apply(config_map("a", "2")).unwrap();
    settle(secs(1)).await;
    let handle = watcher.handle().clone();
    drop(watcher);
    settle(ms(1)).await;
    assert!(handle.is_stopped());
    assert_eq!(handle.status().phase, Phase::Stopped);
    assert_eq!(Arc::strong_count(&aborted), 1, "the callback was aborted, nothing is held");
    let requests = server.journal().count(Any::request());
    settle(LONG).await;
    assert_eq!(record.len(), 1);
    assert_eq!(server.journal().count(Any::request()), requests);
    assert_eq!(handle.store().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn run_ends_when_its_token_is_cancelled_and_flushes() {
    let server = server(many(3)).await;
    let (builder, record) = recorded(&server, config().debounce(secs(60)));
    let watcher = builder.build().unwrap();
    let handle = watcher.handle().clone();
    let token = CancellationToken::new();
    let running = tokio::spawn(watcher.run(token.clone()));
    handle.wait_for_sync(LONG).await.unwrap();
    for i in 0..3 {
        server.apply(config_map("a", &i.to_string())).unwrap();
        settle(ms(1)).await;
    }
    assert_eq!(record.totals(), (1, 0, 0));
    token.cancel();
    running.await.unwrap();
    assert_eq!(record.totals(), (1, 2, 0));
    assert!(handle.is_stopped());
    // A stop of one watcher is no stop of others on the same token, and a token that is cancelled already starts nothing.
    let server = crate::support::server(many(3)).await;
    let watcher = Watcher::builder(server.client(), config()).build().unwrap();
    let handle = watcher.handle().clone();
    watcher.run(token).await;
    assert!(matches!(handle.wait_for_sync(LONG).await, Err(SyncError::Stopped { .. })));
}

#[tokio::test(start_paused = true)]
async fn stop_ends_run_and_leaves_the_callers_token_alone() {
    let server = server(many(3)).await;
    let watcher = Watcher::builder(server.client(), config()).build().unwrap();
    let handle = watcher.handle().clone();
    let token = CancellationToken::new();
    let running = tokio::spawn(watcher.run(token.clone()));
    handle.wait_for_sync(LONG).await.unwrap();
    handle.stop();
    handle.stop();
    running.await.unwrap();
    handle.stop();
    assert!(handle.is_stopped() && !token.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn stop_works_in_every_state() {
    for what in ["discovering", "listing", "backing off", "hanging", "watching"] {
        let server = server(many(3)).await;
        let faults = server.faults();
        match what {
            "discovering" => drop(faults.on(Any::request()).always().no_answer()),
            "listing" => drop(faults.on(Watch::of(MAPS)).always().no_answer()),
            "backing off" => drop(faults.on(Any::request()).always().status(500)),
            "hanging" => drop(faults.on(Watch::of(MAPS)).always().after(1).hang()),
            _ => {}
        }
        let config = if what == "discovering" { config().namespaces(["a", "b"]) } else { config() };
        let watcher = Watcher::builder(server.client(), config).spawn().unwrap();
        settle(secs(10)).await;
        let begin = tokio::time::Instant::now();
        watcher.shutdown().await;
        assert_eq!(begin.elapsed(), ms(0), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_detached_watcher_lives_until_it_is_stopped() {
    let server = server(many(3)).await;
    let (watcher, record) = watching(&server, config()).await;
    let handle = watcher.detach();
    server.apply(config_map("a", "1")).unwrap();
    eventually(&handle, "a", |s| s.len() == 4).await;
    settle(secs(1)).await;
    assert_eq!(record.totals(), (1, 0, 0));
    handle.stop();
    settle(ms(1)).await;
    assert!(handle.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_is_dropped_before_it_runs_tells_those_who_wait() {
    let server = server([]).await;
    let watcher = Watcher::builder(server.client(), config()).build().unwrap();
    let handle = watcher.handle().clone();
    let mut changes = watcher.changes();
    drop(watcher);
    assert!(matches!(handle.wait_for_sync(LONG).await, Err(SyncError::Stopped { .. })));
    assert!(changes.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_says_what_was_going_on() {
    let server = server(many(300)).await;
    let second = server.faults().on(List::of(MAPS)).skip(1).hold();
    let watcher = Watcher::builder(server.client(), paged().page_size(100)).spawn().unwrap();
    second.wait_for(1).await;
    let error = watcher.wait_for_sync(secs(5)).await.unwrap_err();
    assert_eq!(error.to_string(), "v1/configmaps is not synced after 5s: listing (100 objects, 1 pages so far)");
    assert!(error.last_watch_error().is_none() && std::error::Error::source(&error).is_none());
    second.release();
    assert_eq!(watcher.wait_for_sync(secs(5)).await.unwrap(), 300);
    let error = watcher.wait_for_sync(std::time::Duration::ZERO).await;
    assert_eq!(error.unwrap(), 300, "what is there needs no time");
}
