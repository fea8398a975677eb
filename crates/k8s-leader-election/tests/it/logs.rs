//! What an operator reads in the log: changes, and each trouble once; nothing that is anybody's secret.

use k8s_fake_apiserver::FakeApiServer;
use serde_json::json;
use test_support::{Log, collect_log};

use crate::support::{Candidate, config, lease, ms, requests_of, secs, server};

/// A server, and what is logged on this thread from now on.
async fn collect() -> (FakeApiServer, Log) {
    (server().await, collect_log())
}

#[tokio::test(start_paused = true)]
async fn a_life_in_the_log() {
    let (server, lines) = collect().await;
    let a = Candidate::start(&server, config("a"), "a");
    a.leads_within(ms(1)).await;
    tokio::time::sleep(secs(60)).await;
    let fault = server.faults().on(requests_of("a")).always().status(503);
    // Ten minutes of trouble are one line, and its end is one.
    tokio::time::sleep(secs(600)).await;
    fault.clear();
    a.leads_within(secs(3)).await;
    a.stop().await.unwrap();
    let told: Vec<_> = lines
        .of_interest()
        .into_iter()
        .map(|line| line.split_once(" failures=").map_or(line.clone(), |(line, _)| line.to_owned()))
        .collect();
    assert_eq!(
        told,
        [
            "INFO span elect namespace=shop name=cart identity=a",
            "INFO new leader leader=\"a\"",
            "INFO leading",
            "WARN cannot reach the lease; trying again error=503 ServiceUnavailable: the server is currently unable to handle the request",
            "INFO not leading any more reason=Lost",
            "INFO the lease is reached again",
            "INFO leading",
            "INFO not leading any more reason=Stopped",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn bodies_never_reach_the_log() {
    let (server, lines) = collect().await;
    let mut object = lease(&json!({"holderIdentity": "b", "leaseDurationSeconds": 3, "secret": "hunter2"}));
    object["metadata"]["annotations"]["password"] = "hunter2".into();
    server.apply(object).unwrap();
    let a = Candidate::start(&server, config("a"), "a");
    a.leads_within(secs(5)).await;
    for body in [r#"{"password":"hunter2"}"#, "hunter2", r#"{"kind":"Secret","message":"hunter2"}"#] {
        let fault = server.faults().on(requests_of("a")).always().body("application/json", body);
        tokio::time::sleep(secs(30)).await;
        fault.clear();
        a.leads_within(secs(20)).await;
    }
    a.stop().await.unwrap();
    let lines = lines.all();
    assert!(lines.len() > 30 && lines.iter().all(|line| !line.contains("hunter2")), "{lines:?}");
}
