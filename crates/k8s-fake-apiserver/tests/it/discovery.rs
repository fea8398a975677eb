//! Discovery, version, health, and paths that are none.

use http::Request;
use http_body_util::BodyExt;
use k8s_fake_apiserver::{FakeApiServer, ResourceKind};
use kube::client::Body;
use kube::discovery::{Discovery, Scope, verbs};

use crate::support::{get, server};

async fn text(server: &FakeApiServer, path: &str) -> (u16, String) {
    let response = server.client().send(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    (code, String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().into()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn kube_discovers_the_kinds() {
    let server = FakeApiServer::builder()
        .resource(
            ResourceKind::cluster("example.com", "v1", "widgets", "Widget").with_short_names(["wd"]).with_status(),
        )
        .start()
        .await
        .unwrap();
    let discovery = Discovery::new(server.client()).run().await.unwrap();
    let group = discovery.get("example.com").unwrap();
    let (resource, capabilities) = group.recommended_kind("Widget").unwrap();
    assert_eq!((resource.plural.as_str(), &capabilities.scope), ("widgets", &Scope::Cluster));
    assert!(capabilities.supports_operation(verbs::WATCH));
    let (pods, capabilities) = discovery.get("").unwrap().recommended_kind("Pod").unwrap();
    assert_eq!((pods.api_version.as_str(), &capabilities.scope), ("v1", &Scope::Namespaced));
    assert_eq!(capabilities.subresources.len(), 1);
    assert!(
        ["apps", "batch", "networking.k8s.io", "discovery.k8s.io", "coordination.k8s.io"]
            .iter()
            .all(|g| discovery.has_group(g))
    );
    let version = server.client().apiserver_version().await.unwrap();
    assert_eq!((version.major.as_str(), version.git_version.starts_with("v1.")), ("1", true));
}

#[tokio::test(start_paused = true)]
async fn health_and_unknown_paths() {
    let server = server().await;
    for path in ["/healthz", "/livez", "/readyz", "/readyz/ping"] {
        assert_eq!(text(&server, path).await, (200, "ok".into()), "{path}");
    }
    for path in [
        "/apis/example.com/v1/widgets",
        "/apis/example.com/v1",
        "/apis/example.com",
        "/nothing",
        "/openapi/v2",
        "/openapi/v3",
    ] {
        assert_eq!(text(&server, path).await, (404, "404 page not found\n".into()), "{path}");
    }
    let (code, root) = get(&server.client(), "/").await;
    assert_eq!(code, 200);
    assert!(root["paths"].as_array().unwrap().iter().any(|p| p == "/apis/apps/v1"));
    // One Pod without a namespace, a Node inside one: no paths.
    for path in ["/api/v1/pods/a", "/api/v1/namespaces/default/nodes", "/api/v1/namespaces/default/pods/a/log"] {
        assert_eq!(
            get(&server.client(), path).await.1["message"],
            "the server could not find the requested resource",
            "{path}"
        );
    }
}
