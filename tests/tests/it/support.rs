//! What all scenarios need: plain requests, objects, waiting, and the comparison of a store with the server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use e2e::Target;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{Method, Request};
use k8s_packed::Object;
use k8s_store::Snapshot;
use k8s_types::{Backoff, Change, ChangeStats, WatcherConfig};
use k8s_watcher::{Changes, RunningWatcher, Watcher, WatcherHandle};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// How many requests a scenario has under way when it fills the server.
pub(crate) const WORKERS: usize = 16;

/// Namespace and name.
pub(crate) type Key = (String, String);

/// The API without types.
#[derive(Clone)]
pub(crate) struct Rest(kube::Client);

impl Rest {
    pub(crate) fn of(target: &Target) -> Self {
        Self(target.client())
    }

    /// One try; whether a write without an answer has happened nobody knows.
    pub(crate) async fn send_once(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> Result<Value> {
        let body = body.map(|b| b.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder().method(&method).uri(path).header("Content-Type", kind);
        self.0.request(request.body(body)?).await.with_context(|| format!("{method} {path}"))
    }

    async fn send(&self, method: Method, path: &str, kind: &str, body: Option<&Value>) -> Result<Value> {
        loop {
            match self.send_once(method.clone(), path, kind, body).await {
                Err(error) if error.downcast_ref().is_some_and(is_stale) => {}
                answer => return answer,
            }
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        self.send(Method::GET, path, "application/json", None).await
    }

    pub(crate) async fn post(&self, path: &str, object: &Value) -> Result<Value> {
        self.send(Method::POST, path, "application/json", Some(object)).await
    }

    pub(crate) async fn put(&self, path: &str, object: &Value) -> Result<Value> {
        self.send(Method::PUT, path, "application/json", Some(object)).await
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> Result<Value> {
        self.send(Method::PATCH, path, "application/merge-patch+json", Some(patch)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<()> {
        self.send(Method::DELETE, path, "application/json", None).await.map(drop)
    }

    /// Posts all objects to a collection, several at a time.
    pub(crate) async fn fill(&self, path: &str, objects: impl IntoIterator<Item = Value>) -> Result<()> {
        let posts = stream::iter(objects).map(|object| async move { self.post(path, &object).await.map(drop) });
        posts.buffer_unordered(WORKERS).try_collect().await
    }

    pub(crate) async fn namespace(&self, name: &str) -> Result<()> {
        self.post("/api/v1/namespaces", &json!({"metadata": {"name": name}})).await.map(drop)
    }
}

/// Whether a request met a kept connection that the server had closed just before: after a restart, and nobody's fault.
pub(crate) fn is_stale(error: &kube::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if error.to_string().contains("connection closed before message completed") {
            return true;
        }
        source = error.source();
    }
    false
}

/// Whether the server refused with this HTTP status.
pub(crate) fn is_refusal(error: &anyhow::Error, code: u16) -> bool {
    matches!(error.downcast_ref::<kube::Error>(), Some(kube::Error::Api(status)) if status.code == code)
}

pub(crate) fn config_maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

pub(crate) fn config_map(name: &str, labels: Value, value: &str) -> Value {
    json!({"metadata": {"name": name, "labels": labels}, "data": {"value": value}})
}

/// ConfigMaps of a namespace by name, with waits that suit a test.
pub(crate) fn in_namespace(namespace: &str) -> WatcherConfig {
    everywhere().namespace(namespace)
}

/// ConfigMaps by namespace and label `app`, with waits that suit a test.
pub(crate) fn everywhere() -> WatcherConfig {
    quick(WatcherConfig::new("v1/configmaps").index_by(["metadata.namespace", "metadata.labels.app"]))
}

/// Failures are tried again soon.
pub(crate) fn quick(config: WatcherConfig) -> WatcherConfig {
    config.backoff(Backoff::new(Duration::from_millis(100), Duration::from_millis(500)))
}

/// Starts a watcher and waits until it is synced.
pub(crate) async fn synced(client: kube::Client, config: WatcherConfig) -> Result<RunningWatcher> {
    let watcher = Watcher::builder(client, config).spawn()?;
    watcher.wait_for_sync(PATIENCE).await?;
    Ok(watcher)
}

/// Tries again and again until it works; fails with the last error after [`PATIENCE`].
pub(crate) async fn eventually<T>(what: &str, mut attempt: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let begun = Instant::now();
    let mut pause = Duration::from_millis(5);
    loop {
        match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) if begun.elapsed() > PATIENCE => {
                return Err(error.context(format!("not within {PATIENCE:?}: {what}")));
            }
            Err(_) => tokio::time::sleep(pause).await,
        }
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}

/// Waits until the store is as wanted.
pub(crate) async fn until(watcher: &WatcherHandle, what: &str, wanted: impl Fn(&Snapshot) -> bool) -> Result<()> {
    eventually(what, async || {
        ensure!(wanted(&watcher.store().snapshot()), "{} objects; {:?}", watcher.store().len(), watcher.status());
        Ok(())
    })
    .await
}

/// What the server lists, by key: whole objects, with the type that the items of typed lists leave out.
pub(crate) async fn listed(rest: &Rest, path: &str) -> Result<BTreeMap<Key, Value>> {
    let mut list = rest.get(path).await?;
    let kind = list["kind"].as_str().and_then(|k| k.strip_suffix("List")).context("no list")?.to_owned();
    let version = list["apiVersion"].take();
    let Value::Array(items) = list["items"].take() else { bail!("no items") };
    let complete = |mut item: Value| {
        item["kind"] = kind.as_str().into();
        item["apiVersion"] = version.clone();
        if let Some(metadata) = item["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        (key_of(&item), item)
    };
    Ok(items.into_iter().map(complete).collect())
}

fn key_of(object: &Value) -> Key {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

pub(crate) fn key(object: &Object) -> Key {
    (object.namespace().unwrap_or_default().to_owned(), object.name().to_owned())
}

/// What is different between the server's list and the store, as an error.
pub(crate) fn compare(expected: &BTreeMap<Key, Value>, snapshot: &Snapshot) -> Result<()> {
    let found: BTreeMap<Key, Value> = snapshot.list().iter().map(|o| (key(o), o.to_value())).collect();
    for key in expected.keys().chain(found.keys()) {
        match (expected.get(key), found.get(key)) {
            (Some(expected), Some(found)) if expected == found => {}
            (Some(expected), Some(found)) => bail!("{key:?} is {found}, on the server {expected}"),
            (Some(_), None) => bail!("{key:?} is missing"),
            (None, _) => bail!("{key:?} is not on the server"),
        }
    }
    ensure!(snapshot.len() == expected.len(), "{} counted, {} there", snapshot.len(), expected.len());
    Ok(())
}

/// Waits until the store has exactly what the server lists under these paths, field by field.
pub(crate) async fn equals_server(rest: &Rest, watcher: &WatcherHandle, paths: &[&str]) -> Result<()> {
    eventually("the store equals the server", async || {
        let mut expected = BTreeMap::new();
        for path in paths {
            expected.extend(listed(rest, path).await?);
        }
        compare(&expected, &watcher.store().snapshot()).with_context(|| format!("{:?}", watcher.status()))
    })
    .await
}

/// Follows a stream of changes and holds each against what the ones before it led to: an invented change does not fit.
pub(crate) struct Follower(JoinHandle<Result<Followed>>);

/// What a stream of changes told.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    pub(crate) state: BTreeMap<Key, Object>,
    /// Without the first batch.
    pub(crate) stats: ChangeStats,
    pub(crate) created: Vec<String>,
    pub(crate) modified: Vec<String>,
    pub(crate) deleted: Vec<String>,
}

impl Follower {
    /// Waits for the first batch, so that all that happens later is counted.
    pub(crate) async fn start(mut changes: Changes) -> Result<Self> {
        let first = changes.next().await.context("no first batch")?;
        ensure!(first.is_initial, "the first batch is the state");
        let mut followed = Followed::default();
        for change in first.changes {
            followed.take(change)?;
        }
        followed.created.clear();
        Ok(Self(tokio::spawn(async move {
            while let Some(batch) = changes.next().await {
                ensure!(!batch.is_initial, "a second first batch");
                followed.stats.merge(&batch.stats);
                for change in batch.changes {
                    followed.take(change)?;
                }
                let objects: Vec<_> = batch.snapshot.list().iter().map(key).collect();
                ensure!(objects.iter().eq(followed.state.keys()), "the changes do not lead to the snapshot");
            }
            Ok(followed)
        })))
    }

    /// Ends the watcher in good order and gives what was told until then.
    pub(crate) async fn finish(self, watcher: RunningWatcher) -> Result<Followed> {
        watcher.shutdown().await;
        self.0.await?
    }
}

impl Followed {
    fn take(&mut self, change: Change) -> Result<()> {
        let key = key(change.object());
        let known = self.state.remove(&key);
        let fits = |before: &Object| known.as_ref().is_some_and(|k| k.same_content(before));
        match &change {
            Change::Created(_) => ensure!(known.is_none(), "{key:?} was created though it was there"),
            Change::Modified { old, new } => {
                ensure!(fits(old), "{key:?} was modified from something it was not");
                ensure!(!old.same_content(new), "{key:?} was modified and stayed the same");
            }
            Change::Deleted(object) => ensure!(known.is_some(), "{key:?} was deleted though not there: {object:?}"),
        }
        let told = match &change {
            Change::Created(_) => &mut self.created,
            Change::Modified { .. } => &mut self.modified,
            Change::Deleted(_) => &mut self.deleted,
        };
        told.push(key.1.clone());
        if !change.is_deleted() {
            self.state.insert(key, change.object().clone());
        }
        Ok(())
    }

    /// The stream led to the same state as the store.
    pub(crate) fn leads_to(&self, snapshot: &Snapshot) -> Result<()> {
        ensure!(self.state.len() == snapshot.len(), "{} by changes, {} stored", self.state.len(), snapshot.len());
        for object in snapshot.list() {
            let told = self.state.get(&key(object)).ok_or_else(|| anyhow!("{object:?} was never told"))?;
            ensure!(told.same_content(object), "{object:?} is not as it was told");
        }
        Ok(())
    }

    /// Created, modified, deleted, as counted.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        (self.stats.created, self.stats.modified, self.stats.deleted)
    }
}
