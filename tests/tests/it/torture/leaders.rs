//! Two candidates for one lease, and one who looks a thousand times a second whether both lead.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use k8s_leader_election::{ElectorHandle, Error, LeaderElector, LeaseConfig, Outcome};
use tokio_util::sync::CancellationToken;

use super::NAMESPACES;
use super::onlookers::Complaints;
use crate::support::{PATIENCE, Rest, eventually};

const LEASE: &str = "torture";

/// Both candidates.
pub(super) struct Leaders {
    handles: [ElectorHandle; 2],
    runs: Vec<tokio::task::JoinHandle<Result<Outcome, Error>>>,
    token: CancellationToken,
    terms: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    onlooker: JoinHandle<u64>,
}

impl Leaders {
    /// The first of the clients leads first.
    pub(super) async fn start(clients: [kube::Client; 2], complaints: &Complaints) -> Result<Self> {
        let (token, terms) = (CancellationToken::new(), Arc::<AtomicU64>::default());
        let (mut handles, mut runs) = (vec![], vec![]);
        for (client, identity) in clients.into_iter().zip(["first", "second"]) {
            let config = LeaseConfig::new(NAMESPACES[0], LEASE, identity)
                .lease_duration(Duration::from_secs(6))
                .renew_deadline(Duration::from_secs(4))
                .retry_period(Duration::from_millis(500));
            let elector = LeaderElector::builder(client, config).build()?;
            let handle = elector.handle().clone();
            let begun = terms.clone();
            let work = move |lead: k8s_leader_election::Lead| {
                begun.fetch_add(1, Ordering::Relaxed);
                async move { lead.cancelled().await }
            };
            runs.push(tokio::spawn(elector.run(token.clone(), work)));
            if handles.is_empty() {
                eventually("the first candidate leads", async || {
                    ensure!(handle.is_leader(), "{handle:?}");
                    Ok(())
                })
                .await?;
            }
            handles.push(handle);
        }
        let handles: [ElectorHandle; 2] = handles.try_into().map_err(|_| anyhow!("two candidates"))?;
        let stop = Arc::<AtomicBool>::default();
        let (seen, stopped, complain) = (handles.clone(), stop.clone(), complaints.clone());
        // A thread of its own: whatever the runtime is busy with, it looks.
        let onlooker = std::thread::spawn(move || {
            let [first, second] = seen;
            let mut looks = 0;
            while !stopped.load(Ordering::Relaxed) {
                // Both at one moment: the second led between two moments at which the first did.
                if first.is_leader() && second.is_leader() && first.is_leader() {
                    complain.add(|| format!("two leaders: {first:?} and {second:?}"));
                }
                looks += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            looks
        });
        Ok(Self { handles, runs, token, terms, stop, onlooker })
    }

    /// One leads, says the server too. Gives the number of terms and of looks.
    pub(super) async fn finish(self, rest: &Rest) -> Result<(u64, u64)> {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{LEASE}", NAMESPACES[0]);
        eventually("one leads in the end", async || {
            let leaders: Vec<_> = self.handles.iter().filter(|h| h.is_leader()).map(ElectorHandle::identity).collect();
            let lease = rest.get(&path).await?;
            ensure!(leaders.len() == 1 && lease["spec"]["holderIdentity"] == leaders[0], "{leaders:?}, {lease}");
            Ok(())
        })
        .await?;
        self.token.cancel();
        for run in self.runs {
            tokio::time::timeout(PATIENCE, run).await.context("a candidate does not stop")???;
        }
        self.stop.store(true, Ordering::Relaxed);
        let looks = self.onlooker.join().map_err(|_| anyhow!("the onlooker panicked"))?;
        Ok((self.terms.load(Ordering::Relaxed), looks))
    }
}
