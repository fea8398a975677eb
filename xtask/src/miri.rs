//! Miri, which knows more of memory than a processor: for what packs bytes and for what shares them.

use std::process::Command;

use anyhow::Result;

use crate::run::{output, root, run as run_command};

/// The crates that it runs over, with those of their tests that end within minutes there. None of ours has an unsafe
/// line; those that they stand on have.
const TESTS: &[&[&str]] = &[&["-p", "k8s-packed", "--lib", "--test", "it"], &["-p", "k8s-store", "--lib"]];

/// Not among what CI checks: it needs a nightly toolchain. Without one nothing is checked, and that is said.
pub(crate) fn run() -> Result<()> {
    let nightly = |arguments: &[&str]| {
        let mut command = Command::new("rustup");
        command.current_dir(root()).args(["run", "nightly", "cargo", "miri"]).args(arguments);
        command
    };
    if output(&mut nightly(&["--version"])).is_err() {
        println!(
            "miri is not installed (rustup toolchain install nightly --component miri,rust-src): nothing was checked"
        );
        return Ok(());
    }
    for tests in TESTS {
        let mut command = nightly(&["test", "--target-dir", "target/miri"]);
        // The seeds are files.
        run_command(command.args(*tests).env("MIRIFLAGS", "-Zmiri-disable-isolation"))?;
    }
    Ok(())
}
