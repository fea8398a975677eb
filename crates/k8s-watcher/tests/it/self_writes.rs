//! Echoes of our own writes: stored, not reported; anything else is.

use k8s_fake_apiserver::{FakeApiServer, Watch};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_types::Gvr;
use k8s_watcher::{RunningWatcher, SelfWrites, Watcher};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

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

/// A watcher with a registry, synced, and its changes.
async fn registered(server: &FakeApiServer) -> (RunningWatcher, Record, SelfWrites) {
    let own = SelfWrites::default();
    let (builder, record) = recorded(server, config());
    let watcher = builder.self_writes(own.clone()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    (watcher, record, own)
}

#[tokio::test(start_paused = true)]
async fn c49_after_a_restore_a_foreign_change_with_a_version_of_an_own_one_is_reported() {
    let server = server([config_map("a", "x")]).await;
    let (watcher, record, own) = registered(&server).await;
    let backup = server.object(MAPS, Some("shop"), "a").unwrap().unwrap();
    let revision = server.revision();
    let version = server.apply(config_map("a", "own")).unwrap();
    own.record(watcher.resource(), Some("shop"), "a", &version);
    same_as_served(&watcher, &server).await;
    server.advance(10);
    settle(secs(90)).await;
    server.restart_at(revision, [backup]).unwrap();
    settle(secs(400)).await;
    same_as_served(&watcher, &server).await;
    let before = record.totals();
    assert_eq!(server.apply(config_map("a", "foreign")).unwrap(), version);
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!(record.totals(), (before.0, before.1 + 1, before.2));
}

#[tokio::test(start_paused = true)]
async fn c49_an_echo_that_overtakes_the_answer_is_no_change() {
    let server = server([config_map("a", "x"), config_map("b", "x")]).await;
    let (watcher, record, own) = registered(&server).await;
    let guard = own.begin(watcher.resource(), Some("shop"), "a");
    let version = server.apply(config_map("a", "own")).unwrap();
    server.apply(config_map("b", "foreign")).unwrap();
    settle(secs(2)).await;
    // Only that object waits.
    assert_eq!((label(&watcher, "a"), label(&watcher, "b")), (Some("x".into()), Some("foreign".into())));
    guard.answered(&version);
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!(record.totals(), (0, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn c49_foreign_changes_that_waited_for_an_answer_are_reported() {
    let server = server([config_map("a", "x")]).await;
    let (watcher, record, own) = registered(&server).await;
    let guard = own.begin(watcher.resource(), Some("shop"), "a");
    server.apply(config_map("a", "before")).unwrap();
    let version = server.apply(config_map("a", "own")).unwrap();
    server.apply(config_map("a", "after")).unwrap();
    server.delete(MAPS, Some("shop"), "a").unwrap();
    server.apply(config_map("a", "again")).unwrap();
    settle(secs(2)).await;
    assert_eq!((record.len(), label(&watcher, "a")), (0, Some("x".into())));
    guard.answered(&version);
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!(record.totals(), (1, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn c49_a_write_that_fails_or_never_ends_holds_nothing_for_long() {
    let server = server([config_map("a", "x")]).await;
    let (watcher, record, own) = registered(&server).await;
    let guard = own.begin(watcher.resource(), Some("shop"), "a");
    server.apply(config_map("a", "one")).unwrap();
    settle(secs(1)).await;
    drop(guard);
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!(record.totals(), (0, 1, 0));

    let _endless = own.begin(watcher.resource(), Some("shop"), "a");
    server.apply(config_map("a", "two")).unwrap();
    settle(secs(9)).await;
    assert_eq!(label(&watcher, "a"), Some("one".into()));
    settle(secs(2)).await;
    assert_eq!((label(&watcher, "a"), record.totals()), (Some("two".into()), (0, 2, 0)));

    // What comes in masses is not held either.
    for n in 0..2_000 {
        server.apply(config_map("a", &format!("n{n}"))).unwrap();
    }
    settle(secs(1)).await;
    assert!(record.totals().1 >= 2 + 2_000 - 64, "{:?}", record.totals());
    settle(secs(11)).await;
    assert_eq!(record.totals(), (0, 2_002, 0));
}

#[tokio::test(start_paused = true)]
async fn c49_a_relist_does_not_bring_back_what_was_held() {
    let server = server([config_map("a", "x"), config_map("b", "x")]).await;
    let (watcher, record, own) = registered(&server).await;
    let guard = own.begin(watcher.resource(), Some("shop"), "a");
    let version = server.apply(config_map("a", "own")).unwrap();
    settle(secs(1)).await;
    let hold = server.faults().on(Watch::of(MAPS)).hold();
    server.close_watches();
    server.delete(MAPS, Some("shop"), "a").unwrap();
    settle(secs(5)).await;
    server.compact();
    hold.release();
    same_as_served(&watcher, &server).await;
    guard.answered(&version);
    settle(secs(30)).await;
    assert_eq!(names(&watcher), ["b"]);
    assert_eq!(record.totals().2, 1);
}

#[tokio::test(start_paused = true)]
async fn c49_writes_through_an_api_record_their_answers() {
    let server = server([config_map("foreign", "x")]).await;
    let (watcher, record, own) = registered(&server).await;
    let api: Api<ConfigMap> = Api::namespaced(server.client(), "shop");
    let (post, patch) = (PostParams::default(), PatchParams::default());
    let new = |meta: serde_json::Value| -> ConfigMap {
        serde_json::from_value(json!({"metadata": meta, "data": {"value": "1"}})).unwrap()
    };
    let created = own.create(&api, &post, &new(json!({"name": "named"}))).await.unwrap();
    let generated = own.create(&api, &post, &new(json!({"generateName": "some-"}))).await.unwrap();
    let version = created.metadata.resource_version.clone();
    own.replace(
        &api,
        "named",
        &post,
        &new(json!({"name": "named", "resourceVersion": version, "labels": {"app": "r"}})),
    )
    .await
    .unwrap();
    let merge = Patch::Merge(json!({"metadata": {"labels": {"app": "p"}}}));
    own.patch(&api, "named", &patch, &merge).await.unwrap();
    own.during(&api, "named", api.patch("named", &patch, &Patch::Merge(json!({"data": {"value": "2"}}))))
        .await
        .unwrap();
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!((record.totals(), label(&watcher, "named")), ((0, 0, 0), Some("p".into())));
    assert!(watcher.store().by_name(Some("shop"), generated.metadata.name.as_deref().unwrap()).is_some());
    assert_eq!(own.len(), 5);

    // A write that fails records nothing; a patch that changes nothing does no harm.
    own.create(&api, &post, &created).await.unwrap_err();
    own.patch(&api, "named", &patch, &merge).await.unwrap();
    let foreign = Patch::Merge(json!({"metadata": {"labels": {"app": "foreign"}}}));
    api.patch("named", &patch, &foreign).await.unwrap();
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!(record.totals(), (0, 1, 0));

    // The answer to this delete does not say its version: reported. One that waits for a finalizer is an update.
    assert!(own.delete(&api, "foreign", &DeleteParams::default()).await.unwrap().is_none());
    let with_finalizer = json!({"metadata": {"finalizers": ["example.test/hold"]}});
    own.patch(&api, "named", &patch, &Patch::Merge(with_finalizer)).await.unwrap();
    assert!(own.delete(&api, "named", &DeleteParams::default()).await.unwrap().is_some());
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!(record.totals(), (0, 1, 1));
}

/// Own writes whose answers come early, late or never, between foreign ones, over connections that break: what is
/// reported is exactly what is not known to be ours.
#[tokio::test(start_paused = true)]
async fn c49_random_writes_are_reported_exactly_when_they_are_foreign() {
    let seed: u64 = std::env::var("K8S_WATCHER_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    for seed in seed..seed + 40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let names = ["a", "b", "c"];
        let server = server(names.map(|name| config_map(name, "x"))).await;
        let (watcher, record, own) = registered(&server).await;
        let mut reported = 0;
        let mut in_flight = vec![];
        for step in 0..120 {
            let name = names[random.usize(0..names.len())];
            let write = || server.apply(config_map(name, &format!("{seed}-{step}"))).unwrap();
            match random.u8(0..10) {
                0..3 => {
                    write();
                    reported += 1;
                }
                3..6 => {
                    let guard = own.begin(watcher.resource(), Some("shop"), name);
                    let version = write();
                    in_flight.push((guard, version));
                }
                6 => {
                    let guard = own.begin(watcher.resource(), Some("shop"), name);
                    write();
                    settle(ms(random.u64(0..100))).await;
                    drop(guard);
                    reported += 1;
                }
                7 if !in_flight.is_empty() => {
                    let (guard, version) = in_flight.swap_remove(random.usize(0..in_flight.len()));
                    guard.answered(&version);
                }
                8 => server.close_watches(),
                _ => settle(ms(random.u64(0..300))).await,
            }
        }
        for (guard, version) in in_flight {
            guard.answered(&version);
        }
        same_as_served(&watcher, &server).await;
        settle(secs(30)).await;
        assert_eq!(watcher.status().relists, 0, "seed {seed}");
        assert_eq!(record.totals(), (0, reported, 0), "seed {seed}");
    }
}
