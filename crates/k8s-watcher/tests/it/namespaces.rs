//! Several namespaces, one namespace, cluster-scoped kinds; rights that are missing in some of them.

use k8s_fake_apiserver::{Any, FakeApiServer, List, Status, Watch};
use k8s_types::WatcherConfig;
use k8s_watcher::{ErrorClass, Phase, SyncError, Verb, Watcher};

use crate::support::*;

async fn three() -> FakeApiServer {
    server([
        config_map_in("a", "one", "x"),
        config_map_in("b", "one", "x"),
        config_map_in("b", "two", "x"),
        config_map_in("c", "one", "x"),
    ])
    .await
}

fn places(watcher: &k8s_watcher::WatcherHandle) -> Vec<String> {
    let place = |o: &k8s_types::Object| format!("{}/{}", o.namespace().unwrap_or("-"), o.name());
    watcher.store().snapshot().list().iter().map(place).collect()
}

#[tokio::test(start_paused = true)]
async fn several_namespaces_fill_one_store_and_ask_for_nothing_else() {
    for config in [config(), paged().page_size(1)] {
        let server = three().await;
        // A name that stands twice counts once.
        let (watcher, record) = watching(&server, config.namespaces(["b", "a", "b"])).await;
        assert_eq!(watcher.status().initial_objects, Some(3));
        assert_eq!(places(&watcher), ["a/one", "b/one", "b/two"]);
        server.apply(config_map_in("c", "two", "x")).unwrap();
        server.apply(config_map_in("a", "two", "x")).unwrap();
        server.delete(MAPS, Some("b"), "one").unwrap();
        eventually(&watcher, "both changes", |s| s.get(["a"]).unwrap().len() == 2 && s.get(["b"]).unwrap().len() == 1)
            .await;
        settle(secs(60)).await;
        assert_eq!(places(&watcher), ["a/one", "a/two", "b/two"]);
        assert_eq!(record.totals(), (1, 0, 1));
        check_index(&watcher.store().snapshot());
        for request in server.journal().matching(Any::request()) {
            let namespace = request.namespace.as_deref();
            assert!(request.resource.is_empty() || matches!(namespace, Some("a" | "b")), "{request}");
        }
        assert_eq!(watcher.status().resource_version, None, "each namespace has its own");
        assert_eq!(watcher.status().phase, Phase::Watching);
    }
}

#[tokio::test(start_paused = true)]
async fn a_relist_of_one_namespace_leaves_the_others_alone() {
    let server = three().await;
    let (watcher, record) = watching(&server, paged().namespaces(["a", "b"])).await;
    settle(secs(20)).await;
    let only_a = || Watch::of(MAPS).namespace("a");
    let hold = server.faults().on(only_a()).hold();
    server.close_watches();
    settle(secs(5)).await;
    server.delete(MAPS, Some("a"), "one").unwrap();
    server.apply(config_map_in("a", "new", "x")).unwrap();
    server.compact();
    hold.release();
    settle(secs(20)).await;
    assert_eq!(places(&watcher), ["a/new", "b/one", "b/two"]);
    assert_eq!(record.totals(), (1, 0, 1));
    assert_eq!(watcher.status().relists, 1);
    assert_eq!(server.journal().count(List::of(MAPS).namespace("b").without_query("resourceVersion")), 1);
}

#[tokio::test(start_paused = true)]
async fn c31_a_cluster_scoped_kind_is_watched_once_whatever_the_namespaces() {
    let server = three().await;
    let config = WatcherConfig::new("v1/namespaces").index_by(["metadata.name"]).namespaces(["a", "b", "c"]);
    let watcher = Watcher::builder(server.client(), config).spawn().unwrap();
    let count = watcher.wait_for_sync(LONG).await.unwrap();
    assert_eq!(count, server.len("v1/namespaces").unwrap());
    assert_eq!(server.journal().count(Watch::of("v1/namespaces")), 1);
    server.apply(serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "d"}})).unwrap();
    eventually(&watcher, "d", |s| s.get(["d"]).unwrap().len() == 1).await;
    assert_eq!(watcher.store().len(), count + 1);
    assert!(watcher.status().resource_version.is_some());
}

