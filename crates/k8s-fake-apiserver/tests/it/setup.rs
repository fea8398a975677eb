//! The builder, direct state access, errors.

use std::time::{Duration, SystemTime};

use k8s_fake_apiserver::{FakeApiServer, ResourceKind};
use serde_json::json;

use crate::support::{config_map, get, server};

/// A folder of its own that goes away with the value.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("k8s-fake-apiserver-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        for (file, text) in files {
            std::fs::write(path.join(file), text).unwrap();
        }
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test(start_paused = true)]
async fn fixtures_of_a_folder() {
    let map = |name: &str| config_map(name).to_string();
    let list = json!({"kind": "List", "items": [config_map("c"), config_map("d")]}).to_string();
    let folder = Folder::new(
        "fixtures",
        &[("1.json", &map("a")), ("2.json", &format!("[{}]", map("b"))), ("3.json", &list), ("README.md", "no object")],
    );
    let server = FakeApiServer::builder().load_dir(&folder.0).unwrap().start().await.unwrap();
    assert_eq!(server.len("v1/configmaps").unwrap(), 4);
    let wrong = Folder::new("wrong", &[("x.json", "{")]);
    let error = FakeApiServer::builder().load_dir(&wrong.0).unwrap_err();
    assert!(error.to_string().ends_with("x.json is not JSON"), "{error}");
    let error = FakeApiServer::builder().load_dir(wrong.0.join("nope")).unwrap_err();
    assert!(error.to_string().starts_with("cannot read "), "{error}");
    assert!(std::error::Error::source(&error).is_some());
}

#[tokio::test(start_paused = true)]
async fn wrong_objects_are_named() {
    let check = async |object: serde_json::Value, expected: &str| {
        let error = FakeApiServer::builder().object(config_map("a")).object(object).start().await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(json!({"kind": "Pod"}), "object 1 has no apiVersion").await;
    check(json!({"apiVersion": "v1"}), "object 1 has no kind").await;
    check(json!({"apiVersion": "v1", "kind": "Pod"}), "object 1 has no metadata.name").await;
    check(
        json!({"apiVersion": "v1", "kind": "Pot"}),
        "no resource is registered for kind Pot of v1: add one with `resource`",
    )
    .await;
    let server = server().await;
    assert_eq!(server.objects("v1/pots").unwrap_err().to_string(), "no resource v1/pots is registered");
    assert!(server.delete("v1/pots", None, "a").is_err() && server.object("v1/pots", None, "a").is_err());
}

#[tokio::test(start_paused = true)]
async fn direct_access_stores_what_it_gets() {
    let server = server().await;
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "u"}, "status": {"phase": "Running"}});
    let first = server.apply(pod.clone()).unwrap();
    let stored = server.object("v1/pods", Some("default"), "p").unwrap().unwrap();
    assert_eq!((stored["status"]["phase"].as_str(), stored["metadata"]["uid"].as_str()), (Some("Running"), Some("u")));
    assert_eq!(
        (stored["metadata"]["resourceVersion"].as_str(), stored["metadata"]["generation"].as_i64()),
        (Some(first.as_str()), Some(1))
    );
    pod["metadata"] = json!({"name": "p"});
    pod["spec"] = json!({"nodeName": "n"});
    server.apply(pod).unwrap();
    let again = server.object("v1/pods", Some("default"), "p").unwrap().unwrap();
    assert_eq!(again["metadata"]["uid"], "u");
    assert_eq!(
        (&again["metadata"]["creationTimestamp"], again["metadata"]["generation"].as_i64()),
        (&stored["metadata"]["creationTimestamp"], Some(2))
    );
    assert!(server.delete("v1/pods", Some("default"), "p").unwrap());
    assert!(!server.delete("v1/pods", Some("default"), "p").unwrap());
    // For cluster-scoped kinds the namespace is ignored.
    server.apply(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "x"}})).unwrap();
    assert!(server.object("v1/nodes", Some("y"), "n").unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn time_is_the_clock_of_tokio() {
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_359_200);
    let server = FakeApiServer::builder().now(start).object(config_map("a")).start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    server.apply(config_map("b")).unwrap();
    let created = |name: &str| {
        server.object("v1/configmaps", Some("default"), name).unwrap().unwrap()["metadata"]["creationTimestamp"].clone()
    };
    assert_eq!((created("a"), created("b")), (json!("2026-03-01T10:00:00Z"), json!("2026-03-01T11:00:00Z")));
}

