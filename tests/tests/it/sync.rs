//! The initial load: everything is there and is found, streamed or in pages.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use e2e::{Target, config_of};
use k8s_fake_apiserver::List;
use k8s_store::Snapshot;
use k8s_types::{ListMode, WatcherConfig};
use k8s_watcher::Watcher;
use serde_json::{Value, json};

use crate::requests::Requests;
use crate::support::{
    Key, PATIENCE, Rest, compare, config_map, config_maps, equals_server, eventually, everywhere, in_namespace, listed,
    synced,
};

/// 5,000 objects in five namespaces, read both ways: every read gives what the server has.
pub(crate) async fn sync_of_5000_objects(target: &Target) -> Result<()> {
    const NAMESPACES: usize = 5;
    const EACH: usize = 1000;
    let rest = Rest::of(target);
    for namespace in (0..NAMESPACES).map(|n| format!("sync-{n}")) {
        rest.namespace(&namespace).await?;
        let objects = (0..EACH).map(|i| {
            let labels =
                json!({"scenario": "sync", "app": format!("app-{}", i % 20), "tier": format!("tier-{}", i % 3)});
            config_map(&format!("object-{i:04}"), labels, &format!("value {i}"))
        });
        rest.fill(&config_maps(&namespace), objects).await?;
    }
    let expected = listed(&rest, "/api/v1/configmaps?labelSelector=scenario%3Dsync").await?;
    ensure!(expected.len() == NAMESPACES * EACH, "the server has {}", expected.len());
    for mode in [ListMode::Streaming, ListMode::Paged] {
        let requests = Requests::default();
        let config =
            everywhere().label_selector("scenario=sync").named_index("tier", ["metadata.labels.tier"]).list_mode(mode);
        let client = requests.client(config_of(&target.kubeconfig()).await?)?;
        let watcher = Watcher::builder(client, config).spawn()?;
        let count = watcher.wait_for_sync(PATIENCE).await?;
        ensure!(count == expected.len(), "{mode:?}: {count} objects in the load");
        let snapshot = watcher.store().snapshot();
        compare(&expected, &snapshot).with_context(|| format!("{mode:?}"))?;
        reads_agree(&expected, &snapshot).with_context(|| format!("{mode:?}"))?;
        let (lists, pages) = (requests.lists(), requests.with(&["limit=500", "continue="]));
        match mode {
            ListMode::Paged => ensure!((lists, pages) == (10, 9), "ten pages: {:?}", requests.all()),
            _ => ensure!(lists == 0, "streamed: {:?}", requests.all()),
        }
        watcher.shutdown().await;
    }
    Ok(())
}

/// By name, by exact key, by prefix and by named index: the same objects as a scan of the server's list.
fn reads_agree(expected: &BTreeMap<Key, Value>, snapshot: &Snapshot) -> Result<()> {
    let mut buckets: BTreeMap<Vec<&str>, BTreeSet<&Key>> = BTreeMap::new();
    let mut tiers: BTreeMap<&str, BTreeSet<&Key>> = BTreeMap::new();
    for (key, object) in expected {
        let found = snapshot.by_name(Some(&key.0), &key.1).with_context(|| format!("{key:?} by name"))?;
        let label = |name: &str| object["metadata"]["labels"][name].as_str().context("a label");
        ensure!(found.label("app") == Some(label("app")?), "{key:?} by name is {found:?}");
        for segments in [vec![], vec![&*key.0], vec![&*key.0, label("app")?]] {
            buckets.entry(segments).or_default().insert(key);
        }
        tiers.entry(label("tier")?).or_default().insert(key);
    }
    let is = |objects: k8s_store::Objects<'_>, keys: &BTreeSet<&Key>| {
        let found = objects.iter().map(|o| (o.namespace().unwrap_or_default(), o.name()));
        objects.len() == keys.len() && found.eq(keys.iter().map(|(namespace, name)| (&**namespace, &**name)))
    };
    for (segments, keys) in &buckets {
        ensure!(is(snapshot.get(segments)?, keys), "{segments:?} gives {:?}", snapshot.get(segments)?.len());
    }
    for (tier, keys) in &tiers {
        ensure!(is(snapshot.index("tier")?.get([tier])?, keys), "tier {tier}");
    }
    ensure!(snapshot.get(["sync-0", "app-x"])?.is_empty(), "a key that nobody has");
    ensure!(snapshot.by_name(Some("sync-0"), "nobody").is_none(), "a name that nobody has");
    Ok(())
}

