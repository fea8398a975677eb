//! The rate limit, as a layer under a `kube::Client` and as a setting of ours.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use k8s_client::{Client, ClientConfig, Error, ThrottleLayer};
use k8s_fake_apiserver::{Any, FakeApiServer, Status, Watch};
use kube::client::Body;
use tokio::time::Instant;
use tower::Layer;

use crate::support::ask;

/// What was asked, and when, in milliseconds.
type Sent = Arc<Mutex<Vec<(String, u128)>>>;

/// A client of a service that answers at once.
fn throttled(qps: f64, burst: u32) -> (Client, Sent) {
    let sent = Sent::default();
    let (log, start) = (Arc::clone(&sent), Instant::now());
    let service = tower::service_fn(move |request: Request<Body>| {
        log.lock().unwrap().push((request.uri().path().to_owned(), start.elapsed().as_millis()));
        std::future::ready(Ok::<_, std::convert::Infallible>(Response::new(Body::empty())))
    });
    let service = ThrottleLayer::new(qps, burst).unwrap().layer(service);
    (kube::Client::new(service, "default").into(), sent)
}

fn request(path: impl std::fmt::Display) -> Request<Vec<u8>> {
    Request::get(format!("/{path}")).body(Vec::new()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn requests_go_in_order_a_burst_at_once_and_the_rest_at_the_rate() {
    let (client, sent) = throttled(10.0, 3);
    let mut tasks = tokio::task::JoinSet::new();
    // More than kube's queue holds, so that some wait for a place in it.
    for i in 0..1500 {
        let client = client.clone();
        tasks.spawn(async move { client.send(request(i)).await.map(drop) });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap().unwrap();
    }
    let sent = sent.lock().unwrap();
    for (i, (path, at)) in sent.iter().enumerate() {
        let due = 100 * i.saturating_sub(2) as u128;
        // A timer has whole milliseconds.
        assert!(*path == format!("/{i}") && (due..due + 3).contains(at), "{i}: {path} at {at} ms");
    }
    assert_eq!(sent.len(), 1500);
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_waiting_leaves_its_turn_to_the_next() {
    let (client, sent) = throttled(1.0, 1);
    client.send(request("first")).await.unwrap();
    let waiting = |path: &'static str| {
        let client = client.clone();
        tokio::spawn(async move { client.send(request(path)).await.map(drop) })
    };
    let (second, third, fourth) = (waiting("second"), waiting("third"), waiting("fourth"));
    tokio::time::sleep(Duration::from_millis(500)).await;
    // The one whose wait has begun, and one behind it.
    second.abort();
    third.abort();
    fourth.await.unwrap().unwrap();
    client.send(request("fifth")).await.unwrap();
    let sent = sent.lock().unwrap();
    let paths: Vec<_> = sent.iter().map(|(path, at)| (path.as_str(), at / 100)).collect();
    assert_eq!(paths, [("/first", 0), ("/fourth", 10), ("/fifth", 20)]);
}

#[tokio::test]
async fn the_setting_limits_what_is_sent_and_counts_a_watch_once() {
    let server = FakeApiServer::builder().loopback().start().await.unwrap();
    let config = ClientConfig::kubeconfig_content(server.kubeconfig().unwrap());
    let limited = config.clone().rate_limit(0.001, 2).build().await.unwrap();
    let watch = Request::get("/api/v1/pods?watch=true&resourceVersion=0").body(Vec::new()).unwrap();
    let open = limited.send(watch).await.unwrap();
    assert_eq!(open.status(), 200);
    ask(&limited).await.unwrap();
    let third = tokio::spawn(async move { ask(&limited).await });
    // Meanwhile a client without a limit is answered any number of times.
    let free = config.build().await.unwrap();
    for _ in 0..50 {
        ask(&free).await.unwrap();
    }
    assert!(!third.is_finished());
    third.abort();
    assert_eq!(server.journal().count(Any::request()), 52, "the third was not sent");
    drop(open);
}

#[tokio::test]
async fn by_default_nothing_waits() {
    let server = FakeApiServer::builder().loopback().start().await.unwrap();
    let client = ClientConfig::kubeconfig_content(server.kubeconfig().unwrap()).build().await.unwrap();
    let start = std::time::Instant::now();
    for _ in 0..400 {
        ask(&client).await.unwrap();
    }
    // At client-go's default of 5 a second it would be well over a minute.
    assert!(start.elapsed() < Duration::from_secs(40));
}

#[tokio::test]
async fn a_request_counts_whatever_becomes_of_it() {
    let server = FakeApiServer::builder().loopback().start().await.unwrap();
    server.faults().on(Watch::of("v1/pods")).status(Status::too_many_requests(1));
    let config = ClientConfig::kubeconfig_content(server.kubeconfig().unwrap());
    let client = config.rate_limit(0.001, 1).build().await.unwrap();
    let watch = Request::get("/api/v1/pods?watch=true").body(Vec::new()).unwrap();
    assert_eq!(client.send(watch).await.unwrap().status(), 429);
    let second = tokio::spawn(async move { ask(&client).await });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!second.is_finished());
    second.abort();
    assert_eq!(server.journal().count(Any::request()), 1);
}

#[tokio::test]
async fn a_setting_that_cannot_be_used_is_named_when_the_client_is_built() {
    let config = ClientConfig::kubeconfig_content("not looked at");
    let error = config.clone().rate_limit(f64::NAN, 1).build().await.unwrap_err();
    assert!(matches!(error, Error::InvalidSetting { field: "qps", .. }), "{error}");
    let error = config.rate_limit(5.0, 0).build().await.unwrap_err();
    assert_eq!(error.to_string(), "burst 0 is not allowed: it must be at least 1");
}