#[tokio::test(start_paused = true)]
async fn uids_repeat_for_a_seed() {
    let uid = async |seed: u64| {
        let server = FakeApiServer::builder().seed(seed).object(config_map("a")).start().await.unwrap();
        server.object("v1/configmaps", Some("default"), "a").unwrap().unwrap()["metadata"]["uid"].clone()
    };
    assert_eq!(uid(1).await, uid(1).await);
    assert_ne!(uid(1).await, uid(2).await);
}

#[tokio::test(start_paused = true)]
async fn kinds_are_replaced_and_taken_away() {
    let server = FakeApiServer::builder()
        .without_resource("v1/secrets")
        .resource(ResourceKind::cluster("", "v1", "configmaps", "ConfigMap"))
        .default_namespace("mine")
        .object(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}))
        .start()
        .await
        .unwrap();
    let client = server.client();
    assert_eq!(client.default_namespace(), "mine");
    assert!(server.object("v1/pods", Some("mine"), "p").unwrap().is_some());
    assert_eq!(get(&client, "/api/v1/secrets").await.0, 404);
    assert_eq!(get(&client, "/api/v1/namespaces/default/configmaps").await.0, 404);
    assert_eq!(get(&client, "/api/v1/configmaps").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn it_starts_in_milliseconds() {
    let mut quickest = Duration::MAX;
    for _ in 0..10 {
        let started = std::time::Instant::now();
        FakeApiServer::builder().start().await.unwrap();
        quickest = quickest.min(started.elapsed());
    }
    // Unoptimised; the others of the ten may have waited for a busy machine.
    assert!(quickest < Duration::from_millis(50), "{quickest:?}");
}

#[tokio::test(start_paused = true)]
async fn requests_take_no_time_of_the_paused_clock() {
    let server = server().await;
    let client = server.client();
    let started = tokio::time::Instant::now();
    for _ in 0..20 {
        assert_eq!(get(&client, "/api/v1/configmaps").await.0, 200);
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn errors_of_fixtures_name_file_and_object() {
    let check = async |text: &str, expected: &[&str]| {
        let pod = r#"[{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}]"#;
        let folder = Folder::new("broken", &[("a.json", pod), ("b.json", text)]);
        let error = FakeApiServer::builder().load_dir(&folder.0).unwrap().start().await.unwrap_err();
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        let all = format!("{error}: {cause}");
        assert!(expected.iter().all(|part| all.contains(part)) && all.contains("b.json"), "{all}");
    };
    check(r#"{"apiVersion": "v1", "kind": "Widget", "metadata": {"name": "w"}}"#, &["kind Widget of v1", "`resource`"])
        .await;
    check("{}", &["object 0 has no apiVersion"]).await;
    let odd =
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "odd", "namespace": "shop", "labels": {"a": 1}}}"#;
    check(odd, &["refused Pod shop/odd"]).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_namespace_is_found_where_it_was_put() {
    let server = FakeApiServer::builder().start().await.unwrap();
    server.apply(serde_json::json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}})).unwrap();
    assert!(server.object("v1/pods", None, "p").unwrap().is_some());
    assert!(server.delete("v1/pods", None, "p").unwrap());
    assert!(server.object("v1/pods", Some("default"), "p").unwrap().is_none());
}

#[test]
fn a_matcher_of_no_resource_is_no_matcher() {
    for text in ["pods", "Pods", "v1/Pods", "v1/", "/pods", "networking.k8s.io/v1/ingresses/status"] {
        let made = std::panic::catch_unwind(|| k8s_fake_apiserver::List::of(text));
        assert!(made.is_err(), "{text:?}");
    }
    let _ = k8s_fake_apiserver::List::of("networking.k8s.io/v1/ingresses");
}
