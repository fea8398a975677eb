//! create and update.

use k8s_fake_apiserver::{FakeApiServer, ResourceKind};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::support::{call, config_map, get, merge_patch, post, server};

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
    // ConfigMaps have no generation, so nobody takes away what was given.
    assert_eq!(metadata["generation"], 9);
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

/// Patches parse only what they name; what they leave alone must come out as it was.
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
