//! Random histories of an API server, its faults and its watchers, in any number.

use std::process::Command;
use std::{env, fs, process};

use anyhow::{Context, Result, bail};

use crate::run::{cargo, run};

/// How many `test` plays.
const IN_TESTS: u64 = 10_000;

/// `soak [--histories N] [--seed S]`: plays N histories with the seeds from S on, a third of each kind, optimised.
///
/// The first that diverges from its model ends it, with its seed and what is left of it when all is left out that can be
/// spared.
pub(crate) fn soak(arguments: &[&str]) -> Result<()> {
    let (mut histories, mut seed) = (100_000, 0);
    for pair in arguments.chunks(2) {
        match pair {
            ["--histories", n] => histories = n.replace('_', "").parse::<u64>().context("--histories")?,
            ["--seed", s] => seed = s.replace('_', "").parse::<u64>().context("--seed")?,
            other => bail!("unknown option {}", other.join(" ")),
        }
    }
    play(cargo(["test", "--release", "-p", "k8s-watcher", "--features", "cached", "--test", "it"]), histories, seed)
}

/// The part of `test`: with what the tests with all features have built.
pub(crate) fn in_tests() -> Result<()> {
    play(cargo(["test", "--workspace", "--all-features", "--test", "it"]), IN_TESTS, 0)
}

fn play(mut command: Command, histories: u64, seed: u64) -> Result<()> {
    let report = env::temp_dir().join(format!("k8s-watcher-histories-{}", process::id()));
    command
        // One after the other, each on all cores; and what they say of their progress is seen.
        .args(["--quiet", "--", "histories::whatever_happens", "--test-threads=1", "--nocapture"])
        .env("K8S_WATCHER_HISTORIES", histories.to_string())
        .env("K8S_WATCHER_FIRST", seed.to_string())
        .env("K8S_WATCHER_REPORT", &report);
    let outcome = run(&mut command);
    let diverged = fs::read_to_string(&report).ok();
    let _ = fs::remove_file(&report);
    match diverged {
        Some(report) => bail!("a history diverges\n{report}"),
        None => outcome?,
    }
    println!("{histories} histories, 0 divergences");
    Ok(())
}
