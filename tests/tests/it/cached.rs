//! References in memory, objects from the server when they are read.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::Target;
use k8s_store::{CacheConfig, CachedStore};
use k8s_types::{Object, WatcherConfig};
use k8s_watcher::{RunningWatcher, Watcher};
use serde_json::json;

use crate::support::{PATIENCE, Rest, config_map, config_maps, eventually, quick};

fn config() -> WatcherConfig {
    quick(
        WatcherConfig::new("v1/configmaps").index_by(["metadata.namespace", "metadata.labels.app"]).namespace("cached"),
    )
}

async fn cached(target: &Target, config: WatcherConfig) -> Result<RunningWatcher<CachedStore>> {
    let watcher = Watcher::builder(target.client(), config).cached(CacheConfig::default()).spawn()?;
    watcher.wait_for_sync(PATIENCE).await?;
    Ok(watcher)
}

fn values(objects: &[Object]) -> Vec<String> {
    let path = "data.value".parse().expect("a path");
    let value = |o: &Object| o.get(&path).and_then(|v| v.as_str()).unwrap_or("-").to_owned();
    objects.iter().map(value).collect()
}

/// What is read is what the server has, however it changed since, and the references are small.
pub(crate) async fn reads_are_fresh_and_references_small(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("cached").await?;
    let path = config_maps("cached");
    let big = "x".repeat(20_000);
    let object = |i: usize| config_map(&format!("m{i:03}"), json!({"app": format!("a{}", i % 10)}), &big);
    rest.fill(&path, (0..200).map(object)).await?;
    let watcher = cached(target, config()).await?;
    let store = watcher.store();
    let references = store.bytes().references.total();
    ensure!(store.len() >= 200 && references < 200 * 2_000, "{references} bytes for {} references", store.len());
    ensure!(
        values(watcher.snapshot().get(["cached", "a3"])?.to_vec().as_slice()) == ["-"; 20],
        "stubs have no content"
    );
    ensure!(values(&store.get(["cached", "a3"]).await?) == [big.as_str(); 20], "objects are whole");

    // After each write that the watch has shown, a read gives that or something later.
    for round in 0..20 {
        let value = format!("round {round}");
        let answer = rest.merge(&format!("{path}/m003"), &json!({"data": {"value": value}})).await?;
        let written = answer["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        eventually("the watch shows the write", async || {
            let stub = watcher.snapshot().by_name(Some("cached"), "m003").cloned();
            ensure!(stub.as_ref().and_then(Object::resource_version) == Some(written.as_str()), "{stub:?}");
            Ok(())
        })
        .await?;
        let read = store.by_name(Some("cached"), "m003").await?;
        ensure!(values(read.as_slice()) == [value], "round {round}");
    }
    rest.delete(&format!("{path}/m003")).await?;
    eventually("the watch shows the delete", async || {
        ensure!(watcher.snapshot().by_name(Some("cached"), "m003").is_none(), "still there");
        Ok(())
    })
    .await?;
    ensure!(store.by_name(Some("cached"), "m003").await?.is_none(), "a deleted object is read");
    rest.post(&path, &config_map("m003", json!({"app": "a3"}), "again")).await?;
    eventually("the new object is read", async || {
        ensure!(values(store.by_name(Some("cached"), "m003").await?.as_slice()) == ["again"], "not yet");
        Ok(())
    })
    .await?;
    watcher.shutdown().await;
    Ok(())
}

/// Selectors hold for reads by name too: the server and the client apply theirs.
pub(crate) async fn selectors_hold_for_reads_by_name(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("cached-selected").await?;
    let path = config_maps("cached-selected");
    rest.fill(&path, ["in", "out"].map(|name| config_map(name, json!({"app": name}), name))).await?;
    let base = || config().namespace("cached-selected");
    for config in [base().label_selector("app=in"), base().field_selector("data.value=in")] {
        let watcher = cached(target, config).await?;
        ensure!(watcher.store().len() == 1, "{} references", watcher.store().len());
        for (name, expected) in [("in", 1), ("out", 0), ("none", 0)] {
            let read = watcher.store().by_name(Some("cached-selected"), name).await?;
            ensure!(read.is_some() == (expected == 1), "{name}: {read:?}");
        }
        tokio::time::timeout(Duration::from_secs(10), watcher.shutdown()).await?;
    }
    Ok(())
}
