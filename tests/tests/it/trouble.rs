//! The network and the server fail: what was missed is found, and nothing is invented.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::{Proxy, Target};
use k8s_watcher::{ErrorClass, Phase};
use serde_json::json;

use crate::support::{
    Follower, Rest, config_map, config_maps, equals_server, eventually, in_namespace, is_refusal, synced, until,
};

/// Cut off while objects are deleted and the history is thrown away: a relist tells exactly what is different.
pub(crate) async fn relist_after_compaction(target: &mut Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("relist").await?;
    let path = config_maps("relist");
    rest.fill(&path, (0..50).map(|i| config_map(&format!("object-{i:02}"), json!({"app": "a"}), "0"))).await?;
    let proxy = Proxy::open(target).await?;
    let watcher = synced(proxy.client()?, in_namespace("relist")).await?;
    let follower = Follower::start(watcher.changes()).await?;
    proxy.cut();
    eventually("the watcher knows that it is cut off", async || {
        let error = watcher.last_watch_error().context("no error yet")?;
        ensure!(error.class == ErrorClass::Connection, "{error}");
        Ok(())
    })
    .await?;

    for i in 0..10 {
        rest.delete(&format!("{path}/object-{i:02}")).await?;
    }
    for i in 10..15 {
        rest.merge(&format!("{path}/object-{i:02}"), &json!({"data": {"value": "1"}})).await?;
    }
    for i in 15..17 {
        rest.delete(&format!("{path}/object-{i:02}")).await?;
        rest.post(&path, &config_map(&format!("object-{i:02}"), json!({"app": "a"}), "0")).await?;
    }
    rest.fill(&path, (0..5).map(|i| config_map(&format!("new-{i}"), json!({"app": "b"}), "0"))).await?;
    target.compact().await?;
    ensure!(watcher.store().len() == 50, "the store keeps what it knew");
    proxy.forward();
    equals_server(&rest, &watcher, &[&path]).await?;

    // A change after the relist comes by the watch.
    rest.merge(&format!("{path}/new-0"), &json!({"data": {"value": "1"}})).await?;
    equals_server(&rest, &watcher, &[&path]).await?;
    let status = watcher.status();
    ensure!(status.relists == 1, "one relist: {status:?}");
    let error = status.last_watch_error.context("no error")?;
    ensure!((error.class, error.code) == (ErrorClass::Expired, Some(410)), "{error}");
    let store = watcher.store().clone();
    let mut followed = follower.finish(watcher).await?;
    followed.leads_to(&store.snapshot())?;
    ensure!(followed.counts() == (7, 6, 12), "{:?}", followed.counts());
    followed.deleted.sort_unstable();
    let gone: Vec<_> = (0..10).chain(15..17).map(|i| format!("object-{i:02}")).collect();
    ensure!(followed.deleted == gone, "{:?}", followed.deleted);
    Ok(())
}

