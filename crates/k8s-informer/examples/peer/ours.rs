//! k8s-informer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use k8s_informer::client::ClientConfig;
use k8s_informer::store::MemoryStore;
use k8s_informer::types::{Change, ListMode, ObjectKey, WatcherConfig};
use k8s_informer::watcher::Watcher;

use crate::measure::{Cache, Line, STAMP, Updates, peak_mib, reset_peak, rss_mib};
use crate::{Args, gvr};

struct Store(MemoryStore);

impl Cache for Store {
    type Key = ObjectKey;

    fn names(&self) -> Vec<(String, String)> {
        let name =
            |o: &k8s_informer::packed::Object| (o.namespace().unwrap_or_default().to_owned(), o.name().to_owned());
        self.0.snapshot().list().iter().map(name).collect()
    }

    fn key(&self, namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::new(Some(namespace), name)
    }

    /// Each look-up in the state of its moment.
    fn get(&self, namespace: &str, name: &str) -> bool {
        self.0.snapshot().by_name(Some(namespace), name).is_some()
    }

    fn get_by_key(&self, key: &ObjectKey) -> bool {
        self.0.snapshot().by_key(key).is_some()
    }

    fn namespace(&self, namespace: &str) -> usize {
        self.0.get([namespace]).map_or(0, |objects| objects.len())
    }

    fn list(&self) -> usize {
        self.0.list().len()
    }
}

pub(crate) async fn run(args: &Args, begin: Instant) -> Result<String> {
    let client = ClientConfig::kubeconfig(&args.kubeconfig).build().await?;
    let mode = if args.paged { ListMode::Paged } else { ListMode::Streaming };
    let config =
        WatcherConfig::new(gvr(&args.resource)?).index_by(["metadata.namespace", "metadata.name"]).list_mode(mode);
    let watcher = Watcher::builder(client, config).spawn()?;
    watcher.wait_for_sync(Duration::from_secs(300)).await?;

    let mut line = Line::synced(args, begin);
    line.memory().await;
    let updates = Arc::new(Updates::default());
    let mut changes = watcher.changes();
    // The first batch is the present state; what follows is news.
    changes.next().await;
    let seen = updates.clone();
    let listener = tokio::spawn(async move {
        while let Some(batch) = changes.next().await {
            for change in &batch.changes {
                if let Change::Modified { new, .. } = change {
                    seen.seen(new.annotation(STAMP));
                }
            }
        }
    });
    line.lookups(&Store(watcher.store().clone()));
    line.updates(args, &updates).await?;
    let bytes = watcher.store().snapshot().bytes();
    line.number("store_mib", bytes.total() as f64 / 1048576.0);
    let status = watcher.status();
    line.set("relists", status.relists.into());
    if args.relist {
        let steady = rss_mib();
        let was_reset = reset_peak();
        watcher.relist();
        let mut changes = watcher.status_changes();
        let before = status.relists;
        let listed = changes.wait_for(|s| s.relists > before && s.phase == k8s_informer::watcher::Phase::Watching);
        tokio::time::timeout(Duration::from_secs(300), listed).await??;
        line.number("relist_steady_mib", steady);
        if was_reset {
            line.number("relist_peak_mib", peak_mib());
        }
    }
    listener.abort();
    watcher.shutdown().await;
    Ok(line.finish())
}
