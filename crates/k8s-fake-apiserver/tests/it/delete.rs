//! delete, deletecollection, finalizers.

use k8s_fake_apiserver::FakeApiServer;
use serde_json::{Value, json};

use crate::support::{call, config_map, get, merge_patch, post, watch};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn deletes_with_preconditions_policies_and_finalizers() {
    let server = FakeApiServer::builder().object(config_map("a")).start().await.unwrap();
    let client = server.client();
    let start = server.revision();
    let mut lines = watch(&server, &format!("/api/v1/configmaps?watch=1&resourceVersion={start}")).await;
    let path = format!("{MAPS}/a");
    let delete = async |body: Value| call(&client, "DELETE", &path, "application/json", &body).await;
    let (code, status) = delete(json!({"preconditions": {"uid": "1"}})).await;
    assert_eq!((code, status["details"]["kind"].as_str()), (409, Some("ConfigMap")));
    assert!(status["message"].as_str().unwrap().contains("the UID in the precondition (1) does not match"));
    assert_eq!(delete(json!({"preconditions": {"resourceVersion": "1"}})).await.0, 409);
    let (code, _) = delete(json!({"dryRun": ["All"]})).await;
    assert_eq!((code, server.revision()), (200, start));
    merge_patch(&client, &path, &json!({"metadata": {"finalizers": ["example.com/f"]}})).await;
    let (code, held) = delete(json!({"propagationPolicy": "Background"})).await;
    assert_eq!((code, held["kind"].as_str()), (200, Some("ConfigMap")));
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(held["metadata"]["deletionGracePeriodSeconds"], 0);
    // Again: nothing changes.
    assert_eq!(delete(Value::Null).await.1["metadata"]["resourceVersion"], held["metadata"]["resourceVersion"]);
    let (code, status) =
        merge_patch(&client, &path, &json!({"metadata": {"finalizers": ["example.com/f", "example.com/g"]}})).await;
    assert_eq!(code, 422);
    assert!(
        status["message"].as_str().unwrap().contains("no new finalizers can be added if the object is being deleted")
    );
    let (code, gone) = merge_patch(&client, &path, &json!({"metadata": {"finalizers": null}})).await;
    // The answer shows the last version; the delete has one of its own.
    assert_eq!((code, &gone["metadata"]["resourceVersion"]), (200, &held["metadata"]["resourceVersion"]));
    assert_eq!(get(&client, &path).await.0, 404);
    assert_eq!(
        lines.shorts(3).await,
        [format!("MODIFIED a@{}", start + 1), format!("MODIFIED a@{}", start + 2), format!("DELETED a@{}", start + 3)]
    );
    server.apply(config_map("a")).unwrap();
    let (code, held) = delete(json!({"propagationPolicy": "Foreground"})).await;
    assert_eq!((code, &held["metadata"]["finalizers"]), (200, &json!(["foregroundDeletion"])));
}

#[tokio::test(start_paused = true)]
async fn answers_to_a_delete() {
    let server = FakeApiServer::builder()
        .object(config_map("a"))
        .object(json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}}))
        .object(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}))
        .start()
        .await
        .unwrap();
    let client = server.client();
    let delete = async |path: &str| call(&client, "DELETE", path, "application/json", &Value::Null).await.1;
    let status = delete(&format!("{MAPS}/a")).await;
    assert_eq!((status["status"].as_str(), status["details"]["kind"].as_str()), (Some("Success"), Some("configmaps")));
    assert!(status["details"]["uid"].is_string() && status.get("code").is_none());
    let status = delete("/apis/networking.k8s.io/v1/namespaces/default/ingresses/i").await;
    assert_eq!(
        (status["details"]["group"].as_str(), status["details"]["name"].as_str()),
        (Some("networking.k8s.io"), Some("i"))
    );
    // Some kinds answer with what is gone.
    assert_eq!(delete("/api/v1/namespaces/default/services/s").await["kind"], "Service");
}

#[tokio::test(start_paused = true)]
async fn a_scheduled_pod_waits_for_its_kubelet() {
    let pod = |name: &str, node: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"nodeName": node}});
    let server = FakeApiServer::builder()
        .object(pod("free", Value::Null))
        .object(pod("bound", "n".into()))
        .start()
        .await
        .unwrap();
    let client = server.client();
    let path = |name: &str| format!("/api/v1/namespaces/default/pods/{name}");
    let delete = async |name: &str, body: Value| call(&client, "DELETE", &path(name), "application/json", &body).await;
    assert_eq!(delete("free", Value::Null).await.0, 200);
    assert_eq!(get(&client, &path("free")).await.0, 404);
    let (_, held) = delete("bound", Value::Null).await;
    assert_eq!(
        (&held["metadata"]["deletionGracePeriodSeconds"], &held["metadata"]["generation"]),
        (&json!(30), &json!(2))
    );
    assert_eq!(get(&client, &path("bound")).await.0, 200);
    let (_, shorter) = delete("bound", json!({"gracePeriodSeconds": 5})).await;
    assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 5);
    assert_eq!(delete("bound", json!({"gracePeriodSeconds": 0})).await.0, 200);
    assert_eq!(get(&client, &path("bound")).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn collections_are_deleted_by_selector() {
    let map = |name: &str, app: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": app}}});
    let server = FakeApiServer::builder().objects([map("a", "x"), map("b", "y"), map("c", "x")]).start().await.unwrap();
    let client = server.client();
    let (code, gone) =
        call(&client, "DELETE", &format!("{MAPS}?labelSelector=app%3Dx"), "application/json", &Value::Null).await;
    assert_eq!((code, gone["kind"].as_str(), gone["items"].as_array().unwrap().len()), (200, Some("ConfigMapList"), 2));
    let left = server.objects("v1/configmaps").unwrap();
    assert_eq!((left.len(), left[0]["metadata"]["name"].as_str()), (1, Some("b")));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_ends_when_it_is_finalized() {
    let server = FakeApiServer::builder()
        .object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}))
        .start()
        .await
        .unwrap();
    let client = server.client();
    let (_, held) = call(&client, "DELETE", "/api/v1/namespaces/n", "application/json", &Value::Null).await;
    assert_eq!(held["status"]["phase"], "Terminating");
    let (code, status) = post(&client, "/api/v1/namespaces/n/configmaps", &json!({"metadata": {"name": "a"}})).await;
    assert_eq!((code, status["details"]["causes"][0]["reason"].as_str()), (403, Some("NamespaceTerminating")));
    let done = json!({"metadata": {"name": "n"}, "spec": {"finalizers": []}});
    assert_eq!(call(&client, "PUT", "/api/v1/namespaces/n/finalize", "application/json", &done).await.0, 200);
    assert_eq!(get(&client, "/api/v1/namespaces/n").await.0, 404);
}
