//! Echoes of our own writes: stored, not reported; anything else is.

use k8s_fake_apiserver::Watch;
use k8s_types::Gvr;
use k8s_watcher::{SelfWrites, Watcher};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn c49_an_echo_refreshes_the_store_and_is_no_change_a_foreign_write_is() {
    let server = server([config_map("a", "x")]).await;
    let own = SelfWrites::default();
    let (builder, record) = recorded(&server, config());
    let watcher = builder.self_writes(own.clone()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    let maps: Gvr = MAPS.parse().unwrap();
    let mut changes = watcher.changes();
    changes.next().await.unwrap();

    let version = server.apply(config_map("a", "own")).unwrap();
    own.record(&maps, Some("shop"), "a", &version);
    same_as_served(&watcher, &server).await;
    assert_eq!(watcher.store().get(["shop", "own"]).unwrap().len(), 1);
    let created = server.apply(config_map("mine", "x")).unwrap();
    own.record(&maps, Some("shop"), "mine", &created);
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!((record.len(), changes.backlog()), (0, 0));

    // Records of other kinds, names and namespaces hide nothing.
    let foreign = server.apply(config_map("a", "foreign")).unwrap();
    own.record(&"v1/secrets".parse().unwrap(), Some("shop"), "a", &foreign);
    own.record(&maps, Some("shop"), "b", &foreign);
    own.record(&maps, Some("pay"), "a", &foreign);
    own.record(&maps, Some("shop"), "a", "");
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!(record.totals(), (0, 1, 0));

    // A write that changed nothing is answered with the version before; that hides no later event.
    own.record(&maps, Some("shop"), "a", &foreign);
    server.apply(config_map("a", "later")).unwrap();
    settle(secs(1)).await;
    assert_eq!(record.totals(), (0, 2, 0));

    // Our own delete.
    server.delete(MAPS, Some("shop"), "a").unwrap();
    own.record(&maps, Some("shop"), "a", &server.revision().to_string());
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!(record.totals(), (0, 2, 0));
}

#[tokio::test(start_paused = true)]
async fn c49_what_a_relist_finds_is_reported_own_or_not() {
    for config in [config(), paged()] {
        let server = server([config_map("a", "x"), config_map("b", "x")]).await;
        let own = SelfWrites::default();
        let (builder, record) = recorded(&server, config);
        let watcher = builder.self_writes(own.clone()).spawn().unwrap();
        watcher.wait_for_sync(LONG).await.unwrap();
        settle(secs(20)).await;
        let hold = server.faults().on(Watch::of(MAPS)).hold();
        server.close_watches();
        settle(secs(5)).await;
        let version = server.apply(config_map("a", "own")).unwrap();
        own.record(watcher.resource(), Some("shop"), "a", &version);
        server.compact();
        hold.release();
        same_as_served(&watcher, &server).await;
        settle(secs(30)).await;
        assert_eq!(watcher.status().relists, 1);
        assert_eq!(record.totals(), (0, 1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn c49_one_write_is_recognised_by_every_watcher() {
    let server = server([config_map("a", "x")]).await;
    let own = SelfWrites::default();
    let start = || {
        let (builder, record) = recorded(&server, config());
        (builder.self_writes(own.clone()).spawn().unwrap(), record)
    };
    let ((first, one), (second, two)) = (start(), start());
    for watcher in [&first, &second] {
        watcher.wait_for_sync(LONG).await.unwrap();
    }
    let version = server.apply(config_map("a", "own")).unwrap();
    own.record(first.resource(), Some("shop"), "a", &version);
    for watcher in [&first, &second] {
        same_as_served(watcher, &server).await;
    }
    settle(secs(1)).await;
    assert_eq!((one.len(), two.len()), (0, 0));
    let nobody = Watcher::builder(server.client(), config()).spawn().unwrap();
    nobody.wait_for_sync(LONG).await.unwrap();
    assert_eq!(own.len(), 1);
}
