//! One named object: what its watcher tells, and which rights it needs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::Target;
use k8s_types::{Backoff, Object, SingleWatcherConfig};
use k8s_watcher::{Deadline, SingleWatcher, SyncGroup, Watcher};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{PATIENCE, Rest, eventually, in_namespace};

type Told = Arc<Mutex<Vec<Option<String>>>>;

fn secrets(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/secrets")
}

fn secret(name: &str, token: &str) -> Value {
    json!({"metadata": {"name": name}, "stringData": {"token": token}, "data": {"v": token}})
}

fn version(object: &Object) -> String {
    let path = "data.v".parse().expect("a path");
    object.get(&path).and_then(|v| v.as_str()).unwrap_or_default().to_owned()
}

/// The same server as a user who has no rights but those given.
fn as_user(target: &Target, user: &'static str) -> kube::Client {
    let client = target.client();
    let service = tower::service_fn(move |mut request: http::Request<kube::client::Body>| {
        request.headers_mut().insert("Impersonate-User", http::HeaderValue::from_static(user));
        let client = client.clone();
        async move { client.send(request).await }
    });
    kube::Client::new(service.boxed_clone(), "default")
}

/// Created, updated, deleted, created again: each told once, to one who may read that name and nothing else.
pub(crate) async fn one_secret_with_rights_for_its_name_alone(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("single").await?;
    let path = secrets("single");
    rest.fill(&path, ["MQ==", "Mg=="].into_iter().enumerate().map(|(i, v)| secret(&format!("s{i}"), v))).await?;
    // The embedded server knows no rights.
    if target.is_real() {
        let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/single";
        let rule = json!({
            "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s0"], "verbs": ["get", "list", "watch"]
        });
        rest.post(&format!("{rbac}/roles"), &json!({"metadata": {"name": "s0"}, "rules": [rule]})).await?;
        let binding = json!({
            "metadata": {"name": "s0"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "s0"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "narrow"}]
        });
        rest.post(&format!("{rbac}/rolebindings"), &binding).await?;
    }
    if target.is_real() {
        let all = as_user(target, "narrow").request::<Value>(http::Request::get(&path).body(vec![])?).await;
        ensure!(matches!(&all, Err(kube::Error::Api(status)) if status.code == 403), "not so narrow: {all:?}");
    }
    let told = Told::default();
    let tell = told.clone();
    let soon = Backoff::new(Duration::from_millis(100), Duration::from_millis(500));
    let config = SingleWatcherConfig::new("v1/secrets", "single", "s0").backoff(soon);
    let watcher = SingleWatcher::builder(as_user(target, "narrow"), config)
        .on_change(move |object| tell.lock().expect("no panic under the lock").push(object.as_ref().map(version)))
        .spawn()?;
    let present = watcher.wait_for_sync(PATIENCE).await?;
    ensure!(present.as_ref().map(version).as_deref() == Some("MQ=="), "{present:?}");
    let has_told = async |expected: &[Option<&str>]| {
        eventually("the callback was called", async || {
            let told = told.lock().expect("no panic under the lock").clone();
            ensure!(told.iter().map(Option::as_deref).eq(expected.iter().copied()), "{told:?}");
            Ok(())
        })
        .await
    };
    let one = format!("{path}/s0");
    rest.merge(&one, &json!({"data": {"v": "Mw=="}})).await?;
    has_told(&[Some("Mw==")]).await?;
    rest.merge(&format!("{path}/s1"), &json!({"data": {"v": "Mw=="}})).await?;
    rest.merge(&one, &json!({"data": {"v": "NA=="}})).await?;
    has_told(&[Some("Mw=="), Some("NA==")]).await?;
    rest.delete(&one).await?;
    has_told(&[Some("Mw=="), Some("NA=="), None]).await?;
    rest.post(&path, &secret("s0", "NA==")).await?;
    has_told(&[Some("Mw=="), Some("NA=="), None, Some("NA==")]).await?;
    ensure!(watcher.last_watch_error().is_none(), "{:?}", watcher.last_watch_error());
    watcher.shutdown().await;
    Ok(())
}

/// `on_change` of none before all are synced; a kind that is not there is named.
pub(crate) async fn a_group_starts_together(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("group").await?;
    rest.fill(&secrets("group"), [secret("a", "MQ==")]).await?;
    let group = SyncGroup::new();
    let told = Arc::new(Mutex::new(0));
    let count = told.clone();
    let maps = Watcher::builder(target.client(), in_namespace("group"))
        .sync_group(&group, "maps")
        .on_change(move |change| *count.lock().expect("no panic under the lock") += change.stats.total())
        .spawn()?;
    let one = SingleWatcher::builder(target.client(), SingleWatcherConfig::new("v1/secrets", "group", "a"))
        .sync_group(&group, "secret")
        .spawn()?;
    let config = k8s_types::WatcherConfig::new("example.test/v1/nothing").index_by(["metadata.name"]);
    let nothing = Watcher::builder(target.client(), config).sync_group(&group, "nothing").spawn()?;
    maps.wait_for_sync(PATIENCE).await?;
    one.wait_for_sync(PATIENCE).await?;
    rest.post(&crate::support::config_maps("group"), &crate::support::config_map("new", json!({}), "x")).await?;
    let error = group.wait(Deadline::no_progress(Duration::from_secs(2))).await.expect_err("a kind is missing");
    let names: Vec<_> = error.missing().iter().map(|m| m.name.as_str()).collect();
    ensure!(names == ["nothing"] && error.to_string().contains("404"), "{error}");
    ensure!(*told.lock().expect("no panic under the lock") == 0, "told before all were synced");
    ensure!(group.dismiss("nothing"), "it is a member");
    group.wait(Deadline::after(PATIENCE)).await?;
    drop(nothing);
    eventually("what was held back is told", async || {
        let told = *told.lock().expect("no panic under the lock");
        // The namespace's own ConfigMaps come from a controller that does not run here.
        ensure!(told >= 1, "{told}");
        Ok(())
    })
    .await
}
