//! The real control plane: built here, started and stopped by the harness of the scenarios.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run::{cargo, is_ci, output, root, run as run_command};

/// Names the folder that holds `etcd` and `kube-apiserver` (the envtest convention).
const FOLDER: &str = "KUBEBUILDER_ASSETS";

/// `build`, `start DIR` or `stop DIR`.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    match arguments {
        ["build"] => find_or_build().map(drop),
        ["start", _] => match find_or_build()? {
            Some(assets) => run_command(harness(arguments)?.env(FOLDER, assets)),
            None => bail!("there is no control plane to start"),
        },
        ["stop", _] => run_command(&mut harness(arguments)?),
        _ => bail!("control-plane build | start DIR | stop DIR"),
    }
}

/// Starting and stopping is the tests' business too, and there is one copy of it. DIR is relative to where one stands.
fn harness(arguments: &[&str]) -> Result<Command> {
    let mut command = cargo(["run", "--quiet", "--package", "e2e", "--bin", "control-plane", "--"]);
    command.args(arguments).current_dir(env::current_dir()?);
    Ok(command)
}

/// The folder of both programs: `KUBEBUILDER_ASSETS`, else `target/control-plane/`, where they are built unless they are
/// there and as new as their sources. `None` without Go to build them with, which is said, and is an error in CI.
///
/// The first build takes about five minutes on two cores, later ones seconds with a kept Go build cache.
pub(crate) fn find_or_build() -> Result<Option<PathBuf>> {
    if let Some(folder) = env::var_os(FOLDER).filter(|f| !f.is_empty()) {
        // Tests run in the folder of their package: a relative path would mean another place there.
        let folder = fs::canonicalize(&folder).with_context(|| format!("{FOLDER}={}", folder.display()))?;
        return Ok(Some(folder));
    }
    if !Command::new("go").arg("version").output().is_ok_and(|o| o.status.success()) {
        const HOW: &str = "no real control plane: install Go, or set KUBEBUILDER_ASSETS to a folder with etcd and \
                           kube-apiserver";
        if is_ci() {
            bail!(HOW);
        }
        println!("*** SKIPPED: {HOW} ***");
        return Ok(None);
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let folder = root().join(target).join("control-plane");
    fs::create_dir_all(&folder)?;
    let sources = root().join("tests/control-plane");
    // One after the other: the larger one alone takes 1.8 GiB.
    build(&sources.join("etcd"), &folder.join("etcd"), None)?;
    // Without this the server calls itself v0.0.0-master, and clients that compare versions are misled.
    let version = Some(("k8s.io/kubernetes", "k8s.io/component-base/version.gitVersion"));
    build(&sources.join("kube-apiserver"), &folder.join("kube-apiserver"), version)?;
    Ok(Some(folder))
}

/// Builds the Go module in `source` to `program`; `version` is a module and the variable that shall hold its version.
fn build(source: &Path, program: &Path, version: Option<(&str, &str)>) -> Result<()> {
    let stamp_file = program.with_extension("built-from");
    let mut stamp = String::new();
    for file in ["go.mod", "go.sum", "main.go"] {
        stamp += &fs::read_to_string(source.join(file)).with_context(|| format!("{}/{file}", source.display()))?;
    }
    if program.is_file() && fs::read_to_string(&stamp_file).is_ok_and(|s| s == stamp) {
        return Ok(());
    }
    let mut flags = "-s -w".to_owned();
    if let Some((module, variable)) = version {
        let found = output(&mut go(source, ["list", "-m", "-f", "{{.Version}}", module]))?;
        flags += &format!(" -X {variable}={}", found.trim());
    }
    // An interrupted build must not look like a finished one.
    let unfinished = program.with_extension("unfinished");
    let mut command = go(source, ["build", "-trimpath", "-ldflags", &flags, "-o"]);
    run_command(command.arg(&unfinished).arg("."))?;
    fs::rename(&unfinished, program)?;
    fs::write(&stamp_file, stamp)?;
    Ok(())
}

fn go<S: AsRef<OsStr>>(source: &Path, arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new("go");
    command.current_dir(source).env("CGO_ENABLED", "0").args(arguments);
    command
}
