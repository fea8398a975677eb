//! The two programs of a control plane: found, or built once from the Go module proxy.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};

/// Names the folder that holds `etcd` and `kube-apiserver` (the envtest convention).
const FOLDER: &str = "KUBEBUILDER_ASSETS";

/// Where the programs of a control plane are.
#[derive(Debug, Clone)]
pub struct Assets {
    folder: PathBuf,
}

impl Assets {
    /// Looks into `KUBEBUILDER_ASSETS`, else into the folder of [`build`](Self::build). `None` when there are none.
    ///
    /// # Errors
    ///
    /// `KUBEBUILDER_ASSETS` names a folder that lacks one of them: that is a mistake, not an absence.
    pub fn find() -> Result<Option<Self>> {
        if let Some(folder) = env::var_os(FOLDER).filter(|f| !f.is_empty()) {
            let assets = Self { folder: folder.into() };
            if let Some(missing) = assets.missing() {
                bail!("{FOLDER} has no {}", missing.display());
            }
            return Ok(Some(assets));
        }
        let assets = Self { folder: build_folder() };
        Ok(assets.missing().is_none().then_some(assets))
    }

    /// As [`find`](Self::find), and builds what is missing or older than its Go sources, if there is Go.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find), or the build failed.
    pub fn find_or_build() -> Result<Option<Self>> {
        if env::var_os(FOLDER).is_some_and(|f| !f.is_empty()) {
            return Self::find();
        }
        if Command::new("go").arg("version").output().is_ok_and(|o| o.status.success()) {
            return Self::build().map(Some);
        }
        Self::find()
    }

    /// Builds both programs into `target/control-plane/`, unless they are there and as new as their sources. Takes
    /// about five minutes on two cores the first time, seconds with a kept Go build cache.
    ///
    /// # Errors
    ///
    /// Go is missing or a build failed.
    pub fn build() -> Result<Self> {
        let assets = Self { folder: build_folder() };
        fs::create_dir_all(&assets.folder)?;
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("control-plane");
        build_one(&sources.join("etcd"), &assets.etcd(), None)?;
        // Without this the server calls itself v0.0.0-master, and clients that compare versions are misled.
        let version = Some(("k8s.io/kubernetes", "k8s.io/component-base/version.gitVersion"));
        build_one(&sources.join("kube-apiserver"), &assets.api_server(), version)?;
        Ok(assets)
    }

    /// The folder that holds both.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn etcd(&self) -> PathBuf {
        self.folder.join("etcd")
    }

    pub(crate) fn api_server(&self) -> PathBuf {
        self.folder.join("kube-apiserver")
    }

    fn missing(&self) -> Option<PathBuf> {
        [self.etcd(), self.api_server()].into_iter().find(|p| !p.is_file())
    }
}

/// `control-plane` in Cargo's target folder.
fn build_folder() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    workspace.join(target).join("control-plane")
}

/// Builds the Go module in `source` to `program`; `version` is a module and the variable that shall hold its version.
fn build_one(source: &Path, program: &Path, version: Option<(&str, &str)>) -> Result<()> {
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
        let found = go(source, ["list", "-m", "-f", "{{.Version}}", module])?;
        flags += &format!(" -X {variable}={}", found.trim());
    }
    // An interrupted build must not look like a finished one.
    let unfinished = program.with_extension("unfinished");
    let output = unfinished.as_os_str();
    go(
        source,
        [
            "build".as_ref(),
            "-trimpath".as_ref(),
            "-ldflags".as_ref(),
            OsStr::new(&flags),
            "-o".as_ref(),
            output,
            ".".as_ref(),
        ],
    )?;
    fs::rename(&unfinished, program)?;
    fs::write(&stamp_file, stamp)?;
    Ok(())
}

fn go<S: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = S>) -> Result<String> {
    let mut command = Command::new("go");
    command.current_dir(folder).env("CGO_ENABLED", "0").args(arguments);
    eprintln!("+ (in {}) {command:?}", folder.display());
    let output = command.stderr(std::process::Stdio::inherit()).output().context("cannot run go")?;
    if !output.status.success() {
        bail!("{command:?} ended with {}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
