//! The API documentation, in which a broken link is an error.

use anyhow::Result;

use crate::run::cargo;

pub(crate) fn run() -> Result<()> {
    let mut command = cargo(["doc", "--workspace", "--no-deps", "--all-features"]);
    crate::run::run(command.env("RUSTDOCFLAGS", "-D warnings"))
}
