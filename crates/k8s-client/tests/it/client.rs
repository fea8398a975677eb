//! Reads, discovery and raw requests against a scripted server.

use std::error::Error as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_client::{Client, Error};
use k8s_types::Gvr;

use crate::support::Server;

const CORE: &str = r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[
    {"name":"pods","kind":"Pod","namespaced":true,"verbs":["get","list","watch"]},
    {"name":"pods/log","kind":"Pod","namespaced":true,"verbs":["get"]},
    {"name":"nodes","kind":"Node","namespaced":false,"verbs":["get","list","watch"]}]}"#;

fn gvr(text: &str) -> Gvr {
    text.parse().unwrap()
}

/// Serves core discovery, one Pod and one Node.
fn cluster() -> Server {
    Server::answering(|line| match line {
        "GET /api/v1" => (200, CORE.into()),
        "GET /api/v1/namespaces/shop/pods/cart" => (
            200,
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"cart","namespace":"shop","resourceVersion":"5"}}"#
                .into(),
        ),
        "GET /api/v1/nodes/n1" => (200, r#"{"kind":"Node","metadata":{"name":"n1"}}"#.into()),
        "GET /api/v1/namespaces/shop/pods/list" => (200, "[1,2]".into()),
        _ => (404, r#"{"kind":"Status","reason":"NotFound","message":"there is no such thing","code":404}"#.into()),
    })
}

#[tokio::test]
async fn an_object_is_read_by_resource_namespace_and_name() {
    let server = cluster();
    let pod = server.client().get(&gvr("v1/pods"), Some("shop"), "cart").await.unwrap();
    assert_eq!((pod.namespace(), pod.name(), pod.resource_version()), (Some("shop"), "cart", Some("5")));
    let headers = &server.seen.lock().unwrap()[1].1;
    assert_eq!(headers["accept"], "application/json");
    assert_eq!(headers["accept-encoding"], "identity", "nobody may compress the answer");
}

#[tokio::test]
async fn c30_the_namespace_of_a_cluster_scoped_object_is_ignored() {
    let server = cluster();
    let client = server.client();
    for namespace in [None, Some("default")] {
        assert_eq!(client.get(&gvr("v1/nodes"), namespace, "n1").await.unwrap().name(), "n1");
    }
}

#[tokio::test]
async fn a_namespaced_object_without_a_namespace_is_refused_before_it_is_asked_for() {
    // The handed-in client's default namespace is not assumed.
    let server = cluster();
    let error = server.client().get(&gvr("v1/pods"), None, "cart").await.unwrap_err();
    assert!(matches!(error, Error::NamespaceRequired { .. }));
    assert_eq!(error.to_string(), "get v1/pods cart: the kind is namespaced and no namespace was given");
    assert_eq!(server.lines(), ["GET /api/v1"]);
}

#[tokio::test]
async fn a_name_can_neither_address_the_collection_nor_another_object() {
    let server = cluster();
    let client = server.client();
    for name in ["", "..", "."] {
        let error = client.get(&gvr("v1/pods"), Some("shop"), name).await.unwrap_err();
        assert!(matches!(error, Error::InvalidName { field: "name", .. }), "{error}");
    }
    client.get(&gvr("v1/pods"), Some("shop"), "../../nodes/n1?x=1").await.unwrap_err();
    assert_eq!(server.lines().last().unwrap(), "GET /api/v1/namespaces/shop/pods/..%2F..%2Fnodes%2Fn1%3Fx=1");
}

#[tokio::test]
async fn a_missing_object_and_a_missing_kind_are_told_apart() {
    let server = cluster();
    let client = server.client();
    let error = client.get(&gvr("v1/pods"), Some("shop"), "gone").await.unwrap_err();
    assert!(error.is_not_found() && !error.is_kind_not_served() && !error.is_retryable());
    assert_eq!(error.to_string(), "get v1/pods shop/gone: 404 NotFound: there is no such thing");
    for missing in ["v1/gadgets", "example.com/v1/gadgets"] {
        let error = client.get(&gvr(missing), Some("shop"), "gone").await.unwrap_err();
        assert!(error.is_kind_not_served() && !error.is_not_found());
        assert_eq!(error.to_string(), format!("the server does not serve {missing}"));
    }
}

#[tokio::test]
async fn an_answer_that_is_no_object_is_an_error_without_its_content() {
    let error = cluster().client().get(&gvr("v1/pods"), Some("shop"), "list").await.unwrap_err();
    assert!(matches!(error, Error::Decode { .. }) && error.source().is_some());
    assert_eq!(error.to_string(), "get v1/pods shop/list: the answer cannot be read");
}

#[tokio::test]
async fn discovery_is_asked_once_per_group_version_even_by_many_at_a_time() {
    let server = cluster();
    let client = server.client();
    let (pods, nodes) = (gvr("v1/pods"), gvr("v1/nodes"));
    let other = client.clone();
    let (a, b, c) =
        tokio::join!(client.resource_scope(&pods), other.resource_scope(&pods), client.resource_scope(&nodes));
    assert_eq!((a.unwrap().kind(), b.unwrap().kind(), c.unwrap().kind()), ("Pod", "Pod", "Node"));
    assert_eq!(server.lines(), ["GET /api/v1"]);
    let pods = client.resource_scope(&pods).await.unwrap().api_resource(&pods);
    assert_eq!((pods.api_version.as_str(), pods.kind.as_str(), pods.plural.as_str()), ("v1", "Pod", "pods"));
    assert_eq!(k8s_client::gvr_of(&pods), gvr("v1/pods"));
}

