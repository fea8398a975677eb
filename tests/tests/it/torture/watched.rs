//! The watchers that are tortured, each in its own way, with what is known of them from outside.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::{Target, config_of};
use k8s_store::{CacheConfig, CachedStore, Snapshot};
use k8s_types::{Backoff, ListMode, WatcherConfig};
use k8s_watcher::{Changes, Status, Watcher, WatcherHandle};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::NAMESPACES;
use super::line::Line;
use super::network::Network;
use super::onlookers::Complaints;
use super::witness::Witness;
use crate::requests::Requests;
use crate::support::{Key, PATIENCE};

/// How long a watch may be silent.
pub(super) const IDLE_LIMIT: Duration = Duration::from_secs(5);
/// The longest wait between two tries.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(2);

pub(super) fn backoff() -> Backoff {
    Backoff::new(Duration::from_millis(200), LONGEST_WAIT)
}

/// Those of whom more is asked than of others.
pub(super) const STREAMING: &str = "streaming";
pub(super) const PAUSED: &str = "paused";
pub(super) const CACHED: &str = "cached";

/// A watcher, whatever its store.
pub(super) trait View: Send + Sync {
    fn snapshot(&self) -> Snapshot;
    fn status(&self) -> Status;
    fn changes(&self) -> Changes;
    fn stop(&self);
}

impl<S: Send + Sync> View for WatcherHandle<S> {
    fn snapshot(&self) -> Snapshot {
        self.snapshot()
    }

    fn status(&self) -> Status {
        self.status()
    }

    fn changes(&self) -> Changes {
        self.changes()
    }

    fn stop(&self) {
        self.stop();
    }
}

/// Which of the server's objects a watcher shall have.
#[derive(Debug, Clone, Copy)]
enum Selection {
    All,
    Red,
    Namespaces(&'static [&'static str]),
}

impl Selection {
    fn has_namespace(self, namespace: &str) -> bool {
        if let Self::Namespaces(names) = self { names.contains(&namespace) } else { true }
    }

    fn has(self, (namespace, _): &Key, object: &Value) -> bool {
        let is_red = || object["metadata"]["labels"]["color"] == "red";
        self.has_namespace(namespace) && (!matches!(self, Self::Red) || is_red())
    }
}

/// One of them.
pub(super) struct Watched {
    pub(super) name: &'static str,
    pub(super) view: Arc<dyn View>,
    pub(super) requests: Requests,
    /// What lies between it and the server, which comes first.
    pub(super) lines: Vec<Line>,
    /// How many lists and watches it has at a time.
    pub(super) scopes: usize,
    selection: Selection,
    witness: JoinHandle<Result<Witness>>,
    /// Ends it when dropped.
    _running: Box<dyn Any + Send>,
}

/// How one of them is made.
struct Recipe {
    name: &'static str,
    selection: Selection,
    mode: ListMode,
    lines: Vec<Line>,
    kube: kube::Config,
    complaints: Complaints,
}

impl Recipe {
    fn config(&self) -> WatcherConfig {
        let config = config().list_mode(self.mode);
        match self.selection {
            Selection::All => config,
            Selection::Red => config.label_selector("color=red"),
            Selection::Namespaces(names) => config.namespaces(names.iter().copied()),
        }
    }

    async fn start(self) -> Result<Watched> {
        let requests = Requests::default();
        let running = Watcher::builder(requests.client(self.kube.clone())?, self.config()).spawn()?;
        let view = Arc::new(running.handle().clone());
        Ok(self.watched(requests, view, Box::new(running)))
    }

    async fn start_cached(self) -> Result<(Watched, WatcherHandle<CachedStore>)> {
        let requests = Requests::default();
        let client = requests.client(self.kube.clone())?;
        let cache = CacheConfig::default().ttl(Duration::from_secs(20));
        let running = Watcher::builder(client, self.config()).cached(cache).spawn()?;
        let handle = running.handle().clone();
        Ok((self.watched(requests, Arc::new(handle.clone()), Box::new(running)), handle))
    }

