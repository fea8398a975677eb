//! Miri, which knows more of memory than a processor: for what packs bytes.

use std::process::Command;

use anyhow::Result;

use crate::run::{output, root, run as run_command};

/// Runs the unit tests of `k8s-packed`, with few cases of its property tests. The crate has no unsafe line; those that
/// it stands on have.
///
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
    // A target folder of its own: what is built for miri is of no use to anything else.
    let mut command = nightly(&["test", "--target-dir", "target/miri", "-p", "k8s-packed", "--lib"]);
    run_command(command.env("MIRIFLAGS", "-Zmiri-disable-isolation"))
}
