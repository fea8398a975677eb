//! The packages as they would be published.

use anyhow::Result;

use crate::run::{self, cargo};

/// Builds each package from its own files. Needs a committed tree: what is not committed is not published.
pub(crate) fn run() -> Result<()> {
    run::run(&mut cargo(["package", "--workspace", "--locked"]))
}

/// Only assembles the packages: every manifest is complete and every file is there.
pub(crate) fn list() -> Result<()> {
    run::run(&mut cargo(["package", "--workspace", "--locked", "--no-verify", "--allow-dirty", "--quiet"]))
}
