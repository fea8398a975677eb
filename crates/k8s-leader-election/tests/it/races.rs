//! Two writes that were decided on the same state: one is refused.

use k8s_fake_apiserver::{FakeApiServer, Hold, Write};
use serde_json::json;

use crate::support::{Candidate, LEASES, config, holder, lease, ms, requests_of, secs, server};

const ROUNDS: usize = 1_000;

/// Lets both of the held writes go and looks who leads.
async fn one_of(server: &FakeApiServer, candidates: &[&Candidate], held: Hold, round: usize) {
    tokio::time::timeout(secs(4), held.wait_for(2)).await.expect("both write");
    assert!(candidates.iter().all(|c| !c.handle.is_leader()));
    held.release();
    tokio::time::sleep(ms(100)).await;
    let leaders: Vec<_> = candidates.iter().filter(|c| c.handle.is_leader()).map(|c| c.handle.identity()).collect();
    assert_eq!(leaders, [holder(server)], "round {round}");
    assert_eq!(candidates.iter().map(|c| c.story.count("started")).sum::<usize>(), 1, "round {round}");
}

/// The two in an order that changes.
fn pair(server: &FakeApiServer, round: usize) -> [Candidate; 2] {
    let mut names = ["a", "b"];
    names.rotate_left(round % 2);
    names.map(|name| Candidate::start(server, config(name), name))
}

#[tokio::test(start_paused = true)]
async fn c90_create_against_create() {
    for round in 0..ROUNDS {
        let server = server().await;
        let held = server.faults().on(Write::of(LEASES)).hold();
        let [a, b] = pair(&server, round);
        one_of(&server, &[&a, &b], held, round).await;
        a.task.abort();
        b.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn c90_take_over_against_take_over() {
    for round in 0..ROUNDS {
        let server = server().await;
        // Free, or seen by both to run out at the same time.
        let holder = if round % 4 < 2 { "" } else { "crashed" };
        server.apply(lease(&json!({"holderIdentity": holder, "leaseDurationSeconds": 2}))).unwrap();
        let held = server.faults().on(Write::of(LEASES)).hold();
        let [a, b] = pair(&server, round);
        one_of(&server, &[&a, &b], held, round).await;
        a.task.abort();
        b.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn c90_renewal_by_a_former_holder_against_take_over() {
    for round in 0..ROUNDS {
        let server = server().await;
        let a = Candidate::start(&server, config("a"), "a");
        a.leads_within(ms(1)).await;
        let b = Candidate::start(&server, config("b"), "b");
        // A is cut off for so long that B takes over, and is back just then.
        let cut_off = server.faults().on(requests_of("a")).always().drop_connection();
        let held = server.faults().on(Write::of(LEASES)).hold();
        tokio::time::sleep(ms(10_500 + round as u64 * 3)).await;
        assert!(!a.handle.is_leader());
        cut_off.clear();
        // Whose write is held first differs with the moment at which A read.
        tokio::time::timeout(secs(30), held.wait_for(2)).await.expect("both write");
        assert!(!a.handle.is_leader() && !b.handle.is_leader());
        held.release();
        tokio::time::sleep(ms(100)).await;
        let leaders: Vec<_> = [&a, &b].into_iter().filter(|c| c.handle.is_leader()).collect();
        assert_eq!(leaders.len(), 1, "round {round}");
        assert_eq!(leaders[0].handle.identity(), holder(&server), "round {round}");
        a.task.abort();
        b.task.abort();
    }
}
