//! `changes()`: several readers, late, slow and dropped ones; what a batch says and what it does not.

use std::pin::Pin;

use k8s_types::Change;
use k8s_watcher::{Batch, Changes, SelfWrites, Watcher};

use crate::support::*;

/// Batches as `+a ~b -c`.
fn short(batch: &Batch) -> String {
    let words = batch.changes.iter().map(|change| match change {
        Change::Created(o) => format!("+{}", o.name()),
        Change::Modified { new, .. } => format!("~{}", new.name()),
        Change::Deleted(o) => format!("-{}", o.name()),
    });
    words.collect::<Vec<_>>().join(" ")
}

async fn next(changes: &mut Changes) -> Batch {
    tokio::time::timeout(secs(5), changes.next()).await.expect("something is new").expect("the watcher lives")
}

#[tokio::test(start_paused = true)]
async fn c39_every_subscriber_hears_of_everything_deletes_included() {
    let server = server(many(2)).await;
    let (watcher, record) = watching(&server, config()).await;
    let (mut first, mut second) = (watcher.changes(), watcher.changes());
    let story = [("+", "a"), ("~", "a"), ("-", "a"), ("+", "a")];
    for changes in [&mut first, &mut second] {
        assert_eq!(short(&next(changes).await), "+m0000 +m0001");
    }
    for (i, (what, name)) in story.into_iter().enumerate() {
        if what == "-" {
            server.delete(MAPS, Some("shop"), name).unwrap();
        } else {
            server.apply(config_map(name, &i.to_string())).unwrap();
        }
        for changes in [&mut first, &mut second] {
            assert_eq!(short(&next(changes).await), format!("{what}{name}"));
        }
    }
    settle(secs(1)).await;
    assert_eq!(record.totals(), (2, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_bigger_batches_and_a_late_one_the_present_state() {
    let server = server(many(10)).await;
    let (watcher, _) = watching(&server, config()).await;
    let mut slow = watcher.changes();
    let mut replay = Replay::default();
    replay.apply(&next(&mut slow).await);
    for i in 0..300 {
        server.apply(config_map(&format!("m{:04}", i % 10), &i.to_string())).unwrap();
        if i % 10 == 0 {
            settle(ms(1)).await;
        }
    }
    server.delete(MAPS, Some("shop"), "m0003").unwrap();
    server.apply(config_map("new", "x")).unwrap();
    same_as_served(&watcher, &server).await;
    assert_eq!(slow.backlog(), 11, "one entry for an object");
    let mut late = watcher.changes();
    let state = next(&mut late).await;
    assert!(state.is_initial);
    assert_eq!((state.changes.len(), state.stats.created, state.stats.total()), (10, 10, 10));
    let batch = next(&mut slow).await;
    assert_eq!(short(&batch), "~m0000 ~m0001 ~m0002 -m0003 ~m0004 ~m0005 ~m0006 ~m0007 ~m0008 ~m0009 +new");
    assert_eq!((batch.stats.created, batch.stats.modified, batch.stats.deleted), (1, 300, 1));
    replay.apply(&batch);
    assert_eq!((slow.backlog(), late.backlog()), (0, 0));
    let nothing = tokio::time::timeout(secs(60), slow.next()).await;
    assert!(nothing.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_batch_has_the_last_state_of_what_was_deleted() {
    let server = server([config_map("a", "x")]).await;
    let (watcher, _) = watching(&server, config()).await;
    let mut changes = watcher.changes();
    next(&mut changes).await;
    server.apply(config_map("a", "last")).unwrap();
    server.delete(MAPS, Some("shop"), "a").unwrap();
    settle(secs(1)).await;
    let batch = next(&mut changes).await;
    let [Change::Deleted(last)] = &batch.changes[..] else { panic!("{batch:?}") };
    assert_eq!(last.label("app"), Some("last"));
}

#[tokio::test(start_paused = true)]
async fn what_came_and_went_is_counted_and_not_listed() {
    let server = server([config_map("a", "x")]).await;
    let (watcher, _) = watching(&server, config()).await;
    let mut changes = watcher.changes();
    let first = next(&mut changes).await;
    server.apply(config_map("b", "x")).unwrap();
    server.delete(MAPS, Some("shop"), "b").unwrap();
    settle(secs(1)).await;
    assert_eq!(changes.backlog(), 0);
    let batch = next(&mut changes).await;
    assert_eq!((batch.changes.len(), batch.stats.created, batch.stats.deleted), (0, 1, 1));
    // What is again as the reader knows it is no difference, though it was changed twice.
    server.apply(config_map("a", "y")).unwrap();
    server.apply(config_map("a", "x")).unwrap();
    settle(secs(1)).await;
    let batch = next(&mut changes).await;
    assert_eq!((batch.changes.len(), batch.stats.modified), (0, 2));
    let now = batch.snapshot.by_name(Some("shop"), "a").unwrap();
    assert!(now.same_content(first.snapshot.by_name(Some("shop"), "a").unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_recreated_object_has_two_entries_the_delete_first() {
    let server = server([config_map("a", "x"), config_map("b", "x")]).await;
    let (watcher, _) = watching(&server, config()).await;
    let mut changes = watcher.changes();
    let mut replay = Replay::default();
    replay.apply(&next(&mut changes).await);
    for _ in 0..3 {
        server.delete(MAPS, Some("shop"), "a").unwrap();
        server.apply(config_map("a", "x")).unwrap();
    }
    server.apply(config_map("b", "y")).unwrap();
    settle(secs(1)).await;
    let batch = next(&mut changes).await;
    assert_eq!(short(&batch), "-a +a ~b");
    replay.apply(&batch);
    assert_eq!((batch.stats.created, batch.stats.modified, batch.stats.deleted), (3, 1, 3));
}

#[tokio::test(start_paused = true)]
async fn a_batch_agrees_with_its_snapshot_also_when_own_writes_lie_between() {
    let server = server([config_map("a", "x"), config_map("b", "x")]).await;
    let own = SelfWrites::default();
    let watcher = Watcher::builder(server.client(), config()).self_writes(own.clone()).spawn().unwrap();
    let mut changes = watcher.changes();
    next(&mut changes).await;
    for name in ["a", "b"] {
        server.apply(config_map(name, "foreign")).unwrap();
    }
    let gvr = watcher.resource().clone();
    let version = server.apply(config_map("a", "own")).unwrap();
    own.record(&gvr, Some("shop"), "a", &version);
    server.delete(MAPS, Some("shop"), "b").unwrap();
    own.record(&gvr, Some("shop"), "b", &server.revision().to_string());
    settle(secs(1)).await;
    let batch = next(&mut changes).await;
    assert_eq!(batch.stats.total(), 2, "own writes are not counted");
    for change in &batch.changes {
        let now = batch.snapshot.by_name(Some("shop"), change.object().name());
        match change {
            Change::Deleted(_) => assert!(now.is_none()),
            change => assert_eq!(change.object(), now.unwrap()),
        }
    }
    assert_eq!(short(&batch), "~a -b");
}

#[tokio::test(start_paused = true)]
async fn the_stream_ends_with_the_watcher_after_the_last_batch() {
    let server = server(many(2)).await;
    let (watcher, _) = watching(&server, config()).await;
    let mut changes = watcher.changes();
    let mut unread = watcher.changes();
    next(&mut changes).await;
    server.apply(config_map("a", "x")).unwrap();
    eventually(&watcher, "a", |s| s.len() == 3).await;
    let handle = watcher.handle().clone();
    watcher.shutdown().await;
    assert_eq!(short(&changes.next().await.unwrap()), "+a");
    assert!(changes.next().await.is_none() && changes.next().await.is_none());
    assert_eq!(unread.next().await.unwrap().changes.len(), 3);
    assert!(unread.next().await.is_none());
    // A subscription after the end has the last state, and nothing after it.
    let mut after = handle.changes();
    assert_eq!(after.next().await.unwrap().changes.len(), 3);
    assert!(after.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_never_synced_gives_its_subscribers_nothing() {
    let server = server(many(2)).await;
    server.faults().on(k8s_fake_apiserver::Any::request()).always().status(500);
    let watcher = Watcher::builder(server.client(), config()).build().unwrap();
    let mut early = watcher.changes();
    let watcher = watcher.spawn();
    assert!(tokio::time::timeout(secs(60), early.next()).await.is_err());
    drop(watcher);
    assert!(early.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn dropped_subscriptions_and_dropped_waits_lose_nothing_for_others() {
    let server = server(many(2)).await;
    let (watcher, _) = watching(&server, config()).await;
    let mut changes = watcher.changes();
    next(&mut changes).await;
    let dropped = watcher.changes();
    for i in 0..5 {
        // A wait that is given up takes nothing with it.
        assert!(tokio::time::timeout(ms(5), changes.next()).await.is_err());
        server.apply(config_map("a", &i.to_string())).unwrap();
        let stream: Pin<&mut Changes> = Pin::new(&mut changes);
        let mut stream = Some(stream);
        let batch = std::future::poll_fn(|cx| {
            let stream = stream.as_mut().expect("polled until it is ready");
            futures_core::Stream::poll_next(stream.as_mut(), cx)
        });
        assert_eq!(batch.await.unwrap().stats.total(), 1);
        stream.take();
    }
    drop(dropped);
    server.apply(config_map("a", "last")).unwrap();
    assert_eq!(short(&next(&mut changes).await), "~a");
}

#[tokio::test(start_paused = true)]
async fn subscribers_during_the_load_get_it_in_one_batch() {
    let server = server(many(500)).await;
    let last = server.faults().on(k8s_fake_apiserver::List::of(MAPS)).skip(4).hold();
    let watcher = Watcher::builder(server.client(), paged().page_size(100)).spawn().unwrap();
    let mut first = watcher.changes();
    last.wait_for(1).await;
    let mut second = watcher.changes();
    assert!(tokio::time::timeout(secs(5), first.next()).await.is_err(), "not before the load is complete");
    assert_eq!(watcher.store().len(), 400);
    last.release();
    for changes in [&mut first, &mut second] {
        let batch = next(changes).await;
        assert_eq!((batch.changes.len(), batch.is_initial), (500, true));
    }
}

#[tokio::test(start_paused = true)]
async fn endless_new_values_do_not_leave_old_states_with_those_who_read_nothing() {
    let server = server(many(3)).await;
    let (watcher, _) = watching(&server, config()).await;
    let mut changes = watcher.changes();
    next(&mut changes).await;
    let version = || watcher.store().snapshot().version();
    let (mut before, mut compacted) = (version(), false);
    for i in 0..3_000 {
        // A value that two objects have is shared.
        for name in ["m0000", "m0001"] {
            let mut object = config_map(name, "x");
            let labels = (0..20).map(|j| (format!("k{i}-{j}"), serde_json::Value::from(format!("value{i}-{j}"))));
            object["metadata"]["labels"] = labels.collect();
            server.apply(object).unwrap();
        }
        settle(ms(1)).await;
        // One commit for the changes; more are the housekeeping, which frees what nobody needs any more.
        compacted |= version() > before + 1;
        before = version();
        if compacted {
            break;
        }
    }
    assert!(compacted, "there was nothing to tidy up");
    assert_eq!(next(&mut changes).await.snapshot.version(), version(), "the batch holds the tidy state");
    drop(watcher);
}
