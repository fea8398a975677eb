//! What all tests of the watcher need: objects, a server, a record of callbacks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_fake_apiserver::{FakeApiServer, FakeApiServerBuilder, RequestMatcher};
use k8s_store::Snapshot;
pub(crate) use k8s_types::WatcherConfig;
use k8s_types::{Change, ChangeStats, ListMode, Object, ObjectKey};
use k8s_watcher::{ChangeContext, RunningWatcher, Watcher, WatcherBuilder, WatcherHandle};
use serde_json::{Value, json};
use tokio::time::Instant;

pub(crate) const LONG: Duration = Duration::from_secs(600);
pub(crate) const MAPS: &str = "v1/configmaps";

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A ConfigMap in namespace `shop`.
pub(crate) fn config_map(name: &str, value: &str) -> Value {
    config_map_in("shop", name, value)
}

/// An object as it is in a backup, with a uid that stays.
pub(crate) fn at(version: u64, mut object: Value) -> Value {
    object["metadata"]["resourceVersion"] = version.to_string().into();
    object["metadata"]["uid"] = object["metadata"]["name"].clone();
    object
}

pub(crate) fn config_map_in(namespace: &str, name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": name, "labels": {"app": value}}, "data": {"value": value}
    })
}

/// As many ConfigMaps, `m0000` and so on.
pub(crate) fn many(count: usize) -> impl Iterator<Item = Value> {
    (0..count).map(|i| config_map(&format!("m{i:04}"), "x"))
}

/// A server in the making.
pub(crate) fn fake() -> FakeApiServerBuilder {
    test_support::listen_to("k8s_watcher");
    FakeApiServer::builder()
}

pub(crate) async fn server(objects: impl IntoIterator<Item = Value>) -> FakeApiServer {
    fake().objects(objects).start().await.expect("the server starts")
}

/// ConfigMaps, indexed by namespace and label.
pub(crate) fn config() -> WatcherConfig {
    WatcherConfig::new(MAPS).index_by(["metadata.namespace", "metadata.labels.app"]).debounce(Duration::ZERO)
}

pub(crate) fn paged() -> WatcherConfig {
    config().list_mode(ListMode::Paged)
}

/// A watcher whose callbacks are recorded.
pub(crate) fn recorded(server: &FakeApiServer, config: WatcherConfig) -> (WatcherBuilder, Record) {
    let record = Record::new();
    let on_change = record.clone();
    let builder = Watcher::builder(server.client(), config).on_change_async(move |change| {
        on_change.push(&change);
        async {}
    });
    (builder, record)
}

/// A synced watcher whose callbacks are recorded.
pub(crate) async fn watching(server: &FakeApiServer, config: WatcherConfig) -> (RunningWatcher, Record) {
    let (builder, record) = recorded(server, config);
    let watcher = builder.spawn().expect("a sound configuration");
    watcher.wait_for_sync(LONG).await.expect("syncs");
    (watcher, record)
}

/// The names in the store, in its order.
pub(crate) fn names(watcher: &WatcherHandle) -> Vec<String> {
    watcher.store().snapshot().list().iter().map(|o| o.name().to_owned()).collect()
}

pub(crate) fn label(watcher: &WatcherHandle, name: &str) -> Option<String> {
    watcher.store().by_name(Some("shop"), name)?.label("app").map(str::to_owned)
}

/// Waits until the store looks as wanted; fails when it never does.
pub(crate) async fn eventually(watcher: &WatcherHandle, what: &str, wanted: impl Fn(&Snapshot) -> bool) {
    let mut status = watcher.status_changes();
    let begin = Instant::now();
    while !wanted(&watcher.store().snapshot()) {
        let changed = tokio::time::timeout_at(begin + LONG, status.changed()).await;
        assert!(matches!(changed, Ok(Ok(()))), "{what}: not within {:?}: {:?}", begin.elapsed(), watcher.status());
    }
}

/// Lets everything that is due happen, and some more time pass.
pub(crate) async fn settle(time: Duration) {
    tokio::time::sleep(time).await;
}

/// The requests that match, in short: `watch?…` with the parameters that matter.
pub(crate) fn asked(server: &FakeApiServer, requests: impl Into<RequestMatcher>) -> Vec<String> {
    let parts = ["resourceVersion", "resourceVersionMatch", "sendInitialEvents", "continue", "limit"];
    let short = |request: &k8s_fake_apiserver::Request| {
        let query = parts.iter().filter_map(|part| Some(format!(" {part}={}", request.query(part)?)));
        format!("{}{}", request.verb, query.collect::<String>())
    };
    server.journal().matching(requests).iter().map(short).collect()
}

