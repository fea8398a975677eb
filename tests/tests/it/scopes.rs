//! Namespaces, cluster-scoped kinds, kinds that come later, objects that are large.

use anyhow::{Context, Result, bail, ensure};
use e2e::{Target, config_of};
use k8s_fake_apiserver::ResourceKind;
use k8s_types::{ListMode, WatcherConfig};
use k8s_watcher::{ErrorClass, Watcher};
use serde_json::{Value, json};

use crate::requests::Requests;
use crate::support::{
    Follower, PATIENCE, Rest, config_map, config_maps, equals_server, eventually, everywhere, in_namespace, is_refusal,
    key, listed, quick, synced, until,
};

/// Two of three namespaces, each with a list and watch of its own, in one store.
pub(crate) async fn two_namespaces_in_one_store(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    let namespaces = ["scope-a", "scope-b", "scope-c"];
    let paths = namespaces.map(config_maps);
    for (namespace, path) in namespaces.iter().zip(&paths) {
        rest.namespace(namespace).await?;
        rest.fill(path, (0..10).map(|i| config_map(&format!("object-{i}"), json!({"app": "a"}), namespace))).await?;
    }
    for mode in [ListMode::Streaming, ListMode::Paged] {
        let requests = Requests::default();
        let client = requests.client(config_of(&target.kubeconfig()).await?)?;
        let config = everywhere().namespaces(["scope-a", "scope-b", "scope-a"]).list_mode(mode);
        let watcher = synced(client, config).await?;
        let both = [&*paths[0], &*paths[1]];
        equals_server(&rest, &watcher, &both).await?;
        let follower = Follower::start(watcher.changes()).await?;
        for path in &paths {
            rest.post(path, &config_map("late", json!({"app": "a"}), "x")).await?;
        }
        equals_server(&rest, &watcher, &both).await?;
        for path in &paths {
            rest.delete(&format!("{path}/late")).await?;
        }
        equals_server(&rest, &watcher, &both).await?;
        ensure!(watcher.store().get(["scope-a"])?.len() == 10, "by prefix");
        ensure!(watcher.store().get(["scope-c"])?.is_empty(), "nobody asked for scope-c");
        ensure!(requests.with(&["/namespaces/scope-a/configmaps?watch"]) == 1, "{:?}", requests.all());
        ensure!(requests.watches() == 2, "a watch each: {:?}", requests.all());
        ensure!(requests.with(&["scope-c"]) == 0, "{:?}", requests.all());
        let followed = follower.finish(watcher).await?;
        ensure!(followed.counts() == (2, 0, 2), "{:?}", followed.counts());
    }
    Ok(())
}

/// Nodes have no namespace: they are watched once, whatever namespaces were named.
pub(crate) async fn cluster_scoped_kind_is_watched_once(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    let node = |i: usize| json!({"metadata": {"name": format!("node-{i}"), "labels": {"scenario": "cluster"}}});
    rest.fill("/api/v1/nodes", (0..5).map(node)).await?;
    let selected = "/api/v1/nodes?labelSelector=scenario%3Dcluster";
    let requests = Requests::default();
    let client = requests.client(config_of(&target.kubeconfig()).await?)?;
    let config = quick(WatcherConfig::new("v1/nodes").index_by(["metadata.labels.scenario", "metadata.name"]));
    let config = config.namespaces(["default", "kube-system"]).label_selector("scenario=cluster");
    let watcher = synced(client, config).await?;
    equals_server(&rest, &watcher, &[selected]).await?;
    rest.post("/api/v1/nodes", &node(5)).await?;
    rest.merge("/api/v1/nodes/node-0/status", &json!({"status": {"phase": "Running"}})).await?;
    rest.merge("/api/v1/nodes/node-1", &json!({"metadata": {"labels": {"scenario": "none"}}})).await?;
    rest.delete("/api/v1/nodes/node-2").await?;
    equals_server(&rest, &watcher, &[selected]).await?;
    ensure!(watcher.store().len() == 4, "{}", watcher.store().len());
    ensure!(watcher.store().by_name(None, "node-0").is_some(), "by name without a namespace");
    ensure!(watcher.store().get(["cluster", "node-5"])?.len() == 1, "by key");
    ensure!(requests.watches() == 1, "{:?}", requests.all());
    watcher.shutdown().await;
    Ok(())
}

