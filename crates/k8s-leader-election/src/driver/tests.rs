//! The elector with wall clocks that lie, and in a world in which everything goes wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use k8s_fake_apiserver::FakeApiServer;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::LeaseConfig;
use crate::elector::LeaderElector;
use crate::handle::ElectorHandle;

mod network;
mod simulation;

/// A wall clock that is set forward and back while it runs with tokio's.
#[derive(Clone)]
struct WallClock {
    begun: (SystemTime, Instant),
    off_by: Arc<AtomicI64>,
}

impl WallClock {
    fn new() -> Self {
        Self { begun: (SystemTime::now(), Instant::now()), off_by: Arc::default() }
    }

    fn set_off(&self, seconds: i64) {
        self.off_by.store(seconds, Ordering::SeqCst);
    }

    fn now(&self) -> SystemTime {
        let right = self.begun.0 + self.begun.1.elapsed();
        let off_by = self.off_by.load(Ordering::SeqCst);
        let distance = Duration::from_secs(off_by.unsigned_abs());
        if off_by < 0 { right - distance } else { right + distance }
    }
}

const HOUR: i64 = 3_600;

/// A candidate with a wall clock of its own.
fn candidate(server: &FakeApiServer, identity: &str) -> (ElectorHandle, WallClock) {
    let clock = WallClock::new();
    let told = clock.clone();
    let elector = LeaderElector::builder(server.client(), LeaseConfig::new("shop", "cart", identity))
        .wall_clock(move || told.now())
        .build()
        .unwrap();
    let handle = elector.handle().clone();
    tokio::spawn(elector.run(CancellationToken::new(), |lead| async move { lead.cancelled().await }));
    (handle, clock)
}

#[tokio::test(start_paused = true)]
async fn c89_wall_clocks_that_are_wrong_or_jump_move_nothing() {
    let server = FakeApiServer::builder().start().await.unwrap();
    let (a, clock_of_a) = candidate(&server, "a");
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(a.is_leader());
    let (b, clock_of_b) = candidate(&server, "b");
    let mut lead_changes = a.leadership();
    // Ahead, behind, jumping; the leader's too.
    let settings = [(0, HOUR), (0, -HOUR), (HOUR, 0), (-HOUR, 0), (-10 * HOUR, 10 * HOUR), (24 * HOUR, -24 * HOUR)];
    for (round, (of_a, of_b)) in settings.into_iter().cycle().take(120).enumerate() {
        clock_of_a.set_off(of_a);
        clock_of_b.set_off(of_b);
        // Steps that drift through the rhythm of renewals.
        for _ in 0..5 + round % 7 {
            tokio::time::sleep(Duration::from_millis(997)).await;
            assert!(a.is_leader() && !b.is_leader(), "round {round}");
        }
    }
    assert!(!lead_changes.has_changed().unwrap() || lead_changes.borrow_and_update().is_leader());
    assert_eq!(b.leader().as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn c89_a_clock_that_shows_one_time_for_ever_is_as_good() {
    let server = FakeApiServer::builder().start().await.unwrap();
    let stopped = SystemTime::now();
    let elector = LeaderElector::builder(server.client(), LeaseConfig::new("shop", "cart", "a"))
        .wall_clock(move || stopped)
        .build()
        .unwrap();
    let a = elector.handle().clone();
    tokio::spawn(elector.run(CancellationToken::new(), |lead| async move { lead.cancelled().await }));
    tokio::time::sleep(Duration::from_millis(1)).await;
    let (b, _) = candidate(&server, "b");
    for _ in 0..300 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(a.is_leader() && !b.is_leader(), "B must see that A renews");
    }
}

#[tokio::test(start_paused = true)]
async fn c89_a_dead_holder_costs_one_duration_from_when_it_was_seen_whatever_it_wrote() {
    for renewed in ["1999-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"] {
        let lease = |holder: &str| {
            json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"namespace": "shop", "name": "cart"},
                "spec": {
                    "holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": renewed, "renewTime": renewed,
                },
            })
        };
        let server = FakeApiServer::builder().object(lease("dead")).start().await.unwrap();
        let (b, _) = candidate(&server, "b");
        tokio::time::sleep(Duration::from_millis(14_999)).await;
        assert!(!b.is_leader(), "{renewed}");
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert!(b.is_leader(), "{renewed}");
        // Released, it is taken at once.
        let server = FakeApiServer::builder().object(lease("")).start().await.unwrap();
        let (b, _) = candidate(&server, "b");
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(b.is_leader(), "{renewed}");
    }
}
