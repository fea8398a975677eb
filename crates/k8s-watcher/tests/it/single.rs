//! The watcher over one named object.

use k8s_fake_apiserver::{FakeApiServer, List, Watch};
use k8s_types::{Object, SingleWatcherConfig, SingleWatcherConfig as Config};
use k8s_watcher::{RunningSingleWatcher, SingleWatcher, SingleWatcherBuilder, SyncError};
use serde_json::{Value, json};

use crate::support::*;

const SECRETS: &str = "v1/secrets";

fn secret(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "shop", "name": name},
        "data": {"token": value}
    })
}

fn token(object: &Object) -> String {
    let token: k8s_packed::Path = "data.token".parse().unwrap();
    object.get(&token).and_then(|v| v.as_str()).unwrap_or("-").to_owned()
}

/// A builder that writes down what it is told: the token, `gone`, or `synced …`.
fn told(server: &FakeApiServer, config: SingleWatcherConfig) -> (SingleWatcherBuilder, Story) {
    let story = Story::default();
    let (synced, changed) = (story.clone(), story.clone());
    let text = |object: Option<Object>| object.map_or("gone".to_owned(), |o| token(&o));
    let builder = SingleWatcher::builder(server.client(), config)
        .on_sync_complete_async(move |object| {
            synced.tell(format!("synced {}", text(object)));
            async {}
        })
        .on_change_async(move |object| {
            changed.tell(text(object));
            async {}
        });
    (builder, story)
}

async fn watching_secret(server: &FakeApiServer) -> (RunningSingleWatcher, Story) {
    let (builder, story) = told(server, Config::new(SECRETS, "shop", "a"));
    let watcher = builder.spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    settle(ms(100)).await;
    (watcher, story)
}

/// Each change by itself, so that none is merged with the next.
async fn change(server: &FakeApiServer, object: Value) {
    server.apply(object).unwrap();
    settle(ms(500)).await;
}

async fn delete(server: &FakeApiServer, resource: &str, namespace: Option<&str>, name: &str) {
    server.delete(resource, namespace, name).unwrap();
    settle(ms(500)).await;
}

#[tokio::test(start_paused = true)]
async fn c27_a_restore_with_raised_versions_takes_the_object_back() {
    let server = fake().revision(1_200).start().await.unwrap();
    server.restart_at(1_200, [at(1_150, secret("a", "lost"))]).unwrap();
    let (watcher, story) = watching_secret(&server).await;
    server.restart_at(1_000_000, [at(950, secret("a", "backup"))]).unwrap();
    settle(secs(30)).await;
    assert_eq!(story.all(), ["synced lost", "backup"]);
    assert_eq!(token(&watcher.object().unwrap()), "backup");
    change(&server, secret("a", "later")).await;
    assert_eq!(story.all(), ["synced lost", "backup", "later"]);
}

#[tokio::test(start_paused = true)]
async fn c29_a_secret_without_a_generation_tells_each_update_delete_and_recreation() {
    let server = server([secret("a", "1"), secret("b", "other")]).await;
    for skip in [false, true] {
        let config = Config::new(SECRETS, "shop", "a").skip_status_updates(skip);
        let (builder, story) = told(&server, config);
        let watcher = builder.spawn().unwrap();
        let present = watcher.wait_for_sync(LONG).await.unwrap().unwrap();
        assert_eq!(token(&present), "1");
        settle(ms(100)).await;
        change(&server, secret("a", "2")).await;
        change(&server, secret("a", "3")).await;
        change(&server, secret("b", "more")).await;
        delete(&server, SECRETS, Some("shop"), "a").await;
        change(&server, secret("a", "1")).await;
        assert_eq!(story.all(), ["synced 1", "2", "3", "gone", "1"]);
        assert_eq!(watcher.object().map(|o| token(&o)), Some("1".into()));
        watcher.shutdown().await;
    }
}

fn deployment(generation: i64, replicas: i64, ready: i64, label: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": "shop", "name": "web", "generation": generation, "labels": {"app": label}},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        },
        "status": {"readyReplicas": ready}
    })
}

