//! What can be seen from outside when the lease cannot be reached.

use k8s_fake_apiserver::Status;

use crate::support::{Candidate, LEASES, config, ms, requests_of, secs, server};

#[tokio::test(start_paused = true)]
async fn a_candidate_that_stands_by_in_vain_says_why() {
    let server = server().await;
    let a = Candidate::start(&server, config("a"), "a");
    a.leads_within(ms(1)).await;
    let forbidden = server.faults().on(requests_of("b")).always().status(Status::forbidden("get", LEASES));
    let b = Candidate::start(&server, config("b"), "b");
    tokio::time::sleep(secs(60)).await;
    let failure = b.handle.failure().unwrap();
    assert!(failure.starts_with("403 Forbidden: ") && failure.contains("leases"), "{failure}");
    assert_eq!((b.handle.leader(), a.handle.failure()), (None, None));
    let mut state = b.handle.leadership();
    forbidden.clear();
    tokio::time::timeout(secs(3), state.wait_for(|s| s.failure().is_none())).await.unwrap().unwrap();
    assert_eq!(b.handle.leader().as_deref(), Some("a"));
    // A leader says it too, before it loses the lead.
    let gone = server.faults().on(requests_of("a")).always().no_answer();
    let mut state = a.handle.leadership();
    let failed = state.wait_for(|s| s.failure() == Some("no answer within 5s"));
    tokio::time::timeout(secs(8), failed).await.unwrap().unwrap();
    assert!(a.handle.is_leader());
    gone.clear();
    tokio::time::sleep(secs(5)).await;
    assert_eq!((a.handle.failure(), a.handle.is_leader()), (None, true));
    a.stop().await.unwrap();
    b.stop().await.unwrap();
}

/// A proxy that answers for the server, and knows nothing of it.
#[tokio::test(start_paused = true)]
async fn answers_of_somebody_else_neither_give_nor_take_the_lead() {
    for (body, status) in [
        (r#"{"message":"no route"}"#, 404),
        ("<html>log in</html>", 200),
        (r#"{"kind":"Status","status":"Success"}"#, 200),
        (r#"{"kind":"LeaseList","metadata":{"resourceVersion":"9"},"items":[]}"#, 200),
        ("", 302),
        ("", 502),
    ] {
        let server = server().await;
        let a = Candidate::start(&server, config("a"), "a");
        a.leads_within(ms(1)).await;
        let rule = server.faults().on(requests_of("b")).always();
        let fault = if status == 200 { rule.body("text/html", body) } else { rule.status(status) };
        let b = Candidate::start(&server, config("b"), "b");
        for _ in 0..60 {
            tokio::time::sleep(secs(1)).await;
            assert!(a.handle.is_leader() && !b.handle.is_leader(), "{status} {body}");
        }
        fault.clear();
        tokio::time::sleep(secs(20)).await;
        assert!(a.handle.is_leader() && !b.handle.is_leader(), "{status} {body}");
        assert_eq!(b.handle.failure(), None);
        a.stop().await.unwrap();
        b.leads_within(secs(5)).await;
        b.stop().await.unwrap();
    }
}
