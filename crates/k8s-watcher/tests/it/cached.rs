//! The cached store behind a watcher: what is asked of the server, and when.

use k8s_fake_apiserver::{FakeApiServer, Get, List, Watch};
use k8s_store::{CacheConfig, CachedStore, Error};
use k8s_types::{ListMode, Object};
use k8s_watcher::{RunningWatcher, Watcher};
use serde_json::{Value, json};

use crate::support::*;

const SECRETS: &str = "v1/secrets";

fn secret(name: &str, team: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"namespace": "shop", "name": name, "labels": {"team": team}}, "data": {"token": value}
    })
}

fn by_team() -> WatcherConfig {
    WatcherConfig::new(SECRETS).index_by(["metadata.namespace", "metadata.labels.team"]).debounce(ms(0))
}

async fn cached(server: &FakeApiServer, config: WatcherConfig) -> RunningWatcher<CachedStore> {
    let watcher = Watcher::builder(server.client(), config).cached(CacheConfig::default()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    watcher
}

fn tokens(objects: &[Object]) -> Vec<String> {
    let path: k8s_packed::Path = "data.token".parse().unwrap();
    let token = |o: &Object| o.get(&path).and_then(|v| v.as_str()).unwrap_or("-").to_owned();
    objects.iter().map(token).collect()
}

/// The token of the object `a`, if it is there.
async fn read(watcher: &RunningWatcher<CachedStore>) -> Vec<String> {
    tokens(watcher.store().by_name(Some("shop"), "a").await.unwrap().as_slice())
}

fn gets(server: &FakeApiServer) -> usize {
    server.journal().count(Get::of(SECRETS))
}

#[tokio::test(start_paused = true)]
async fn objects_are_fetched_when_they_are_read_and_then_remembered() {
    let server = server([secret("a", "one", "1"), secret("b", "one", "2"), secret("c", "two", "3")]).await;
    let watcher = cached(&server, by_team()).await;
    assert_eq!((gets(&server), watcher.store().len()), (0, 3));
    // References have identity and keys, and nothing of the content.
    let stub = watcher.snapshot().by_name(Some("shop"), "a").cloned().unwrap();
    assert_eq!((stub.label("team"), tokens(std::slice::from_ref(&stub))), (Some("one"), vec!["-".into()]));

    assert_eq!(tokens(&watcher.store().get(["shop", "one"]).await.unwrap()), ["1", "2"]);
    assert_eq!(gets(&server), 2);
    assert_eq!(tokens(&watcher.store().get(["shop", "one"]).await.unwrap()), ["1", "2"]);
    assert_eq!(tokens(&watcher.store().list().await.unwrap()), ["1", "2", "3"]);
    assert_eq!(gets(&server), 3);
    assert_eq!(watcher.store().get(["shop", "none"]).await.unwrap(), []);
    // Only metadata was watched, and whole objects were read.
    let journal = server.journal();
    for request in journal.matching(List::of(SECRETS)).iter().chain(&journal.matching(Watch::of(SECRETS))) {
        assert!(request.accept.contains("as=PartialObjectMetadata"), "{request:?}");
    }
    assert!(journal.matching(Get::of(SECRETS)).iter().all(|r| r.accept == "application/json"));
}

#[tokio::test(start_paused = true)]
async fn a_change_ends_what_is_cached_and_is_told_though_the_content_is_not_kept() {
    let server = server([secret("a", "one", "1")]).await;
    let calls = Story::default();
    let tell = calls.clone();
    let watcher = Watcher::builder(server.client(), by_team())
        .cached(CacheConfig::default())
        .on_change_async(move |change| {
            let tell = tell.clone();
            async move {
                let now = change.watcher.store().list().await.map(|objects| tokens(&objects));
                tell.tell(format!("{} {now:?}", change.stats));
            }
        })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    assert_eq!(tokens(&watcher.store().list().await.unwrap()), ["1"]);
    server.apply(secret("a", "one", "2")).unwrap();
    settle(secs(1)).await;
    assert_eq!(tokens(&watcher.store().list().await.unwrap()), ["2"]);
    server.apply(secret("a", "two", "3")).unwrap();
    server.delete(SECRETS, Some("shop"), "a").unwrap();
    settle(secs(1)).await;
    assert_eq!(watcher.store().list().await.unwrap(), []);
    // A name that the references do not have is asked for once: it might have been created just now.
    let before = gets(&server);
    for _ in 0..10 {
        assert_eq!(watcher.store().by_name(Some("shop"), "a").await.unwrap(), None);
    }
    assert_eq!(gets(&server), before + 1);
    assert!(calls.all()[0].ends_with("Ok([\"2\"])"), "{:?}", calls.all());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changed_in_a_gap_is_fetched_again() {
    for restored in [false, true] {
        let server = server([secret("a", "one", "1"), secret("b", "one", "2")]).await;
        let watcher = cached(&server, by_team()).await;
        assert_eq!(tokens(&watcher.store().list().await.unwrap()), ["1", "2"]);
        settle(secs(20)).await;
        if restored {
            // From a backup: versions begin anew, below those that are known.
            server.restart_at(2, [secret("a", "one", "old"), secret("b", "one", "2")]).unwrap();
        } else {
            let hold = server.faults().on(Watch::of(SECRETS)).hold();
            server.close_watches();
            settle(secs(5)).await;
            server.apply(secret("a", "one", "old")).unwrap();
            server.compact();
            hold.release();
        }
        settle(secs(100)).await;
        assert_eq!(tokens(&watcher.store().list().await.unwrap()), ["old", "2"], "restored: {restored}");
    }
}

#[tokio::test(start_paused = true)]
async fn whole_objects_are_watched_where_an_index_reads_them_or_the_server_knows_no_metadata() {
    let server = server([secret("a", "one", "1")]).await;
    let config = WatcherConfig::new(SECRETS).index_by(["data.token"]);
    let watcher = cached(&server, config).await;
    assert_eq!(tokens(&watcher.store().get(["1"]).await.unwrap()), ["1"]);
    assert!(server.journal().matching(Watch::of(SECRETS)).iter().all(|r| !r.accept.contains("Partial")));
    drop(watcher);

    server.journal().clear();
    server.faults().on(Watch::of(SECRETS)).times(1).status(406);
    let watcher = cached(&server, by_team()).await;
    let asked = server.journal().matching(Watch::of(SECRETS));
    let forms: Vec<_> = asked.iter().map(|r| r.accept.contains("Partial")).collect();
    assert_eq!(forms[..2], [true, false], "{asked:?}");
    let stub = watcher.snapshot().by_name(Some("shop"), "a").cloned().unwrap();
    assert_eq!(tokens(&[stub]), ["-"], "references stay references");
    assert_eq!(tokens(&watcher.store().list().await.unwrap()), ["1"]);
}

#[tokio::test(start_paused = true)]
async fn selectors_hold_for_names_that_the_references_do_not_have() {
    let server = server([secret("a", "one", "1"), secret("b", "two", "2")]).await;
    let by_label = cached(&server, by_team().label_selector("team=one")).await;
    let by_field = cached(&server, by_team().field_selector("metadata.labels.team=one")).await;
    let elsewhere = cached(&server, by_team().namespace("pay")).await;
    for watcher in [&by_label, &by_field] {
        assert_eq!(watcher.store().len(), 1);
        let read = async |name| watcher.store().by_name(Some("shop"), name).await.unwrap();
        assert_eq!(tokens(read("a").await.as_slice()), ["1"]);
        assert_eq!((read("b").await, read("z").await), (None, None));
    }
    // Reads of one name with a selector are lists; a namespace that is not watched is not asked for.
    assert_eq!(gets(&server), 3);
    assert_eq!(elsewhere.store().by_name(Some("shop"), "a").await.unwrap(), None);
    assert_eq!(gets(&server), 3);
}

#[tokio::test(start_paused = true)]
async fn c30_objects_of_the_cluster_are_read_with_and_without_a_namespace() {
    let server = server([json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})]).await;
    let config = WatcherConfig::new("v1/nodes").index_by(["metadata.name"]);
    let watcher = cached(&server, config).await;
    assert!(watcher.store().by_name(None, "n1").await.unwrap().is_some());
    assert!(watcher.store().by_name(Some("default"), "n1").await.unwrap().is_some());
    assert_eq!(watcher.store().get(["n1"]).await.unwrap().len(), 1);
    // A namespaced kind without a namespace is no object, and no request.
    let secrets = cached(&server, by_team()).await;
    assert_eq!(secrets.store().by_name(None, "a").await.unwrap(), None);
    assert_eq!(gets(&server), 0);
}