#[tokio::test]
async fn a_kind_that_comes_later_is_found_later() {
    let asked = AtomicUsize::new(0);
    let server = Server::answering(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => (404, "404 page not found".into()),
        1 => (200, r#"{"resources":[{"name":"others","kind":"Other"}]}"#.into()),
        _ => (200, r#"{"resources":[{"name":"gadgets","kind":"Gadget","namespaced":true}]}"#.into()),
    });
    let client = server.client();
    let gadgets = gvr("example.com/v1/gadgets");
    for _ in 0..2 {
        assert!(client.resource_scope(&gadgets).await.unwrap_err().is_kind_not_served());
    }
    for _ in 0..2 {
        assert!(client.resource_scope(&gadgets).await.unwrap().is_namespaced());
    }
    assert_eq!(server.lines(), ["GET /apis/example.com/v1"; 3]);
}

#[tokio::test]
async fn what_a_caller_decides_on_follows_from_the_status() {
    let cases = [
        // status, forbidden, gone, retryable
        (400, false, false, false),
        (401, true, false, false),
        (403, true, false, false),
        (410, false, true, false),
        (429, false, false, true),
        (500, false, false, true),
        (503, false, false, true),
        (504, false, false, true),
    ];
    for (status, forbidden, gone, retryable) in cases {
        let server = Server::answering(move |_| (status, r#"{"kind":"Secret","data":"hunter2"}"#.into()));
        let error = server.client().resource_scope(&gvr("v1/pods")).await.unwrap_err();
        assert_eq!(error.status_code(), Some(status));
        assert_eq!(
            (error.is_forbidden(), error.is_gone(), error.is_retryable()),
            (forbidden, gone, retryable),
            "{status}"
        );
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
        assert!(!format!("{error} {error:?}").contains("hunter2"), "bodies stay out of errors");
    }
}

#[tokio::test]
async fn a_raw_request_gives_the_answer_as_it_came() {
    let server = Server::answering(|_| (410, "too old".into()));
    let request = http::Request::get("/api/v1/pods?watch=true&resourceVersion=1").header("accept", "text/plain");
    let response = server.client().send(request.body(Vec::new()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 410);
    assert_eq!(&response.into_body().collect_bytes().await.unwrap()[..], b"too old");
    let seen = server.seen.lock().unwrap();
    assert_eq!(seen[0].0, "GET /api/v1/pods?watch=true&resourceVersion=1");
    assert_eq!(seen[0].1["accept"], "text/plain", "the caller's own header stays");
}

#[tokio::test]
async fn a_failing_transport_names_the_operation_and_keeps_the_cause() {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("cable cut"))
    });
    let client = Client::from(kube::Client::new(service, "default"));
    let error = client.get(&gvr("v1/pods"), Some("shop"), "cart").await.unwrap_err();
    assert!(error.is_retryable() && error.status_code().is_none());
    assert_eq!(error.to_string(), "discover v1/pods: no answer from the server");
    assert_eq!(error.source().unwrap().to_string(), "cable cut");
    let request = http::Request::get("/api/v1/pods?continue=abc").body(Vec::new()).unwrap();
    assert_eq!(client.send(request).await.unwrap_err().to_string(), "GET /api/v1/pods: no answer from the server");
}

#[tokio::test]
async fn clones_remember_together_that_streaming_is_refused() {
    let client = cluster().client();
    let clone = Client::from(&client);
    assert!(client.supports_streaming());
    clone.note_streaming_refused();
    assert!(!client.supports_streaming());
}

/// What users of kube write.
async fn version_through(client: impl Into<kube::Client>) -> String {
    let request = http::Request::get("/version").body(Vec::new()).unwrap();
    client.into().request_text(request).await.unwrap()
}

#[tokio::test]
async fn what_takes_a_kube_client_takes_ours_and_the_reverse() {
    let server = Server::in_namespace("shop", |_| (200, "v1".into()));
    let client = server.client();
    assert_eq!(version_through(&client).await, "v1");
    assert_eq!(version_through(client.clone()).await, "v1");
    assert_eq!(kube::Client::from(&client).default_namespace(), "shop");
    // Back again it is a new memory of the same server.
    client.note_streaming_refused();
    let again = Client::from(kube::Client::from(client.clone()));
    assert!(again.supports_streaming() && !client.supports_streaming());
    assert_eq!(again.namespace().unwrap(), "shop");
    assert_eq!(server.lines(), ["GET /version", "GET /version"]);
}

#[tokio::test]
async fn a_handed_in_client_brings_its_namespace() {
    let server = Server::in_namespace("shop\n", |_| (200, String::new()));
    assert_eq!(server.client().namespace().unwrap(), "shop");
    let server = Server::in_namespace("", |_| (200, String::new()));
    assert!(matches!(server.client().namespace(), Err(Error::NoNamespace)));
}
