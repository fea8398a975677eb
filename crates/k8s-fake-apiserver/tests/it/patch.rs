//! The forms of patch.

use k8s_fake_apiserver::{FakeApiServer, ResourceKind};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::{call, get, merge_patch, server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn four_forms_of_patch() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}});
    let server = FakeApiServer::builder().object(pod).start().await.unwrap();
    let client = server.client();
    let path = "/api/v1/namespaces/default/pods/p";
    let change = json!({"spec": {"containers": [{"name": "a", "image": "2"}]}});
    let (_, pod) = call(&client, "PATCH", path, "application/strategic-merge-patch+json", &change).await;
    assert_eq!(
        (pod["spec"]["containers"][0]["image"].as_str(), pod["spec"]["containers"].as_array().unwrap().len()),
        (Some("2"), 2)
    );
    let operations = json!([
        {"op": "test", "path": "/spec/containers/1/name", "value": "b"},
        {"op": "replace", "path": "/spec/containers/1/image", "value": "3"},
        {"op": "add", "path": "/metadata/labels", "value": {"a~b/c": "d"}},
    ]);
    let (_, pod) = call(&client, "PATCH", path, "application/json-patch+json", &operations).await;
    assert_eq!(
        (pod["spec"]["containers"][1]["image"].as_str(), pod["metadata"]["labels"]["a~b/c"].as_str()),
        (Some("3"), Some("d"))
    );
    let wrong = json!([{"op": "test", "path": "/spec/containers/1/name", "value": "z"}]);
    let (code, status) = call(&client, "PATCH", path, "application/json-patch+json", &wrong).await;
    assert_eq!((code, status["reason"].as_str()), (422, Some("Invalid")));
    assert_eq!(call(&client, "PATCH", path, "application/json-patch+json", &json!({"op": "remove"})).await.0, 400);
    let (_, pod) = merge_patch(&client, path, &change).await;
    assert_eq!(pod["spec"]["containers"].as_array().unwrap().len(), 1);
    assert_eq!(merge_patch(&client, path, &json!([])).await.0, 400);
    assert_eq!(call(&client, "PATCH", path, "text/plain", &json!({})).await.0, 415);
}

#[tokio::test(start_paused = true)]
async fn patches_leave_the_rest_alone() {
    let whole = json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default", "uid": "u", "creationTimestamp": "2026-03-01T10:00:00Z", "generation": 1,
            "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {"f:color": {}}}}]},
        "spec": {"color": "red", "deep": {"list": [1, 2.5, null, "ä"]}}, "status": {"phase": "New"}, "extra~x/y": {"a": 1},
    });
    let kind = ResourceKind::namespaced("example.com", "v1", "widgets", "Widget")
        .with_status()
        .with_selectable_field("spec.color");
    let path = "/apis/example.com/v1/namespaces/default/widgets/w";
    let merge = "application/merge-patch+json";
    let operations = "application/json-patch+json";
    for (content_type, subresource, patch, pointer, value, generation) in [
        (merge, "", json!({"metadata": {"labels": {"a": "b"}}}), "/metadata/labels/a", json!("b"), 1),
        (
            merge,
            "",
            json!({"kind": "Widget", "metadata": {"annotations": {"a": "b"}}}),
            "/metadata/annotations/a",
            json!("b"),
            1,
        ),
        (
            merge,
            "",
            json!({"metadata": {"managedFields": [{"manager": "n"}]}}),
            "/metadata/managedFields/0/manager",
            json!("n"),
            1,
        ),
        (merge, "", json!({"spec": {"color": "blue"}}), "/spec/color", json!("blue"), 2),
        (merge, "", json!({"new": 1}), "/new", json!(1), 2),
        (merge, "/status", json!({"status": {"phase": "Old"}}), "/status/phase", json!("Old"), 1),
        (
            operations,
            "",
            json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]),
            "/metadata/labels/a",
            json!("b"),
            1,
        ),
        (
            operations,
            "",
            json!([{"op": "copy", "from": "/spec/deep", "path": "/spec/copy"}]),
            "/spec/copy/list/0",
            json!(1),
            2,
        ),
        (
            operations,
            "",
            json!([{"op": "replace", "path": "/extra~0x~1y/a", "value": 2}]),
            "/extra~0x~1y/a",
            json!(2),
            2,
        ),
        (
            operations,
            "",
            json!([{"op": "test", "path": "/kind", "value": "Widget"}, {"op": "add", "path": "/new", "value": 1}]),
            "/new",
            json!(1),
            2,
        ),
    ] {
        let server = FakeApiServer::builder().resource(kind.clone()).object(whole.clone()).start().await.unwrap();
        let client = server.client();
        let (code, mut changed) = call(&client, "PATCH", &format!("{path}{subresource}"), content_type, &patch).await;
        assert_eq!((code, changed.pointer(pointer)), (200, Some(&value)), "{patch}");
        assert_eq!(changed["metadata"]["generation"], generation, "{patch}");
        assert_eq!(Some(&changed), server.object("example.com/v1/widgets", Some("default"), "w").unwrap().as_ref());
        // Undone, it is what it was.
        let mut expected = whole.clone();
        expected["metadata"]["resourceVersion"] = changed["metadata"]["resourceVersion"].clone();
        expected["metadata"]["generation"] = generation.into();
        let (parent, last) = pointer.rsplit_once('/').unwrap();
        match expected.pointer(pointer).cloned() {
            Some(old) => *changed.pointer_mut(pointer).unwrap() = old,
            None => drop(changed.pointer_mut(parent).unwrap().as_object_mut().map(|m| m.remove(last))),
        }
        for added in ["labels", "annotations"] {
            changed["metadata"].as_object_mut().unwrap().remove(added);
        }
        changed["spec"].as_object_mut().unwrap().remove("copy");
        if pointer.contains("managedFields") {
            changed["metadata"]["managedFields"] = whole["metadata"]["managedFields"].clone();
        }
        assert_eq!(changed, expected, "{patch}");
        // Field selectors still find it.
        let color = changed["spec"]["color"].as_str().unwrap();
        let color = if pointer == "/spec/color" { "blue" } else { color };
        let list = get(&client, &format!("/apis/example.com/v1/widgets?fieldSelector=spec.color%3D{color}")).await.1;
        assert_eq!(list["items"].as_array().unwrap().len(), 1, "{patch}");
    }
}

#[tokio::test(start_paused = true)]
async fn server_side_apply_makes_and_merges() {
    let server = server().await;
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let params = PatchParams::apply("tester");
    let apply = async |data: Value| {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
        api.patch("a", &params, &Patch::Apply(map)).await.unwrap().data.unwrap()
    };
    assert_eq!(apply(json!({"a": "1"})).await.len(), 1);
    assert_eq!(apply(json!({"b": "2"})).await.len(), 2);
    let client = server.client();
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let (code, status) = call(&client, "PATCH", &format!("{MAPS}/a"), "application/apply-patch+yaml", &body).await;
    assert_eq!((code, status["details"]["causes"][0]["field"].as_str()), (422, Some("fieldManager")));
}
