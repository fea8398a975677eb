//! Objects that come and go, each with keys of its own in three indexes.

use std::time::Instant;

use anyhow::{Result, ensure};
use k8s_fake_apiserver::FakeApiServer;
use k8s_informer::client::Client;
use k8s_informer::store::CacheConfig;
use k8s_informer::watcher::Watcher;

use crate::informers::{LONG, expire, reached};
use crate::objects::{MAPS, map, map_config, map_keys, map_name, map_namespace};
use crate::process::Footprint;
use crate::quarters::Quarters;

struct Scale {
    objects: usize,
    /// Made at a time; then everybody is waited for.
    batch: usize,
    /// How many batches an object lives.
    life: usize,
    relist_every: usize,
    /// What the cached store may keep: it is to be full before the first quarter ends.
    cache: u64,
}

pub(crate) async fn run(is_short: bool) -> Result<()> {
    let scale = if is_short {
        Scale { objects: 12_000, batch: 50, life: 4, relist_every: 60, cache: 16 << 10 }
    } else {
        Scale { objects: 200_000, batch: 200, life: 10, relist_every: 100, cache: 64 << 10 }
    };
    soak(&Scale { objects: 2 * scale.life * scale.batch, ..scale }, &mut Quarters::default()).await?;
    let before = Footprint::now();
    let begin = Instant::now();
    let mut quarters = Quarters::default();
    let story = soak(&scale, &mut quarters).await?;
    println!("{} short-lived objects in {:.0?}: {story}", scale.objects, begin.elapsed());
    quarters.print();
    println!("left behind: {}", before.again().await?);
    quarters.check(is_short)
}

async fn soak(scale: &Scale, quarters: &mut Quarters) -> Result<String> {
    let server = FakeApiServer::builder().history(4 * scale.batch).journal_capacity(100).start().await?;
    let client = Client::from(server.client());
    let maps = Watcher::builder(&client, map_config()).on_change(drop).spawn()?;
    let cached =
        Watcher::builder(&client, map_config()).cached(CacheConfig::default().max_bytes(scale.cache)).spawn()?;
    maps.wait_for_sync(LONG).await?;
    cached.wait_for_sync(LONG).await?;
    let empty = maps.snapshot().bytes();
    // One who keeps the pace and one who wakes once a quarter.
    let mut reader = maps.changes();
    let mut sleeper = maps.changes();
    let _ = (reader.next().await, sleeper.next().await);

    let batches = scale.objects / scale.batch;
    let (mut born, mut gone, mut woken) = (0, 0, 0);
    for batch in 0..batches + scale.life {
        if batch < batches {
            for at in batch * scale.batch..(batch + 1) * scale.batch {
                server.apply(map(at))?;
            }
        }
        if let Some(old) = batch.checked_sub(scale.life) {
            for at in old * scale.batch..(old + 1) * scale.batch {
                server.delete(MAPS, Some(&map_namespace(at)), &map_name(at))?;
            }
        }
        let revision = server.revision();
        reached(&*maps, revision).await?;
        reached(&*cached, revision).await?;
        if batch < batches {
            let snapshot = maps.snapshot();
            let newest = (batch + 1) * scale.batch - 1;
            let [job, owner, token] = map_keys(newest);
            let found = [
                snapshot.get([map_namespace(newest).as_str(), &job[..63]])?.len(),
                snapshot.index("by-owner")?.get([owner])?.len(),
                snapshot.index("by-token")?.get([token])?.len(),
            ];
            ensure!(found == [1, 1, 1], "{newest} is found {found:?} times");
            // One that is there, and one that is there no more.
            for (at, is_there) in [(newest, true), (newest.saturating_sub((scale.life + 1) * scale.batch), false)] {
                let object = cached.store().by_name(Some(&map_namespace(at)), &map_name(at)).await?;
                ensure!(object.is_some() == is_there || batch <= scale.life, "{at} in batch {batch}");
            }
            let quarter = batch * 4 / batches;
            quarters.sample(quarter, snapshot.bytes());
            if (batch + 1) * 4 / batches > quarter {
                woken += sleeper.next().await.map_or(0, |batch| batch.changes.len());
            }
        }
        if let Some(batch) = reader.next().await {
            born += batch.stats.created;
            gone += batch.stats.deleted;
        }
        if (batch + 1).is_multiple_of(scale.relist_every) {
            if (batch / scale.relist_every).is_multiple_of(2) {
                maps.relist();
                cached.relist();
            } else {
                expire(&server);
            }
        }
    }
    let end = maps.snapshot().bytes();
    ensure!(maps.store().is_empty() && cached.store().is_empty(), "not all of them are gone");
    ensure!((end.objects, end.indexes) == (empty.objects, empty.indexes), "{end:?} is not {empty:?}");
    maps.shutdown().await;
    while let Some(batch) = reader.next().await {
        born += batch.stats.created;
        gone += batch.stats.deleted;
    }
    ensure!((born, gone) == (scale.objects as u64, scale.objects as u64), "{born} came and {gone} went");
    Ok(format!(
        "{born} came, {gone} went, {woken} entries for who woke up once a quarter, empty indexes take {} bytes",
        end.indexes
    ))
}