    fn watched(self, requests: Requests, view: Arc<dyn View>, running: Box<dyn Any + Send>) -> Watched {
        let Self { name, selection, lines, complaints, .. } = self;
        // Who leaves a selection and comes back has the uid it had.
        let follow = Witness::follow(view.changes(), matches!(selection, Selection::Red));
        let witness = tokio::spawn(async move {
            let followed = follow.await;
            if let Err(error) = &followed {
                complaints.add(|| format!("{name}: {error:#}"));
            }
            followed
        });
        let scopes = if let Selection::Namespaces(names) = selection { names.len() } else { 1 };
        Watched { name, view, requests, lines, scopes, selection, witness, _running: running }
    }
}

/// ConfigMaps everywhere, by namespace and app.
pub(super) fn config() -> WatcherConfig {
    let config = WatcherConfig::new("v1/configmaps").index_by(["metadata.namespace", "metadata.labels.app"]);
    config.named_index("color", ["metadata.labels.color"]).idle_limit(IDLE_LIMIT).backoff(backoff())
}

/// Starts all of them and waits until they are synced; the cached one once more with its own reads.
pub(super) async fn start(
    target: &Target,
    server: &Line,
    rough: &Network,
    paused: &Network,
    complaints: &Complaints,
) -> Result<(Vec<Watched>, WatcherHandle<CachedStore>)> {
    let direct = config_of(&target.kubeconfig()).await?;
    let recipe = |name, selection, mode| Recipe {
        name,
        selection,
        mode,
        lines: vec![server.clone()],
        kube: direct.clone(),
        complaints: complaints.clone(),
    };
    let behind = |name, network: &Network| Recipe {
        name,
        selection: Selection::All,
        mode: ListMode::Streaming,
        lines: vec![server.clone(), network.line.clone()],
        kube: network.proxy.config(),
        complaints: complaints.clone(),
    };
    use ListMode::{Paged, Streaming};
    let mut watched = vec![
        recipe(STREAMING, Selection::All, Streaming).start().await?,
        recipe("paged", Selection::All, Paged).start().await?,
        recipe("selected", Selection::Red, Streaming).start().await?,
        recipe("two namespaces", Selection::Namespaces(&NAMESPACES[..2]), Streaming).start().await?,
        behind("rough network", rough).start().await?,
        behind(PAUSED, paused).start().await?,
    ];
    let one = Selection::Namespaces(&NAMESPACES[..1]);
    let (cached, handle) = recipe(CACHED, one, Streaming).start_cached().await?;
    watched.push(cached);
    for watched in &watched {
        watched.synced().await?;
    }
    Ok((watched, handle))
}

impl Watched {
    async fn synced(&self) -> Result<()> {
        crate::support::eventually(self.name, async || {
            let status = self.view.status();
            ensure!(status.synced, "{status:?}");
            Ok(())
        })
        .await
    }

    /// Whether it has exactly these objects in exactly these versions, as far as it is to have them.
    pub(super) fn has(&self, server: &BTreeMap<Key, Value>) -> Result<()> {
        let snapshot = self.view.snapshot();
        let mut count = 0;
        for (key, object) in self.share(server) {
            let found = snapshot.by_name(Some(&key.0), &key.1).with_context(|| format!("{key:?} is missing"))?;
            let version = &object["metadata"]["resourceVersion"];
            ensure!(version.as_str() == found.resource_version(), "{found:?}, on the server version {version}");
            count += 1;
        }
        ensure!(snapshot.len() == count, "{} stored, {count} on the server", snapshot.len());
        Ok(())
    }

    /// Whether it is to have objects of this namespace.
    pub(super) fn has_namespace(&self, namespace: &str) -> bool {
        self.selection.has_namespace(namespace)
    }

    /// Those of the server's objects that it is to have.
    pub(super) fn share<'a>(&self, server: &'a BTreeMap<Key, Value>) -> impl Iterator<Item = (&'a Key, &'a Value)> {
        let selection = self.selection;
        server.iter().filter(move |(key, object)| selection.has(key, object))
    }

    /// Ends it; what its changes led to is what it stored.
    ///
    /// Gives the number of batches, of changes, and of comparisons of the whole.
    pub(super) async fn finish(self) -> Result<(u64, u64, u64)> {
        let last = self.view.snapshot();
        self.view.stop();
        let mut witness = tokio::time::timeout(PATIENCE, self.witness).await.context("it does not end")???;
        witness.scan(&last)?;
        Ok((witness.batches, witness.changes, witness.scans))
    }
}
