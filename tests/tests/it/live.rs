//! Changes as they happen: counted once, in one bucket at a time, in and out of selections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::Target;
use k8s_types::{ChangeStats, WatcherConfig};
use k8s_watcher::Watcher;
use serde_json::json;
use std::sync::Mutex;

use crate::support::{
    Follower, PATIENCE, Rest, config_map, config_maps, equals_server, eventually, in_namespace, quick, synced, until,
};

/// Creates, updates and deletes: callbacks, statistics and the stream of changes all tell the same.
pub(crate) async fn live_changes_with_statistics(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("live").await?;
    let path = config_maps("live");
    rest.fill(&path, (0..10).map(|i| config_map(&format!("old-{i}"), json!({"app": "a"}), "0"))).await?;
    let told = Arc::new(Mutex::new(ChangeStats::default()));
    let (sum, loads) = (told.clone(), Arc::new(Mutex::new(vec![])));
    let synced_with = loads.clone();
    let watcher = Watcher::builder(target.client(), in_namespace("live").debounce(Duration::from_millis(20)))
        .on_change(move |change| {
            assert!(!change.stats.is_initial_sync, "nothing of the load is reported");
            sum.lock().expect("no panic under the lock").merge(&change.stats);
        })
        .on_sync_complete(move |_, count| synced_with.lock().expect("no panic under the lock").push(count))
        .spawn()?;
    ensure!(watcher.wait_for_sync(PATIENCE).await? == 10, "the load");
    let follower = Follower::start(watcher.changes()).await?;

    rest.fill(&path, (0..20).map(|i| config_map(&format!("new-{i}"), json!({"app": "b"}), "0"))).await?;
    for round in ["1", "2"] {
        for i in 0..10 {
            rest.merge(&format!("{path}/new-{i}"), &json!({"data": {"value": round}})).await?;
        }
    }
    for i in 0..5 {
        rest.delete(&format!("{path}/old-{i}")).await?;
    }
    // A write that changes nothing is no change.
    let same = rest.get(&format!("{path}/new-0")).await?;
    rest.put(&format!("{path}/new-0"), &same).await?;
    // A new object under an old name is a delete and a create, though its content is the same.
    rest.delete(&format!("{path}/old-9")).await?;
    rest.post(&path, &config_map("old-9", json!({"app": "a"}), "0")).await?;
    equals_server(&rest, &watcher, &[&path]).await?;

    eventually("the callbacks have told everything", async || {
        let stats = *told.lock().expect("no panic under the lock");
        ensure!((stats.created, stats.modified, stats.deleted) == (21, 20, 6), "{stats}");
        Ok(())
    })
    .await?;
    let store = watcher.store().clone();
    let status = watcher.status();
    let followed = follower.finish(watcher).await?;
    ensure!(followed.counts() == (21, 20, 6), "{:?}", followed.counts());
    followed.leads_to(&store.snapshot())?;
    ensure!(*loads.lock().expect("no panic under the lock") == [10], "on_sync_complete is called once");
    ensure!(status.relists == 0 && status.last_watch_error.is_none(), "{status:?}");
    Ok(())
}

/// While a key goes back and forth, a reader finds the object under exactly one of them, always.
pub(crate) async fn key_change_moves_the_object(target: &Target) -> Result<()> {
    const MOVES: usize = 60;
    let rest = Rest::of(target);
    rest.namespace("moving").await?;
    let path = config_maps("moving");
    rest.fill(&path, ["mover", "other"].map(|name| config_map(name, json!({"app": "left"}), "x"))).await?;
    let watcher = synced(target.client(), in_namespace("moving").named_index("app", ["metadata.labels.app"])).await?;
    let (store, stop) = (watcher.store().clone(), Arc::new(AtomicBool::new(false)));
    let stopped = stop.clone();
    let reader = tokio::task::spawn_blocking(move || {
        let (mut seen, mut last, mut moves) = (0_u64, String::new(), 0);
        while !stopped.load(Ordering::Relaxed) {
            let snapshot = store.snapshot();
            let mut under = vec![];
            for app in ["left", "right"] {
                let primary = snapshot.get(["moving", app])?.iter().filter(|o| o.name() == "mover").count();
                let named = snapshot.index("app")?.get([app])?.iter().filter(|o| o.name() == "mover").count();
                ensure!(primary == named, "the indexes disagree about {app}: {primary} and {named}");
                under.extend(std::iter::repeat_n(app, primary));
            }
            let [app] = under[..] else { anyhow::bail!("the object is under {under:?}") };
            let object = snapshot.by_name(Some("moving"), "mover").context("by name")?;
            ensure!(object.label("app") == Some(app), "under {app}, but {object:?}");
            ensure!(snapshot.get(["moving"])?.len() == 2, "by prefix");
            moves += usize::from(last != app);
            app.clone_into(&mut last);
            seen += 1;
            if seen.is_multiple_of(64) {
                std::thread::yield_now();
            }
        }
        Ok((seen, moves))
    });
    let mut app = "left";
    for _ in 0..MOVES {
        app = if app == "left" { "right" } else { "left" };
        rest.merge(&format!("{path}/mover"), &json!({"metadata": {"labels": {"app": app}}})).await?;
    }
    equals_server(&rest, &watcher, &[&path]).await?;
    until(&watcher, "the last move", |s| s.get(["moving", app]).is_ok_and(|o| o.len() == 2)).await?;
    stop.store(true, Ordering::Relaxed);
    let (seen, moves) = reader.await??;
    ensure!(seen > 100 && moves > 1, "the reader saw {moves} moves in {seen} reads");
    watcher.shutdown().await;
    Ok(())
}

