//! How clients get in: a token, the kubeconfig that has it, and plain kube clients for that.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

/// The file that the API server reads tokens from.
pub(super) const TOKENS: &str = "tokens.csv";

/// A plain kube client for a kubeconfig file, without kube's retries.
///
/// # Errors
///
/// The file cannot be read or used.
pub async fn client_of(kubeconfig: &Path) -> Result<kube::Client> {
    Ok(kube::Client::try_from(config_of(kubeconfig).await?)?)
}

/// The configuration of such a client, to build on.
///
/// # Errors
///
/// As [`client_of`].
pub async fn config_of(kubeconfig: &Path) -> Result<kube::Config> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    // The server is on loopback, whatever proxy the environment names.
    config.proxy_url = None;
    Ok(config)
}

/// Makes a token unless the folder has one.
pub(super) fn write_token(folder: &Path) -> Result<()> {
    let path = folder.join(TOKENS);
    if path.exists() {
        return Ok(());
    }
    let mut bytes = [0; 24];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let token: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    write_private(&path, &format!("{token},admin,admin,\"system:masters\"\n"))
}

/// Writes a kubeconfig for the API server of `folder`, which must have made its certificate.
pub(super) fn write_kubeconfig(folder: &Path, url: &str, path: &Path) -> Result<()> {
    let chain = fs::read_to_string(folder.join("pki/apiserver.crt")).context("no certificate yet")?;
    // The server's own certificate comes first, the authority that signed it last.
    let authority = chain.rfind("-----BEGIN CERTIFICATE-----").map(|at| &chain[at..]).context("no certificate")?;
    let ca = folder.join("pki/ca.crt");
    fs::write(&ca, authority)?;
    let tokens = fs::read_to_string(folder.join(TOKENS))?;
    let token = tokens.split(',').next().unwrap_or_default();
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": {"server": url, "certificate-authority": ca}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "admin"}}],
        "current-context": "e2e",
    });
    write_private(path, &kubeconfig.to_string())
}

fn write_private(path: &Path, text: &str) -> Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(())
}
