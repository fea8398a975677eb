//! Finding, reading and merging kubeconfig files.

use std::path::{Path, PathBuf};

use kube::config::Kubeconfig;
use serde_json::Value;

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

/// Reads one file. Relative paths in it become absolute, seen from its folder.
pub(super) fn read(path: &Path) -> Result<Kubeconfig, Error> {
    let fail = |source: std::io::Error| Error::Config { origin: origin(path), source: source.into() };
    let text = decode(std::fs::read(path).map_err(fail)?).map_err(|text| Error::config_text(origin(path), text))?;
    let mut kubeconfig = parse(&text, &origin(path))?;
    // The working directory may change before a token file is read again.
    let path = std::path::absolute(path).map_err(fail)?;
    if let Some(folder) = path.parent() {
        resolve(&mut kubeconfig, folder);
    }
    Ok(kubeconfig)
}

/// Reads the text of a kubeconfig, of one document or several. What is empty there counts as absent, as in kubectl.
pub(super) fn parse(text: &str, origin: &str) -> Result<Kubeconfig, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let read = Kubeconfig::from_yaml(text).map_err(|e| Error::config(origin, e))?;
    without_empty(&read).ok_or_else(|| Error::config_text(origin, "not a valid kubeconfig"))
}

/// Text in UTF-8, or in UTF-16 behind its mark, as editors on Windows write it.
pub(super) fn decode(bytes: Vec<u8>) -> Result<String, &'static str> {
    let unit: fn([u8; 2]) -> u16 = match bytes.as_slice() {
        [0xFF, 0xFE, ..] => u16::from_le_bytes,
        [0xFE, 0xFF, ..] => u16::from_be_bytes,
        _ => return String::from_utf8(bytes).map_err(|_| "not valid UTF-8"),
    };
    let (units, []) = bytes.as_chunks::<2>() else {
        return Err("half a UTF-16 character at the end");
    };
    let text = char::decode_utf16(units.iter().skip(1).map(|&pair| unit(pair)));
    text.collect::<Result<_, _>>().map_err(|_| "not valid UTF-16")
}

/// The same without members that are an empty text: `current-context: ""` sets none, `token: ""` is no token. Only
/// members that the file format itself has; a plugin's arguments and variables may well be empty.
fn without_empty(kubeconfig: &Kubeconfig) -> Option<Kubeconfig> {
    let mut value = serde_json::to_value(kubeconfig).ok()?;
    drop_empty(&mut value);
    for (list, entry) in [("clusters", "cluster"), ("users", "user"), ("contexts", "context")] {
        for named in value.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(inner) = named.get_mut(entry) {
                drop_empty(inner);
                if let Some(exec) = inner.get_mut("exec") {
                    drop_empty(exec);
                }
            }
        }
    }
    serde_json::from_value(value).ok()
}

fn drop_empty(value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        // A context must name its cluster, even if by an empty name.
        members.retain(|name, member| name == "cluster" || *member != "");
    }
}

fn resolve(kubeconfig: &mut Kubeconfig, folder: &Path) {
    let from_here = |path: &mut Option<String>| {
        if let Some(given) = path {
            // A folder that is no text cannot be written into a kubeconfig: then the path stays as it is.
            *given = folder.join(&*given).to_str().map_or_else(|| given.clone(), str::to_owned);
        }
    };
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|c| c.cluster.as_mut()) {
        from_here(&mut cluster.certificate_authority);
    }
    for user in kubeconfig.auth_infos.iter_mut().filter_map(|u| u.auth_info.as_mut()) {
        from_here(&mut user.client_certificate);
        from_here(&mut user.client_key);
        from_here(&mut user.token_file);
        if let Some(exec) = &mut user.exec
            && exec.command.as_deref().is_some_and(|c| c.contains(std::path::is_separator))
        {
            // A bare name is looked up in PATH.
            from_here(&mut exec.command);
        }
    }
}
