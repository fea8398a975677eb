//! What the scenarios rely on: both servers stop, start and forget in the same way.

use anyhow::{Context, Result, ensure};
use e2e::Target;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};

fn config_map(name: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.into());
    object
}

/// The HTTP status of a refusal.
fn code<T>(result: kube::Result<T>) -> Option<u16> {
    match result {
        Err(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}

/// What a watch from this version tells first.
async fn first_event(api: &Api<ConfigMap>, version: &str) -> Result<Result<String, u16>> {
    use futures_util::{StreamExt, pin_mut};
    let stream = match api.watch(&WatchParams::default().timeout(5), version).await {
        Ok(stream) => stream,
        Err(kube::Error::Api(status)) => return Ok(Err(status.code)),
        Err(e) => return Err(e.into()),
    };
    pin_mut!(stream);
    match stream.next().await.context("the watch ended without an event")?? {
        WatchEvent::Added(object) => Ok(Ok(object.metadata.name.unwrap_or_default())),
        WatchEvent::Error(status) => Ok(Err(status.code)),
        other => anyhow::bail!("{other:?}"),
    }
}

async fn stops_starts_and_forgets(mut target: Target) -> Result<()> {
    let api: Api<ConfigMap> = Api::namespaced(target.client(), "default");
    for name in ["a", "b", "c"] {
        api.create(&PostParams::default(), &config_map(name)).await?;
    }
    ensure!(code(api.create(&PostParams::default(), &config_map("a")).await) == Some(409), "conflict");
    let page = api.list(&ListParams::default().limit(2)).await?;
    let version = page.metadata.resource_version.context("a version")?;
    let token = page.metadata.continue_.context("a continue token")?;

    target.stop().await;
    ensure!(api.list(&ListParams::default()).await.is_err(), "a stopped server answers");
    target.start().await?;
    api.create(&PostParams::default(), &config_map("d")).await?;
    ensure!(first_event(&api, &version).await? == Ok("d".into()), "history outlives a restart");
    ensure!(api.list(&ListParams::default().limit(2).continue_token(&token)).await.is_ok(), "so do continue tokens");

    target.compact().await?;
    let names: Vec<_> = api.list(&ListParams::default()).await?.into_iter().filter_map(|o| o.metadata.name).collect();
    ensure!(
        ["a", "b", "c", "d"].iter().all(|n| names.iter().any(|m| m == n)),
        "objects outlive a compaction: {names:?}"
    );
    ensure!(first_event(&api, &version).await? == Err(410), "an old version is too old");
    let continued = api.list(&ListParams::default().limit(2).continue_token(&token)).await;
    ensure!(code(continued) == Some(410), "an old continue token is too old");
    Ok(())
}

#[tokio::test]
async fn embedded_server_stops_starts_and_forgets() -> Result<()> {
    stops_starts_and_forgets(Target::embedded().await?).await
}

#[tokio::test]
async fn real_server_stops_starts_and_forgets() -> Result<()> {
    let Some(target) = Target::real().await? else { return Ok(()) };
    stops_starts_and_forgets(target).await
}