#[tokio::test(start_paused = true)]
async fn c63_c66_refusals_are_errors_that_name_the_object_and_a_missing_object_is_none() {
    let server = server([secret("a", "one", "1"), secret("b", "one", "2"), secret("c", "one", "3")]).await;
    let watcher = cached(&server, by_team()).await;
    server.faults().on(Get::of(SECRETS).name("b")).times(1).status(500);
    let error = watcher.store().list().await.unwrap_err();
    assert!(matches!(error, Error::Incomplete { failed: 1, wanted: 3, .. }), "{error:?}");
    assert!(error.to_string().contains("shop/b"), "{error}");
    assert_eq!(tokens(&watcher.store().list().await.unwrap()), ["1", "2", "3"]);

    // Known by the watch, gone for the read: absent, before the delete comes.
    server.apply(secret("b", "one", "4")).unwrap();
    settle(secs(1)).await;
    server.faults().on(Get::of(SECRETS).name("b")).times(1).status(404);
    assert_eq!(tokens(&watcher.store().list().await.unwrap()), ["1", "3"]);
}

#[tokio::test(start_paused = true)]
async fn the_cache_comes_before_the_callbacks_and_is_checked() {
    let server = server([]).await;
    let builder = || Watcher::builder(server.client(), by_team());
    let late = builder().on_change(|_| ()).cached(CacheConfig::default()).build().unwrap_err();
    assert_eq!(late.to_string(), "cached: comes before the callbacks");
    let zero = builder().cached(CacheConfig::default().ttl(ms(0))).build().unwrap_err();
    assert!(zero.to_string().starts_with("cache.ttl: "), "{zero}");
}

