//! The process's memory over millions of updates, objects that come and go, watchers that come and go.

use anyhow::{Result, bail};

use crate::run::{cargo, run};

/// The parts, each of which is a process of its own: what it takes is what is measured.
const PARTS: [&str; 3] = ["updates", "short-lived", "watchers"];

/// `soak --memory [--short]`: each part prints a table of its quarters, and fails if it has grown or left something.
pub(crate) fn memory(arguments: &[&str]) -> Result<()> {
    let options = match arguments {
        [] => vec![],
        ["--short"] => vec!["--short"],
        other => bail!("unknown option {}", other.join(" ")),
    };
    for part in PARTS {
        let mut command = cargo(["run", "--release", "-p", "e2e", "--bin", "memory", "--"]);
        run(command.args(&options).arg(part))?;
    }
    Ok(())
}
