//! What is done to the server, each once and then at random, and how long until all is well again.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use e2e::Target;
use fastrand::Rng;
use k8s_types::compare_resource_versions;
use serde_json::json;

use super::cast::Cast;
use super::line::{Line, State};
use super::watched::Watched;
use super::{MARKER, NAMESPACES, Size, verdict};
use crate::support::{Rest, config_map, config_maps, eventually};

/// Longer than a watcher may take to notice a silence, so that somebody looks whether it did.
pub(super) const NOTICED: Duration = Duration::from_secs(17);

/// What is done to the server.
#[derive(Debug, Clone, Copy)]
enum Blow {
    /// SIGKILL of the API server, which stays away for so long.
    ApiServer(Duration),
    /// SIGKILL of etcd while the API server goes on.
    Storage(Duration),
    /// SIGKILL of both.
    Both(Duration),
    /// etcd is compacted under the running API server.
    Compaction,
    /// One client hears nothing for so long, while history is thrown away: etcd is compacted and the API server killed.
    CompactionInPause(Duration),
}

impl fmt::Display for Blow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiServer(t) => write!(f, "API server killed, away for {t:.1?}"),
            Self::Storage(t) => write!(f, "etcd killed, away for {t:.1?}"),
            Self::Both(t) => write!(f, "API server and etcd killed, away for {t:.1?}"),
            Self::Compaction => write!(f, "etcd compacted"),
            Self::CompactionInPause(t) => write!(f, "etcd compacted, API server killed, a client paused for {t:.1?}"),
        }
    }
}

impl Blow {
    /// What comes first, one of each, long enough to be noticed.
    const FIRST: [Self; 4] = [
        Self::ApiServer(Duration::from_secs(7)),
        Self::Storage(Duration::from_secs(3)),
        Self::Both(Duration::from_secs(3)),
        Self::Compaction,
    ];
    /// What comes last: all have to begin anew, one of them later than the others.
    const LAST: Self = Self::CompactionInPause(NOTICED);

    fn any(rng: &mut Rng) -> Self {
        let time = Duration::from_millis(rng.u64(..15_000));
        match rng.u8(..5) {
            0 => Self::ApiServer(time),
            1 => Self::Storage(time),
            2 => Self::Both(time),
            3 => Self::Compaction,
            _ => Self::CompactionInPause(time),
        }
    }
}

/// How often what was done.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Done {
    api_server_kills: u32,
    etcd_kills: u32,
    compactions: u32,
    blows: u32,
    /// How long the server was away, all in all.
    away: Duration,
    /// The longest time from a server that is ready to all undisturbed watchers having what was written then.
    slowest: Duration,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { api_server_kills, etcd_kills, compactions, away, slowest, .. } = self;
        write!(
            f,
            "{api_server_kills} kills of the API server, {etcd_kills} of etcd ({:.0} s away), ",
            away.as_secs_f64()
        )?;
        write!(f, "{compactions} compactions, slowest recovery {slowest:.1?}")
    }
}

/// Who does it, and to whom.
pub(super) struct Disturber<'a> {
    target: &'a mut Target,
    cast: &'a Cast,
    done: Done,
}

