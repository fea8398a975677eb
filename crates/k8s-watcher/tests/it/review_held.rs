//! Own writes under way, beside what else happens.

use k8s_fake_apiserver::Watch;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_watcher::SelfWrites;
use kube::api::{Api, PostParams};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn c49_an_object_that_cannot_be_read_does_not_end_the_wait_of_others() {
    let server = server([config_map("a", "x"), config_map("b", "x")]).await;
    let own = SelfWrites::default();
    let (builder, record) = recorded(&server, config());
    let watcher = builder.self_writes(own.clone()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    let guard = own.begin(watcher.resource(), Some("shop"), "a");
    let version = server.apply(config_map("a", "own")).unwrap();
    settle(secs(1)).await;
    let (at, deep) = (server.revision(), "[".repeat(200) + &"]".repeat(200));
    server.advance(10);
    let bad = format!(
        r#"{{"type":"MODIFIED","object":{{"metadata":{{"namespace":"shop","name":"b","resourceVersion":"{}"}},"data":{deep}}}}}"#,
        at + 1
    );
    server.faults().on(Watch::of(MAPS)).nth(1).line(bad);
    server.close_watches();
    settle(secs(3)).await;
    assert_eq!((watcher.status().skipped, record.len()), (1, 0));
    guard.answered(&version);
    settle(secs(1)).await;
    assert_eq!((record.len(), label(&watcher, "a")), (0, Some("own".into())));
}

#[tokio::test(start_paused = true)]
async fn c49_a_delete_in_a_bad_state_does_not_go_before_what_waits() {
    let server = server([config_map("a", "x")]).await;
    let own = SelfWrites::default();
    let (builder, record) = recorded(&server, config());
    let watcher = builder.self_writes(own.clone()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    let guard = own.begin(watcher.resource(), Some("shop"), "a");
    server.apply(config_map("a", "foreign")).unwrap();
    settle(secs(1)).await;
    let (at, deep) = (server.revision(), "[".repeat(200) + &"]".repeat(200));
    server.advance(10);
    let bad = format!(
        r#"{{"type":"DELETED","object":{{"metadata":{{"namespace":"shop","name":"a","resourceVersion":"{}"}},"data":{deep}}}}}"#,
        at + 1
    );
    server.faults().on(Watch::of(MAPS)).nth(1).line(bad);
    server.close_watches();
    settle(secs(3)).await;
    drop(guard);
    settle(secs(1)).await;
    assert_eq!((record.totals(), label(&watcher, "a")), ((0, 1, 1), None));
}

/// A controller that writes an object again and again, without a pause, still hears at once what others write.
#[tokio::test(start_paused = true)]
async fn c49_an_event_waits_for_the_writes_that_were_under_way_when_it_came_and_not_for_later_ones() {
    let server = server([config_map("a", "x")]).await;
    let own = SelfWrites::default();
    let (builder, record) = recorded(&server, config());
    let watcher = builder.self_writes(own.clone()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    let mut guard = own.begin(watcher.resource(), Some("shop"), "a");
    server.apply(config_map("a", "foreign")).unwrap();
    settle(secs(1)).await;
    assert_eq!(record.len(), 0);
    for n in 0..5 {
        let version = server.apply(config_map("a", &format!("own-{n}"))).unwrap();
        guard.answered(&version);
        guard = own.begin(watcher.resource(), Some("shop"), "a");
        settle(ms(100)).await;
        assert_eq!((record.totals(), label(&watcher, "a")), ((0, 1, 0), Some(format!("own-{n}"))));
    }
    drop(guard);
}

/// The answer to a replacement that changes nothing has the version that was sent; who wrote that is not said.
#[tokio::test(start_paused = true)]
async fn c49_a_replacement_that_changes_nothing_does_not_eat_the_foreign_event_that_is_on_its_way() {
    let server = server([config_map("a", "x")]).await;
    let own = SelfWrites::default();
    let (builder, record) = recorded(&server, config());
    let watcher = builder.self_writes(own.clone()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    settle(secs(1)).await;
    let api: Api<ConfigMap> = Api::namespaced(server.client(), "shop");
    let slow = server.faults().on(Watch::of(MAPS)).hold();
    server.close_watches();
    settle(secs(5)).await;
    server.apply(config_map("a", "foreign")).unwrap();
    let present = api.get("a").await.unwrap();
    let answer = own.replace(&api, "a", &PostParams::default(), &present).await.unwrap();
    assert_eq!(answer.metadata.resource_version, present.metadata.resource_version);
    slow.release();
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!(record.totals(), (0, 1, 0));
    // One that changes something is ours.
    let mut changed = present;
    changed.data.get_or_insert_default().insert("value".into(), "own".into());
    own.replace(&api, "a", &PostParams::default(), &changed).await.unwrap();
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!(record.totals(), (0, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn c49_what_waits_is_stored_and_counted_when_the_watcher_ends() {
    let server = server([config_map("a", "x")]).await;
    let own = SelfWrites::default();
    let (builder, record) = recorded(&server, config());
    let watcher = builder.self_writes(own.clone()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    let _guard = own.begin(watcher.resource(), Some("shop"), "b");
    server.apply(config_map("b", "x")).unwrap();
    settle(secs(1)).await;
    assert_eq!((watcher.store().len(), record.len()), (1, 0));
    let handle = watcher.handle().clone();
    watcher.shutdown().await;
    assert_eq!((handle.store().len(), handle.status().objects, record.totals()), (2, 2, (1, 0, 0)));
}

#[tokio::test(start_paused = true)]
async fn c49_a_list_of_one_namespace_does_not_end_the_wait_in_another() {
    let server = server([config_map("a", "x"), config_map_in("pay", "a", "x")]).await;
    let own = SelfWrites::default();
    let (builder, record) = recorded(&server, config().namespaces(["shop", "pay"]));
    let watcher = builder.self_writes(own.clone()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    settle(secs(20)).await;
    let guard = own.begin(watcher.resource(), Some("shop"), "a");
    let version = server.apply(config_map("a", "own")).unwrap();
    settle(secs(1)).await;
    server.faults().on(Watch::of(MAPS).namespace("pay")).nth(1).gone();
    server.close_watches();
    settle(secs(5)).await;
    assert_eq!((watcher.status().relists, label(&watcher, "a")), (1, Some("x".into())));
    guard.answered(&version);
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!(record.len(), 0);
}
