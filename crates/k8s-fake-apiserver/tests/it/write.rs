//! create, update, patch, delete.

use k8s_fake_apiserver::FakeApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::support::{config_map, post, server};

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
    let easy = server().await;
    assert_eq!(
        post(&easy.client(), "/api/v1/namespaces/new/configmaps", &json!({"metadata": {"name": "a"}})).await.0,
        201
    );
    assert!(easy.object("v1/namespaces", None, "new").unwrap().is_some());
    let strict = FakeApiServer::builder().strict_namespaces(true).start().await.unwrap();
    let (code, status) =
        post(&strict.client(), "/api/v1/namespaces/new/configmaps", &json!({"metadata": {"name": "a"}})).await;
    assert_eq!((code, status["message"].as_str()), (404, Some("namespaces \"new\" not found")));
}
