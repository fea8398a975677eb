//! Leader election: one of several leads, and hands over.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::Target;
use futures_util::future::try_join_all;
use k8s_leader_election::{ElectorHandle, Error, LeaderElector, LeaseConfig, Outcome};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::{PATIENCE, Rest, eventually};

/// A rhythm that suits a test on a busy machine.
const LEASE_DURATION: Duration = Duration::from_secs(6);

struct Candidate {
    handle: ElectorHandle,
    token: CancellationToken,
    task: JoinHandle<Result<Outcome, Error>>,
}

impl Candidate {
    fn start(client: kube::Client, namespace: &str, lease: &str, identity: &str) -> Result<Self> {
        let config = LeaseConfig::new(namespace, lease, identity)
            .lease_duration(LEASE_DURATION)
            .renew_deadline(Duration::from_secs(4))
            .retry_period(Duration::from_millis(500));
        let elector = LeaderElector::builder(client, config).build()?;
        let (handle, token) = (elector.handle().clone(), CancellationToken::new());
        let task = tokio::spawn(elector.run(token.clone(), |lead| async move { lead.cancelled().await }));
        Ok(Self { handle, token, task })
    }

    async fn leads(&self) -> Result<()> {
        eventually("the candidate leads", async || {
            ensure!(self.handle.is_leader(), "{:?}", self.handle);
            Ok(())
        })
        .await
    }

    async fn stop(self) -> Result<()> {
        self.token.cancel();
        let outcome = tokio::time::timeout(PATIENCE, self.task).await.context("it does not stop")???;
        ensure!(outcome == Outcome::Stopped, "{outcome:?}");
        Ok(())
    }
}

fn leases(namespace: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
}

/// From one to the next by a release, then by a crash; what the server stores is what other clients expect.
pub(crate) async fn lead_is_handed_over(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("leader").await?;
    let path = format!("{}/controller", leases("leader"));
    let start = |identity: &str| Candidate::start(target.client(), "leader", "controller", identity);
    let spec = async || -> Result<Value> { Ok(rest.get(&path).await?["spec"].take()) };

    let a = start("a")?;
    a.leads().await?;
    let first = spec().await?;
    ensure!(first["holderIdentity"] == "a" && first["leaseDurationSeconds"] == 6, "{first}");
    ensure!(first["leaseTransitions"] == 0 && first["acquireTime"].is_string(), "{first}");
    // Somebody else's label costs nobody the lead, and stays.
    rest.merge(&path, &json!({"metadata": {"labels": {"team": "red"}}})).await?;
    eventually("the lease is renewed", async || {
        let now = spec().await?;
        ensure!(now["renewTime"] != first["renewTime"] && now["acquireTime"] == first["acquireTime"], "{now}");
        Ok(())
    })
    .await?;
    ensure!(a.handle.is_leader(), "{:?}", a.handle);

    let b = start("b")?;
    eventually("b sees who leads", async || {
        ensure!(b.handle.leader().as_deref() == Some("a") && !b.handle.is_leader(), "{:?}", b.handle);
        Ok(())
    })
    .await?;
    // A lease that is deleted under its holder is made anew by the holder.
    rest.delete(&path).await?;
    eventually("the lease is there again", async || {
        let object = rest.get(&path).await?;
        ensure!(object["spec"]["holderIdentity"] == "a", "{object}");
        Ok(())
    })
    .await?;
    ensure!(a.handle.is_leader() && !b.handle.is_leader(), "{:?} {:?}", a.handle, b.handle);
    rest.merge(&path, &json!({"metadata": {"labels": {"team": "red"}}})).await?;
    a.stop().await?;
    let released = Instant::now();
    b.leads().await?;
    ensure!(released.elapsed() < LEASE_DURATION, "a release is quicker than a lease: {:?}", released.elapsed());
    let second = spec().await?;
    ensure!(second["holderIdentity"] == "b" && second["leaseTransitions"] == 1, "{second}");

    let c = start("c")?;
    eventually("c sees who leads", async || {
        ensure!(c.handle.leader().as_deref() == Some("b"), "{:?}", c.handle);
        Ok(())
    })
    .await?;
    b.task.abort();
    c.leads().await?;
    let third = spec().await?;
    ensure!(third["holderIdentity"] == "c" && third["leaseTransitions"] == 2, "{third}");
    c.stop().await?;
    let object = rest.get(&path).await?;
    ensure!(object["spec"]["holderIdentity"].as_str().unwrap_or_default().is_empty(), "{object}");
    ensure!(object["metadata"]["labels"] == json!({"team": "red"}), "{object}");
    Ok(())
}

/// Many leases, two candidates for each at the same moment: one wins, and the server agrees.
pub(crate) async fn one_of_two_wins_each_lease(target: &Target) -> Result<()> {
    const LEASES: usize = 20;
    let rest = Rest::of(target);
    rest.namespace("leaders").await?;
    let mut pairs = Vec::new();
    for i in 0..LEASES {
        let start = |identity| Candidate::start(target.client(), "leaders", &format!("controller-{i}"), identity);
        pairs.push([start("a")?, start("b")?]);
    }
    for (i, pair) in pairs.iter().enumerate() {
        eventually("one leads", async || {
            let leaders: Vec<_> = pair.iter().filter(|c| c.handle.is_leader()).map(|c| c.handle.identity()).collect();
            let lease = rest.get(&format!("{}/controller-{i}", leases("leaders"))).await?;
            ensure!(leaders.len() == 1 && lease["spec"]["holderIdentity"] == leaders[0], "{leaders:?}, {lease}");
            ensure!(lease["spec"]["leaseTransitions"] == 0, "{lease}");
            Ok(())
        })
        .await?;
    }
    try_join_all(pairs.into_iter().flatten().map(Candidate::stop)).await?;
    Ok(())
}
