//! The packages as they would be published.

use std::process::Command;

use anyhow::Result;

use crate::metadata::Metadata;
use crate::run::{self, cargo};

/// Builds each package from its own files. Needs a committed tree: what is not committed is not published.
pub(crate) fn run() -> Result<()> {
    run::run(&mut package()?)
}

/// Only assembles the packages: every manifest is complete and every file is there.
pub(crate) fn list() -> Result<()> {
    run::run(package()?.args(["--no-verify", "--allow-dirty", "--quiet"]))
}

fn package() -> Result<Command> {
    let mut command = cargo(["package", "--locked"]);
    for name in Metadata::load()?.published().keys() {
        command.args(["--package", name]);
    }
    Ok(command)
}
