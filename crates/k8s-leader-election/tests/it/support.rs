//! What all tests of the elector need: a server, candidates, and what they told.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_fake_apiserver::{Any, FakeApiServer, RequestMatcher};
use k8s_leader_election::{ElectorHandle, Error, Lead, LeaderElector, LeaseConfig, Outcome, WorkResult};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) const LEASES: &str = "coordination.k8s.io/v1/leases";

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) async fn server() -> FakeApiServer {
    test_support::listen_to("k8s_leader_election");
    FakeApiServer::builder().start().await.expect("the server starts")
}

/// The default rhythm: 15 s, 10 s, 2 s.
pub(crate) fn config(identity: &str) -> LeaseConfig {
    LeaseConfig::new("shop", "cart", identity)
}

/// The spec of the lease, as the server has it.
pub(crate) fn spec(server: &FakeApiServer) -> Value {
    server.object(LEASES, Some("shop"), "cart").expect("a served kind").expect("a lease")["spec"].clone()
}

pub(crate) fn holder(server: &FakeApiServer) -> String {
    spec(server)["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// A lease by other hands.
pub(crate) fn lease(spec: &Value) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "shop", "name": "cart", "labels": {"team": "red"}, "annotations": {"note": "keep"}},
        "spec": spec,
    })
}

/// All requests of the candidate about the lease.
pub(crate) fn requests_of(identity: &str) -> RequestMatcher {
    Any::of(LEASES).client(identity)
}

/// What happened, in words, in order and with the time since the start in milliseconds.
#[derive(Clone)]
pub(crate) struct Story {
    begun: Instant,
    lines: Arc<Mutex<Vec<(u128, String)>>>,
}

impl Story {
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), lines: Arc::default() }
    }

    pub(crate) fn tell(&self, what: impl Into<String>) {
        let line = (self.begun.elapsed().as_millis(), what.into());
        self.lines.lock().expect("no panic under the lock").push(line);
    }

    pub(crate) fn words(&self) -> Vec<String> {
        self.lines().into_iter().map(|(_, words)| words).collect()
    }

    /// What `on_started`, `on_stopped` and the work told. Their order among each other is fixed.
    pub(crate) fn terms(&self) -> Vec<String> {
        self.words().into_iter().filter(|words| !words.starts_with("new leader")).collect()
    }

    /// What `on_new_leader` told.
    pub(crate) fn leaders(&self) -> Vec<String> {
        self.words().into_iter().filter_map(|words| Some(words.strip_prefix("new leader ")?.to_owned())).collect()
    }

    pub(crate) fn lines(&self) -> Vec<(u128, String)> {
        self.lines.lock().expect("no panic under the lock").clone()
    }

    /// When it was told for the first time.
    pub(crate) fn when(&self, what: &str) -> u128 {
        let lines = self.lines();
        lines.iter().find(|(_, words)| words == what).unwrap_or_else(|| panic!("no {what:?} in {lines:?}")).0
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        self.words().iter().filter(|words| *words == what).count()
    }
}

/// A candidate on a task of its own, whose hooks tell a story.
pub(crate) struct Candidate {
    pub(crate) handle: ElectorHandle,
    pub(crate) story: Story,
    pub(crate) token: CancellationToken,
    pub(crate) task: JoinHandle<Result<Outcome, Error>>,
}

impl Candidate {
    /// One that works until it is told to end.
    pub(crate) fn start(server: &FakeApiServer, config: LeaseConfig, identity: &str) -> Self {
        Self::with_work(server, config, identity, |lead, _| async move { lead.cancelled().await })
    }

    pub(crate) fn with_work<F>(
        server: &FakeApiServer,
        config: LeaseConfig,
        identity: &str,
        work: impl Fn(Lead, Story) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output: WorkResult> + Send + 'static,
    {
        let (story, token) = (Story::new(), CancellationToken::new());
        let [started, stopped, new_leader] = [story.clone(), story.clone(), story.clone()];
        let elector = LeaderElector::builder(server.client_as(identity), config)
            .on_started(move || started.tell("started"))
            .on_stopped(move || stopped.tell("stopped"))
            .on_new_leader(move |leader| new_leader.tell(format!("new leader {leader}")))
            .build()
            .expect("a sound configuration");
        let handle = elector.handle().clone();
        let told = story.clone();
        let task = tokio::spawn(elector.run(token.clone(), move |lead| work(lead, told.clone())));
        Self { handle, story, token, task }
    }

    /// Waits until it leads and its work has begun; fails when it does not in time. Gives how long the first took.
    pub(crate) async fn leads_within(&self, limit: Duration) -> Duration {
        let begun = Instant::now();
        let mut state = self.handle.leadership();
        while !self.handle.is_leader() {
            let changed = tokio::time::timeout(limit.saturating_sub(begun.elapsed()), state.changed()).await;
            assert!(matches!(changed, Ok(Ok(()))), "{:?} does not lead within {limit:?}", self.handle);
        }
        let taken = begun.elapsed();
        // Hooks run on threads, for which the paused clock waits.
        tokio::time::sleep(ms(1)).await;
        taken
    }

    /// Cancels its token and waits for its end.
    pub(crate) async fn stop(self) -> Result<Outcome, Error> {
        self.token.cancel();
        self.ended().await
    }

    pub(crate) async fn ended(self) -> Result<Outcome, Error> {
        tokio::time::timeout(secs(3_600), self.task).await.expect("it ends").expect("it does not panic")
    }
}

/// Looks every few milliseconds, for so long, that no two lead.
pub(crate) async fn never_two(candidates: &[&Candidate], time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        let leaders: Vec<_> = candidates.iter().filter(|c| c.handle.is_leader()).map(|c| &c.handle).collect();
        assert!(leaders.len() <= 1, "{leaders:?}");
        tokio::time::sleep(ms(1)).await;
    }
}
