//! The same objects over and over with values that never come again, and full lists in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, ensure};
use k8s_fake_apiserver::FakeApiServer;
use k8s_informer::client::Client;
use k8s_informer::store::CacheConfig;
use k8s_informer::types::Gvr;
use k8s_informer::watcher::{Changes, SelfWrites, SingleWatcher, Watcher};

use crate::informers::{LONG, expire, reached};
use crate::objects::{NAMESPACE, PODS, REPLICAS, pod, pod_config, pod_name, single_pod_config};
use crate::process::Footprint;
use crate::quarters::Quarters;

/// More than the registry of own writes holds.
const OWN_WRITES: usize = 5_000;

struct Scale {
    pods: usize,
    updates: usize,
    /// Written at a time; then everybody is waited for.
    batch: usize,
    /// Batches between two full lists.
    relist_every: usize,
    /// What the cached store may keep: it is to be full before the first quarter ends.
    cache: u64,
}

pub(crate) async fn run(is_short: bool) -> Result<()> {
    let scale = if is_short {
        Scale { pods: 200, updates: 24_000, batch: 50, relist_every: 40, cache: 64 << 10 }
    } else {
        Scale { pods: 5_000, updates: 2_000_000, batch: 500, relist_every: 100, cache: 1 << 20 }
    };
    // Once for what is made only once.
    soak(&Scale { updates: scale.batch, ..scale }, &mut Quarters::default()).await?;
    let before = Footprint::now();
    let begin = Instant::now();
    let mut quarters = Quarters::default();
    let story = soak(&scale, &mut quarters).await?;
    println!("{} updates of {} Pods in {:.0?}: {story}", scale.updates, scale.pods, begin.elapsed());
    quarters.print();
    println!("left behind: {}", before.again().await?);
    quarters.check(is_short)
}

async fn soak(scale: &Scale, quarters: &mut Quarters) -> Result<String> {
    let server = FakeApiServer::builder()
        .history(2 * scale.batch)
        .journal_capacity(100)
        .objects((0..scale.pods).map(|i| pod(i, 0, i)))
        .start()
        .await?;
    let client = Client::from(server.client());
    let (own, gvr) = (SelfWrites::default(), PODS.parse::<Gvr>()?);
    // The registry is full from here on.
    (0..OWN_WRITES).for_each(|i| own.record(&gvr, Some(NAMESPACE), &pod_name(i), "before"));
    let told = Arc::new(AtomicU64::new(0));
    let count = told.clone();
    let pods = Watcher::builder(&client, pod_config())
        .self_writes(own.clone())
        .on_change(move |change| {
            count.fetch_add(change.stats.total(), Ordering::Relaxed);
        })
        .spawn()?;
    let cached =
        Watcher::builder(&client, pod_config()).cached(CacheConfig::default().max_bytes(scale.cache)).spawn()?;
    let one = SingleWatcher::builder(&client, single_pod_config()).on_change(drop).spawn()?;
    pods.wait_for_sync(LONG).await?;
    cached.wait_for_sync(LONG).await?;
    one.wait_for_sync(LONG).await?;
    // One who keeps the pace and one who wakes once a quarter.
    let (mut reader, mut sleeper) = (pods.changes(), pods.changes());
    let _ = (reader.next().await, sleeper.next().await);
    let reader = tokio::spawn(read_all(reader));

    let batches = scale.updates / scale.batch;
    let (mut update, mut woken) = (scale.pods, 0);
    for batch in 0..batches {
        for _ in 0..scale.batch / REPLICAS {
            let rollout = update / REPLICAS;
            // The sets in an order that is not that of their names, and some of them more often than others.
            let set = rollout * 7919 % if rollout.is_multiple_of(3) { scale.pods / REPLICAS } else { scale.pods / 50 };
            for replica in 0..REPLICAS {
                let i = set * REPLICAS + replica;
                if update.is_multiple_of(97) {
                    server.delete(PODS, Some(NAMESPACE), &pod_name(i))?;
                }
                let version = server.apply(pod(i, rollout, update))?;
                if update.is_multiple_of(10) {
                    own.record(&gvr, Some(NAMESPACE), &pod_name(i), &version);
                }
                update += 1;
            }
        }
        let revision = server.revision();
        reached(&*pods, revision).await?;
        reached(&*cached, revision).await?;
        cached.store().by_name(Some(NAMESPACE), &pod_name(batch * 31 % scale.pods)).await?;
        let quarter = batch * 4 / batches;
        quarters.sample(quarter, pods.snapshot().bytes());
        if (batch + 1) * 4 / batches > quarter {
            let batch = sleeper.next().await;
            woken += batch.map_or(0, |batch| batch.changes.len());
        }
        if (batch + 1).is_multiple_of(scale.relist_every) {
            if (batch / scale.relist_every).is_multiple_of(2) {
                pods.relist();
                cached.relist();
                one.relist();
            } else {
                expire(&server);
            }
        }
    }
    ensure!(pods.store().len() == scale.pods && cached.store().len() == scale.pods, "not all of them are there");
    let (status, others) = (pods.status(), cached.status());
    pods.shutdown().await;
    let read = reader.await?;
    let heard = told.load(Ordering::Relaxed);
    ensure!(read == status.changes.total() - scale.pods as u64 && read == heard, "{read}, {heard}, {status:?}");
    Ok(format!(
        "{read} changes heard, {woken} entries for who woke up once a quarter, {} and {} full lists in between",
        status.relists, others.relists
    ))
}

/// Reads to the end; gives how many changes were counted.
async fn read_all(mut changes: Changes) -> u64 {
    let mut total = 0;
    while let Some(batch) = changes.next().await {
        total += batch.stats.total();
    }
    total
}
