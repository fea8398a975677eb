//! create, update, patch, delete.

use k8s_fake_apiserver::{FakeApiServer, ResourceKind};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::support::{call, config_map, get, merge_patch, post, server, watch};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn a_typed_client_writes() {
    let server = server().await;
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let map: ConfigMap = serde_json::from_value(config_map("a")).unwrap();
    let made = api.create(&PostParams::default(), &map).await.unwrap();
    let Err(kube::Error::Api(status)) = api.create(&PostParams::default(), &map).await else { panic!("no error") };
    assert_eq!((status.code, status.reason.as_str()), (409, "AlreadyExists"));
    let mut changed = made.clone();
    changed.data.as_mut().unwrap().insert("k".into(), "w".into());
    let updated = api.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(updated.metadata.resource_version, made.metadata.resource_version);
    assert_eq!(updated.metadata.uid, made.metadata.uid);
    let Err(kube::Error::Api(status)) = api.replace("a", &PostParams::default(), &changed).await else {
        panic!("no conflict")
    };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    let patch = json!({"data": {"k": null, "l": "m"}});
    let patched = api.patch("a", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    assert_eq!(patched.data.unwrap().keys().collect::<Vec<_>>(), ["l"]);
    api.delete("a", &DeleteParams::default()).await.unwrap().right().unwrap();
    assert_eq!(api.get_opt("a").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_made_or_missed() {
    let map = json!({"metadata": {"name": "a"}});
    let easy = server().await;
    assert_eq!(post(&easy.client(), "/api/v1/namespaces/new/configmaps", &map).await.0, 201);
    assert!(easy.object("v1/namespaces", None, "new").unwrap().is_some());
    let strict = FakeApiServer::builder().strict_namespaces(true).start().await.unwrap();
    let (code, status) = post(&strict.client(), "/api/v1/namespaces/new/configmaps", &map).await;
    assert_eq!((code, status["message"].as_str()), (404, Some("namespaces \"new\" not found")));
}

/// Texts as recorded from kube-apiserver v1.36.3.
#[tokio::test(start_paused = true)]
async fn refusals_in_the_words_of_the_real_server() {
    let server = FakeApiServer::builder().object(config_map("a")).start().await.unwrap();
    let client = server.client();
    let check = async |method: &str, path: &str, body: Value, code: u16, reason: &str, message: &str| {
        let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let (found, status) = call(&client, method, path, content_type, &body).await;
        assert_eq!(
            (found, status["reason"].as_str().unwrap_or_default(), status["message"].as_str().unwrap_or_default()),
            (code, reason, message),
            "{method} {path} {body}"
        );
        assert_eq!((status["kind"].as_str(), status["status"].as_str()), (Some("Status"), Some("Failure")));
    };
    let a = format!("{MAPS}/a");
    let missing = format!("{MAPS}/nope");
    let named = |name: &str| json!({"metadata": {"name": name}});
    check("POST", MAPS, named("a"), 409, "AlreadyExists", "configmaps \"a\" already exists").await;
    check("GET", &missing, Value::Null, 404, "NotFound", "configmaps \"nope\" not found").await;
    check("PUT", &missing, named("nope"), 404, "NotFound", "configmaps \"nope\" not found").await;
    check("DELETE", &missing, Value::Null, 404, "NotFound", "configmaps \"nope\" not found").await;
    let text = "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required";
    check("POST", MAPS, json!({"metadata": {}}), 422, "Invalid", text).await;
    let text = "the namespace of the provided object does not match the namespace sent on the request";
    check("POST", MAPS, json!({"metadata": {"name": "b", "namespace": "other"}}), 400, "BadRequest", text).await;
    let text = "resourceVersion should not be set on objects to be created";
    check("POST", MAPS, json!({"metadata": {"name": "b", "resourceVersion": "5"}}), 500, "", text).await;
    let text = "the name of the object (other) does not match the name on the URL (a)";
    check("PUT", &a, named("other"), 400, "BadRequest", text).await;
    check("PATCH", &a, named("other"), 400, "BadRequest", text).await;
    let text = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes \
                to the latest version and try again";
    let old = json!({"metadata": {"name": "a", "resourceVersion": "1"}});
    check("PUT", &a, old.clone(), 409, "Conflict", text).await;
    check("PATCH", &a, old, 409, "Conflict", text).await;
    let text = "the server could not find the requested resource";
    check("GET", "/api/v1/widgets", Value::Null, 404, "NotFound", text).await;
    check("GET", "/apis/apps/v9/deployments", Value::Null, 404, "NotFound", text).await;
    check("GET", &format!("{a}/status"), Value::Null, 404, "NotFound", text).await;
    let text = "the server does not allow this method on the requested resource";
    check("PUT", MAPS, named("a"), 405, "MethodNotAllowed", text).await;
    check("POST", &a, named("a"), 405, "MethodNotAllowed", text).await;
    check("POST", "/api/v1/configmaps", named("a"), 405, "MethodNotAllowed", text).await;
    check("DELETE", "/api/v1/namespaces", Value::Null, 405, "MethodNotAllowed", text).await;
    let text =
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"";
    check("POST", &format!("{MAPS}?dryRun=Some"), named("b"), 422, "Invalid", text).await;
    let (_, status) = post(&client, MAPS, &named("Bad_Name")).await;
    assert_eq!(
        (status["code"].as_u64(), status["details"]["causes"][0]["field"].as_str()),
        (Some(422), Some("metadata.name"))
    );
    assert_eq!(
        server.revision().to_string(),
        server.object("v1/configmaps", Some("default"), "a").unwrap().unwrap()["metadata"]["resourceVersion"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_create_completes_the_object() {
    let server = server().await;
    let client = server.client();
    let (code, map) = post(&client, MAPS, &json!({"metadata": {"generateName": "gen-", "generation": 9}})).await;
    assert_eq!(code, 201);
    let metadata = &map["metadata"];
    let name = metadata["name"].as_str().unwrap();
    assert!(name.starts_with("gen-") && name.len() == 9, "{name}");
    assert_eq!((metadata["namespace"].as_str(), metadata["uid"].as_str().unwrap().len()), (Some("default"), 36));
    assert!(metadata["creationTimestamp"].as_str().unwrap().ends_with('Z'));
    // ConfigMaps have no generation.
    assert!(metadata.get("generation").is_none());
    assert_eq!((map["kind"].as_str(), map["apiVersion"].as_str()), (Some("ConfigMap"), Some("v1")));
    let (_, secret) = post(
        &client,
        "/api/v1/namespaces/default/secrets",
        &json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}}),
    )
    .await;
    assert_eq!((secret["data"]["k"].as_str(), secret["type"].as_str()), (Some("dg=="), Some("Opaque")));
    assert!(secret.get("stringData").is_none());
    let (_, namespace) = post(&client, "/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await;
    assert_eq!(namespace["metadata"]["labels"]["kubernetes.io/metadata.name"], "n");
    assert_eq!(namespace["status"]["phase"], "Active");
    let (_, dry) = post(&client, &format!("{MAPS}?dryRun=All"), &json!({"metadata": {"name": "dry"}})).await;
    assert!(dry["metadata"]["uid"].is_string() && dry["metadata"].get("resourceVersion").is_none());
    assert_eq!(get(&client, &format!("{MAPS}/dry")).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn writes_that_change_nothing_keep_the_version() {
    let server = FakeApiServer::builder().object(config_map("a")).start().await.unwrap();
    let client = server.client();
    let before = server.revision();
    let path = format!("{MAPS}/a");
    let (_, same) = merge_patch(&client, &path, &json!({"data": {"k": "v"}})).await;
    assert_eq!(same["metadata"]["resourceVersion"], before.to_string());
    let (_, map) = get(&client, &path).await;
    let (_, same) = call(&client, "PUT", &path, "application/json", &map).await;
    assert_eq!(same["metadata"]["resourceVersion"], before.to_string());
    let (code, _) = call(
        &client,
        "PATCH",
        &format!("{path}?dryRun=All"),
        "application/merge-patch+json",
        &json!({"data": {"k": "w"}}),
    )
    .await;
    assert_eq!((code, server.revision()), (200, before));
}

#[tokio::test(start_paused = true)]
async fn status_and_spec_have_endpoints_of_their_own() {
    let widgets = ResourceKind::namespaced("example.com", "v1", "widgets", "Widget").with_status();
    let plain = ResourceKind::namespaced("example.com", "v1", "gadgets", "Gadget");
    let server = FakeApiServer::builder().resource(widgets).resource(plain).start().await.unwrap();
    let client = server.client();
    for (collection, body, with_status) in [
        ("/api/v1/namespaces/default/pods", json!({"spec": {"a": 1}, "status": {"phase": "Running"}}), true),
        (
            "/apis/example.com/v1/namespaces/default/widgets",
            json!({"spec": {"a": 1}, "status": {"phase": "Running"}}),
            true,
        ),
        (
            "/apis/example.com/v1/namespaces/default/gadgets",
            json!({"spec": {"a": 1}, "status": {"phase": "Running"}}),
            false,
        ),
    ] {
        let mut body = body;
        body["metadata"] = json!({"name": "x"});
        if collection.contains("example.com") {
            body["apiVersion"] = "example.com/v1".into();
            body["kind"] = if with_status { "Widget" } else { "Gadget" }.into();
        }
        let (code, made) = post(&client, collection, &body).await;
        assert_eq!(code, 201, "{made}");
        assert_eq!(made["metadata"]["generation"], 1, "{collection}");
        assert_eq!(made["status"]["phase"] == "Running", !with_status, "{collection}");
        let path = format!("{collection}/x");
        let status = format!("{path}/status");
        if !with_status {
            assert_eq!(get(&client, &status).await.0, 404);
            let (_, changed) = merge_patch(&client, &path, &json!({"status": {"phase": "Done"}})).await;
            assert_eq!(
                (changed["status"]["phase"].as_str(), changed["metadata"]["generation"].as_i64()),
                (Some("Done"), Some(2))
            );
            continue;
        }
        let (_, changed) =
            merge_patch(&client, &status, &json!({"status": {"phase": "Running"}, "spec": {"a": 2}})).await;
        assert_eq!(
            (changed["status"]["phase"].as_str(), &changed["spec"]["a"]),
            (Some("Running"), &json!(1)),
            "{collection}"
        );
        assert_eq!(changed["metadata"]["generation"], 1);
        let (_, changed) = merge_patch(&client, &path, &json!({"status": {"phase": "Failed"}, "spec": {"a": 3}})).await;
        assert_eq!(
            (changed["status"]["phase"].as_str(), &changed["spec"]["a"]),
            (Some("Running"), &json!(3)),
            "{collection}"
        );
        assert_eq!(changed["metadata"]["generation"], 2);
        assert_eq!(get(&client, &status).await.1["status"]["phase"], "Running");
        let (_, labelled) = merge_patch(&client, &path, &json!({"metadata": {"labels": {"a": "b"}}})).await;
        assert_eq!(labelled["metadata"]["generation"], 2);
    }
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_updated_only_with_a_version() {
    let server = FakeApiServer::builder()
        .resource(ResourceKind::namespaced("example.com", "v1", "widgets", "Widget"))
        .object(json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}))
        .start()
        .await
        .unwrap();
    let client = server.client();
    let path = "/apis/example.com/v1/namespaces/default/widgets/w";
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    let (code, status) = call(&client, "PUT", path, "application/json", &widget).await;
    let text = "widgets.example.com \"w\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert_eq!((code, status["message"].as_str()), (422, Some(text)));
    // Their bodies must say what they are.
    let collection = "/apis/example.com/v1/namespaces/default/widgets";
    let (code, status) = post(&client, collection, &json!({"metadata": {"name": "x"}})).await;
    assert!(code == 400 && status["message"].as_str().unwrap().contains("Object 'Kind' is missing in"), "{status}");
    assert_eq!(merge_patch(&client, path, &json!({"spec": {"a": 1}})).await.0, 200);
    let strategic = "application/strategic-merge-patch+json";
    assert_eq!(call(&client, "PATCH", path, strategic, &json!({"spec": {"a": 2}})).await.0, 415);
}

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

/// Patches parse only what they name; what they leave alone must come out as it was.
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

#[tokio::test(start_paused = true)]
async fn some_kinds_are_made_by_an_update() {
    let server = server().await;
    let client = server.client();
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}});
    assert_eq!(call(&client, "PUT", path, "application/json", &lease).await.0, 201);
    // But not changed without a version.
    assert_eq!(call(&client, "PUT", path, "application/json", &lease).await.0, 422);
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_no_objects() {
    let server = server().await;
    let client = server.client();
    for body in [
        json!([]),
        json!("x"),
        json!({"metadata": 5}),
        json!({"metadata": {"name": 5}}),
        json!({"metadata": {"name": "a", "labels": {"x": 1}}}),
    ] {
        assert_eq!(post(&client, MAPS, &body).await.0, 400, "{body}");
    }
    assert_eq!(
        post(&client, MAPS, &json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}})).await.0,
        400
    );
    assert_eq!(
        post(&client, MAPS, &json!({"kind": "ConfigMap", "apiVersion": "v2", "metadata": {"name": "a"}})).await.0,
        400
    );
    let protobuf = "application/vnd.kubernetes.protobuf";
    for (method, path) in [("POST", MAPS), ("PUT", "/api/v1/namespaces/default/configmaps/a"), ("DELETE", MAPS)] {
        assert_eq!(call(&client, method, path, protobuf, &json!({"metadata": {"name": "a"}})).await.0, 415, "{method}");
    }
    let big = json!({"metadata": {"name": "a"}, "data": {"k": "x".repeat(3 << 20)}});
    assert_eq!(post(&client, MAPS, &big).await.0, 413);
}

#[tokio::test(start_paused = true)]
async fn writers_that_meet_lose_no_update() {
    let server = FakeApiServer::builder().object(config_map("a")).start().await.unwrap();
    let client = server.client();
    let before = server.revision();
    let path = format!("{MAPS}/a");
    let patches = (0..50).map(|i| {
        let (client, path) = (client.clone(), path.clone());
        tokio::spawn(async move { merge_patch(&client, &path, &json!({"data": {format!("k{i}"): "v"}})).await.0 })
    });
    for patch in patches.collect::<Vec<_>>() {
        assert_eq!(patch.await.unwrap(), 200);
    }
    let map = server.object("v1/configmaps", Some("default"), "a").unwrap().unwrap();
    assert_eq!((map["data"].as_object().unwrap().len(), server.revision()), (51, before + 50));
}