#[tokio::test(start_paused = true)]
async fn c30_a_cluster_scoped_object_is_found_without_a_namespace_and_indexed_without_panic() {
    let node = serde_json::json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}});
    let server = server([node]).await;
    let config = WatcherConfig::new("v1/nodes").index_by(["metadata.namespace", "metadata.name"]);
    let watcher = Watcher::builder(server.client(), config).spawn().unwrap();
    assert_eq!(watcher.wait_for_sync(LONG).await.unwrap(), 1);
    let snapshot = watcher.store().snapshot();
    assert_eq!(snapshot.by_name(None, "n1").unwrap().name(), "n1");
    assert_eq!(snapshot.by_name(Some(""), "n1").map(|n| n.name()), Some("n1"));
    assert_eq!(snapshot.by_name(Some("default"), "n1").map(|n| n.name()), Some("n1"), "as the API server does");
    assert_eq!(snapshot.by_name(Some("default"), "n2"), None);
    assert_eq!(snapshot.get::<&str>([]).unwrap().len(), 1);
    assert_eq!(snapshot.get(["", "n1"]).unwrap().len(), 0, "no key without the first component");
    // No question about its scope is needed where no namespaces are given.
    assert_eq!(server.journal().count(Any::request()), 1);
}

#[tokio::test(start_paused = true)]
async fn namespaced_watch_asks_for_the_namespace_of_the_client_alone() {
    let server = fake()
        .default_namespace("b")
        .objects([config_map_in("a", "one", "x"), config_map_in("b", "one", "x")])
        .start()
        .await
        .unwrap();
    let (watcher, _) = watching(&server, config().namespaced_watch(true)).await;
    assert_eq!(places(&watcher), ["b/one"]);
    let paths: Vec<_> = server.journal().matching(Watch::of(MAPS)).iter().map(|r| r.path.clone()).collect();
    assert_eq!(paths, ["/api/v1/namespaces/b/configmaps"]);
}

#[tokio::test(start_paused = true)]
async fn one_namespace_that_fails_holds_up_the_sync_but_not_the_others() {
    let server = three().await;
    let forbid = |verb| Status::forbidden(verb, MAPS);
    let lists = server.faults().on(List::of(MAPS).namespace("b")).always().status(forbid("list"));
    let watches = server.faults().on(Watch::of(MAPS).namespace("b")).always().status(forbid("watch"));
    let (builder, record) = recorded(&server, config().namespaces(["a", "b"]));
    let watcher = builder.spawn().unwrap();
    let error = watcher.wait_for_sync(secs(10)).await.unwrap_err();
    let last = error.last_watch_error().unwrap();
    assert_eq!((last.class, last.code, last.namespace.as_deref()), (ErrorClass::Forbidden, Some(403), Some("b")));
    assert!(matches!(error, SyncError::Deadline { phase: Phase::BackingOff { .. }, .. }), "{error:?}");
    assert_eq!(places(&watcher), ["a/one"], "what is there can be read");
    server.apply(config_map_in("a", "two", "x")).unwrap();
    eventually(&watcher, "a is followed", |s| s.len() == 2).await;
    assert_eq!(watcher.status().last_contact, None, "b was never heard");
    lists.clear();
    watches.clear();
    assert_eq!(watcher.wait_for_sync(secs(31)).await.unwrap(), 4);
    settle(secs(1)).await;
    assert_eq!(record.len(), 0, "all of it was the initial load");
    assert_eq!(watcher.status().phase, Phase::Watching);
    assert!(watcher.status().last_contact.is_some());
    // One of them fails later: the status says so, the data stay.
    server.faults().on(Watch::of(MAPS).namespace("b")).always().status(forbid("watch"));
    server.close_watches();
    settle(secs(5)).await;
    assert!(matches!(watcher.status().phase, Phase::BackingOff { .. }));
    assert_eq!(watcher.last_watch_error().unwrap().namespace.as_deref(), Some("b"));
    server.apply(config_map_in("a", "three", "x")).unwrap();
    eventually(&watcher, "a is followed still", |s| s.len() == 5).await;
    assert!(watcher.is_synced());
}

#[tokio::test(start_paused = true)]
async fn c35_a_missing_right_to_list_is_in_the_error_of_the_sync_and_ends_when_it_is_granted() {
    let server = three().await;
    let forbid = |verb| Status::forbidden(verb, MAPS);
    let lists = server.faults().on(List::of(MAPS)).always().status(forbid("list"));
    let watches = server.faults().on(Watch::of(MAPS)).always().status(forbid("watch"));
    let watcher = Watcher::builder(server.client(), paged().namespace("a")).spawn().unwrap();
    let error = watcher.wait_for_sync(secs(10)).await.unwrap_err();
    let last = error.last_watch_error().unwrap();
    assert_eq!((last.verb, last.code), (Verb::List, Some(403)));
    let text = last.to_string();
    assert!(text.starts_with("cannot list v1/configmaps in namespace a: forbidden (403): "), "{text}");
    assert!(text.contains("system:serviceaccount"), "the server's own words: {text}");
    assert!(error.to_string().starts_with("v1/configmaps is not synced after 10s: waiting after "), "{error}");
    settle(secs(50)).await;
    assert!(server.journal().count(List::of(MAPS)) < 12);
    lists.clear();
    watches.clear();
    assert_eq!(watcher.wait_for_sync(secs(31)).await.unwrap(), 1);
    for request in server.journal().matching(List::of(MAPS)) {
        assert_eq!(request.path, "/api/v1/namespaces/a/configmaps");
    }
}