#[tokio::test(start_paused = true)]
async fn c29_status_updates_of_a_deployment_are_skipped_on_request_and_nothing_else() {
    for (skip, expected) in [(true, 3), (false, 4)] {
        let server = server([deployment(1, 1, 0, "web")]).await;
        let story = Story::default();
        let tell = story.clone();
        let config = Config::new("apps/v1/deployments", "shop", "web").skip_status_updates(skip);
        let watcher = SingleWatcher::builder(server.client(), config)
            .on_change_async(move |object: Option<Object>| {
                tell.tell(object.map_or("gone".into(), |o| format!("{:?} {:?}", o.generation(), o.label("app"))));
                async {}
            })
            .spawn()
            .unwrap();
        watcher.wait_for_sync(LONG).await.unwrap();
        change(&server, deployment(1, 1, 1, "web")).await; // the status alone
        assert_eq!(watcher.object().and_then(|o| o.get(&"status.readyReplicas".parse().unwrap())?.as_i64()), Some(1));
        change(&server, deployment(1, 1, 1, "other")).await; // a label
        change(&server, deployment(2, 3, 1, "other")).await; // the specification
        delete(&server, "apps/v1/deployments", Some("shop"), "web").await;
        assert_eq!(story.all().len(), expected, "{:?}", story.all());
        assert_eq!(story.all().last().map(String::as_str), Some("gone"));
    }
}

#[tokio::test(start_paused = true)]
async fn c37_an_object_that_does_not_exist_is_synced_as_none() {
    let server = server([secret("b", "other")]).await;
    let (watcher, story) = watching_secret(&server).await;
    assert_eq!(story.all(), ["synced gone"]);
    assert_eq!(watcher.wait_for_sync(LONG).await.unwrap(), None);
    change(&server, secret("a", "1")).await;
    assert_eq!(story.all(), ["synced gone", "1"]);
    // Deleted while nobody watches, found by the list after it.
    let hold = server.faults().on(Watch::of(SECRETS)).hold();
    server.close_watches();
    settle(secs(5)).await;
    server.delete(SECRETS, Some("shop"), "a").unwrap();
    server.compact();
    hold.release();
    settle(secs(60)).await;
    assert_eq!(story.all(), ["synced gone", "1", "gone"]);
    assert_eq!(watcher.status().relists, 1);
}

#[tokio::test(start_paused = true)]
async fn c37_a_gap_with_another_uid_is_a_delete_and_a_create() {
    let server = server([secret("a", "1")]).await;
    let (_watcher, story) = watching_secret(&server).await;
    let hold = server.faults().on(Watch::of(SECRETS)).hold();
    server.close_watches();
    settle(secs(5)).await;
    server.delete(SECRETS, Some("shop"), "a").unwrap();
    server.apply(secret("a", "1")).unwrap();
    server.compact();
    hold.release();
    settle(secs(60)).await;
    assert_eq!(story.all(), ["synced 1", "gone", "1"]);
}

#[tokio::test(start_paused = true)]
async fn every_request_asks_for_the_name_alone() {
    let server = server([secret("a", "1")]).await;
    let (watcher, _) = watching_secret(&server).await;
    server.close_watches();
    settle(secs(60)).await;
    server.compact();
    watcher.relist();
    settle(secs(60)).await;
    let requests = server.journal().requests();
    let asked: Vec<_> = requests.iter().filter(|r| r.path.ends_with("/secrets")).collect();
    assert!(asked.len() >= 3, "{asked:?}");
    for request in asked {
        assert_eq!(request.query("fieldSelector"), Some("metadata.name=a"), "{request:?}");
        assert!(request.path.contains("/namespaces/shop/"), "{request:?}");
    }
    // Nothing else is read but what the server serves.
    assert!(requests.iter().all(|r| r.path.ends_with("/secrets") || r.path == "/api/v1"), "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn c30_a_kind_of_the_cluster_with_and_without_a_namespace() {
    let node =
        |label: &str| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"app": label}}});
    let server = server([node("x")]).await;
    for config in [Config::cluster_scoped("v1/nodes", "n1"), Config::new("v1/nodes", "default", "n1")] {
        let (builder, story) = told(&server, config);
        let watcher = builder.spawn().unwrap();
        assert!(watcher.wait_for_sync(LONG).await.unwrap().is_some());
        settle(ms(100)).await;
        change(&server, node("y")).await;
        change(&server, node("x")).await;
        assert_eq!(story.all().len(), 3);
    }
    // The other way round it would be any namespace's object: refused, with what is missing.
    let config = Config::cluster_scoped(SECRETS, "a");
    let watcher = SingleWatcher::builder(server.client(), config).spawn().unwrap();
    let error = watcher.wait_for_sync(secs(30)).await.unwrap_err();
    let last = error.last_watch_error().unwrap().to_string();
    assert!(last.contains("the kind is namespaced and no namespace was given"), "{last}");
    assert_eq!(server.journal().count(List::of(SECRETS)), 0);
}

