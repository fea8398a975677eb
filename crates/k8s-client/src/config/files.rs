//! Finding and reading kubeconfig files.

use std::path::{Path, PathBuf};

use kube::config::Kubeconfig;

use crate::error::Error;

/// How a file is named in errors.
pub(super) fn origin(path: &Path) -> String {
    format!("kubeconfig {}", path.display())
}

/// The files named by `$KUBECONFIG`, empty names left out; `None` when it names none.
pub(super) fn from_environment() -> Option<Vec<PathBuf>> {
    let value = std::env::var_os("KUBECONFIG")?;
    let paths: Vec<_> = std::env::split_paths(&value).filter(|p| !p.as_os_str().is_empty()).collect();
    (!paths.is_empty()).then_some(paths)
}

/// `~/.kube/config`, whether it exists or not.
pub(super) fn of_user() -> Option<PathBuf> {
    Some(std::env::home_dir()?.join(".kube").join("config"))
}

/// Merges those of the files that exist: the first to name a thing wins.
pub(super) fn read_existing(paths: &[PathBuf]) -> Result<Option<Kubeconfig>, Error> {
    let mut merged: Option<Kubeconfig> = None;
    for path in paths.iter().filter(|p| p.exists()) {
        let next = read(path)?;
        merged = Some(match merged {
            Some(first) => first.merge(next).map_err(|e| Error::config(origin(path), e))?,
            None => next,
        });
    }
    Ok(merged)
}

/// Reads one file. Relative paths in it become relative to its folder.
pub(super) fn read(path: &Path) -> Result<Kubeconfig, Error> {
    // kube's reader takes UTF-16 by pairs of bytes and panics on half a pair.
    if let Ok(bytes) = std::fs::read(path)
        && matches!(bytes.as_slice(), [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..])
        && bytes.len() % 2 == 1
    {
        return Err(Error::config_text(origin(path), "half a UTF-16 character at the end"));
    }
    Kubeconfig::read_from(path).map_err(|e| Error::config(origin(path), e))
}
