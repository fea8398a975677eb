//! The examples run as a user would run them, each to its end. Those that need a cluster of their own size or a
//! kubeconfig are built by clippy only.

use anyhow::Result;

use crate::run::{cargo, run};

/// Name, the options that make it short, if it needs any.
const EXAMPLES: [(&str, &[&str]); 2] = [("demo", &["--scale", "0.05"]), ("leader", &[])];

pub(crate) fn run_all() -> Result<()> {
    for (name, options) in EXAMPLES {
        let mut command =
            cargo(["run", "-p", "k8s-informer", "--features", "cached,leader-election", "--example", name]);
        run(command.arg("--").args(options))?;
    }
    Ok(())
}