#[tokio::test(start_paused = true)]
async fn c27_a_restore_with_raised_versions_brings_the_old_object_and_no_endless_reads() {
    let server = fake().revision(1_200).start().await.unwrap();
    server.restart_at(1_200, [at(1_150, secret("a", "one", "lost"))]).unwrap();
    let watcher = cached(&server, by_team()).await;
    let read = async || read(&watcher).await;
    assert_eq!(read().await, ["lost"]);
    server.restart_at(1_000_000, [at(950, secret("a", "one", "backup"))]).unwrap();
    settle(secs(30)).await;
    assert_eq!(read().await, ["backup"]);
}

#[tokio::test(start_paused = true)]
async fn c27_what_was_read_before_the_first_list_does_not_outlive_a_restore() {
    let server = fake().revision(1_000).object(secret("a", "one", "1")).start().await.unwrap();
    server.faults().on(List::of(SECRETS)).times(1).status(503);
    let config = by_team().list_mode(ListMode::Paged);
    let watcher = Watcher::builder(server.client(), config).cached(CacheConfig::default()).spawn().unwrap();
    settle(ms(1)).await;
    let read = async || read(&watcher).await;
    assert_eq!(read().await, ["1"]);
    server.restart_at(500, [secret("a", "one", "before")]).unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    assert_eq!(read().await, ["before"]);
}

#[tokio::test(start_paused = true)]
async fn c27_what_was_read_of_an_object_that_no_list_could_tell_of_does_not_outlive_the_next_restore() {
    let server = fake().revision(1_200).start().await.unwrap();
    server.restart_at(1_200, [at(1_150, secret("a", "one", "first"))]).unwrap();
    let watcher = cached(&server, by_team().list_mode(ListMode::Paged)).await;
    let read = async || read(&watcher).await;
    let deep = (0..200).fold(Value::Null, |inner, _| json!([inner]));
    server.faults().on(List::of(SECRETS)).always().edit(move |object| {
        object["metadata"]["labels"]["team"] = deep.clone();
    });
    server.restart_at(1_190, [at(1_150, secret("a", "one", "second"))]).unwrap();
    settle(secs(400)).await;
    assert_eq!((read().await, watcher.status().skipped > 0), (vec!["second".to_owned()], true));
    server.faults().clear();
    server.restart_at(1_000_000, [at(1_100, secret("a", "one", "third"))]).unwrap();
    settle(secs(30)).await;
    assert_eq!(read().await, ["third"]);
}

#[tokio::test(start_paused = true)]
async fn c27_what_was_read_ahead_of_the_watch_does_not_outlive_a_restore_with_raised_versions() {
    let server = fake().revision(1_200).start().await.unwrap();
    server.restart_at(1_200, [at(1_150, secret("a", "one", "backup"))]).unwrap();
    let watcher = cached(&server, by_team()).await;
    // Nobody tells the watcher of the write that a reader finds.
    server.faults().on(Watch::of(SECRETS)).always().no_answer();
    server.close_watches();
    settle(secs(1)).await;
    server.apply(secret("a", "one", "lost")).unwrap();
    let read = async || read(&watcher).await;
    assert_eq!(read().await, ["lost"]);
    server.faults().clear();
    server.restart_at(1_000_000, [at(1_150, secret("a", "one", "backup"))]).unwrap();
    settle(secs(100)).await;
    assert_eq!(watcher.status().resource_version.as_deref(), Some("1000000"));
    assert_eq!(read().await, ["backup"]);
}
