//! Everything that CI checks.

use std::env;

use anyhow::Result;

use crate::run::{Parts, cargo, run};
use crate::{control_plane, deny, docs, examples, loom, package, tidy};

/// The tests that need the real control plane are in a module of this name; they run once, by themselves.
const ON_REAL_SERVER: &str = "real_server::";

/// The quick half, for while one works.
pub(crate) fn fast() -> Result<()> {
    let mut parts = Parts::new();
    parts.part("format", format)?;
    parts.part("tidy", tidy::run)?;
    parts.part("clippy, default features", || clippy(&[]))?;
    parts.part("tests, default features", || tests(&[]))
}

/// All of it.
pub(crate) fn all() -> Result<()> {
    let mut parts = Parts::new();
    parts.part("format", format)?;
    parts.part("tidy", tidy::run)?;
    parts.part("licences, sources, duplicates", deny::run)?;
    // Checks before builds: they are quicker to tell what is wrong.
    parts.part("clippy, default features", || clippy(&[]))?;
    parts.part("clippy, all features", || clippy(&["--all-features"]))?;
    parts.part("docs", docs::run)?;
    parts.part("packages", package::list)?;
    parts.part("tests, default features", || tests(&[]))?;
    parts.part("tests, all features", || tests(&["--all-features"]))?;
    parts.part("models of threads", loom::run_models)?;
    parts.part("examples", examples::run_all)?;
    // Another crate of a user's build may turn these on, and features are shared.
    parts.part("tests of k8s-packed, serde_json's other features", || {
        let features = "serde_json/arbitrary_precision,serde_json/preserve_order";
        run(&mut cargo(["test", "-p", "k8s-packed", "--features", features]))
    })?;
    let mut assets = None;
    parts.part("control plane", || {
        assets = control_plane::find_or_build()?;
        Ok(())
    })?;
    parts.part("scenarios on the real server", || {
        let Some(assets) = assets else { return Ok(()) };
        let mut command = cargo(["test", "--workspace", "--tests", "--quiet", "--", ON_REAL_SERVER]);
        run(command.env("KUBEBUILDER_ASSETS", assets))
    })
}

fn format() -> Result<()> {
    run(&mut cargo(["fmt", "--all", "--check"]))
}

fn clippy(features: &[&str]) -> Result<()> {
    let mut command = cargo(["clippy", "--workspace", "--all-targets"]);
    run(command.args(features).args(["--", "-D", "warnings"]))
}

/// Unit, integration and documentation tests; benchmarks and examples are built by clippy.
fn tests(features: &[&str]) -> Result<()> {
    let mut command = cargo(["test", "--workspace"]);
    if env::var_os("RUST_BACKTRACE").is_none() {
        command.env("RUST_BACKTRACE", "1");
    }
    run(command.args(features).args(["--", "--skip", ON_REAL_SERVER]))
}
