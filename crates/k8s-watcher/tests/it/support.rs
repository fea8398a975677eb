//! What all tests of the watcher need: objects, a server, a record of callbacks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_fake_apiserver::FakeApiServer;
use k8s_types::{ChangeStats, WatcherConfig};
use k8s_watcher::{ChangeContext, RunningWatcher};
use serde_json::{Value, json};
use tokio::time::Instant;

pub(crate) const LONG: Duration = Duration::from_secs(600);

/// A ConfigMap in namespace `shop`.
pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "shop", "name": name, "labels": {"app": value}}, "data": {"value": value}
    })
}

pub(crate) async fn server(objects: impl IntoIterator<Item = Value>) -> FakeApiServer {
    FakeApiServer::builder().objects(objects).start().await.expect("the server starts")
}

/// ConfigMaps, indexed by namespace and label.
pub(crate) fn config() -> WatcherConfig {
    WatcherConfig::new("v1/configmaps").index_by(["metadata.namespace", "metadata.labels.app"]).debounce(Duration::ZERO)
}

/// The names in the store, in its order.
pub(crate) fn names(watcher: &RunningWatcher) -> Vec<String> {
    watcher.store().snapshot().list().iter().map(|o| o.name().to_owned()).collect()
}

/// Waits until the store looks as wanted; fails when it never does.
pub(crate) async fn eventually(watcher: &RunningWatcher, what: &str, wanted: impl Fn(&k8s_store::Snapshot) -> bool) {
    let mut status = watcher.status_changes();
    let begin = Instant::now();
    while !wanted(&watcher.store().snapshot()) {
        let changed = tokio::time::timeout(LONG, status.changed()).await;
        assert!(matches!(changed, Ok(Ok(()))), "{what}: not within {:?}", begin.elapsed());
    }
}

/// Lets everything that is due happen, and some more time pass.
pub(crate) async fn settle(time: Duration) {
    tokio::time::sleep(time).await;
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
        let call = (self.begin.elapsed(), change.stats, change.snapshot.len());
        self.calls.lock().expect("no panic under the lock").push(call);
    }

    pub(crate) fn calls(&self) -> Vec<(Duration, ChangeStats, usize)> {
        self.calls.lock().expect("no panic under the lock").clone()
    }

    /// Created, modified, deleted over all calls.
    pub(crate) fn totals(&self) -> (u64, u64, u64) {
        self.calls().iter().fold((0, 0, 0), |t, (_, s, _)| (t.0 + s.created, t.1 + s.modified, t.2 + s.deleted))
    }
}
