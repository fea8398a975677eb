//! Which server is believed: names, addresses, authorities.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_client::{ClientConfig, Error};

use crate::support::{ask, told};
use crate::tls::{TlsServer, kubeconfig};

fn cluster(server: &TlsServer, more: &str) -> String {
    let text = server.kubeconfig("null");
    text.replace("certificate-authority-data", &format!("{more}certificate-authority-data"))
}

#[tokio::test]
async fn c80_the_servers_name_is_used_for_the_check_and_for_sni() {
    let server = TlsServer::on("127.0.0.1", &["api.example.test"], |_| 404);
    // Reached by an address that the certificate does not hold.
    let client = ClientConfig::kubeconfig_content(cluster(&server, "")).build().await.unwrap();
    let error = ask(&client).await.unwrap_err();
    assert!(matches!(error, Error::Transport { .. }) && error.is_retryable(), "{error}");
    assert!(told(&error).contains("not valid for name"), "{}", told(&error));
    assert_eq!(server.take().len(), 0);

    for (more, setting, expected) in [
        ("tls-server-name: api.example.test, ", None, Ok("api.example.test")),
        ("tls-server-name: \"\", ", Some("api.example.test"), Ok("api.example.test")),
        ("tls-server-name: other.test, ", Some("api.example.test"), Ok("api.example.test")),
        ("tls-server-name: other.test, ", None, Err(())),
    ] {
        let config = ClientConfig::kubeconfig_content(cluster(&server, more));
        let config = match setting {
            Some(name) => config.tls_server_name(name),
            None => config,
        };
        let answer = ask(&config.build().await.unwrap()).await;
        assert_eq!(answer.is_ok(), expected.is_ok(), "{more} {setting:?}");
        assert_eq!(server.take().pop().and_then(|heard| heard.sni).as_deref(), expected.ok(), "{more} {setting:?}");
    }
}

#[tokio::test]
async fn c80_a_name_that_is_none_is_refused_when_the_client_is_built() {
    let server = TlsServer::start();
    let text = cluster(&server, "tls-server-name: \"a b\", ");
    let error = ClientConfig::kubeconfig_content(text).build().await.unwrap_err();
    assert!(matches!(error, Error::Build { .. }) && told(&error).contains("invalid server name"), "{}", told(&error));
}

#[tokio::test]
async fn c80_an_address_in_the_certificate_is_enough_of_both_kinds() {
    for address in ["127.0.0.1", "::1"] {
        let server = TlsServer::on(address, &[address], |_| 404);
        let client = ClientConfig::kubeconfig_content(server.kubeconfig("null")).build().await.unwrap();
        assert_eq!(ask(&client).await.unwrap(), 404, "{address}");
        assert_eq!(server.take()[0].sni, None, "an address is no server name");
    }
}

#[tokio::test]
async fn an_unknown_authority_is_refused_unless_told_to_skip_the_check() {
    let (server, other) = (TlsServer::start(), TlsServer::start());
    let text = other.kubeconfig("null").replace(&other.url, &server.url);
    let client = ClientConfig::kubeconfig_content(text).build().await.unwrap();
    let error = ask(&client).await.unwrap_err();
    assert!(told(&error).contains("invalid peer certificate"), "{}", told(&error));
    let text = kubeconfig(&format!("{{server: \"{}\", insecure-skip-tls-verify: true}}", server.url), "null");
    let client = ClientConfig::kubeconfig_content(text).build().await.unwrap();
    assert_eq!(ask(&client).await.unwrap(), 404);
}

/// How long kube goes on with a CA file it has read is kube's own, on the real clock. What is shown here: the file is
/// what new clients and new connections go by, and a connection that is open lives on. That the file's name reaches
/// kube, for a kubeconfig and in the cluster, is in the tests beside the code.
#[tokio::test]
async fn c83_an_open_connection_outlives_the_authority_it_was_opened_with() {
    let changed = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&changed);
    let server =
        TlsServer::on("127.0.0.1", &["127.0.0.1"], move |_| if seen.load(Ordering::SeqCst) { 200 } else { 404 });
    let root = tempfile::tempdir().unwrap();
    let ca = root.path().join("ca.crt");
    std::fs::write(&ca, server.authority.pem()).unwrap();
    let text =
        kubeconfig(&format!("{{server: \"{}\", certificate-authority: \"{}\"}}", server.url, ca.display()), "null");
    let client = ClientConfig::kubeconfig_content(&text).build().await.unwrap();
    assert_eq!(ask(&client).await.unwrap(), 404);

    std::fs::write(&ca, server.change_authority(&["127.0.0.1"])).unwrap();
    changed.store(true, Ordering::SeqCst);
    assert_eq!(ask(&client).await.unwrap(), 200);
    let fresh = ClientConfig::kubeconfig_content(&text).build().await.unwrap();
    assert_eq!(ask(&fresh).await.unwrap(), 200);
    let connections: Vec<_> = server.take().iter().map(|heard| heard.connection).collect();
    assert_eq!(connections, [0, 0, 1]);
}
