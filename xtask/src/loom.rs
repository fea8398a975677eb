//! Every order in which threads can meet, by a model checker.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::run::{cargo, output, root, run};

/// The crates with models: unit tests whose names begin with `loom_`.
const CRATES: [&str; 2] = ["k8s-store", "k8s-watcher"];

/// Builds the unit tests of each crate with `--cfg k8s_loom` and runs the models among them.
///
/// The cfg is of our own and given to that one crate alone: its dependencies are those of the other tests, and tokio,
/// which has a meaning of its own for `loom`, stays as it is.
pub(crate) fn run_models() -> Result<()> {
    for name in CRATES {
        let mut build = cargo(["rustc", "--package", name, "--lib", "--profile", "test"]);
        build.args(["--message-format", "json-render-diagnostics", "--", "--cfg", "k8s_loom"]);
        let messages = output(&mut build)?;
        let program = program(&messages).with_context(|| format!("{name}: no test program was built"))?;
        let models = output(Command::new(&program).args(["loom_", "--list"]))?;
        if !models.contains("::loom_") {
            bail!("{name}: no model among its tests");
        }
        run(Command::new(&program).arg("loom_").current_dir(root()))?;
    }
    Ok(())
}

/// The test program that cargo says it has built.
fn program(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter_map(|message| Some(PathBuf::from(message["executable"].as_str()?))).next_back()
}