impl Disturber<'_> {
    /// One after the other. The last one is over when this returns, and nobody has had time to recover from it.
    pub(super) async fn disturb(target: &mut Target, cast: &Cast, size: &Size, rng: &mut Rng) -> Result<Done> {
        let mut disturber = Disturber { target, cast, done: Done::default() };
        disturber.disturb_all(size, rng).await?;
        Ok(disturber.done)
    }

    async fn disturb_all(&mut self, size: &Size, rng: &mut Rng) -> Result<()> {
        let begun = Instant::now();
        let mut first = Blow::FIRST.into_iter();
        loop {
            let at_random = || (begun.elapsed() < size.at_random).then(|| Blow::any(rng));
            let next = first.next().or_else(at_random);
            let (blow, is_last) = next.map_or((Blow::LAST, true), |blow| (blow, false));
            tokio::time::sleep(Duration::from_millis(rng.u64(1_000..3_000))).await;
            let at = Instant::now();
            self.strike(blow).await.with_context(|| blow.to_string())?;
            self.done.blows += 1;
            let lasted = at.elapsed();
            let mut after = String::new();
            if !is_last {
                let (recovered, slowest) = self.recover().await.with_context(|| format!("after: {blow}"))?;
                self.done.slowest = self.done.slowest.max(recovered);
                after = format!(", well again {recovered:.1?} later ({slowest} last)");
            }
            let (now, memory) = (begun.elapsed().as_secs_f64(), verdict::resident() >> 20);
            println!("  {now:>6.1} s  {blow}: {lasted:.1?}{after}; {memory} MiB");
            self.cast.complaints.check()?;
            if is_last {
                return Ok(());
            }
        }
    }

    async fn strike(&mut self, blow: Blow) -> Result<()> {
        let at = Instant::now();
        match blow {
            Blow::ApiServer(time) => {
                self.kill_api_server().await;
                tokio::time::sleep(time).await;
                self.start_api_server().await?;
            }
            Blow::Storage(time) => {
                self.target.stop_storage();
                self.done.etcd_kills += 1;
                tokio::time::sleep(time).await;
                self.target.start_storage().await?;
            }
            Blow::Both(time) => {
                self.target.stop_storage();
                self.done.etcd_kills += 1;
                self.kill_api_server().await;
                tokio::time::sleep(time).await;
                self.target.start_storage().await?;
                self.start_api_server().await?;
            }
            Blow::Compaction => {
                self.target.compact_storage().await?;
                self.done.compactions += 1;
                return Ok(());
            }
            Blow::CompactionInPause(time) => {
                self.cast.paused.hang();
                // What it misses goes on before and after.
                tokio::time::sleep(time / 2).await;
                self.kill_api_server().await;
                self.target.compact_storage().await?;
                self.done.compactions += 1;
                self.start_api_server().await?;
                tokio::time::sleep(time / 2).await;
                self.cast.paused.forward();
                return Ok(());
            }
        }
        self.done.away += at.elapsed();
        Ok(())
    }

    async fn kill_api_server(&mut self) {
        self.target.stop().await;
        self.cast.server.set(State::Broken);
        self.done.api_server_kills += 1;
    }

    async fn start_api_server(&mut self) -> Result<()> {
        self.cast.server.set(State::Open);
        self.target.start().await
    }

    /// Writes something and waits until all who can hear have it: for how long, and who was last.
    async fn recover(&self) -> Result<(Duration, &'static str)> {
        let rest = Rest::of(self.target);
        let at = Instant::now();
        let versions = mark(&rest, self.done.blows).await?;
        let mut missing: Vec<_> = self.cast.watched.iter().filter(|w| is_open(&w.lines)).collect();
        let mut slowest = "";
        eventually("all watchers have what was written after it", async || {
            // A line that breaks while one waits for it excuses.
            missing.retain(|w| is_open(&w.lines));
            missing.retain(|w| {
                let has = has_marks(w, &versions);
                if has {
                    slowest = w.name;
                }
                !has
            });
            if let Some(watched) = missing.first() {
                bail!("{}: {:?}", watched.name, watched.view.status());
            }
            let [marked, _] = &versions;
            for single in self.cast.singles.iter().filter(|s| s.key.1 == MARKER) {
                ensure!(single.version().is_some_and(|found| is_as_late(&found, marked)), "the single watcher");
            }
            Ok(())
        })
        .await?;
        Ok((at.elapsed(), slowest))
    }
}

fn is_open(lines: &[Line]) -> bool {
    lines.iter().all(Line::is_open)
}

/// Writes an object that all watchers have, in each of the first two namespaces.
pub(super) async fn mark(rest: &Rest, round: u32) -> Result<[String; 2]> {
    let mut versions = [const { String::new() }; 2];
    for (namespace, version) in NAMESPACES.iter().zip(&mut versions) {
        let all = config_maps(namespace);
        let answer = eventually("a mark is written", async || {
            if round == 0 {
                let mark = config_map(MARKER, json!({"color": "red"}), "0");
                return rest.post(&all, &mark).await;
            }
            rest.merge(&format!("{all}/{MARKER}"), &json!({"data": {"value": round.to_string()}})).await
        })
        .await?;
        answer["metadata"]["resourceVersion"].as_str().context("no version")?.clone_into(version);
    }
    Ok(versions)
}

fn has_marks(watched: &Watched, versions: &[String; 2]) -> bool {
    let snapshot = watched.view.snapshot();
    NAMESPACES.iter().zip(versions).all(|(namespace, version)| {
        let found = snapshot.by_name(Some(namespace), MARKER);
        !watched.has_namespace(namespace)
            || found.and_then(|o| o.resource_version()).is_some_and(|found| is_as_late(found, version))
    })
}

fn is_as_late(found: &str, version: &str) -> bool {
    compare_resource_versions(found, version).is_some_and(|order| order.is_ge())
}
