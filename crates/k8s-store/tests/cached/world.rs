//! A scripted server: objects by name, what a fetch of each does, and what was asked.
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use k8s_packed::Encoder;
use k8s_store::{CacheConfig, CachedStore, FetchError, FetchFuture, Invalidator, StorePlan, Writer, cached_store};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

/// What a fetch of a name does.
#[derive(Clone, Debug)]
pub(crate) enum Script {
    /// Answers after a time with what the server has when it is asked.
    Serve(Duration),
    /// Answers after a time with this.
    Answer(Duration, Option<Value>),
    Fail(&'static str),
    Panic,
}

#[derive(Debug, Default)]
pub(crate) struct Server {
    objects: Mutex<HashMap<(Option<String>, String), Value>>,
    scripts: Mutex<HashMap<String, Script>>,
    asked: Mutex<Vec<(Instant, String)>>,
    running: AtomicUsize,
    pub(crate) most_running: AtomicUsize,
}

/// Counts a request for as long as it is not dropped.
struct Running(Arc<Server>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Server {
    pub(crate) fn put(&self, object: &Value) {
        let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
        self.objects.lock().insert((text("namespace"), text("name").expect("a name")), object.clone());
    }

    pub(crate) fn delete(&self, namespace: Option<&str>, name: &str) {
        self.objects.lock().remove(&(namespace.map(str::to_owned), name.to_owned()));
    }

    pub(crate) fn script(&self, name: &str, script: Script) {
        self.scripts.lock().insert(name.to_owned(), script);
    }

    /// How often this name was asked for.
    pub(crate) fn asked(&self, name: &str) -> usize {
        self.asked.lock().iter().filter(|(_, asked)| asked == name).count()
    }

    /// When anything was asked for.
    pub(crate) fn times(&self) -> Vec<Instant> {
        self.asked.lock().iter().map(|(at, _)| *at).collect()
    }

    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    fn fetch(self: &Arc<Self>, namespace: Option<&str>, name: &str) -> FetchFuture {
        let server = self.clone();
        let (namespace, name) = (namespace.map(str::to_owned), name.to_owned());
        Box::pin(async move {
            let running = Running(server.clone());
            let now = server.running.fetch_add(1, Ordering::SeqCst) + 1;
            server.most_running.fetch_max(now, Ordering::SeqCst);
            server.asked.lock().push((Instant::now(), name.clone()));
            let script = server.scripts.lock().get(&name).cloned();
            // Kinds outside namespaces ignore the one that is asked for.
            let stored = {
                let objects = server.objects.lock();
                objects.get(&(namespace, name.clone())).or_else(|| objects.get(&(None, name))).cloned()
            };
            let (delay, answer) = match script.unwrap_or(Script::Serve(Duration::ZERO)) {
                Script::Serve(delay) => (delay, stored),
                Script::Answer(delay, answer) => (delay, answer),
                Script::Fail(text) => return Err(FetchError::new(text)),
                Script::Panic => panic!("scripted"),
            };
            if !delay.is_zero() {
                sleep(delay).await;
            }
            drop(running);
            Ok(answer.map(|object| Bytes::from(object.to_string())))
        })
    }
}

/// A cached store, its watch, and the server behind both.
pub(crate) struct World {
    pub(crate) server: Arc<Server>,
    pub(crate) store: CachedStore,
    pub(crate) writer: Writer,
    pub(crate) invalidator: Invalidator,
}

impl World {
    pub(crate) fn new(config: CacheConfig) -> Self {
        let plan = StorePlan::index_by(["metadata.namespace", "metadata.labels.team"]).expect("valid");
        let by_team = k8s_indexer::Indexer::new(["metadata.labels.team"]).expect("valid");
        let plan = plan.named("by-team", by_team).expect("new name");
        let team: k8s_packed::Path = "metadata.labels.team".parse().expect("valid");
        let managed: k8s_packed::Path = "metadata.managedFields".parse().expect("valid");
        let server = Arc::new(Server::default());
        let fetch = {
            let server = server.clone();
            move |namespace: Option<&str>, name: &str| server.fetch(namespace, name)
        };
        let stubs = Encoder::new().keep_only([&team]);
        let (writer, invalidator, store) = cached_store(plan, stubs, Encoder::new().ignore([&managed]), config, fetch);
        Self { server, store, writer, invalidator }
    }

    /// A world in which the server has these objects and the watch has shown them.
    pub(crate) fn with(config: CacheConfig, names: impl IntoIterator<Item = String>) -> Self {
        let mut world = Self::new(config);
        for name in names {
            world.change(&object("ns", &name, 10));
        }
        world
    }

    /// The server has this object from now on, and the watch shows it at once.
    pub(crate) fn change(&mut self, object: &Value) {
        self.server.put(object);
        self.show(object);
    }

    /// The watch shows this version of an object.
    pub(crate) fn show(&mut self, object: &Value) {
        let stub = self.writer.encoder().encode(object.to_string().as_bytes()).expect("an object");
        self.invalidator.shown(stub.namespace(), stub.name(), stub.uid(), stub.resource_version(), None);
        self.writer.upsert(stub);
        self.writer.commit();
    }

    /// The server deletes an object, and the watch shows it at once.
    pub(crate) fn delete(&mut self, name: &str) {
        self.server.delete(Some("ns"), name);
        self.show_gone(name);
    }

    /// The watch shows the end of an object.
    pub(crate) fn show_gone(&mut self, name: &str) {
        self.invalidator.gone(Some("ns"), name);
        self.writer.remove(Some("ns"), name);
        self.writer.commit();
    }

    /// The version of an object as a reader gets it; `None` if there is none.
    pub(crate) async fn version(&self, name: &str) -> Option<String> {
        let object = within(self.store.by_name(Some("ns"), name)).await.expect("no error")?;
        object.resource_version().map(str::to_owned)
    }
}

/// An object of team red with some content.
pub(crate) fn object(namespace: &str, name: &str, version: u32) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "Secret", "data": {"key": format!("{name}-{version}")},
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
            "labels": {"team": "red"}, "managedFields": [{"manager": "m"}],
        },
    });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

pub(crate) fn names(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|i| format!("o-{i:04}"))
}

/// A future that is done within ten minutes of paused time, or the test fails.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    timeout(Duration::from_secs(600), future).await.expect("it ends")
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
