//! The journal of requests.

use std::time::Duration;

use k8s_fake_apiserver::{Any, FakeApiServer, List, Verb, Watch, Write};
use serde_json::{Value, json};

use crate::support::{call, get, merge_patch, post, server, watch};

#[tokio::test(start_paused = true)]
async fn requests_in_their_order_with_their_answers() {
    let server = server().await;
    let client = server.client_as("tester/1.0");
    get(&client, "/api/v1/namespaces/shop/pods?labelSelector=a%3Db&limit=5").await;
    server.journal().assert_no_writes();
    tokio::time::sleep(Duration::from_secs(2)).await;
    post(&client, "/api/v1/namespaces/shop/configmaps", &json!({"metadata": {"name": "a"}})).await;
    merge_patch(&client, "/api/v1/namespaces/shop/configmaps/b", &json!({})).await;
    get(&client, "/apis").await;
    let requests = server.journal().requests();
    let shown: Vec<String> = requests.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "list /api/v1/namespaces/shop/pods?labelSelector=a=b&limit=5 -> 200",
            "create /api/v1/namespaces/shop/configmaps -> 201",
            "patch /api/v1/namespaces/shop/configmaps/b -> 404",
            "other /apis -> 200",
        ]
    );
    let list = &requests[0];
    assert_eq!((list.verb, list.resource.as_str(), list.namespace.as_deref()), (Verb::List, "v1/pods", Some("shop")));
    assert_eq!((list.query("limit"), list.query("nope"), list.client.as_str()), (Some("5"), None, "tester/1.0"));
    assert_eq!((requests[1].at - list.at).as_secs(), 2);
    assert_eq!(requests[2].name.as_deref(), Some("b"));
    assert_eq!(server.journal().count(Write::request()), 2);
    assert_eq!(server.journal().count(List::of("v1/pods").with_query("limit", "5").without_query("continue")), 1);
    assert_eq!(server.journal().count(List::of("v1/pods").without_query("limit")), 0);
    assert_eq!(server.journal().count(Any::request().client("tester")), 4);
    server.journal().clear();
    assert_eq!(server.journal().count(Any::request()), 0);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "there were writes: deletecollection /api/v1/namespaces/a/pods -> 200")]
async fn writes_are_named() {
    let server = server().await;
    call(&server.client(), "DELETE", "/api/v1/namespaces/a/pods", "application/json", &Value::Null).await;
    server.journal().assert_no_writes();
}

#[tokio::test(start_paused = true)]
async fn bounded_and_with_requests_that_have_no_answer() {
    let server = FakeApiServer::builder().journal_capacity(3).start().await.unwrap();
    let client = server.client();
    for _ in 0..5 {
        get(&client, "/version").await;
    }
    server.faults().on(Watch::request()).delay(Duration::from_secs(60));
    let waiting = watch(&server, "/api/v1/pods?watch=1");
    assert!(tokio::time::timeout(Duration::from_secs(1), waiting).await.is_err());
    let requests = server.journal().requests();
    assert_eq!((requests.len(), server.journal().forgotten()), (3, 3));
    assert_eq!(requests[2].to_string(), "watch /api/v1/pods?watch=1 -> no answer");
}
