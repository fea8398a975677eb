//! Sync, callbacks, reads: what works when nothing goes wrong.

use std::time::Duration;

use k8s_types::Change;
use k8s_watcher::Watcher;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn load_then_live_changes() {
    let server = server([config_map("a", "x"), config_map("b", "y")]).await;
    let (record, synced) = (Record::new(), Record::new());
    let (on_change, on_sync) = (record.clone(), synced.clone());
    let watcher = Watcher::builder(server.client(), config())
        .on_change_async(move |change| {
            on_change.push(&change);
            async {}
        })
        .on_sync_complete_async(move |context, count| {
            assert_eq!(count, 2);
            assert!(context.watcher.is_synced());
            on_sync.push(&context);
            async {}
        })
        .spawn()
        .expect("a sound configuration");
    assert_eq!(watcher.wait_for_sync(LONG).await.expect("syncs"), 2);
    assert_eq!(names(&watcher), ["a", "b"]);
    settle(Duration::from_secs(1)).await;
    assert_eq!(synced.calls().len(), 1);
    assert_eq!(record.calls().len(), 0, "the load is reported by on_sync_complete alone");

    server.apply(config_map("c", "x")).expect("applies");
    server.apply(config_map("a", "z")).expect("applies");
    assert!(server.delete("v1/configmaps", Some("shop"), "b").expect("deletes"));
    eventually(&watcher, "b is gone", |s| s.by_name(Some("shop"), "b").is_none()).await;
    settle(Duration::from_secs(1)).await;
    assert_eq!(names(&watcher), ["a", "c"]);
    assert_eq!(record.totals(), (1, 1, 1));
    let snapshot = watcher.store().snapshot();
    assert_eq!(snapshot.get(["shop", "z"]).expect("two segments").len(), 1);
    assert_eq!(snapshot.get(["shop", "y"]).expect("two segments").len(), 0);
    watcher.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_begins_with_the_state_and_goes_on_with_net_changes() {
    let server = server([config_map("a", "x"), config_map("b", "y")]).await;
    let watcher = Watcher::builder(server.client(), config()).spawn().expect("a sound configuration");
    let mut changes = watcher.changes();
    let first = changes.next().await.expect("the state");
    assert!(first.is_initial);
    assert_eq!((first.changes.len(), first.stats.created), (2, 2));

    server.apply(config_map("c", "x")).expect("applies");
    server.delete("v1/configmaps", Some("shop"), "c").expect("deletes");
    server.apply(config_map("a", "1")).expect("applies");
    server.apply(config_map("a", "2")).expect("applies");
    server.delete("v1/configmaps", Some("shop"), "b").expect("deletes");
    settle(Duration::from_secs(1)).await;
    let second = changes.next().await.expect("what happened since");
    assert!(!second.is_initial);
    assert_eq!((second.stats.created, second.stats.modified, second.stats.deleted), (1, 2, 2));
    let net: Vec<_> = second.changes.iter().map(|c| (c.object().name(), c.is_deleted())).collect();
    assert_eq!(net, [("a", false), ("b", true)]);
    let Change::Modified { old, new } = &second.changes[0] else { panic!("a was modified") };
    assert_eq!((old.label("app"), new.label("app")), (Some("x"), Some("2")));

    watcher.stop();
    assert!(changes.next().await.is_none());
    watcher.join().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_many_threads_nothing_is_lost_either() {
    let server = server(many(1_000)).await;
    let record = Record::new();
    let on_change = record.clone();
    let watcher = Watcher::builder(server.client(), config().debounce(Duration::from_millis(1)))
        .on_change(move |change| on_change.push(&change))
        .spawn()
        .expect("a sound configuration");
    assert_eq!(watcher.wait_for_sync(LONG).await.expect("syncs"), 1_000);
    let mut changes = watcher.changes();
    let mut replay = Replay::default();
    replay.apply(&changes.next().await.expect("the state"));
    let writes = {
        let server = server.clone();
        tokio::spawn(async move {
            for i in 0..2_000 {
                server.apply(config_map(&format!("m{:04}", i % 1_100), &format!("{i}"))).expect("applies");
                if i % 50 == 0 {
                    tokio::task::yield_now().await;
                }
            }
        })
    };
    while replay.len() < 1_100 || label(&watcher, "m0899").as_deref() != Some("1999") {
        replay.apply(&changes.next().await.expect("the watcher lives"));
    }
    writes.await.expect("no panic");
    let handle = watcher.handle().clone();
    watcher.shutdown().await;
    while let Some(batch) = changes.next().await {
        replay.apply(&batch);
    }
    assert_eq!(stored(&handle.store().snapshot()), served(&server, MAPS));
    assert_eq!(record.totals(), (100, 1_900, 0));
    check_index(&handle.store().snapshot());
}