#[tokio::test(start_paused = true)]
async fn c35_a_missing_right_to_watch_leaves_a_listed_store_and_a_visible_error() {
    let server = three().await;
    let watches = server.faults().on(Watch::of(MAPS)).always().status(Status::forbidden("watch", MAPS));
    let watcher = Watcher::builder(server.client(), config()).spawn().unwrap();
    assert_eq!(watcher.wait_for_sync(secs(10)).await.unwrap(), 4, "a list is allowed");
    settle(secs(60)).await;
    let last = watcher.last_watch_error().unwrap();
    assert!(last.to_string().starts_with("cannot watch v1/configmaps: forbidden (403)"), "{last}");
    assert!(matches!(watcher.status().phase, Phase::BackingOff { .. }));
    server.apply(config_map_in("a", "two", "x")).unwrap();
    watches.clear();
    settle(secs(31)).await;
    same_as_served(&watcher, &server).await;
    assert_eq!(watcher.status().phase, Phase::Watching);
}

#[tokio::test(start_paused = true)]
async fn c35_a_right_that_is_taken_away_in_mid_stream_shows_and_the_store_stays() {
    let server = three().await;
    server.faults().on(Watch::of(MAPS)).nth(1).after(7).error(Status::forbidden("watch", MAPS));
    let (watcher, record) = watching(&server, config()).await;
    let refused = server.faults().on(Watch::of(MAPS)).always().status(Status::forbidden("watch", MAPS));
    for i in 0..4 {
        server.apply(config_map_in("a", "one", &i.to_string())).unwrap();
        settle(ms(10)).await;
    }
    settle(secs(20)).await;
    let last = watcher.last_watch_error().unwrap();
    assert_eq!((last.verb, last.code, last.class), (Verb::Watch, Some(403), ErrorClass::Forbidden));
    assert_eq!(watcher.store().len(), 4);
    refused.clear();
    settle(secs(31)).await;
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!(record.totals(), (0, 4, 0));
    assert_eq!(watcher.status().relists, 0);
}

#[tokio::test(start_paused = true)]
async fn who_may_not_discover_may_still_list_the_namespaces_given() {
    let server = three().await;
    let discovery = server.faults().on(Any::of("")).always().status(Status::forbidden("get", "v1/nothing"));
    let (watcher, _) = watching(&server, config().namespaces(["a", "b"])).await;
    assert_eq!(watcher.store().len(), 3);
    assert_eq!(discovery.hits(), 1);
}

#[tokio::test(start_paused = true)]
async fn c09_discovery_waits_as_long_as_the_server_asks_for() {
    let server = three().await;
    server.faults().on(Any::of("")).times(2).status(Status::too_many_requests(7));
    let watcher = Watcher::builder(server.client(), config().namespaces(["a", "b"])).spawn().unwrap();
    settle(secs(1)).await;
    assert_eq!(watcher.last_watch_error().unwrap().class, ErrorClass::Throttled);
    watcher.wait_for_sync(LONG).await.unwrap();
    let times: Vec<_> = server.journal().matching(Any::of("")).iter().map(|r| r.at).collect();
    assert_eq!(times.len(), 3);
    assert!(times.windows(2).all(|t| t[1] - t[0] >= secs(7)), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn c14_what_one_namespace_learns_of_the_server_holds_for_the_others() {
    let objects = [config_map_in("a", "one", "x"), config_map_in("b", "one", "x")];
    let server = fake().objects(objects).streaming_lists(false).start().await.unwrap();
    server.faults().on(Watch::of(MAPS).namespace("b")).nth(1).status(500);
    let (watcher, _) = watching(&server, config().namespaces(["a", "b"])).await;
    assert_eq!(watcher.store().len(), 2);
    assert_eq!(server.journal().count(Watch::request().with_query("sendInitialEvents", "true")), 2);
}
