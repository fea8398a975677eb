//! The echoes of our own writes.

use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, ensure};
use e2e::Target;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_types::ChangeStats;
use k8s_watcher::{RunningWatcher, SelfWrites, Watcher};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::support::{PATIENCE, Rest, equals_server, eventually, in_namespace, quick};

type Told = Arc<Mutex<ChangeStats>>;

async fn registered(
    target: &Target,
    config: k8s_types::WatcherConfig,
    own: &SelfWrites,
) -> Result<(RunningWatcher, Told)> {
    let told = Told::default();
    let sum = told.clone();
    let watcher = Watcher::builder(target.client(), config.debounce(std::time::Duration::ZERO))
        .self_writes(own.clone())
        .on_change(move |change| sum.lock().expect("no panic under the lock").merge(&change.stats))
        .spawn()?;
    watcher.wait_for_sync(PATIENCE).await?;
    Ok((watcher, told))
}

/// Hundreds of own writes through the helpers are no change, each foreign one between them is.
pub(crate) async fn own_writes_are_no_change_and_foreign_ones_are(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("own").await?;
    let own = SelfWrites::default();
    let (watcher, told) = registered(target, in_namespace("own"), &own).await?;
    let api: Api<ConfigMap> = Api::namespaced(target.client(), "own");
    let (post, patch) = (PostParams::default(), PatchParams::default());
    let foreign = |n: usize| Patch::Merge(json!({"data": {"foreign": n.to_string()}}));
    for n in 0..30 {
        let object = serde_json::from_value(json!({"metadata": {"generateName": "some-"}, "data": {"own": "0"}}))?;
        let created = own.create(&api, &post, &object).await?;
        let name = created.metadata.name.context("a name")?;
        let patched = own.patch(&api, &name, &patch, &Patch::Merge(json!({"data": {"own": "1"}}))).await?;
        if n % 3 == 0 {
            api.patch(&name, &patch, &foreign(n)).await?;
            ensure!(own.replace(&api, &name, &post, &patched).await.is_err(), "a conflict");
        } else {
            let mut replaced = patched;
            replaced.data = Some([("own".to_owned(), "2".to_owned())].into());
            own.replace(&api, &name, &post, &replaced).await?;
        }
    }
    equals_server(&rest, &watcher, &["/api/v1/namespaces/own/configmaps"]).await?;
    eventually("the foreign changes are told", async || {
        let told = *told.lock().expect("no panic under the lock");
        ensure!((told.created, told.modified, told.deleted) == (0, 10, 0), "{told}");
        Ok(())
    })
    .await?;
    watcher.shutdown().await;
    Ok(())
}

/// The answer to the delete of a Service has the version of the delete; that of a ConfigMap has none and is told.
pub(crate) async fn own_deletes_are_recognised_where_the_answer_tells_them(target: &Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("own-deletes").await?;
    let own = SelfWrites::default();
    let config =
        quick(k8s_types::WatcherConfig::new("v1/services").index_by(["metadata.name"]).namespace("own-deletes"));
    let (services, about_services) = registered(target, config, &own).await?;
    let (maps, about_maps) = registered(target, in_namespace("own-deletes"), &own).await?;
    let (post, delete) = (PostParams::default(), DeleteParams::default());
    let api: Api<Service> = Api::namespaced(target.client(), "own-deletes");
    let service = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}], "clusterIP": "None"}});
    own.create(&api, &post, &serde_json::from_value(service)?).await?;
    let answer = own.delete(&api, "a", &delete).await?;
    ensure!(answer.is_some(), "a Service is answered with the object");
    let api: Api<ConfigMap> = Api::namespaced(target.client(), "own-deletes");
    own.create(&api, &post, &serde_json::from_value(json!({"metadata": {"name": "a"}}))?).await?;
    ensure!(own.delete(&api, "a", &delete).await?.is_none(), "a ConfigMap is answered with a Status");
    eventually("the delete that cannot be recognised is told", async || {
        let told = *about_maps.lock().expect("no panic under the lock");
        ensure!((told.created, told.deleted) == (0, 1), "{told}");
        Ok(())
    })
    .await?;
    equals_server(&rest, &services, &["/api/v1/namespaces/own-deletes/services"]).await?;
    let told = *about_services.lock().expect("no panic under the lock");
    ensure!(told.is_empty(), "{told}");
    maps.shutdown().await;
    services.shutdown().await;
    Ok(())
}
