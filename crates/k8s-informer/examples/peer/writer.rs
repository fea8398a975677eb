//! The other side of the updates: patches objects and says how fast that went.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use futures_util::{TryStreamExt, stream};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::json;

use crate::Args;
use crate::kube_peer::{api_resource, client};
use crate::measure::STAMP;

/// Patches under way at a time.
const PARALLEL: usize = 8;

pub(crate) async fn run(args: &Args) -> Result<String> {
    let (client, resource) = (client(args).await?, api_resource(args));
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let limit = u32::try_from(args.updates)?;
    let page = all.list_metadata(&ListParams::default().limit(limit)).await?;
    ensure!(!page.items.is_empty(), "nothing to update");
    let begin = Instant::now();
    let names = page.items.into_iter().filter_map(|o| Some((o.metadata.namespace?, o.metadata.name?)));
    stream::iter(names.map(Ok))
        .try_for_each_concurrent(PARALLEL, |(namespace, name)| {
            let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &resource);
            async move {
                let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos().to_string();
                let patch = json!({"metadata": {"annotations": {STAMP: now}}});
                api.patch_metadata(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
                anyhow::Ok(())
            }
        })
        .await?;
    let seconds = begin.elapsed().as_secs_f64();
    Ok(json!({"updates": args.updates, "seconds": seconds, "per_s": args.updates as f64 / seconds}).to_string())
}
