//! What must hold when all is calm again: stores equal the server, requests stayed few, memory came back.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::Target;
use k8s_watcher::{ErrorClass, Phase, Watcher};

use super::cast::Cast;
use super::disturbances::mark;
use super::watched::{CACHED, PAUSED, STREAMING, config};
use super::writers::Written;
use crate::support::{PATIENCE, Rest, compare, eventually, key, listed};

/// Everybody has what a plain list of the server has, field by field. Nobody writes any more, and the last disturbance
/// was over when it was `calm`.
pub(super) async fn equality(rest: &Rest, cast: &Cast, written: &Written, calm: Instant) -> Result<()> {
    let server = eventually("a list", async || listed(rest, "/api/v1/configmaps").await).await?;
    written.is_on(&server)?;
    for watched in &cast.watched {
        eventually("the store equals the server", async || {
            watched.has(&server).with_context(|| format!("{}: {:?}", watched.name, watched.view.status()))
        })
        .await?;
    }
    let (took, count) = (calm.elapsed().as_secs_f64(), server.len());
    println!("  {took:>6.1} s  from the last disturbance to equality, {count} objects");
    for watched in &cast.watched {
        let name = watched.name;
        let share: BTreeMap<_, _> = watched.share(&server).map(|(k, o)| (k.clone(), o.clone())).collect();
        if name == CACHED {
            let read = cast.cached.store().list().await?;
            let read: BTreeMap<_, _> = read.iter().map(|o| (key(o), o.to_value())).collect();
            let wrong = share.iter().find(|(key, object)| read.get(*key) != Some(*object));
            ensure!(wrong.is_none() && read.len() == share.len(), "{name}: not so read: {wrong:?}");
        } else {
            tokio::task::block_in_place(|| compare(&share, &watched.view.snapshot())).context(name)?;
        }
    }
    for single in &cast.singles {
        let expected = server.get(&single.key);
        eventually("a single watcher has its object", async || {
            let object = single.watcher.object().map(|o| o.to_value());
            ensure!(object.as_ref() == expected, "{object:?}, on the server {expected:?}");
            Ok(())
        })
        .await?;
    }
    // After a failure a watch is believed when it has brought something.
    mark(rest, u32::MAX).await?;
    for watched in &cast.watched {
        eventually("the watcher says that it watches, and is healthy", async || {
            let status = watched.view.status();
            let is_healthy = status.is_healthy(tokio::time::Instant::now(), PATIENCE);
            ensure!(status.phase == Phase::Watching && is_healthy, "{}: {status:?}", watched.name);
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// No watcher asked more often than its backoff allows, on the whole and within any second; the client that was paused
/// while history was thrown away was told so; and nobody believes that the server was set back.
pub(super) fn requests(cast: &Cast, elapsed: Duration) -> Result<()> {
    let of_watched = cast.watched.iter().map(|w| (w.name, &w.requests, w.scopes, w.view.status()));
    let of_singles = cast.singles.iter().map(|s| ("single", &s.requests, 1, s.watcher.status()));
    for (name, requests, scopes, status) in of_watched.chain(of_singles) {
        let (begun, at_most) = requests.begun();
        let (relists, failures) = (status.relists, status.failures.total());
        println!(
            "            {name}: {begun} lists and watches, {at_most} in the busiest second, {relists} relists, \
             {failures} failures"
        );
        // From the fourth failure in a row on there is one try in a second and a half at most. Where a watch was silent
        // for the idle limit of five seconds, the next ones are to end after one or two.
        let allowed = scopes * (20 + elapsed.as_secs() as usize);
        ensure!(begun <= allowed && at_most <= 8 * scopes, "{name}: {begun} requests, {at_most} in a second");
        let of = |class| status.failures.of(class);
        ensure!(of(ErrorClass::Backwards) == 0, "{name}: nothing was set back: {status:?}");
        ensure!(name != PAUSED || (of(ErrorClass::Expired) > 0 && relists > 0), "{name}: {status:?}");
    }
    Ok(())
}

/// A store that went through all of it takes no more than one that was just filled, but for symbols of objects that are
/// gone, which may pile up until they outgrow those that are there.
pub(super) async fn memory(target: &Target, cast: &Cast) -> Result<()> {
    let fresh = Watcher::builder(target.client(), config()).spawn()?;
    fresh.wait_for_sync(PATIENCE).await?;
    let new = fresh.snapshot().bytes();
    fresh.shutdown().await;
    let streaming = cast.watched.iter().find(|w| w.name == STREAMING).context("no streaming watcher")?;
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
