//! One candidate, two candidates, and what they leave in the lease.

use k8s_fake_apiserver::Any;
use k8s_leader_election::Outcome;
use serde_json::json;

use crate::support::{Candidate, LEASES, config, holder, lease, ms, never_two, requests_of, secs, server, spec};

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&w| w.to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_lone_candidate_leads_at_once_and_keeps_the_lead() {
    let server = server().await;
    let a = Candidate::start(&server, config("a"), "a");
    a.leads_within(ms(1)).await;
    let first = spec(&server);
    assert_eq!(
        (&first["holderIdentity"], &first["leaseDurationSeconds"], &first["leaseTransitions"]),
        (&json!("a"), &json!(15), &json!(0))
    );
    let time = first["renewTime"].as_str().unwrap();
    assert!(time.len() == "2026-03-01T10:00:00.000000Z".len() && time.ends_with('Z'), "{time}");
    for _ in 0..600 {
        tokio::time::sleep(secs(1)).await;
        assert!(a.handle.is_leader());
    }
    let requests = server.journal().count(requests_of("a"));
    assert!((250..=302).contains(&requests), "{requests} requests in ten minutes");
    let last = spec(&server);
    assert_eq!(last["acquireTime"], first["acquireTime"]);
    assert_ne!(last["renewTime"], first["renewTime"]);
    assert_eq!(last["leaseTransitions"], 0);
    let (handle, story) = (a.handle.clone(), a.story.clone());
    assert_eq!(a.stop().await.unwrap(), Outcome::Stopped);
    assert_eq!((story.terms(), story.leaders()), (words(&["started", "stopped"]), words(&["a"])));
    assert!(!handle.is_leader() && holder(&server).is_empty());
    assert!(handle.leadership().changed().await.is_err(), "there will be no change");
}

#[tokio::test(start_paused = true)]
async fn a_release_hands_over_within_five_seconds() {
    let server = server().await;
    let mut candidates = vec![Candidate::start(&server, config("a"), "a")];
    candidates[0].leads_within(ms(1)).await;
    for next in ["b", "c", "d", "e", "f"] {
        candidates.push(Candidate::start(&server, config(next), next));
        tokio::time::sleep(secs(7)).await;
        let leader = candidates.remove(0);
        assert!(leader.handle.is_leader() && !candidates[0].handle.is_leader());
        assert_eq!(candidates[0].handle.leader().as_deref(), Some(leader.handle.identity()));
        leader.stop().await.unwrap();
        let taken = candidates[0].leads_within(secs(5)).await;
        assert!(taken <= ms(2_400), "{taken:?}");
    }
    assert_eq!(spec(&server)["leaseTransitions"], 5, "counted as client-go does");
}

