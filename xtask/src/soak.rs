//! Random histories of a cluster, its faults and its watchers, in any number.

use anyhow::{Context, Result, bail};

use crate::run::{cargo, run};

/// `soak [--histories N] [--seed S]`: plays N histories of a watcher and N of a single watcher, with the seeds from S on.
///
/// The first that diverges from its model ends it, with its seed and what happened.
pub(crate) fn soak(arguments: &[&str]) -> Result<()> {
    let (mut histories, mut seed) = (100_000, 0);
    for pair in arguments.chunks(2) {
        match pair {
            ["--histories", n] => histories = n.replace('_', "").parse::<u64>().context("--histories")?,
            ["--seed", s] => seed = s.parse::<u64>().context("--seed")?,
            other => bail!("unknown option {}", other.join(" ")),
        }
    }
    let tests = ["histories::whatever_happens_the_store_ends_as_the_server_is", "single_histories::whatever_happens"];
    let mut command = cargo(["test", "--release", "-p", "k8s-watcher", "--test", "it", "--"]);
    command.args(tests).env("K8S_WATCHER_HISTORIES", histories.to_string()).env("K8S_WATCHER_FIRST", seed.to_string());
    run(&mut command)?;
    println!("{} histories, 0 divergences", 2 * histories);
    Ok(())
}
