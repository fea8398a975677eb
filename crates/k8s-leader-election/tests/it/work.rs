//! Work that ends by itself, fails or panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_leader_election::{AfterWork, Error, LeaderElector, Outcome};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::{Candidate, config, holder, ms, secs, server};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Done,
    Fails,
    Panics,
}

async fn for_five_seconds(way: Way) -> Result<(), String> {
    tokio::time::sleep(secs(5)).await;
    match way {
        Way::Done => Ok(()),
        Way::Fails => Err("the disk is full".into()),
        Way::Panics => panic!("as the test wants"),
    }
}

#[tokio::test(start_paused = true)]
async fn c94_work_that_ends_gives_the_lead_to_another_and_run_tells_how() {
    for way in [Way::Done, Way::Fails, Way::Panics] {
        let server = server().await;
        let a = Candidate::with_work(&server, config("a"), "a", move |_, _| for_five_seconds(way));
        a.leads_within(ms(1)).await;
        let b = Candidate::start(&server, config("b"), "b");
        let begun = Instant::now();
        let story = a.story.clone();
        let result = a.ended().await;
        // The work had begun a millisecond before.
        assert_eq!(begun.elapsed(), ms(4_999));
        match (way, &result) {
            (Way::Done, Ok(Outcome::WorkDone)) => {}
            (Way::Fails, Err(error @ Error::WorkFailed { .. })) => {
                assert_eq!(error.to_string(), "the work of the leader of shop/cart failed");
                assert_eq!(std::error::Error::source(error).unwrap().to_string(), "the disk is full");
            }
            (Way::Panics, Err(error @ Error::WorkPanicked { .. })) => {
                assert_eq!(error.to_string(), "the work of the leader of shop/cart panicked");
            }
            _ => panic!("{way:?}: {result:?}"),
        }
        assert!(holder(&server).is_empty());
        assert_eq!(story.terms(), ["started", "stopped"]);
        let taken = b.leads_within(secs(5)).await;
        assert!(taken <= ms(2_400), "{taken:?}");
        b.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn c94_on_request_the_elector_campaigns_again_and_others_come_first() {
    for way in [Way::Done, Way::Fails, Way::Panics] {
        let server = server().await;
        let runs = Arc::new(AtomicUsize::new(0));
        let counter = runs.clone();
        let a = Candidate::with_work(&server, config("a").after_work(AfterWork::Campaign), "a", move |_, _| {
            counter.fetch_add(1, Ordering::SeqCst);
            for_five_seconds(way)
        });
        // Alone, it leads again and again, and makes no hot loop of it.
        tokio::time::sleep(secs(100)).await;
        let alone = runs.load(Ordering::SeqCst);
        assert!((9..=11).contains(&alone), "{way:?}: {alone} runs");
        let b = Candidate::start(&server, config("b"), "b");
        b.leads_within(secs(12)).await;
        tokio::time::sleep(secs(60)).await;
        assert!(b.handle.is_leader() && !a.task.is_finished());
        b.stop().await.unwrap();
        a.leads_within(secs(3)).await;
        // It does not listen, so that it ends as it always does.
        match (way, a.stop().await) {
            (Way::Done, Ok(Outcome::Stopped)) => {}
            (Way::Fails, Err(Error::WorkFailed { .. })) | (Way::Panics, Err(Error::WorkPanicked { .. })) => {}
            (_, result) => panic!("{way:?}: {result:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c94_a_failure_while_stopping_is_reported_and_the_lease_released() {
    let server = server().await;
    let a = Candidate::with_work(&server, config("a"), "a", |lead, _| async move {
        lead.cancelled().await;
        Err::<(), _>(std::io::Error::other("could not save"))
    });
    a.leads_within(ms(1)).await;
    let error = a.stop().await.unwrap_err();
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "could not save");
    assert!(holder(&server).is_empty());
    let a = Candidate::with_work(&server, config("a"), "a", |lead, _| async move {
        lead.cancelled().await;
        panic!("as the test wants");
    });
    a.leads_within(ms(1)).await;
    assert!(matches!(a.stop().await, Err(Error::WorkPanicked { .. })));
    assert!(holder(&server).is_empty());
}

#[tokio::test(start_paused = true)]
async fn c94_a_failure_after_a_loss_is_no_reason_to_end() {
    let server = server().await;
    let a = Candidate::with_work(&server, config("a"), "a", |lead, _| async move {
        lead.cancelled().await;
        Err::<(), _>("interrupted")
    });
    a.leads_within(ms(1)).await;
    let fault = server.faults().on(crate::support::requests_of("a")).always().status(500);
    tokio::time::sleep(secs(60)).await;
    assert!(!a.task.is_finished() && !a.handle.is_leader());
    fault.clear();
    a.leads_within(ms(2_401)).await;
    assert_eq!(a.story.terms(), ["started", "stopped", "started"]);
    a.task.abort();
}

#[tokio::test(start_paused = true)]
async fn hooks_that_panic_are_no_reason_to_end() {
    let server = server().await;
    let elector = LeaderElector::builder(server.client(), config("a"))
        .on_started(|| panic!("as the test wants"))
        .on_stopped(|| panic!("as the test wants"))
        .on_new_leader(|_| panic!("as the test wants"))
        .build()
        .unwrap();
    let (handle, token) = (elector.handle().clone(), CancellationToken::new());
    let task = tokio::spawn(elector.run(token.clone(), |lead| async move { lead.cancelled().await }));
    tokio::time::sleep(secs(10)).await;
    assert!(handle.is_leader());
    token.cancel();
    assert_eq!(task.await.unwrap().unwrap(), Outcome::Stopped);
    assert!(holder(&server).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_function_that_panics_before_its_future_is_work_that_panics() {
    let server = server().await;
    let elector = LeaderElector::builder(server.client(), config("a")).build().unwrap();
    let work = |_| -> std::future::Ready<()> { panic!("as the test wants") };
    let result = elector.run(CancellationToken::new(), work).await;
    assert!(matches!(result, Err(Error::WorkPanicked { .. })));
}

#[tokio::test(start_paused = true)]
async fn work_may_be_written_in_any_of_these_ways() {
    async fn tick() {
        tokio::time::sleep(secs(1)).await;
    }
    let server = server().await;
    let token = CancellationToken::new();
    let elector = || LeaderElector::builder(server.client(), config("a")).build().unwrap();
    let done = elector().run(token.clone(), |_| async {}).await;
    assert_eq!(done.unwrap(), Outcome::WorkDone);
    let done = elector().run(token.clone(), |_| async { Ok::<(), std::io::Error>(()) }).await;
    assert_eq!(done.unwrap(), Outcome::WorkDone);
    let boxed = |_| async { Err::<(), Box<dyn std::error::Error + Send + Sync>>("no".into()) };
    assert!(elector().run(token.clone(), boxed).await.is_err());
    // Endless work has no type that could be written down.
    let endless = |_| async {
        loop {
            tick().await;
        }
    };
    let running = tokio::spawn(elector().run(token.clone(), endless));
    tokio::time::sleep(secs(3)).await;
    token.cancel();
    assert!(matches!(running.await.unwrap(), Err(Error::Overdue { .. })));
}
