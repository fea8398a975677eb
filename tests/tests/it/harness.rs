//! What the scenarios rely on: both servers stop, start and forget in the same way.

use anyhow::{Context, Result, bail, ensure};
use e2e::Target;
use futures_util::{StreamExt, pin_mut};
use http::Request;
use kube::core::{DynamicObject, WatchEvent};
use serde_json::json;

use crate::support::{Rest, config_map, config_maps, is_refusal, listed};

/// What a watch from this version tells first: a name, or the code of an error.
async fn first_event(target: &Target, path: &str, version: &str) -> Result<Result<String, u16>> {
    let uri = format!("{path}?watch=1&timeoutSeconds=5&resourceVersion={version}");
    let stream = match target.client().request_events::<DynamicObject>(Request::get(uri).body(vec![])?).await {
        Ok(stream) => stream,
        Err(kube::Error::Api(status)) => return Ok(Err(status.code)),
        Err(error) => return Err(error.into()),
    };
    pin_mut!(stream);
    match stream.next().await.context("the watch ended without an event")?? {
        WatchEvent::Added(object) => Ok(Ok(object.metadata.name.unwrap_or_default())),
        WatchEvent::Error(status) => Ok(Err(status.code)),
        other => bail!("{other:?}"),
    }
}

pub(crate) async fn stops_starts_and_forgets(target: &mut Target) -> Result<()> {
    let rest = Rest::of(target);
    rest.namespace("harness").await?;
    let path = config_maps("harness");
    let object = |name: &str| config_map(name, json!({}), "x");
    rest.fill(&path, ["a", "b", "c"].map(object)).await?;
    let refused = rest.post(&path, &object("a")).await;
    ensure!(refused.is_err_and(|e| is_refusal(&e, 409)), "a name is taken once");
    let page = rest.get(&format!("{path}?limit=2")).await?;
    let text = |name: &str| page["metadata"][name].as_str().map(str::to_owned).with_context(|| format!("no {name}"));
    let (version, token) = (text("resourceVersion")?, text("continue")?);
    let next_page = format!("{path}?limit=2&continue={token}");

    target.stop().await;
    ensure!(rest.get(&path).await.is_err(), "a stopped server answers");
    target.start().await?;
    rest.post(&path, &object("d")).await?;
    ensure!(first_event(target, &path, &version).await? == Ok("d".into()), "history outlives a restart");
    ensure!(rest.get(&next_page).await.is_ok(), "so do continue tokens");

    target.compact().await?;
    let names: Vec<_> = listed(&rest, &path).await?.into_keys().map(|(_, name)| name).collect();
    ensure!(names == ["a", "b", "c", "d"], "objects outlive a compaction: {names:?}");
    ensure!(first_event(target, &path, &version).await? == Err(410), "an old version is too old");
    ensure!(rest.get(&next_page).await.is_err_and(|e| is_refusal(&e, 410)), "so is an old continue token");
    Ok(())
}
