//! The oldest supported Rust: a build with it, and what the dependencies ask for.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::metadata::Metadata;
use crate::run::{output, root, run as run_command};

/// Checks all crates, without tests and benches, with the toolchain of `rust-version`. Without that toolchain only what
/// [`dependencies`] checks is known, and that is said.
pub(crate) fn run() -> Result<()> {
    let metadata = Metadata::load()?;
    let oldest = metadata.oldest_rust()?.to_owned();
    let installed = output(Command::new("rustup").args(["toolchain", "list"])).unwrap_or_default();
    if installed.lines().any(|l| l.starts_with(&format!("{oldest}.")) || l.starts_with(&format!("{oldest}-"))) {
        // A target folder of its own: two compilers in one would rebuild everything at every change between them.
        let check = ["cargo", "check", "--workspace", "--all-features", "--target-dir", "target/msrv"];
        return run_command(Command::new("rustup").current_dir(root()).args(["run", &oldest]).args(check));
    }
    println!("Rust {oldest} is not installed (rustup toolchain install {oldest}): only the dependencies are checked");
    let wrong = dependencies(&metadata)?;
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}

/// Dependencies of the published crates that need a newer Rust than we promise. Clippy's `incompatible_msrv` looks
/// after the standard library.
pub(crate) fn dependencies(metadata: &Metadata) -> Result<Vec<String>> {
    let oldest = version(metadata.oldest_rust()?)?;
    let mut wrong = Vec::new();
    for package in metadata.needed_by_published() {
        if let Some(text) = package["rust_version"].as_str()
            && version(text)? > oldest
        {
            let (name, version) = (&package["name"], &package["version"]);
            wrong.push(format!("{name} {version} needs Rust {text}; pin an older one in Cargo.lock"));
        }
    }
    Ok(wrong)
}

fn version(text: &str) -> Result<(u32, u32)> {
    let mut parts = text.split('.').map(str::parse);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
        (Some(Ok(major)), None) => Ok((major, 0)),
        _ => None.with_context(|| format!("{text:?} is no Rust version")),
    }
}
