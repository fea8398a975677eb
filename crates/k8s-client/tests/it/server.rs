//! Against the embedded API server: the same answers as from a real one, in-process and through a kubeconfig.

use k8s_client::{Client, ClientConfig, Error};
use k8s_fake_apiserver::{Any, Create, FakeApiServer, FakeApiServerBuilder, Get, Status, Write};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_types::Gvr;
use serde_json::json;

fn gvr(text: &str) -> Gvr {
    text.parse().unwrap()
}

fn cluster() -> FakeApiServerBuilder {
    FakeApiServer::builder().objects([
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "cart", "namespace": "shop"}}),
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web", "namespace": "shop"}}),
    ])
}

#[tokio::test]
async fn c30_namespaced_and_cluster_scoped_objects_are_read_by_resource() {
    let server = cluster().start().await.unwrap();
    let client = Client::from(server.client());
    let cases = [
        ("v1/pods", Some("shop"), "cart"),
        ("v1/nodes", None, "n1"),
        ("v1/nodes", Some("default"), "n1"),
        ("networking.k8s.io/v1/ingresses", Some("shop"), "web"),
    ];
    for (resource, namespace, name) in cases {
        let object = client.get(&gvr(resource), namespace, name).await.unwrap();
        assert_eq!(object.name(), name, "{resource}");
        assert!(object.resource_version().is_some() && object.uid().is_some(), "{resource}");
    }
    assert!(client.get(&gvr("v1/pods"), Some("other"), "cart").await.unwrap_err().is_not_found());
    assert!(client.get(&gvr("apps/v1/pods"), Some("shop"), "cart").await.unwrap_err().is_kind_not_served());
    let discovery = server.journal().requests().into_iter().filter(|r| !r.path.contains("/namespaces/")).count();
    assert!(discovery <= 6, "one request a group version, two reads of a Node, one repeated search: {discovery}");
}

#[tokio::test]
async fn a_busy_server_is_not_asked_again_behind_the_callers_back() {
    let server = cluster().loopback().start().await.unwrap();
    server.faults().on(Get::of("v1/pods")).status(Status::too_many_requests(1));
    let client = ClientConfig::kubeconfig_content(server.kubeconfig().unwrap()).build().await.unwrap();
    let error = client.get(&gvr("v1/pods"), Some("shop"), "cart").await.unwrap_err();
    assert_eq!((error.status_code(), error.is_retryable()), (Some(429), true));
    assert_eq!(error.retry_after().map(|d| d.as_secs()), Some(1));
    assert_eq!(server.journal().count(Get::of("v1/pods")), 1, "kube's own retries are off");
    assert_eq!(client.get(&gvr("v1/pods"), Some("shop"), "cart").await.unwrap().name(), "cart");
    assert!(server.journal().count(Any::request()) >= 3);
}

#[tokio::test]
async fn a_write_is_never_sent_again_behind_the_callers_back() {
    let server = cluster().loopback().start().await.unwrap();
    let client = ClientConfig::kubeconfig_content(server.kubeconfig().unwrap()).build().await.unwrap();
    let api: kube::Api<ConfigMap> = kube::Api::namespaced((&client).into(), "shop");
    for code in [429, 500, 503, 504] {
        let fault = server.faults().on(Create::of("v1/configmaps"));
        fault.status(Status::new(code, "Busy", "come back later"));
        let before = server.journal().count(Write::request());
        let object = ConfigMap {
            metadata: kube::core::ObjectMeta { name: Some("a".into()), ..Default::default() },
            ..Default::default()
        };
        let error = api.create(&Default::default(), &object).await.unwrap_err();
        assert!(matches!(&error, kube::Error::Api(status) if status.code == code), "{error}");
        assert_eq!(server.journal().count(Write::request()) - before, 1, "{code}");
    }
}

#[tokio::test]
async fn c30_a_configured_namespace_is_for_namespaced_kinds_that_name_none() {
    let server = cluster().loopback().start().await.unwrap();
    let config = ClientConfig::kubeconfig_content(server.kubeconfig().unwrap());
    let client = config.clone().namespace("shop").build().await.unwrap();
    assert_eq!(client.get(&gvr("v1/pods"), None, "cart").await.unwrap().namespace(), Some("shop"));
    assert_eq!(client.get(&gvr("v1/nodes"), None, "n1").await.unwrap().namespace(), None);
    assert!(client.get(&gvr("v1/pods"), Some("other"), "cart").await.unwrap_err().is_not_found());
    // An empty name is no namespace at all, and never means all of them.
    let error = client.get(&gvr("v1/pods"), Some(""), "cart").await.unwrap_err();
    assert!(matches!(error, Error::InvalidName { field: "namespace", .. }), "{error}");
    // The context's namespace is discovered, not configured: it is not assumed.
    let error = config.build().await.unwrap().get(&gvr("v1/pods"), None, "cart").await.unwrap_err();
    assert!(matches!(error, Error::NamespaceRequired { .. }), "{error}");
}
