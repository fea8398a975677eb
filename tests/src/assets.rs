//! The two programs of a control plane, wherever they are. `cargo xtask control-plane build` makes them.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// Names the folder that holds `etcd` and `kube-apiserver` (the envtest convention).
const FOLDER: &str = "KUBEBUILDER_ASSETS";

/// Where the programs of a control plane are.
#[derive(Debug, Clone)]
pub struct Assets {
    folder: PathBuf,
}

impl Assets {
    /// Looks into `KUBEBUILDER_ASSETS`, else to where `cargo xtask control-plane build` puts them. `None` when there
    /// are none.
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
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
        let assets = Self { folder: workspace.join(target).join("control-plane") };
        Ok(assets.missing().is_none().then_some(assets))
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
