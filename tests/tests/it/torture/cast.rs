//! All who have to do with the server: the watchers, the candidates, and what lies between them and the server.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use e2e::{Target, config_of};
use fastrand::Rng;
use k8s_store::CachedStore;
use k8s_watcher::WatcherHandle;

use super::leaders::Leaders;
use super::line::Line;
use super::network::Network;
use super::onlookers::{Complaints, Patient};
use super::single::Single;
use super::watched::{self, Watched};
use super::{MARKER, NAMESPACES, writers};
use crate::support::Rest;

pub(super) struct Cast {
    /// The server as the clients know it.
    pub(super) server: Line,
    /// A network that does what it likes.
    pub(super) rough: Network,
    /// One that holds a client up while history is thrown away.
    pub(super) paused: Network,
    pub(super) watched: Vec<Watched>,
    pub(super) cached: WatcherHandle<CachedStore>,
    pub(super) singles: [Single; 2],
    pub(super) leaders: Leaders,
    pub(super) complaints: Complaints,
}

impl Cast {
    /// Comes back when all are synced and somebody leads.
    pub(super) async fn assemble(target: &Target, rng: &mut Rng) -> Result<Self> {
        let begun = Instant::now();
        let (server, complaints) = (Line::new(), Complaints::default());
        let (rough, paused) = (Network::before(target).await?, Network::before(target).await?);
        let (started, ()) =
            tokio::join!(watched::start(target, &server, &rough, &paused, &complaints), rough.break_off(rng.fork()));
        let (watched, cached) = started.context("the watchers")?;
        println!("  {:>6.1} s  {} watchers synced", begun.elapsed().as_secs_f64(), watched.len());
        let marker = (NAMESPACES[0].to_owned(), MARKER.to_owned());
        let singles = [
            Single::start(target, &server, marker, &complaints).await?,
            Single::start(target, &server, writers::hot_name(), &complaints).await?,
        ];
        // The one whose network is worse leads first, so that the lead has to change hands.
        let direct = kube::Client::try_from(config_of(&target.kubeconfig()).await?)?;
        let leaders = Leaders::start([rough.proxy.client()?, direct], &complaints).await.context("the candidates")?;
        Ok(Self { server, rough, paused, watched, cached, singles, leaders, complaints })
    }

    /// Everybody's status, and what lies between them and the server.
    pub(super) fn patients(&self) -> Vec<Patient> {
        let of_watched = self.watched.iter().map(|w| {
            let view = w.view.clone();
            Patient { name: w.name.to_owned(), status: Box::new(move || view.status()), lines: w.lines.clone() }
        });
        let of_singles = self.singles.iter().map(|s| {
            let handle = s.watcher.handle().clone();
            let name = format!("single {}", s.key.1);
            Patient { name, status: Box::new(move || handle.status()), lines: s.lines.clone() }
        });
        of_watched.chain(of_singles).collect()
    }

    /// Ends all of them; what each was told fits together.
    pub(super) async fn finish(self, rest: &Rest) -> Result<()> {
        let (terms, looks) = self.leaders.finish(rest).await.context("the leaders")?;
        println!("            {terms} terms of two candidates in {looks} looks");
        ensure!(terms > 1, "the lead never changed hands");
        for watched in self.watched {
            let name = watched.name;
            let (batches, changes, scans) =
                watched.finish().await.with_context(|| format!("the changes of `{name}`"))?;
            println!("            {name}: {changes} changes in {batches} batches, compared {scans} times");
        }
        for single in self.singles {
            println!("            single {}: {} calls", single.key.1, single.calls());
            single.finish().await?;
        }
        self.complaints.check()
    }
}
