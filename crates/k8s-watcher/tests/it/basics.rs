//! Sync, callbacks, reads: what works when nothing goes wrong.

use std::time::Duration;

use k8s_types::Change;
use k8s_watcher::Watcher;

use crate::support::{LONG, Record, config, config_map, eventually, names, server, settle};

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
