//! What happens when an elector is told to stop, and in which order.

use k8s_fake_apiserver::{Get, Update};
use k8s_leader_election::{Error, Outcome};
use tokio::time::Instant;

use crate::support::{Candidate, LEASES, config, holder, ms, never_two, requests_of, secs, server, spec};

#[tokio::test(start_paused = true)]
async fn c92_the_work_ends_before_the_hook_and_the_hook_before_the_release() {
    let server = server().await;
    let a = Candidate::with_work(&server, config("a"), "a", {
        let server = server.clone();
        move |lead, story| {
            let server = server.clone();
            async move {
                lead.cancelled().await;
                story.tell(format!("told; leads: {}, holder: {}", lead.is_leader(), holder(&server)));
                tokio::time::sleep(secs(3)).await;
                story.tell(format!("work ended; holder: {}", holder(&server)));
            }
        }
    });
    a.leads_within(ms(1)).await;
    let b = Candidate::start(&server, config("b"), "b");
    tokio::time::sleep(secs(7)).await;
    let (story, token) = (a.story.clone(), a.token.clone());
    let begun = Instant::now();
    token.cancel();
    tokio::task::yield_now().await;
    never_two(&[&a, &b], ms(2_999)).await;
    assert!(!a.handle.is_leader() && !b.handle.is_leader(), "B must not lead before the work of A has ended");
    assert_eq!(a.ended().await.unwrap(), Outcome::Stopped);
    assert_eq!(begun.elapsed(), secs(3));
    assert!(holder(&server).is_empty() && !b.handle.is_leader());
    b.leads_within(ms(2_400)).await;
    assert_eq!(story.terms(), ["started", "told; leads: false, holder: a", "work ended; holder: a", "stopped"]);
    b.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn c92_the_lease_is_renewed_while_the_work_winds_down() {
    let server = server().await;
    let a = Candidate::with_work(&server, config("a").stop_timeout(secs(120)), "a", |lead, _| async move {
        lead.cancelled().await;
        tokio::time::sleep(secs(100)).await;
    });
    a.leads_within(ms(1)).await;
    let b = Candidate::start(&server, config("b"), "b");
    let begun = Instant::now();
    a.token.cancel();
    let mut last = spec(&server)["renewTime"].clone();
    for _ in 0..24 {
        tokio::time::sleep(secs(4)).await;
        let next = spec(&server)["renewTime"].clone();
        assert_ne!(next, last);
        last = next;
        assert!(!a.handle.is_leader() && !b.handle.is_leader());
    }
    a.ended().await.unwrap();
    assert_eq!(begun.elapsed(), secs(100));
    b.leads_within(ms(2_400)).await;
    b.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn c92_work_that_never_ends_is_aborted_and_its_lease_not_released() {
    let server = server().await;
    let a = Candidate::with_work(&server, config("a"), "a", |_, _| std::future::pending::<()>());
    a.leads_within(ms(1)).await;
    let b = Candidate::start(&server, config("b"), "b");
    tokio::time::sleep(secs(5)).await;
    let begun = Instant::now();
    let story = a.story.clone();
    let error = a.stop().await.unwrap_err();
    assert!(matches!(error, Error::Overdue { what: "the work", waited, .. } if waited == secs(15)), "{error:?}");
    assert_eq!(begun.elapsed(), secs(15));
    assert_eq!(holder(&server), "a", "nobody knows whether it has really ended");
    // It was renewed until then, so B waits for all of it.
    let taken = b.leads_within(secs(18)).await;
    assert!(taken >= ms(15_000 - 2_400), "{taken:?}");
    assert_eq!(story.terms(), ["started", "stopped"]);
    b.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn c92_a_release_never_clears_the_next_holder() {
    for lost_first in [false, true] {
        let server = server().await;
        let a = Candidate::start(&server, config("a"), "a");
        a.leads_within(ms(1)).await;
        tokio::time::sleep(secs(5)).await;
        // Somebody takes the lease, and A does not know it yet.
        let mut object = server.object(LEASES, Some("shop"), "cart").unwrap().unwrap();
        object["spec"]["holderIdentity"] = "b".into();
        server.apply(object).unwrap();
        if lost_first {
            tokio::time::sleep(ms(2_401)).await;
            assert!(!a.handle.is_leader());
        } else {
            assert!(a.handle.is_leader());
        }
        let before = spec(&server);
        a.stop().await.unwrap();
        assert_eq!(spec(&server), before, "lost first: {lost_first}");
    }
}

#[tokio::test(start_paused = true)]
async fn c92_a_release_that_fails_is_tried_again_within_the_renew_deadline() {
    let server = server().await;
    for (fault, released) in [(3, true), (u64::MAX, false)] {
        let a = Candidate::start(&server, config("a"), "a");
        a.leads_within(ms(1)).await;
        server.faults().on(requests_of("a")).times(fault).status(500);
        let begun = Instant::now();
        assert_eq!(a.stop().await.unwrap(), Outcome::Stopped);
        assert!(begun.elapsed() <= secs(10), "{:?}", begun.elapsed());
        assert_eq!(holder(&server).is_empty(), released);
        server.faults().clear();
    }
}

#[tokio::test(start_paused = true)]
async fn c92_a_lease_that_was_won_just_as_the_token_was_cancelled_is_released() {
    // The write is under way: its answer is waited for. Or the answer never comes, and the lease is looked at.
    for is_lost in [false, true] {
        let server = server().await;
        let held = server.faults().on(k8s_fake_apiserver::Create::of(LEASES)).hold();
        if is_lost {
            server.faults().on(k8s_fake_apiserver::Create::of(LEASES)).always().hang_at_byte(0);
        }
        let a = Candidate::start(&server, config("a"), "a");
        held.wait_for(1).await;
        a.token.cancel();
        tokio::time::sleep(ms(100)).await;
        held.release();
        let story = a.story.clone();
        assert_eq!(a.ended().await.unwrap(), Outcome::Stopped);
        assert!(holder(&server).is_empty(), "answer lost: {is_lost}");
        assert!(!story.words().contains(&"started".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn c92_release_can_be_switched_off() {
    let server = server().await;
    let a = Candidate::start(&server, config("a").release(false), "a");
    a.leads_within(ms(1)).await;
    let writes = server.journal().count(Update::of(LEASES));
    a.stop().await.unwrap();
    assert_eq!(holder(&server), "a");
    assert_eq!(server.journal().count(Update::of(LEASES)), writes);
    assert_eq!(server.journal().count(Get::of(LEASES)), 1);
}

#[tokio::test(start_paused = true)]
async fn c92_a_loss_while_stopping_releases_nothing_and_ends_all_the_same() {
    let server = server().await;
    let a = Candidate::with_work(&server, config("a").stop_timeout(secs(60)), "a", |lead, _| async move {
        lead.cancelled().await;
        tokio::time::sleep(secs(50)).await;
    });
    a.leads_within(ms(1)).await;
    let b = Candidate::start(&server, config("b"), "b");
    tokio::time::sleep(secs(1)).await;
    server.faults().on(requests_of("a")).always().status(500);
    a.token.cancel();
    b.leads_within(secs(20)).await;
    server.faults().clear();
    assert_eq!(a.ended().await.unwrap(), Outcome::Stopped);
    assert!(b.handle.is_leader() && holder(&server) == "b");
    b.stop().await.unwrap();
}