/// The initial stream is used where the server has it: one watch, no list. The server says so too.
pub(crate) async fn streaming_list_where_the_server_has_it(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    // A kind that no other scenario watches, so that the server's own count is ours.
    let secrets = "/api/v1/namespaces/streaming/secrets";
    rest.namespace("streaming").await?;
    rest.fill(secrets, (0..20).map(|i| json!({"metadata": {"name": format!("secret-{i}")}}))).await?;
    let streamed_before = streamed_lists(target).await?;
    let requests = Requests::default();
    let config = WatcherConfig::new("v1/secrets").namespace("streaming").index_by(["metadata.name"]);
    let watcher = synced(requests.client(config_of(&target.kubeconfig()).await?)?, config.clone()).await?;
    equals_server(&rest, &watcher, &[secrets]).await?;
    let initial = requests.with(&["watch=", "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan"]);
    ensure!((initial, requests.watches(), requests.lists()) == (1, 1, 0), "{:?}", requests.all());
    eventually("the server counts one streamed list", async || {
        let now = streamed_lists(target).await?;
        ensure!(now == streamed_before + 1, "{streamed_before} before, {now} now");
        Ok(())
    })
    .await?;
    // It is one connection: what follows comes on it.
    rest.post(secrets, &json!({"metadata": {"name": "later"}})).await?;
    equals_server(&rest, &watcher, &[secrets]).await?;
    ensure!((requests.watches(), requests.lists()) == (1, 0), "{:?}", requests.all());
    watcher.shutdown().await;
    Ok(())
}

/// How many initial streams of secrets the server has served, in its own words.
async fn streamed_lists(target: &Target) -> Result<u64> {
    if let Some(embedded) = target.as_embedded() {
        let streams = k8s_fake_apiserver::Watch::of("v1/secrets").with_query("sendInitialEvents", "true");
        return Ok(embedded.server().journal().count(streams) as u64);
    }
    let request = http::Request::get("/metrics").body(vec![])?;
    let metrics = target.client().request_text(request).await?;
    let counts = metrics
        .lines()
        .filter(|l| l.starts_with("apiserver_watch_list_duration_seconds_count") && l.contains("resource=\"secrets\""))
        .filter(|l| l.contains("scope=\"namespace\""))
        .filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok());
    Ok(counts.sum())
}

/// 1,200 objects in pages of 100. On the embedded server a continue token expires half-way.
pub(crate) async fn pages_of_a_hundred(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("paging").await?;
    let path = config_maps("paging");
    rest.fill(&path, (0..1200).map(|i| config_map(&format!("object-{i:04}"), json!({"app": "a"}), "x"))).await?;
    let requests = Requests::default();
    let config = in_namespace("paging").list_mode(ListMode::Paged).page_size(100);
    let client = requests.client(config_of(&target.kubeconfig()).await?)?;
    let watcher = synced(client.clone(), config.clone()).await?;
    equals_server(&rest, &watcher, &[&path]).await?;
    ensure!(requests.with(&["limit=100"]) == 12, "{:?}", requests.all());
    ensure!(requests.with(&["limit=100", "continue="]) == 11, "{:?}", requests.all());
    watcher.shutdown().await;

    let Some(embedded) = target.as_embedded() else { return Ok(()) };
    let server = embedded.server();
    let held = server.faults().on(List::of("v1/configmaps").with_query("limit", "100")).nth(6).hold();
    let watcher = Watcher::builder(client, config).spawn()?;
    eventually("the sixth page is asked for", async || {
        ensure!(held.waiting() == 1, "{:?}", watcher.status());
        Ok(())
    })
    .await?;
    // What the first pages showed goes, what they did not show comes, and the token is worth nothing any more.
    rest.delete(&format!("{path}/object-0000")).await?;
    rest.post(&path, &config_map("object-0000-new", json!({"app": "b"}), "y")).await?;
    server.compact();
    held.release();
    let count = watcher.wait_for_sync(PATIENCE).await?;
    ensure!(count == 1200, "{count} objects");
    equals_server(&rest, &watcher, &[&path]).await?;
    let expired = watcher.last_watch_error().context("no error")?;
    ensure!(expired.code == Some(410), "{expired}");
    ensure!(watcher.status().relists == 0, "it is still the first list");
    watcher.shutdown().await;
    Ok(())
}