/// The API server is killed and comes back while somebody goes on writing.
pub(crate) async fn restart_in_the_middle_of_writes(target: &mut Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("restart").await?;
    let path = config_maps("restart");
    rest.fill(&path, (0..100).map(|i| config_map(&format!("kept-{i:02}"), json!({"app": "kept"}), "0"))).await?;
    let watcher = synced(target.client(), in_namespace("restart")).await?;
    let follower = Follower::start(watcher.changes()).await?;
    let stop = AtomicBool::new(false);
    let restart = async {
        until(&watcher, "writes come through", |s| s.by_name(Some("restart"), "made-11").is_some()).await?;
        let before = watcher.status();
        target.stop().await;
        eventually("the watcher notices", async || {
            let status = watcher.status();
            let noticed = status.restarts > before.restarts || matches!(status.phase, Phase::BackingOff { .. });
            ensure!(noticed && status.last_watch_error.is_some(), "{status:?}");
            Ok(())
        })
        .await?;
        target.start().await?;
        let at_restart = watcher.store().len();
        until(&watcher, "writes come through again", |s| s.len() > at_restart + 10).await?;
        stop.store(true, Ordering::Relaxed);
        Ok(())
    };
    let (written, ()) = tokio::try_join!(write(&rest, &path, &stop), restart)?;
    equals_server(&rest, &watcher, &[&path]).await?;
    let (status, store) = (watcher.status(), watcher.store().clone());
    let followed = follower.finish(watcher).await?;
    followed.leads_to(&store.snapshot())?;
    // A server that lost its watch cache may ask for a relist; even so nothing may be told that did not happen.
    ensure!(status.relists <= 1, "{status:?}");
    let deleted: BTreeSet<_> = followed.deleted.iter().cloned().collect();
    ensure!(deleted.len() == followed.deleted.len(), "deleted twice: {:?}", followed.deleted);
    // What came and went between two looks at the stream is counted, no more.
    ensure!(deleted.is_subset(&written.deleted), "told {deleted:?}, done {:?}", written.deleted);
    let (told, done) = (followed.stats.deleted, written.deleted.len() as u64);
    ensure!(told == done || (status.relists == 1 && told < done), "{told} told, {done} done");
    let kept = followed.created.iter().chain(&followed.modified).filter(|n| n.starts_with("kept-")).count();
    ensure!(kept == 0, "{kept} changes of objects that nobody touched");
    Ok(())
}

struct Written {
    deleted: BTreeSet<String>,
}

/// Makes objects, changes some and deletes some, and tries again what fails.
async fn write(rest: &Rest, path: &str, stop: &AtomicBool) -> Result<Written> {
    let mut deleted = BTreeSet::new();
    for i in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let name = format!("made-{i:02}");
        let object = config_map(&name, json!({"app": "made"}), "0");
        eventually("a create", async || match rest.post(path, &object).await {
            // The answer to the first try was lost.
            Err(error) if is_refusal(&error, 409) => Ok(()),
            other => other.map(drop),
        })
        .await?;
        if i % 3 == 0 {
            let patch = json!({"data": {"value": "1"}});
            eventually("a change", async || rest.merge(&format!("{path}/{name}"), &patch).await).await?;
        }
        if i % 5 == 0 {
            eventually("a delete", async || match rest.delete(&format!("{path}/{name}")).await {
                Err(error) if is_refusal(&error, 404) => Ok(()),
                other => other,
            })
            .await?;
            deleted.insert(name);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(Written { deleted })
}

/// A connection that is open and silent is given up, and the next one goes on where it was.
pub(crate) async fn silent_connection_is_given_up(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("silent").await?;
    let path = config_maps("silent");
    rest.fill(&path, (0..20).map(|i| config_map(&format!("object-{i}"), json!({"app": "a"}), "0"))).await?;
    let proxy = Proxy::open(target).await?;
    let watcher = synced(proxy.client()?, in_namespace("silent").idle_limit(Duration::from_secs(3))).await?;
    let follower = Follower::start(watcher.changes()).await?;
    proxy.hang();
    rest.post(&path, &config_map("unheard", json!({"app": "a"}), "0")).await?;
    rest.delete(&format!("{path}/object-0")).await?;
    eventually("the silence is noticed", async || {
        let error = watcher.last_watch_error().context("no error yet")?;
        ensure!(error.class == ErrorClass::Idle, "{error}");
        Ok(())
    })
    .await?;
    ensure!(watcher.store().len() == 20, "nothing came through");
    proxy.forward();
    equals_server(&rest, &watcher, &[&path]).await?;
    // A break in a live connection goes by without a trace but in the status.
    for i in 1..4 {
        proxy.hiccup();
        rest.delete(&format!("{path}/object-{i}")).await?;
        equals_server(&rest, &watcher, &[&path]).await?;
    }
    let (status, store) = (watcher.status(), watcher.store().clone());
    ensure!(status.relists == 0, "{status:?}");
    let followed = follower.finish(watcher).await?;
    followed.leads_to(&store.snapshot())?;
    ensure!(followed.counts() == (1, 0, 4), "{:?}", followed.counts());
    Ok(())
}
