//! list and get.

use k8s_fake_apiserver::{FakeApiServer, ResourceKind};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use crate::support::{config_map, get, merge_patch, pod, server};

#[tokio::test(start_paused = true)]
async fn a_typed_client_lists_what_was_put_in() {
    let server = FakeApiServer::builder().object(pod("shop", "a", json!({"app": "cart"}))).start().await.unwrap();
    let pods: Api<Pod> = Api::all(server.client());
    let list = pods.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.metadata.resource_version.as_deref(), Some(server.revision().to_string().as_str()));
    assert_eq!(list.items.len(), 1);
    let one: Api<Pod> = Api::namespaced(server.client(), "shop");
    let pod = one.get("a").await.unwrap();
    assert_eq!(pod.metadata.labels.unwrap()["app"], "cart");
    assert!(pod.metadata.uid.is_some() && pod.metadata.creation_timestamp.is_some());
    assert_eq!(one.get_opt("b").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn typed_items_come_without_their_type_and_custom_ones_with_it() {
    let server = FakeApiServer::builder()
        .resource(ResourceKind::namespaced("example.com", "v1", "widgets", "Widget"))
        .object(config_map("a"))
        .object(json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"}}))
        .start()
        .await
        .unwrap();
    let client = server.client();
    let (_, maps) = get(&client, "/api/v1/configmaps").await;
    assert_eq!((maps["kind"].as_str(), maps["apiVersion"].as_str()), (Some("ConfigMapList"), Some("v1")));
    assert!(maps["items"][0].get("kind").is_none() && maps["items"][0].get("apiVersion").is_none());
    let (_, widgets) = get(&client, "/apis/example.com/v1/widgets").await;
    assert_eq!(widgets["items"][0]["kind"], "Widget");
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_moment_whatever_happens_between_them() {
    let server = server().await;
    for i in 0..7 {
        server.apply(config_map(&format!("m{i}"))).unwrap();
    }
    let client = server.client();
    let (_, first) = get(&client, "/api/v1/configmaps?limit=3").await;
    assert_eq!(first["items"].as_array().unwrap().len(), 3);
    assert_eq!(first["metadata"]["remainingItemCount"], 4);
    // Taken away, changed and added behind the page that was read.
    server.delete("v1/configmaps", Some("default"), "m4").unwrap();
    server.delete("v1/configmaps", Some("default"), "m0").unwrap();
    merge_patch(&client, "/api/v1/namespaces/default/configmaps/m5", &json!({"data": {"k": "new"}})).await;
    server.apply(config_map("m55")).unwrap();
    server.apply(config_map("a")).unwrap();
    let mut names = Vec::new();
    let mut next = first["metadata"]["continue"].as_str().unwrap().to_owned();
    while !next.is_empty() {
        let (code, page) = get(&client, &format!("/api/v1/configmaps?limit=2&continue={next}")).await;
        assert_eq!(code, 200, "{page}");
        assert_eq!(page["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
        for item in page["items"].as_array().unwrap() {
            assert_eq!(item["data"]["k"], "v");
            names.push(item["metadata"]["name"].as_str().unwrap().to_owned());
        }
        next = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!(names, ["m3", "m4", "m5", "m6"]);
}

#[tokio::test(start_paused = true)]
async fn a_continue_token_expires_with_its_revision_and_offers_another() {
    let server = FakeApiServer::builder().objects((0..5).map(|i| config_map(&format!("m{i}")))).start().await.unwrap();
    let client = server.client();
    let (_, first) = get(&client, "/api/v1/configmaps?limit=2").await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    server.apply(config_map("m5")).unwrap();
    server.compact();
    let (code, status) = get(&client, &format!("/api/v1/configmaps?limit=2&continue={token}")).await;
    assert_eq!((code, status["reason"].as_str()), (410, Some("Expired")));
    let token = status["metadata"]["continue"].as_str().unwrap();
    let (code, rest) = get(&client, &format!("/api/v1/configmaps?continue={token}")).await;
    assert_eq!((code, rest["items"].as_array().unwrap().len()), (200, 4));
    assert_eq!(rest["metadata"]["resourceVersion"], server.revision().to_string());
}

#[tokio::test(start_paused = true)]
async fn versions_of_a_list() {
    let server = server().await;
    server.apply(config_map("a")).unwrap();
    let old = server.revision();
    server.apply(config_map("b")).unwrap();
    let client = server.client();
    let count = async |query: &str| {
        let (code, list) = get(&client, &format!("/api/v1/configmaps?{query}")).await;
        (
            code,
            list["items"].as_array().map_or(0, Vec::len),
            list["metadata"]["resourceVersion"].as_str().map(str::to_owned),
        )
    };
    let now = Some(server.revision().to_string());
    assert_eq!(count("").await, (200, 2, now.clone()));
    assert_eq!(count("resourceVersion=0").await, (200, 2, now.clone()));
    // The cache does not page.
    assert_eq!(count("resourceVersion=0&limit=1").await, (200, 2, now.clone()));
    assert_eq!(count(&format!("resourceVersion={old}")).await, (200, 2, now.clone()));
    assert_eq!(count(&format!("resourceVersion={old}&resourceVersionMatch=NotOlderThan")).await, (200, 2, now));
    assert_eq!(
        count(&format!("resourceVersion={old}&resourceVersionMatch=Exact")).await,
        (200, 1, Some(old.to_string()))
    );
    assert_eq!(count(&format!("resourceVersion={old}&limit=5")).await, (200, 1, Some(old.to_string())));
    server.compact();
    assert_eq!(count(&format!("resourceVersion={old}&resourceVersionMatch=Exact")).await.0, 410);
    assert_eq!(count(&format!("resourceVersion={old}")).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_version_of_the_future_is_waited_for() {
    let server = server().await;
    let client = server.client();
    let wanted = server.revision() + 1;
    let started = tokio::time::Instant::now();
    let (code, status) = get(&client, &format!("/api/v1/configmaps?resourceVersion={wanted}")).await;
    assert_eq!(code, 504);
    assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert_eq!(status["details"]["retryAfterSeconds"], 1);
    assert_eq!(status["message"], format!("Timeout: Too large resource version: {wanted}, current: {}", wanted - 1));
    assert_eq!(started.elapsed().as_secs(), 3);
    let path = format!("/api/v1/configmaps?resourceVersion={wanted}");
    let waiting = tokio::spawn(async move { get(&client, &path).await });
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    server.apply(config_map("a")).unwrap();
    assert_eq!(waiting.await.unwrap().0, 200);
}

#[tokio::test(start_paused = true)]
async fn selectors_choose() {
    let server = FakeApiServer::builder()
        .object(pod("a", "x", json!({"app": "cart", "tier": "front"})))
        .object(pod("b", "y", json!({"app": "cart"})))
        .object(pod("b", "z", json!({})))
        .start()
        .await
        .unwrap();
    let client = server.client();
    let names = async |query: &str| {
        let (code, list) = get(&client, &format!("/api/v1/pods?{query}")).await;
        assert_eq!(code, 200, "{list}");
        let items = list["items"].as_array().unwrap().clone();
        items.iter().map(|i| i["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>().concat()
    };
    assert_eq!(names("labelSelector=app%3Dcart").await, "xy");
    assert_eq!(names("labelSelector=app,!tier").await, "y");
    assert_eq!(names("labelSelector=tier+notin+(front)").await, "yz");
    assert_eq!(names("fieldSelector=metadata.namespace%3Db").await, "yz");
    assert_eq!(names("fieldSelector=metadata.name!%3Dx,status.phase%3DPending").await, "yz");
    assert_eq!(names("fieldSelector=metadata.name%3Dz&labelSelector=app").await, "");
    let (code, status) = get(&client, "/api/v1/pods?fieldSelector=spec.foo%3Dx").await;
    assert_eq!((code, status["message"].as_str()), (400, Some("field label not supported: spec.foo")));
    let typed: Api<Pod> = Api::namespaced(server.client(), "b");
    assert_eq!(typed.list(&ListParams::default().labels("app in (cart, other)")).await.unwrap().items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn big_lists_come_whole_and_in_order() {
    let text = "x".repeat(20_000);
    let maps = (0..300).map(|i| {
        let mut map = config_map(&format!("m{i:03}"));
        map["data"]["text"] = text.clone().into();
        map
    });
    let server = FakeApiServer::builder().objects(maps).start().await.unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let list = api.list(&ListParams::default()).await.unwrap();
    let names: Vec<String> = list.items.iter().map(|m| m.metadata.name.clone().unwrap()).collect();
    assert_eq!(names.len(), 300);
    assert!(names.is_sorted());
    assert!(list.items.iter().all(|m| m.data.as_ref().unwrap()["text"].len() == 20_000));
}
