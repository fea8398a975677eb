//! Many changes at once, and the few calls that come of them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use k8s_informer::types::ChangeStats;
use k8s_informer::watcher::WatcherBuilder;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};

use crate::cluster::Served;
use crate::{Watched, table};

/// The kind that changes.
pub(crate) const KIND: &str = "EndpointSlice";

/// What `on_change` was given, and when.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Vec<(Instant, ChangeStats)>>>);

impl Calls {
    /// Lets the watcher to be built call here.
    pub(crate) fn listen(&self, builder: WatcherBuilder) -> WatcherBuilder {
        let calls = self.clone();
        builder.on_change(move |change| {
            calls.0.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), change.stats));
        })
    }

    fn taken(&self) -> Vec<(Instant, ChangeStats)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A rollout in namespace `shop`: slices change, come and go, through the API as any controller would do it.
pub(crate) async fn run(cluster: &Served, watched: &[Watched], calls: &Calls) -> Result<()> {
    let slices = watched.iter().find(|w| w.name == KIND).context("the tour watches EndpointSlices")?;
    let api: Api<EndpointSlice> = Api::namespaced(cluster.server.client(), "shop");
    let names: Vec<_> = slices.watcher.store().get(["shop"])?.iter().map(|o| o.name().to_owned()).collect();
    calls.taken();
    let begin = Instant::now();
    for round in 0..10 {
        for name in &names {
            let patch = serde_json::json!({"metadata": {"annotations": {"example.com/round": round.to_string()}}});
            api.patch_metadata(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        }
    }
    for i in 0..20 {
        let metadata = ObjectMeta {
            name: Some(format!("cart-canary-{i}")),
            labels: Some([("kubernetes.io/service-name".to_owned(), "cart".to_owned())].into()),
            ..ObjectMeta::default()
        };
        let slice = EndpointSlice { metadata, address_type: "IPv4".into(), ..EndpointSlice::default() };
        api.create(&PostParams::default(), &slice).await?;
    }
    for i in 0..10 {
        api.delete(&format!("cart-canary-{i}"), &DeleteParams::default()).await?;
    }
    let written = 10 * names.len() + 30;
    println!("   {} writes in {}", table::count(written), table::time(begin.elapsed()));

    let mut told = ChangeStats::default();
    while told.total() < written as u64 {
        anyhow::ensure!(begin.elapsed() < Duration::from_secs(20), "the changes do not arrive: {told}");
        tokio::time::sleep(Duration::from_millis(20)).await;
        for (at, stats) in calls.taken() {
            println!("   on_change {:>8} after the first write: {stats}", table::time(at.duration_since(begin)));
            told.merge(&stats);
        }
    }
    println!("   every write was told, in a call at most each 100 ms: {told}");
    let found = slices.watcher.store().get(["shop", "cart"])?.len();
    println!("   EndpointSlices of shop/cart now: {found}");
    Ok(())
}