/// Leaving a selection is a delete and coming back a create, whoever selects.
pub(crate) async fn selections_are_left_and_entered_again(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("selecting").await?;
    let path = config_maps("selecting");
    let objects = (0..6).map(|i| {
        let color = if i % 2 == 0 { "red" } else { "blue" };
        config_map(&format!("object-{i}"), json!({"app": "a", "tier": "front", "color": color}), color)
    });
    rest.fill(&path, objects).await?;
    // Both want the same objects: by the server's choice, and by ours.
    let by_server =
        synced(target.client(), in_namespace("selecting").label_selector("tier=front,color in (red)")).await?;
    let by_client = synced(target.client(), in_namespace("selecting").field_selector("data.value=red")).await?;
    for (watcher, who) in [(by_server, "server"), (by_client, "client")] {
        let label = |color: &str| json!({"metadata": {"labels": {"color": color}}, "data": {"value": color}});
        let red = |snapshot: &k8s_store::Snapshot| {
            let names: Vec<_> = snapshot.list().iter().map(|o| o.name().to_owned()).collect();
            names.join(" ")
        };
        let follower = Follower::start(watcher.changes()).await?;
        until(&watcher, who, |s| red(s) == "object-0 object-2 object-4").await?;
        for (name, color, then) in [
            ("object-0", "blue", "object-2 object-4"),
            ("object-1", "red", "object-1 object-2 object-4"),
            ("object-0", "red", "object-0 object-1 object-2 object-4"),
            ("object-1", "blue", "object-0 object-2 object-4"),
        ] {
            rest.merge(&format!("{path}/{name}"), &label(color)).await?;
            until(&watcher, who, |s| red(s) == then).await?;
        }
        // Outside the selection nothing happens; inside, a change is a change, and a delete is told once.
        rest.merge(&format!("{path}/object-3"), &json!({"metadata": {"labels": {"app": "b"}}})).await?;
        rest.merge(&format!("{path}/object-2"), &json!({"metadata": {"labels": {"app": who}}})).await?;
        until(&watcher, who, |s| s.get(["selecting", who]).is_ok_and(|o| o.len() == 1)).await?;
        let temporary = config_map("temporary", json!({"tier": "front", "color": "red"}), "red");
        rest.post(&path, &temporary).await?;
        until(&watcher, who, |s| s.len() == 4).await?;
        rest.delete(&format!("{path}/temporary")).await?;
        until(&watcher, who, |s| red(s) == "object-0 object-2 object-4").await?;
        let store = watcher.store().clone();
        let followed = follower.finish(watcher).await.context(who)?;
        followed.leads_to(&store.snapshot())?;
        ensure!(followed.counts() == (3, 1, 3), "{who}: {:?}", followed.counts());
    }
    Ok(())
}

/// Pods of one node, and Pods that run, selected by the server.
pub(crate) async fn pods_of_one_node(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("nodes").await?;
    let path = "/api/v1/namespaces/nodes/pods";
    let pod = |name: String, node: Option<&str>| {
        let container = json!({"name": "c", "image": "registry.example/c:1"});
        json!({"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [container]}})
    };
    rest.fill(path, (0..8).map(|i| pod(format!("pod-{i}"), [Some("n1"), Some("n2"), None, Some("n1")][i % 4]))).await?;
    let config = quick(WatcherConfig::new("v1/pods").index_by(["spec.nodeName", "metadata.namespace"]));
    let watcher = synced(target.client(), config.server_field_selector("spec.nodeName=n1")).await?;
    let selected = format!("{path}?fieldSelector=spec.nodeName%3Dn1");
    equals_server(&rest, &watcher, &[&selected]).await?;
    ensure!(watcher.store().len() == 4, "{}", watcher.store().len());
    ensure!(watcher.store().get(["n1", "nodes"])?.len() == 4, "by key");
    // A field that may change: in, out and in again.
    let config = quick(WatcherConfig::new("v1/pods").namespace("nodes").index_by(["metadata.name"]));
    let running = synced(target.client(), config.server_field_selector("status.phase=Running")).await?;
    let follower = Follower::start(running.changes()).await?;
    for (phase, count) in [("Running", 1), ("Failed", 0), ("Running", 1)] {
        rest.merge(&format!("{path}/pod-1/status"), &json!({"status": {"phase": phase}})).await?;
        until(&running, phase, |s| s.len() == count).await?;
    }
    let followed = follower.finish(running).await?;
    ensure!(followed.counts() == (2, 0, 1), "{:?}", followed.counts());

    rest.post(path, &pod("late".into(), Some("n1"))).await?;
    rest.post(path, &pod("elsewhere".into(), Some("n2"))).await?;
    // No kubelet will let it end, so it is not waited for.
    rest.delete(&format!("{path}/pod-0?gracePeriodSeconds=0")).await?;
    equals_server(&rest, &watcher, &[&selected]).await?;
    ensure!(watcher.store().by_name(Some("nodes"), "late").is_some(), "the new Pod");
    // A Pod that must end first is still there, and says so.
    rest.delete(&format!("{path}/pod-3")).await?;
    until(&watcher, "pod-3 is ending", |s| {
        let ending = s.by_name(Some("nodes"), "pod-3").map(k8s_packed::Object::to_value);
        ending.is_some_and(|o| o["metadata"]["deletionTimestamp"].is_string())
    })
    .await?;
    rest.delete(&format!("{path}/pod-3?gracePeriodSeconds=0")).await?;
    equals_server(&rest, &watcher, &[&selected]).await?;
    ensure!(watcher.store().by_name(Some("nodes"), "pod-3").is_none(), "pod-3 has ended");
    watcher.shutdown().await;
    Ok(())
}