#[tokio::test(start_paused = true)]
async fn while_a_callback_runs_the_latest_wins_and_a_delete_is_kept() {
    let server = server([secret("a", "1")]).await;
    let story = Story::default();
    let tell = story.clone();
    let watcher = SingleWatcher::builder(server.client(), Config::new(SECRETS, "shop", "a"))
        .on_change_async(move |object: Option<Object>| {
            let tell = tell.clone();
            async move {
                tell.tell(object.map_or("gone".to_owned(), |o| token(&o)));
                tokio::time::sleep(secs(10)).await;
            }
        })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    change(&server, secret("a", "2")).await;
    change(&server, secret("a", "3")).await;
    change(&server, secret("a", "4")).await;
    settle(secs(10)).await;
    delete(&server, SECRETS, Some("shop"), "a").await;
    change(&server, secret("a", "5")).await;
    change(&server, secret("a", "6")).await;
    assert_eq!(watcher.object().map(|o| token(&o)), Some("6".into()));
    settle(secs(60)).await;
    assert_eq!(story.all(), ["2", "4", "gone", "6"]);
}

#[tokio::test(start_paused = true)]
async fn errors_and_panics_of_callbacks_leave_the_watcher_alive() {
    let server = server([secret("a", "1")]).await;
    let story = Story::default();
    let tell = story.clone();
    let watcher = SingleWatcher::builder(server.client(), Config::new(SECRETS, "shop", "a"))
        .on_change(move |object: Option<Object>| {
            let text = object.map_or("gone".to_owned(), |o| token(&o));
            tell.tell(&text);
            assert_ne!(text, "panic");
            if text == "error" { Err("refused") } else { Ok(()) }
        })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    for text in ["error", "panic", "fine"] {
        change(&server, secret("a", text)).await;
        // A blocking callback runs on a thread of its own, which paused time does not wait for.
        for _ in 0..1_000 {
            if story.all().last().map(String::as_str) == Some(text) {
                break;
            }
            tokio::task::yield_now().await;
            std::thread::yield_now();
        }
    }
    settle(secs(1)).await;
    assert_eq!(story.all(), ["error", "panic", "fine"]);
    assert_eq!(watcher.status().callback_panics, 1);
}

#[tokio::test(start_paused = true)]
async fn start_and_stop() {
    let server = server([secret("a", "1")]).await;
    server.faults().on(Watch::of(SECRETS)).times(2).status(503);
    let (builder, story) = told(&server, Config::new(SECRETS, "shop", "a"));
    let watcher = builder.build().unwrap();
    let handle = watcher.handle().clone();
    assert!(!handle.is_started() && !handle.is_synced() && server.journal().requests().is_empty());
    let watcher = watcher.spawn();
    watcher.wait_for_sync(LONG).await.unwrap();
    assert!(handle.is_started() && handle.is_synced() && handle.last_event_time().is_none());
    assert!(handle.last_watch_error().is_some_and(|e| e.code == Some(503)), "kept after recovery");
    change(&server, secret("a", "2")).await;
    assert!(handle.last_event_time().is_some());
    handle.stop();
    handle.stop();
    watcher.join().await;
    assert!(handle.is_stopped() && handle.is_started());
    assert_eq!(story.all(), ["synced 1", "2"]);

    let (builder, story) = told(&server, Config::new(SECRETS, "shop", "a"));
    server.faults().on(Watch::of(SECRETS)).always().hang();
    let watcher = builder.spawn().unwrap();
    let handle = watcher.handle().clone();
    assert!(matches!(handle.wait_for_sync(secs(5)).await, Err(SyncError::Deadline { .. })));
    watcher.shutdown().await;
    assert!(matches!(handle.wait_for_sync(secs(5)).await, Err(SyncError::Stopped { .. })));
    assert!(story.all().is_empty(), "{:?}", story.all());
}

#[tokio::test(start_paused = true)]
async fn bad_configurations_name_the_field() {
    let server = server([]).await;
    let check = |config: SingleWatcherConfig, expected: &str| {
        let error = SingleWatcher::builder(server.client(), config).build().unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    };
    check(Config::new("", "shop", "a"), "resource: ");
    check(Config::new(SECRETS, "", "a"), "namespace: ");
    check(Config::new(SECRETS, "shop", ""), "name: ");
    check(Config::new(SECRETS, "shop", "a/b"), "name: ");
    check(Config::new(SECRETS, "shop", "a").ignore_fields(["metadata.uid"]), "ignore_fields[0]: ");
}