#[tokio::test(start_paused = true)]
async fn a_crash_hands_over_when_the_lease_has_run_out() {
    let server = server().await;
    let a = Candidate::start(&server, config("a"), "a");
    a.leads_within(ms(1)).await;
    let b = Candidate::start(&server, config("b"), "b");
    tokio::time::sleep(secs(60)).await;
    let before = spec(&server);
    a.task.abort();
    let taken = b.leads_within(secs(20)).await;
    assert!(taken >= ms(15_000 - 2_400) && taken <= ms(15_000 + 2_400), "{taken:?}");
    assert!(!a.handle.is_leader() && a.story.count("stopped") == 0, "a crash tells nobody");
    assert_eq!((b.story.terms(), b.story.leaders()), (words(&["started"]), words(&["a", "b"])));
    let after = spec(&server);
    assert_eq!((&after["leaseTransitions"], before["leaseTransitions"].as_i64()), (&json!(1), Some(0)));
    assert_ne!(after["acquireTime"], before["acquireTime"]);
    b.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_restart_under_the_same_name_leads_at_once() {
    let server = server().await;
    let a = Candidate::start(&server, config("a"), "a");
    a.leads_within(ms(1)).await;
    let before = spec(&server);
    a.task.abort();
    tokio::time::sleep(secs(1)).await;
    let again = Candidate::start(&server, config("a"), "a");
    again.leads_within(ms(1)).await;
    let after = spec(&server);
    assert_eq!((&after["leaseTransitions"], &after["acquireTime"]), (&json!(0), &before["acquireTime"]));
    again.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_else_is_in_the_lease_stays_in_it() {
    let server = server().await;
    let foreign = json!({
        "holderIdentity": "somebody", "leaseDurationSeconds": 3, "leaseTransitions": 41, "strategy": "OldestEmulationVersion",
        "acquireTime": "2020-01-01T00:00:00.000000Z", "renewTime": "2020-01-01T00:00:00.000000Z",
    });
    server.apply(lease(&foreign)).unwrap();
    let a = Candidate::start(&server, config("a"), "a");
    // By the foreign duration, from when it was seen: what the times in it say is of no interest.
    tokio::time::sleep(ms(2_999)).await;
    assert!(!a.handle.is_leader());
    a.leads_within(ms(2)).await;
    let spec = spec(&server);
    assert_eq!((&spec["leaseTransitions"], &spec["strategy"]), (&json!(42), &json!("OldestEmulationVersion")));
    a.stop().await.unwrap();
    let object = server.object(LEASES, Some("shop"), "cart").unwrap().unwrap();
    assert_eq!(object["metadata"]["labels"], json!({"team": "red"}));
    assert_eq!(object["metadata"]["annotations"], json!({"note": "keep"}));
    let spec = &object["spec"];
    assert_eq!((&spec["holderIdentity"], &spec["leaseDurationSeconds"]), (&json!(""), &json!(1)));
    assert_eq!((&spec["leaseTransitions"], &spec["strategy"]), (&json!(42), &json!("OldestEmulationVersion")));
}

#[tokio::test(start_paused = true)]
async fn a_label_that_somebody_sets_costs_nobody_the_lead() {
    let server = server().await;
    let a = Candidate::start(&server, config("a"), "a");
    a.leads_within(ms(1)).await;
    for round in 0..20 {
        tokio::time::sleep(ms(3_100)).await;
        let mut object = server.object(LEASES, Some("shop"), "cart").unwrap().unwrap();
        object["metadata"]["labels"] = json!({"round": round.to_string()});
        server.apply(object).unwrap();
        assert!(a.handle.is_leader());
    }
    tokio::time::sleep(secs(5)).await;
    assert_eq!(a.story.terms(), ["started"]);
    let object = server.object(LEASES, Some("shop"), "cart").unwrap().unwrap();
    assert_eq!(object["metadata"]["labels"]["round"], "19");
    a.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_deleted_never_makes_two_leaders_of_those_who_knew_it() {
    let server = server().await;
    let a = Candidate::start(&server, config("a"), "a");
    a.leads_within(ms(1)).await;
    let b = Candidate::start(&server, config("b"), "b");
    tokio::time::sleep(secs(30)).await;
    for _ in 0..5 {
        server.delete(LEASES, Some("shop"), "cart").unwrap();
        // Long enough for A to make it anew and for B to see that.
        never_two(&[&a, &b], ms(9_700)).await;
        assert!(a.handle.is_leader() && holder(&server) == "a", "the holder makes it anew");
    }
    a.stop().await.unwrap();
    b.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_watch_channel_tells_each_change() {
    let server = server().await;
    let b = Candidate::start(&server, config("b"), "b");
    b.leads_within(ms(1)).await;
    let a = Candidate::start(&server, config("a"), "a");
    let mut state = a.handle.leadership();
    let mut seen = vec![];
    let stop = async {
        tokio::time::sleep(secs(5)).await;
        b.stop().await.unwrap();
        tokio::time::sleep(secs(5)).await;
        a.token.cancel();
    };
    let look = async {
        while state.changed().await.is_ok() {
            let now = state.borrow_and_update();
            seen.push((now.leader().map(str::to_owned), now.is_leader()));
        }
    };
    tokio::join!(stop, tokio::time::timeout(secs(60), look)).1.unwrap();
    let name = |leader: &str| Some(leader.to_owned());
    let expected =
        [(name("b"), false), (None, false), (name("a"), false), (name("a"), true), (name("a"), false), (None, false)];
    seen.dedup();
    // Between two looks, states may be passed over.
    let mut rest = expected.iter();
    assert!(seen.iter().all(|state| rest.any(|e| e == state)), "{seen:?}");
    assert!(seen.contains(&(name("a"), true)) && seen.first() == Some(&(name("b"), false)), "{seen:?}");
    assert_eq!(seen.last(), Some(&(None, false)));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_ends_the_lead_at_once_and_releases_nothing() {
    let server = server().await;
    let a = Candidate::with_work(&server, config("a"), "a", |lead, story| async move {
        let story = Ends(story, lead.token());
        lead.cancelled().await;
        // Never reached the end: it is aborted.
        std::future::pending::<()>().await;
        drop(story);
    });
    a.leads_within(ms(1)).await;
    tokio::time::sleep(secs(5)).await;
    let requests = server.journal().count(Any::request());
    a.task.abort();
    tokio::time::sleep(ms(1)).await;
    assert!(!a.handle.is_leader());
    assert_eq!(a.story.terms(), ["started", "work dropped, told: true"]);
    tokio::time::sleep(secs(60)).await;
    assert_eq!(server.journal().count(Any::request()), requests);
    assert_eq!(holder(&server), "a");
}

struct Ends(crate::support::Story, tokio_util::sync::CancellationToken);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.tell(format!("work dropped, told: {}", self.1.is_cancelled()));
    }
}
