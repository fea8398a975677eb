//! What is done to the server and to the network, each once and then at random, and how long until all is well again.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::Target;
use fastrand::Rng;
use k8s_types::compare_resource_versions;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::line::{Complaints, Line, Network, State};
use super::single::Single;
use super::watched::{IDLE_LIMIT, Watched};
use super::{MARKER, NAMESPACES, Size, verdict};
use crate::support::{Rest, config_map, config_maps, eventually};

/// Longer than a watcher needs to notice a silence, see [`super::onlookers`].
const NOTICED: Duration = IDLE_LIMIT.saturating_add(Duration::from_secs(6));

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
    /// Each of them, long enough to be noticed.
    fn each() -> [Self; 5] {
        let time = Duration::from_secs(6);
        [
            Self::ApiServer(time),
            Self::Storage(time / 2),
            Self::Both(time / 2),
            Self::Compaction,
            Self::CompactionInPause(NOTICED),
        ]
    }

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
    pub(super) api_server_kills: u32,
    pub(super) etcd_kills: u32,
    pub(super) compactions: u32,
    pub(super) blows: u32,
    /// How long the server was away, all in all.
    pub(super) away: Duration,
    /// The longest time from a server that is ready to all undisturbed watchers having what was written then.
    pub(super) slowest_recovery: Duration,
}

/// Who does it, and to whom.
pub(super) struct Disturber<'a> {
    pub(super) target: &'a mut Target,
    pub(super) server: &'a Line,
    pub(super) paused: &'a Network,
    pub(super) watched: &'a [Watched],
    pub(super) singles: &'a [Single],
    pub(super) complaints: &'a Complaints,
    pub(super) done: Done,
}

impl Disturber<'_> {
    /// One after the other. The last one is over when this returns, and nobody has had time to recover from it.
    pub(super) async fn disturb(&mut self, size: &Size, rng: &mut Rng) -> Result<()> {
        let begun = Instant::now();
        let mut first = Blow::each().into_iter();
        let mut next = first.next();
        while let Some(blow) = next {
            tokio::time::sleep(Duration::from_millis(rng.u64(1_000..3_000))).await;
            let at = Instant::now();
            self.strike(blow).await.with_context(|| blow.to_string())?;
            self.done.blows += 1;
            let lasted = at.elapsed();
            next = first.next().or_else(|| (begun.elapsed() < size.at_random).then(|| Blow::any(rng)));
            let mut after = String::new();
            if next.is_some() {
                let (recovered, slowest) = self.recover().await.with_context(|| format!("after: {blow}"))?;
                self.done.slowest_recovery = self.done.slowest_recovery.max(recovered);
                after = format!(", well again {recovered:.1?} later ({slowest} last)");
            }
            let (now, memory) = (begun.elapsed().as_secs_f64(), verdict::resident() >> 20);
            println!("  {now:>6.1} s  {blow}: {lasted:.1?}{after}; {memory} MiB");
            self.complaints.check()?;
            if let Some(failed) = self.watched.iter().find(|w| w.has_failed()) {
                anyhow::bail!("the changes of `{}` came to an end", failed.name);
            }
        }
        Ok(())
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
                self.paused.hang();
                // What it misses goes on before and after.
                tokio::time::sleep(time / 2).await;
                self.kill_api_server().await;
                self.target.compact_storage().await?;
                self.done.compactions += 1;
                self.start_api_server().await?;
                tokio::time::sleep(time / 2).await;
                self.paused.forward();
                return Ok(());
            }
        }
        self.done.away += at.elapsed();
        Ok(())
    }

    async fn kill_api_server(&mut self) {
        self.target.stop().await;
        self.server.set(State::Broken);
        self.done.api_server_kills += 1;
    }

    async fn start_api_server(&mut self) -> Result<()> {
        self.server.set(State::Open);
        self.target.start().await
    }

    /// Writes something and waits until all who can hear have it: for how long, and who was last.
    async fn recover(&self) -> Result<(Duration, &'static str)> {
        let rest = Rest::of(self.target);
        let at = Instant::now();
        let versions = mark(&rest, self.done.blows).await?;
        let mut missing: Vec<_> = self.watched.iter().filter(|w| is_open(&w.lines)).collect();
        let mut slowest = "";
        eventually("all watchers have what was written after it", async || {
            // A line that breaks while one waits for it excuses.
            missing.retain(|w| is_open(&w.lines));
            let before = missing.len();
            missing.retain(|w| {
                let has = has_marks(w, &versions);
                if has {
                    slowest = w.name;
                }
                !has
            });
            ensure!(missing.is_empty() || before == 0, "{}: {:?}", missing[0].name, missing[0].view.status());
            let [marked, _] = &versions;
            for single in self.singles.iter().filter(|s| s.key.1 == MARKER) {
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

/// What is done to the rough network: each once, then at random until stopped, but not before each has come.
pub(super) async fn roughen(network: &Network, mut rng: Rng, stop: CancellationToken) -> u32 {
    let mut count = 0;
    loop {
        let (what, seconds) = match if count < 5 { count } else { rng.u32(..5) } {
            0 => (Weather::CutAfter(rng.u64(1..30_000)), 4),
            1 => (Weather::Hang, NOTICED.as_secs() + 2),
            2 => (Weather::Slow(rng.u32(2_000..50_000)), 6),
            3 => (Weather::Cut, 6),
            _ => (Weather::Hiccup, 1),
        };
        match what {
            Weather::CutAfter(bytes) => network.proxy.cut_after(bytes),
            Weather::Hang => network.hang(),
            Weather::Slow(rate) => network.proxy.slow(rate),
            Weather::Cut => network.cut(),
            Weather::Hiccup => network.proxy.hiccup(),
        }
        count += 1;
        let wait = async {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            network.forward();
            tokio::time::sleep(Duration::from_millis(rng.u64(500..4_000))).await;
        };
        if count < 5 {
            wait.await;
        } else if stop.run_until_cancelled(wait).await.is_none() {
            network.forward();
            return count;
        }
    }
}

enum Weather {
    CutAfter(u64),
    Hang,
    Slow(u32),
    Cut,
    Hiccup,
}
