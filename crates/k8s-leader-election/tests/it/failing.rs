//! A server that fails, a leader that is cut off, a process that stands still.

use std::time::Duration;

use k8s_fake_apiserver::{FakeApiServer, Status, Update};
use k8s_leader_election::{Error, LeaderElector, Outcome};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::{Candidate, LEASES, config, holder, ms, never_two, requests_of, secs, server};

/// A leads, B waits; nothing is due for a while.
async fn two(server: &FakeApiServer) -> (Candidate, Candidate) {
    let a = Candidate::start(server, config("a"), "a");
    a.leads_within(ms(1)).await;
    let b = Candidate::start(server, config("b"), "b");
    tokio::time::sleep(secs(20)).await;
    assert!(a.handle.is_leader() && !b.handle.is_leader());
    (a, b)
}

/// When the last renewal that succeeded was sent.
fn last_renewal(server: &FakeApiServer, identity: &str) -> Duration {
    let writes = server.journal().matching(Update::of(LEASES).client(identity));
    writes.iter().rfind(|r| r.status == Some(200)).expect("a renewal").at
}

#[tokio::test(start_paused = true)]
async fn c85_a_leader_that_cannot_renew_is_none_before_another_can_be() {
    for fault in ["500", "429", "409", "drop", "hang", "lost answer", "hanging answer", "slow"] {
        let server = server().await;
        let begun = Instant::now();
        let (a, b) = two(&server).await;
        let rule = server.faults().on(requests_of("a")).always();
        let _handle = match fault {
            "500" => rule.status(500),
            "429" => rule.status(Status::too_many_requests(1)),
            "409" => rule.status(409),
            "drop" => rule.drop_connection(),
            "hang" => rule.no_answer(),
            // These renew the lease and do not tell: it lives longer than its holder knows.
            "lost answer" => rule.reset_at_byte(0),
            "hanging answer" => rule.hang_at_byte(0),
            _ => rule.delay(secs(6)),
        };
        let last = begun + last_renewal(&server, "a");
        // Every millisecond: at most one leader; A is none from ten seconds after its last success, B not before fifteen.
        let mut taken = None;
        while begun.elapsed() < secs(80) {
            let (leads_a, leads_b) = (a.handle.is_leader(), b.handle.is_leader());
            assert!(!(leads_a && leads_b), "{fault}: two");
            assert_eq!(leads_a, last.elapsed() < secs(10), "{fault}: {:?}", last.elapsed());
            if leads_b && taken.is_none() {
                taken = Some(last.elapsed());
            }
            tokio::time::sleep(ms(1)).await;
        }
        // A write that took effect unknown to A is one that B has seen.
        let limit = if fault.ends_with("answer") { ms(20_000) } else { ms(17_500) };
        let taken = taken.unwrap_or(Duration::MAX);
        assert!(taken >= secs(15) && taken < limit, "{fault}: {taken:?}");
        assert_eq!(a.story.count("stopped"), 1, "{fault}");
        assert_eq!(a.story.count("started"), 1, "{fault}");
        a.task.abort();
        b.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn c85_a_leader_that_is_back_in_time_never_lost_it() {
    let server = server().await;
    let (a, b) = two(&server).await;
    for _ in 0..10 {
        let fault = server.faults().on(requests_of("a")).always().status(503);
        never_two(&[&a, &b], ms(4_900)).await;
        assert!(a.handle.is_leader());
        fault.clear();
        tokio::time::sleep(secs(3)).await;
    }
    assert_eq!(a.story.terms(), ["started"]);
    assert_eq!((b.story.terms().len(), b.story.leaders()), (0, vec!["a".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn c85_a_lease_in_other_hands_ends_the_lead_at_the_next_renewal() {
    let server = server().await;
    let a = Candidate::start(&server, config("a"), "a");
    a.leads_within(ms(1)).await;
    let mut object = server.object(LEASES, Some("shop"), "cart").unwrap().unwrap();
    object["spec"]["holderIdentity"] = "by hand".into();
    server.apply(object).unwrap();
    tokio::time::sleep(ms(2_401)).await;
    assert!(!a.handle.is_leader());
    assert_eq!(a.handle.leader().as_deref(), Some("by hand"));
    a.leads_within(secs(18)).await;
    assert_eq!(a.story.terms(), ["started", "stopped", "started"]);
    assert_eq!(a.story.leaders(), ["a", "by hand", "a"]);
    a.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn c85_when_the_whole_process_stands_still_the_lead_is_over_for_whoever_asks() {
    let server = server().await;
    let a = Candidate::with_work(&server, config("a"), "a", |lead, story| async move {
        loop {
            tokio::select! {
                biased;
                () = tokio::time::sleep(ms(10)) => story.tell(if lead.is_leader() { "leads" } else { "doubts" }),
                () = lead.cancelled() => return,
            }
        }
    });
    a.leads_within(ms(1)).await;
    tokio::time::sleep(secs(5)).await;
    assert_eq!(a.story.count("doubts"), 0);
    // Hours in which no task runs. When they go on, it is the work that asks first.
    tokio::time::advance(secs(3 * 3600)).await;
    assert!(!a.handle.is_leader() && !a.handle.leadership().borrow().is_leader());
    let led = a.story.count("leads");
    tokio::time::sleep(ms(1)).await;
    assert_eq!(a.story.count("leads"), led, "the work has not been fooled");
    assert!(a.story.count("doubts") > 0);
    a.leads_within(ms(1)).await;
    a.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn c87_work_that_does_not_listen_leads_no_more_and_delays_the_next_campaign() {
    let server = server().await;
    let config_a = config("a").stop_timeout(secs(300));
    // Told, and goes on for 40 s.
    let a = Candidate::with_work(&server, config_a, "a", |lead, story| async move {
        let token = lead.token();
        token.cancelled().await;
        story.tell("told");
        tokio::time::sleep(secs(40)).await;
        story.tell("work ended");
    });
    a.leads_within(ms(1)).await;
    let b = Candidate::start(&server, config("b"), "b");
    tokio::time::sleep(ms(1)).await;
    let fault = server.faults().on(requests_of("a")).always().status(500);
    let begun = Instant::now();
    never_two(&[&a, &b], secs(11)).await;
    assert!(!a.handle.is_leader());
    assert!(a.story.when("told") <= 10_001, "{:?}", a.story.lines());
    fault.clear();
    let requests = server.journal().count(requests_of("a"));
    never_two(&[&a, &b], secs(28)).await;
    assert!(b.handle.is_leader());
    assert_eq!(server.journal().count(requests_of("a")), requests, "no campaign while the old work goes on");
    assert_eq!(a.story.count("work ended"), 0);
    tokio::time::sleep(secs(15)).await;
    assert!(begun.elapsed() > secs(50));
    assert!(server.journal().count(requests_of("a")) > requests, "and one when it has ended");
    assert_eq!(a.story.terms(), ["started", "told", "work ended", "stopped"]);
    assert_eq!(a.story.leaders(), ["a", "b"]);
    a.stop().await.unwrap();
    b.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn c87_a_stop_hook_that_blocks_holds_up_nothing_but_the_next_campaign() {
    let server = server().await;
    let (unblock, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = std::sync::Mutex::new(blocked);
    let elector = LeaderElector::builder(server.client_as("a"), config("a").stop_timeout(secs(100)))
        .on_stopped(move || {
            let _ = blocked.lock().expect("one at a time").recv_timeout(secs(60));
        })
        .build()
        .unwrap();
    let (handle, token) = (elector.handle().clone(), CancellationToken::new());
    let task = tokio::spawn(elector.run(token.clone(), |lead| async move { lead.cancelled().await }));
    tokio::time::sleep(ms(1)).await;
    let b = Candidate::start(&server, config("b"), "b");
    let fault = server.faults().on(requests_of("a")).always().status(500);
    // While a thread is busy the paused clock does not move by itself.
    let pass = async |millis: u64| {
        for _ in 0..millis / 50 {
            tokio::time::advance(ms(50)).await;
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            assert!(!(handle.is_leader() && b.handle.is_leader()), "two");
        }
    };
    pass(9_000).await;
    assert!(handle.is_leader());
    pass(2_000).await;
    assert!(!handle.is_leader());
    fault.clear();
    let requests = server.journal().count(requests_of("a"));
    pass(60_000).await;
    assert!(b.handle.is_leader(), "the other one is not held up");
    assert_eq!(server.journal().count(requests_of("a")), requests, "no campaign before the hook has returned");
    unblock.send(()).unwrap();
    // The thread's end wakes the elector in real time, at which the paused clock goes on by itself.
    tokio::time::sleep(secs(10)).await;
    assert!(server.journal().count(requests_of("a")) > requests);
    token.cancel();
    // The second on_stopped is never called: it has not led again.
    assert_eq!(task.await.unwrap().unwrap(), Outcome::Stopped);
    b.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn c87_work_that_never_ends_after_a_loss_ends_the_candidate() {
    let server = server().await;
    let a = Candidate::with_work(&server, config("a"), "a", |_, _| std::future::pending::<()>());
    a.leads_within(ms(1)).await;
    server.faults().on(requests_of("a")).always().status(500);
    let (handle, story) = (a.handle.clone(), a.story.clone());
    let error = a.ended().await.unwrap_err();
    assert!(matches!(error, Error::Overdue { .. }), "{error:?}");
    assert_eq!(error.to_string(), "the work of the leader of shop/cart had not ended 15s after it was told to");
    assert!(!handle.is_leader());
    tokio::time::sleep(ms(1)).await;
    assert_eq!(story.terms(), ["started", "stopped"]);
}

#[tokio::test(start_paused = true)]
async fn c93_a_mere_candidate_is_never_told_that_it_stopped() {
    let server = server().await;
    let (a, b) = two(&server).await;
    let story = b.story.clone();
    assert_eq!(b.stop().await.unwrap(), Outcome::Stopped);
    assert_eq!(story.words(), ["new leader a"]);
    assert_eq!(holder(&server), "a", "and it gives up nothing that is not its own");
    a.stop().await.unwrap();
    // Nor one that the server never answered, nor one whose token is cancelled from the start.
    server.faults().on(requests_of("c")).always().no_answer();
    let c = Candidate::start(&server, config("c"), "c");
    tokio::time::sleep(secs(60)).await;
    let begun = Instant::now();
    let story = c.story.clone();
    c.stop().await.unwrap();
    assert!(begun.elapsed() < ms(1) && story.words().is_empty());
    let d = Candidate::start(&server, config("d"), "d");
    d.token.cancel();
    let story = d.story.clone();
    d.ended().await.unwrap();
    assert!(story.words().is_empty() && server.journal().count(requests_of("d")) == 0);
}

#[tokio::test(start_paused = true)]
async fn c93_an_hour_of_errors_ends_nothing_and_events_alternate() {
    let server = server().await;
    let a = Candidate::start(&server, config("a"), "a");
    let b = Candidate::start(&server, config("b"), "b");
    a.leads_within(ms(1)).await;
    for round in 0..100_u64 {
        let rule = |of: &str| server.faults().on(requests_of(of)).times(1 + round % 7);
        let _handle = match round % 6 {
            0 => rule("a").status(500),
            1 => rule("a").status(409),
            2 => rule("a").no_answer(),
            3 => rule("b").drop_connection(),
            4 => rule("a").reset_at_byte(0),
            _ => rule("b").status(Status::too_many_requests(3)),
        };
        never_two(&[&a, &b], secs(36)).await;
        server.faults().clear();
    }
    assert!(!a.task.is_finished() && !b.task.is_finished());
    for candidate in [&a, &b] {
        let terms = candidate.story.terms();
        assert!(terms.iter().step_by(2).all(|w| *w == "started"), "{terms:?}");
        assert!(terms.iter().skip(1).step_by(2).all(|w| *w == "stopped"), "{terms:?}");
        let leaders = candidate.story.leaders();
        assert!(leaders.windows(2).all(|w| w[0] != w[1]), "once a change: {leaders:?}");
    }
    assert!(a.handle.is_leader() || b.handle.is_leader());
    assert!(a.story.count("stopped") >= 5, "there were losses: {:?}", a.story.words());
}

#[tokio::test(start_paused = true)]
async fn c93_each_leader_is_told_once_to_everybody() {
    let server = server().await;
    let a = Candidate::start(&server, config("a"), "a");
    a.leads_within(ms(1)).await;
    let b = Candidate::start(&server, config("b"), "b");
    let c = Candidate::start(&server, config("c"), "c");
    tokio::time::sleep(secs(100)).await;
    let story_of_a = a.story.clone();
    a.stop().await.unwrap();
    tokio::time::sleep(secs(100)).await;
    assert_eq!((story_of_a.terms().len(), story_of_a.leaders()), (2, vec!["a".to_owned()]));
    for (candidate, other) in [(&b, &c), (&c, &b)] {
        let leader = if candidate.handle.is_leader() { candidate } else { other };
        assert_eq!(candidate.story.leaders(), ["a", leader.handle.identity()]);
    }
    b.stop().await.unwrap();
    c.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_obeyed_by_candidates() {
    let server = server().await;
    server.faults().on(requests_of("a")).times(1).status(Status::too_many_requests(9));
    let a = Candidate::start(&server, config("a"), "a");
    let taken = a.leads_within(secs(20)).await;
    assert!(taken >= secs(9) && taken <= ms(10_801), "{taken:?}");
    a.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nonsense_from_the_server_is_a_failure_like_others() {
    for body in ["", "null", "[]", "{", r#"{"kind":"Lease"}"#, r#"{"metadata":{"resourceVersion":7}}"#] {
        let server = server().await;
        let nonsense = server.faults().on(requests_of("a")).always().body("application/json", body);
        let a = Candidate::start(&server, config("a"), "a");
        tokio::time::sleep(secs(60)).await;
        assert!(!a.handle.is_leader() && !a.task.is_finished(), "{body}");
        let requests = server.journal().count(requests_of("a"));
        assert!((24..=31).contains(&requests), "{body}: {requests} requests in a minute");
        nonsense.clear();
        a.leads_within(secs(3)).await;
        a.stop().await.unwrap();
    }
}
