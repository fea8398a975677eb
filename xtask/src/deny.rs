//! Licences, sources and duplicate versions, by cargo-deny and `deny.toml`.

use anyhow::{Result, bail};

use crate::run::{cargo, is_ci, run as run_command};

/// Advisories are left out: they change without us changing anything, and their list is on the network.
pub(crate) fn run() -> Result<()> {
    if !cargo(["deny", "--version"]).output().is_ok_and(|o| o.status.success()) {
        const HOW: &str = "cargo-deny is not installed: cargo install cargo-deny --locked";
        if is_ci() {
            bail!(HOW);
        }
        println!("*** SKIPPED: {HOW} ***");
        return Ok(());
    }
    run_command(&mut cargo(["deny", "check", "bans", "licenses", "sources"]))
}
