//! What must hold when all is calm again: stores equal the server, requests stayed few, memory came back.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::Target;
use k8s_store::CachedStore;
use k8s_watcher::{ErrorClass, Phase, Watcher, WatcherHandle};
use serde_json::Value;

use super::line::Complaints;
use super::single::Single;
use super::watched::{Watched, config};
use super::writers::Written;
use crate::support::{Key, PATIENCE, Rest, compare, eventually, key, listed};

/// The end: the last disturbance is over, and nobody writes any more.
pub(super) struct InTheEnd<'a> {
    pub(super) target: &'a Target,
    pub(super) rest: &'a Rest,
    /// When the last disturbance was over.
    pub(super) calm: Instant,
    pub(super) written: &'a Written,
    pub(super) complaints: &'a Complaints,
}

impl InTheEnd<'_> {
    /// Everybody has what a plain list of the server has, field by field.
    pub(super) async fn equal(
        &self,
        watched: &[Watched],
        singles: &[Single],
        cached: &WatcherHandle<CachedStore>,
    ) -> Result<()> {
        let server = eventually("a list", async || listed(self.rest, "/api/v1/configmaps").await).await?;
        self.written.is_on(&server)?;
        for watched in watched {
            eventually("the store equals the server", async || {
                watched.has(&server).with_context(|| format!("{}: {:?}", watched.name, watched.view.status()))
            })
            .await?;
        }
        println!(
            "  {:>6.1} s  from the last disturbance to equality, {} objects",
            self.calm.elapsed().as_secs_f64(),
            server.len()
        );
        self.complaints.check()?;
        for watched in watched.iter().filter(|w| w.name != "cached") {
            let share = watched.share(&server).map(|(key, object)| (key.clone(), object.clone())).collect();
            tokio::task::block_in_place(|| compare(&share, &watched.view.snapshot())).context(watched.name)?;
        }
        for watched in watched {
            let status = watched.view.status();
            ensure!(status.phase == Phase::Watching, "{}: {status:?}", watched.name);
        }
        for single in singles {
            let expected = server.get(&single.key);
            eventually("a single watcher has its object", async || {
                let object = single.watcher.object().map(|o| o.to_value());
                ensure!(object.as_ref() == expected, "{object:?}, on the server {expected:?}");
                Ok(())
            })
            .await?;
        }
        self.cached_reads(&server, watched, cached).await
    }

    async fn cached_reads(
        &self,
        server: &BTreeMap<Key, Value>,
        watched: &[Watched],
        cached: &WatcherHandle<CachedStore>,
    ) -> Result<()> {
        let references = watched.iter().find(|w| w.name == "cached").context("no cached watcher")?;
        let read: BTreeMap<_, _> = cached.store().list().await?.iter().map(|o| (key(o), o.to_value())).collect();
        let expected: BTreeMap<_, _> = references.share(server).map(|(k, o)| (k.clone(), o.clone())).collect();
        ensure!(read.len() == expected.len(), "{} read of {}", read.len(), expected.len());
        let wrong = expected.iter().find(|(key, object)| read.get(*key) != Some(*object));
        ensure!(wrong.is_none(), "on the server, and not so read: {wrong:?}");
        println!("            {} objects read through the cache of the {} server", read.len(), self.target.name());
        Ok(())
    }
}

/// No watcher asked more often than its backoff allows, on the whole and within any second.
pub(super) fn requests(watched: &[Watched], singles: &[Single], elapsed: Duration) -> Result<()> {
    let of_watched = watched.iter().map(|w| (w.name, &w.requests, w.scopes));
    let of_singles = singles.iter().map(|s| ("single", &s.requests, 1));
    for (name, requests, scopes) in of_watched.chain(of_singles) {
        let (begun, at_most) = requests.begun();
        // A failure in a row of failures waits for 1.5 s at least from the fourth on.
        let allowed = scopes * (20 + elapsed.as_secs() as usize / 2);
        println!("            {name}: {begun} lists and watches, {at_most} in the busiest second");
        ensure!(begun <= allowed && at_most <= 8 * scopes, "{name}: {begun} requests, {at_most} in a second");
    }
    Ok(())
}

/// The client that was paused while history was thrown away was told so, and read everything again.
pub(super) fn expired(watched: &[Watched]) -> Result<()> {
    let paused = watched.iter().find(|w| w.name == "paused").context("no paused watcher")?;
    let status = paused.view.status();
    ensure!(status.failures.of(ErrorClass::Expired) > 0 && status.relists > 0, "{status:?}");
    for watched in watched {
        let status = watched.view.status();
        ensure!(status.failures.of(ErrorClass::Backwards) == 0, "nothing was set back: {status:?}");
        println!(
            "            {}: {} relists, {} restarts, {} failures",
            watched.name,
            status.relists,
            status.restarts,
            status.failures.total()
        );
    }
    Ok(())
}

/// A store that went through all of it takes no more than one that was just filled, but for symbols of objects that are
/// gone, which may pile up until they outgrow those that are there.
pub(super) async fn memory(target: &Target, watched: &[Watched]) -> Result<()> {
    let fresh = Watcher::builder(target.client(), config()).spawn()?;
    fresh.wait_for_sync(PATIENCE).await?;
    let new = fresh.snapshot().bytes();
    fresh.shutdown().await;
    let streaming = watched.iter().find(|w| w.name == "streaming").context("no streaming watcher")?;
    let old = streaming.view.snapshot().bytes();
    println!("            store {old}; a fresh one of the same objects {new}");
    let (needs, needed) = (old.objects + old.indexes, new.objects + new.indexes);
    ensure!(needs <= needed + needed / 10, "a store of {old:?}, a fresh one has {new:?}");
    ensure!(old.symbols <= old.objects.max(2 * new.symbols) + (1 << 20), "a store of {old:?}, a fresh one has {new:?}");
    Ok(())
}

/// Bytes of memory of this process, as Linux counts them; zero elsewhere.
pub(super) fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or_default() * 4096
}
