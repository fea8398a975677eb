//! Metadata alone, tables.

use http::Request;
use http_body_util::BodyExt;
use k8s_fake_apiserver::FakeApiServer;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, WatchParams};
use kube::client::Body;
use serde_json::{Value, json};

use crate::support::pod;

async fn ask(server: &FakeApiServer, path: &str, accept: &str) -> (u16, Value) {
    let request = Request::get(path).header("accept", accept).body(Body::empty()).unwrap();
    let response = server.client().send(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

async fn one_pod() -> FakeApiServer {
    FakeApiServer::builder().object(pod("shop", "a", json!({"app": "x"}))).start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn metadata_alone() {
    use futures_util::{StreamExt, TryStreamExt};
    let server = one_pod().await;
    let api: Api<Pod> = Api::namespaced(server.client(), "shop");
    let list = api.list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(list.items[0].metadata.labels.as_ref().unwrap()["app"], "x");
    assert_eq!(api.get_metadata("a").await.unwrap().metadata.name.as_deref(), Some("a"));
    let events = api.watch_metadata(&WatchParams::default(), "0").await.unwrap();
    let event = events.boxed().try_next().await.unwrap().unwrap();
    assert!(matches!(event, kube::api::WatchEvent::Added(o) if o.metadata.name.as_deref() == Some("a")));
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let (_, list) = ask(&server, "/api/v1/pods", accept).await;
    assert_eq!(
        (list["kind"].as_str(), list["apiVersion"].as_str()),
        (Some("PartialObjectMetadataList"), Some("meta.k8s.io/v1"))
    );
    let item = list["items"][0].as_object().unwrap();
    assert_eq!((item.len(), item["kind"].as_str()), (3, Some("PartialObjectMetadata")));
}

/// As recorded from the real server.
#[tokio::test(start_paused = true)]
async fn the_wrong_form_of_metadata() {
    let server = one_pod().await;
    let (list, one) = (
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    );
    let (code, status) = ask(&server, "/api/v1/pods", one).await;
    assert_eq!((code, status["reason"].as_str()), (406, Some("NotAcceptable")));
    assert_eq!(ask(&server, "/api/v1/namespaces/shop/pods/a", list).await.0, 406);
    assert_eq!(ask(&server, "/api/v1/namespaces/shop/pods/b", list).await.0, 404);
    // A watch of lists has nothing to say.
    assert_eq!(ask(&server, "/api/v1/pods?watch=1", list).await, (200, Value::Null));
}

#[tokio::test(start_paused = true)]
async fn tables_for_kubectl() {
    let server = one_pod().await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let (_, table) = ask(&server, "/api/v1/pods", accept).await;
    assert_eq!((table["kind"].as_str(), table["columnDefinitions"][0]["name"].as_str()), (Some("Table"), Some("Name")));
    assert_eq!(
        (&table["rows"][0]["cells"], table["rows"][0]["object"]["kind"].as_str()),
        (&json!(["a", "0s"]), Some("PartialObjectMetadata"))
    );
    let (_, table) = ask(&server, "/api/v1/namespaces/shop/pods/a", accept).await;
    assert_eq!(table["rows"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn other_media_types_are_not_acceptable() {
    let server = one_pod().await;
    let (code, status) = ask(&server, "/api/v1/pods", "text/html").await;
    assert_eq!((code, status["reason"].as_str()), (406, Some("NotAcceptable")));
    assert_eq!(ask(&server, "/api/v1/pods", "application/vnd.kubernetes.protobuf").await.0, 406);
    assert_eq!(ask(&server, "/api/v1/pods", "application/vnd.kubernetes.protobuf,application/json").await.0, 200);
}
