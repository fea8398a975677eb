//! One informer in a process of its own, measured: prints one line of JSON.
//!
//! `peer --kubeconfig F --resource pods [--updates K --ready-file P] [--name NAME] [--streaming|--paged]
//!  [--library k8s-informer|kube-dynamic|kube-typed|writer] [--relist]`
//!
//! The phases and the fields are the same for all libraries, so that lines can be put into one table: sync,
//! memory, lookups, updates. `kube-dynamic` and `kube-typed` are kube's own reflector with `managedFields` cleared.
//! With `--relist` ours reads everything again at the end and prints the peak of that too. `--library writer` is the
//! other side: it patches `--updates` objects with the time of the write in an annotation.

#![allow(clippy::print_stdout, reason = "a command-line program")]

mod kube_peer;
mod measure;
mod ours;
mod writer;

use std::time::Instant;

use anyhow::{Context, Result, bail};

/// What is measured and how.
struct Args {
    kubeconfig: String,
    resource: String,
    library: String,
    name: Option<String>,
    paged: bool,
    updates: u64,
    ready_file: Option<String>,
    relist: bool,
}

fn args() -> Result<Args> {
    let mut args = Args {
        kubeconfig: std::env::var("KUBECONFIG").unwrap_or_default(),
        resource: "pods".into(),
        library: "k8s-informer".into(),
        name: None,
        paged: false,
        updates: 0,
        ready_file: None,
        relist: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(option) = words.next() {
        let mut value = || words.next().with_context(|| format!("{option} needs a value"));
        match option.as_str() {
            "--kubeconfig" => args.kubeconfig = value()?,
            "--resource" => args.resource = value()?,
            "--library" => args.library = value()?,
            "--name" => args.name = Some(value()?),
            "--updates" => args.updates = value()?.parse().context("--updates")?,
            "--ready-file" => args.ready_file = Some(value()?),
            "--streaming" => args.paged = false,
            "--paged" => args.paged = true,
            "--relist" => args.relist = true,
            _ => bail!("unknown option {option}"),
        }
    }
    Ok(args)
}

/// `group/version/plural` of the kinds that peers are measured with.
fn gvr(resource: &str) -> Result<&'static str> {
    Ok(match resource {
        "pods" => "v1/pods",
        "configmaps" => "v1/configmaps",
        "secrets" => "v1/secrets",
        "endpointslices" => "discovery.k8s.io/v1/endpointslices",
        other => bail!("unknown resource {other}"),
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    let begin = Instant::now();
    let args = args()?;
    let line = match args.library.as_str() {
        "k8s-informer" => ours::run(&args, begin).await?,
        "kube-dynamic" => kube_peer::dynamic(&args, begin).await?,
        "kube-typed" => kube_peer::typed(&args, begin).await?,
        "writer" => writer::run(&args).await?,
        other => bail!("unknown library {other}"),
    };
    println!("{line}");
    Ok(())
}
