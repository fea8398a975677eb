//! The real control plane. The code is the test harness's, so that there is one copy of it; this only calls it.

use anyhow::Result;

use crate::run::{cargo, output, run as run_command};

const HARNESS: [&str; 7] = ["run", "--quiet", "--package", "e2e", "--bin", "control-plane", "--"];

/// `build`, `start DIR` or `stop DIR`.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    run_command(cargo(HARNESS).args(arguments).current_dir(std::env::current_dir()?))
}

/// Finds or builds etcd and kube-apiserver and gives back their folder. `None` when there is no Go to build them with;
/// the harness has said so, and has failed if this is CI.
pub(crate) fn build() -> Result<Option<String>> {
    let folder = output(cargo(HARNESS).arg("build"))?;
    let folder = folder.trim();
    Ok((!folder.is_empty()).then(|| folder.to_owned()))
}
