//! The in-cluster environment, without being in a cluster.

use super::in_cluster::service_account;
use super::*;

/// A certificate authority for tests; its key is thrown away.
const CA: &str = include_str!("testca.crt");

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

#[tokio::test]
async fn a_service_account_gives_address_token_ca_and_namespace() {
    let account = folder(&[("token", "secret"), ("ca.crt", CA), ("namespace", "shop\n")]);
    let loaded = service_account("10.0.0.1", "6443", account.path()).unwrap();
    assert_eq!(loaded.config.cluster_url.to_string(), "https://10.0.0.1:6443/");
    assert_eq!(loaded.config.root_cert.as_ref().map(Vec::len), Some(1));
    assert_eq!(loaded.config.root_cert_file, Some(account.path().join("ca.crt")), "a rotated CA must be seen");
    assert_eq!(loaded.config.auth_info.token_file, Some(account.path().join("token").display().to_string()));
    assert_eq!(loaded.namespace.as_deref(), Some("shop"));
    assert_eq!(loaded.config.default_namespace, "shop");
}

#[tokio::test]
async fn a_service_account_without_namespace_file_still_connects() {
    let account = folder(&[("token", "secret"), ("ca.crt", CA)]);
    let loaded = service_account("fd00::1", "443", account.path()).unwrap();
    assert_eq!(loaded.config.cluster_url.to_string(), "https://[fd00::1]:443/");
    assert_eq!(loaded.namespace, None);
}

#[tokio::test]
async fn a_broken_service_account_is_named() {
    use std::error::Error as _;
    let told = |error: Error| format!("{error}: {}", error.source().unwrap());
    let account = folder(&[("token", "secret"), ("ca.crt", CA)]);
    let error = service_account("10.0.0.1", "tcp://10.0.0.1:443", account.path()).unwrap_err();
    assert!(told(error).ends_with("KUBERNETES_SERVICE_PORT is no port number: \"tcp://10.0.0.1:443\""));
    let error = service_account("a b", "443", account.path()).unwrap_err();
    assert!(told(error).contains("KUBERNETES_SERVICE_HOST is no host"));
    let error = service_account("10.0.0.1", "443", folder(&[("ca.crt", CA)]).path()).unwrap_err();
    assert!(told(error).contains("no service account token"));
    let error = service_account("10.0.0.1", "443", folder(&[("token", "secret")]).path()).unwrap_err();
    assert!(told(error).contains("certificate authority"));
    let error = service_account("10.0.0.1", "443", folder(&[("token", "t"), ("ca.crt", "x")]).path()).unwrap_err();
    assert!(told(error).contains("the certificate authority holds no certificate"));
}