/// A watcher waits for its kind: the definition comes, then objects of it.
pub(crate) async fn definition_comes_while_a_watcher_waits(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("widgets").await?;
    // Once with namespaces named, which makes it look the kind up first, once without.
    let config = quick(WatcherConfig::new("example.com/v1/widgets").index_by(["metadata.namespace", "spec.color"]));
    let named = Watcher::builder(target.client(), config.clone().namespace("widgets")).spawn()?;
    let all = Watcher::builder(target.client(), config).spawn()?;
    for watcher in [&named, &all] {
        eventually("the watcher says that the kind is not served", async || {
            let error = watcher.last_watch_error().context("no error yet")?;
            ensure!(error.class == ErrorClass::NotFound && !watcher.is_synced(), "{error}");
            Ok(())
        })
        .await?;
    }
    define_widgets(target, &rest, "example.com").await?;
    for watcher in [&named, &all] {
        ensure!(watcher.wait_for_sync(PATIENCE).await? == 0, "no widget yet");
    }
    let path = "/apis/example.com/v1/namespaces/widgets/widgets";
    let widget = |i: usize| {
        let color = ["red", "blue"][i % 2];
        json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": format!("widget-{i}")},
            "spec": {"color": color, "sizes": [1, 2.5, {"deep": null}]}
        })
    };
    rest.fill(path, (0..10).map(widget)).await?;
    rest.merge(&format!("{path}/widget-0"), &json!({"spec": {"color": "blue"}})).await?;
    rest.merge(&format!("{path}/widget-1/status"), &json!({"status": {"ready": true}})).await?;
    rest.delete(&format!("{path}/widget-9")).await?;
    for watcher in [named, all] {
        equals_server(&rest, &watcher, &[path]).await?;
        ensure!(watcher.store().get(["widgets", "blue"])?.len() == 5, "by key");
        let typed = watcher.store().list().iter().all(|o| o.kind() == Some("Widget"));
        ensure!(typed, "kind and apiVersion are there");
        watcher.shutdown().await;
    }
    Ok(())
}

/// Makes the server serve Widgets of this group, and waits until it does.
pub(crate) async fn define_widgets(target: &Target, rest: &Rest, group: &str) -> Result<()> {
    if let Some(embedded) = target.as_embedded() {
        embedded.server().register(ResourceKind::namespaced(group, "v1", "widgets", "Widget").with_status());
        return Ok(());
    }
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": open},
                "subresources": {"status": {}}
            }]
        }
    });
    match rest.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await {
        // Another scenario was first.
        Err(error) if !is_refusal(&error, 409) => return Err(error),
        _ => {}
    }
    eventually("the kind is served", async || rest.get(&format!("/apis/{group}/v1/widgets")).await).await?;
    Ok(())
}

/// Metadata alone is asked for and kept; what changes elsewhere is no change.
pub(crate) async fn metadata_alone(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("metadata").await?;
    let path = config_maps("metadata");
    rest.fill(&path, (0..20).map(|i| config_map(&format!("object-{i:02}"), json!({"app": "a"}), "x"))).await?;
    for (mode, app) in [(ListMode::Streaming, "b"), (ListMode::Paged, "c")] {
        let watcher = synced(target.client(), in_namespace("metadata").metadata_only(true).list_mode(mode)).await?;
        let follower = Follower::start(watcher.changes()).await?;
        rest.merge(&format!("{path}/object-01"), &json!({"data": {"value": app}})).await?;
        rest.merge(&format!("{path}/object-02"), &json!({"metadata": {"labels": {"app": app}}})).await?;
        until(&watcher, "the label", |s| s.get(["metadata", app]).is_ok_and(|o| o.len() == 1)).await?;
        let expected = listed(&rest, &path).await?;
        ensure!(watcher.store().len() == expected.len(), "{} objects", watcher.store().len());
        for object in watcher.store().list() {
            let (found, wanted) = (object.to_value(), expected.get(&key(&object)).context("not on the server")?);
            ensure!(found["metadata"] == wanted["metadata"], "{found}, on the server {wanted}");
            ensure!(found.get("data").is_none(), "{found}");
        }
        let followed = follower.finish(watcher).await?;
        ensure!(followed.counts() == (0, 1, 0), "{:?}", followed.counts());
    }
    Ok(())
}

/// Secrets of 1.2 MB come through whole, by list and by event, and are reported like others.
pub(crate) async fn secrets_of_a_megabyte(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("large").await?;
    let path = "/api/v1/namespaces/large/secrets";
    rest.post(path, &secret("listed", 'A')).await?;
    for mode in [ListMode::Streaming, ListMode::Paged] {
        let config = quick(WatcherConfig::new("v1/secrets").namespace("large").index_by(["metadata.name"]));
        let watcher = synced(target.client(), config.list_mode(mode)).await?;
        equals_server(&rest, &watcher, &[path]).await?;
        let follower = Follower::start(watcher.changes()).await?;
        rest.post(path, &secret("event", 'B')).await?;
        rest.put(&format!("{path}/event"), &secret("event", 'C')).await?;
        equals_server(&rest, &watcher, &[path]).await?;
        let Some(object) = watcher.store().by_name(Some("large"), "event") else { bail!("the new secret") };
        ensure!(object.size() > 1_200_000, "{} bytes", object.size());
        rest.delete(&format!("{path}/event")).await?;
        equals_server(&rest, &watcher, &[path]).await?;
        let followed = follower.finish(watcher).await?;
        ensure!(followed.counts() == (1, 1, 1), "{:?}", followed.counts());
    }
    Ok(())
}

/// A secret whose JSON takes 1.2 MB: near the limit, which is 1 MiB before base64.
fn secret(name: &str, letter: char) -> Value {
    let data = letter.to_string().repeat(1_228_000);
    json!({"metadata": {"name": name}, "data": {"blob": data}})
}
