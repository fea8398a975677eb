//! Licences, sources and duplicate versions, by cargo-deny and `deny.toml`.

use std::process::Command;

use anyhow::{Result, bail};

use crate::run::{is_ci, root, run as run_command};

/// Advisories are left out: they change without us changing anything, and their list is on the network.
pub(crate) fn run() -> Result<()> {
    if Command::new("cargo-deny").arg("--version").output().is_err() {
        const HOW: &str = "cargo-deny is not installed: cargo install cargo-deny --locked";
        if is_ci() {
            bail!(HOW);
        }
        println!("*** SKIPPED: {HOW} ***");
        return Ok(());
    }
    run_command(Command::new("cargo-deny").current_dir(root()).args(["check", "bans", "licenses", "sources"]))
}