/// Namespace, name, version, label of each object, by the server.
pub(crate) fn served(server: &FakeApiServer, resource: &str) -> Vec<[String; 4]> {
    let text = |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned();
    let row = |o: &Value| {
        ["/metadata/namespace", "/metadata/name", "/metadata/resourceVersion", "/metadata/labels/app"]
            .map(|p| text(o, p))
    };
    let mut rows: Vec<_> = server.objects(resource).expect("a served kind").iter().map(row).collect();
    rows.sort();
    rows
}

/// The same by a store.
pub(crate) fn stored(snapshot: &Snapshot) -> Vec<[String; 4]> {
    let row = |o: &k8s_types::Object| {
        [o.namespace(), Some(o.name()), o.resource_version(), o.label("app")].map(|t| t.unwrap_or_default().to_owned())
    };
    snapshot.list().iter().map(row).collect()
}

pub(crate) async fn same_as_served(watcher: &WatcherHandle, server: &FakeApiServer) {
    let resource = watcher.resource().to_string();
    eventually(watcher, "the store equals the server's state", |s| stored(s) == served(server, &resource)).await;
}

/// Every lookup of the composite index gives what a scan gives.
pub(crate) fn check_index(snapshot: &Snapshot) {
    let mut keys: Vec<(&str, &str)> = vec![];
    for object in snapshot.list() {
        keys.push((object.namespace().unwrap_or_default(), object.label("app").unwrap_or_default()));
    }
    keys.extend([("shop", "gone"), ("nowhere", "x")]);
    keys.sort_unstable();
    keys.dedup();
    for (namespace, app) in keys {
        let scan = |exact: bool| -> Vec<_> {
            let of = |o: &&k8s_types::Object| {
                o.namespace().unwrap_or_default() == namespace && (!exact || o.label("app") == Some(app))
            };
            snapshot.list().iter().filter(of).map(|o| o.name().to_owned()).collect()
        };
        let found = |key: &[&str]| -> Vec<_> {
            snapshot.get(key).expect("no more than two").iter().map(|o| o.name().to_owned()).collect()
        };
        assert_eq!(found(&[namespace, app]), scan(true), "under {namespace}/{app}");
        assert_eq!(found(&[namespace]), scan(false), "under {namespace}");
    }
}

/// What callbacks were given, with the time since the record was made.
#[derive(Clone)]
pub(crate) struct Record {
    begin: Instant,
    calls: Arc<Mutex<Vec<(Duration, ChangeStats, usize)>>>,
}

impl Record {
    pub(crate) fn new() -> Self {
        Self { begin: Instant::now(), calls: Arc::default() }
    }

    pub(crate) fn push(&self, change: &ChangeContext) {
        self.push_stats(change.stats, change.snapshot.len());
    }

    pub(crate) fn push_stats(&self, stats: ChangeStats, objects: usize) {
        let call = (self.begin.elapsed(), stats, objects);
        self.calls.lock().expect("no panic under the lock").push(call);
    }

    pub(crate) fn calls(&self) -> Vec<(Duration, ChangeStats, usize)> {
        self.calls.lock().expect("no panic under the lock").clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.calls().len()
    }

    /// Created, modified, deleted over all calls.
    pub(crate) fn totals(&self) -> (u64, u64, u64) {
        self.calls().iter().fold((0, 0, 0), |t, (_, s, _)| (t.0 + s.created, t.1 + s.modified, t.2 + s.deleted))
    }
}

/// What happened, in words and in order.
#[derive(Clone, Default)]
pub(crate) struct Story(Arc<Mutex<Vec<String>>>);

impl Story {
    pub(crate) fn tell(&self, what: impl Into<String>) {
        self.0.lock().expect("no panic under the lock").push(what.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().expect("no panic under the lock").clone()
    }
}

/// What a reader knows who applies batch after batch.
#[derive(Default)]
pub(crate) struct Replay(BTreeMap<ObjectKey, Object>);

impl Replay {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn apply(&mut self, batch: &k8s_watcher::Batch) {
        for change in &batch.changes {
            let name = ObjectKey::of(change.object());
            let known = self.0.get(&name);
            match change {
                Change::Created(object) => {
                    assert!(known.is_none(), "{name} was there");
                    self.0.insert(name, object.clone());
                }
                Change::Modified { old, new } => {
                    assert_eq!(known.and_then(Object::uid), old.uid());
                    assert_eq!(old.uid(), new.uid());
                    self.0.insert(name, new.clone());
                }
                Change::Deleted(object) => {
                    assert_eq!(known.and_then(Object::uid), object.uid());
                    self.0.remove(&name);
                }
            }
        }
        let state = batch.snapshot.list();
        let known: Vec<_> = self.0.values().collect();
        assert_eq!(known.len(), state.len());
        assert!(state.iter().zip(known).all(|(a, b)| a.uid() == b.uid() && a.same_content(b)));
    }
}
