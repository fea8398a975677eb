//! The tour: a believable cluster, watched, indexed, read, and changed before your eyes.
//!
//! ```sh
//! cargo run --release -p k8s-informer --example demo
//! cargo run --release -p k8s-informer --example demo -- --context NAME --resource v1/pods --index-by metadata.namespace
//! ```
//!
//! Without options it brings its own API server. With `--kubeconfig` or `--context` it looks at a real cluster, and
//! only looks: nothing is written.

#![allow(clippy::print_stdout, reason = "a command-line program")]

mod burst;
mod cluster;
mod look_ups;
mod sync;
mod table;

use std::time::Instant;

use anyhow::{Result, bail};
use clap::Parser;
use k8s_informer::client::{Client, ClientConfig};
use k8s_informer::types::WatcherConfig;
use k8s_informer::watcher::{RunningWatcher, Watcher};

/// Watches a cluster and shows what a cache of it costs and what it gives.
#[derive(Parser)]
struct Options {
    /// How big the tour's own cluster is, as a share of the full one.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share)]
    scale: f64,
    /// A kubeconfig of a real cluster. It is only read.
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<String>,
    /// A context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// What to watch in a real cluster, such as `networking.k8s.io/v1/ingresses`; may be given again.
    #[arg(long = "resource", value_name = "GROUP/VERSION/PLURAL")]
    resources: Vec<String>,
    /// The expressions of the index, in order. Default: namespace and name.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    index_by: Vec<String>,
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.01..=10.0).contains(&share) { Ok(share) } else { Err("not between 0.01 and 10".to_owned()) }
}

/// A watcher with what the report needs to know of it.
struct Watched {
    /// The kind, as people call it.
    name: String,
    index_by: Vec<String>,
    watcher: RunningWatcher,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    if options.kubeconfig.is_some() || options.context.is_some() {
        return real_cluster(&options).await;
    }
    if !options.resources.is_empty() || !options.index_by.is_empty() {
        bail!("--resource and --index-by need a cluster: give --kubeconfig or --context");
    }
    embedded(options.scale).await
}

/// The whole tour on the embedded API server.
async fn embedded(scale: f64) -> Result<()> {
    println!("k8s-informer: a tour on an API server of its own, in this process (it is being filled)\n");
    let begin = Instant::now();
    let cluster = cluster::start(scale).await?;
    println!(
        "1. The cluster: {} objects, {} of JSON, served after {}\n",
        table::count(cluster.kinds.iter().map(|k| k.objects).sum()),
        table::bytes(cluster.kinds.iter().map(|k| k.json_bytes).sum()),
        table::time(begin.elapsed()),
    );
    let client: Client = cluster.server.client().into();
    let calls = burst::Calls::default();
    let mut watched = vec![];
    for kind in &cluster.kinds {
        let config = WatcherConfig::new(kind.resource).index_by(kind.index_by.iter().copied());
        let builder = Watcher::builder(client.clone(), config);
        let builder = if kind.name == burst::KIND { calls.listen(builder) } else { builder };
        watched.push(Watched {
            name: kind.name.into(),
            index_by: kind.index_by.iter().map(|&e| e.into()).collect(),
            watcher: builder.spawn()?,
        });
    }
    println!("2. The initial load");
    sync::wait(&watched).await?;

    println!("\n3. What it takes");
    let json: Vec<_> = cluster.kinds.iter().map(|k| k.json_bytes).collect();
    table::memory(&watched, &json);

    println!("\n4. Reading");
    look_ups::tour(&watched)?;

    println!("\n5. A burst of changes");
    burst::run(&cluster, &watched, &calls).await?;
    for w in watched {
        w.watcher.shutdown().await;
    }
    println!("\nDone in {}.", table::time(begin.elapsed()));
    Ok(())
}

/// The same on a real cluster, without the burst.
async fn real_cluster(options: &Options) -> Result<()> {
    let mut config = match &options.kubeconfig {
        Some(path) => ClientConfig::kubeconfig(path),
        None => ClientConfig::infer(),
    };
    if let Some(context) = &options.context {
        config = config.context(context);
    }
    let client = config.build().await?;
    let index_by = match &options.index_by[..] {
        [] => vec!["metadata.namespace".to_owned(), "metadata.name".to_owned()],
        given => given.to_vec(),
    };
    let resources = match &options.resources[..] {
        [] => vec!["v1/pods".to_owned()],
        given => given.to_vec(),
    };
    println!("k8s-informer: a look at a real cluster; nothing is written\n\n1. The initial load");
    let mut watched = vec![];
    for resource in resources {
        let config = WatcherConfig::new(resource.as_str()).index_by(index_by.clone());
        let watcher = Watcher::builder(client.clone(), config).spawn()?;
        watched.push(Watched { name: resource, index_by: index_by.clone(), watcher });
    }
    sync::wait(&watched).await?;

    println!("\n2. What it takes (JSON: of the cached objects, without managedFields)");
    let json: Vec<_> = watched.iter().map(|w| table::json_bytes(&w.watcher)).collect();
    table::memory(&watched, &json);

    println!("\n3. Reading");
    for w in &watched {
        look_ups::busiest(w)?;
    }
    for w in watched {
        w.watcher.shutdown().await;
    }
    Ok(())
}
