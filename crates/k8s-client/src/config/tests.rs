//! The in-cluster environment, without being in a cluster; what reaches kube.

use super::in_cluster::service_account;
use super::*;
use tls::TlsServer;

/// The server of the integration tests.
#[path = "../../tests/it/tls.rs"]
#[allow(dead_code, reason = "shared with the integration tests")]
mod tls;

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

/// What a Pod's client makes of a server: the status of one answer, or no answer.
async fn in_a_pod(host: &str, server: &TlsServer, name: Option<&str>) -> Result<u16, String> {
    let account = folder(&[("token", "t"), ("ca.crt", &server.authority.pem())]);
    let port = server.url.rsplit_once(':').unwrap().1;
    let mut loaded = service_account(host, port, account.path()).unwrap();
    loaded.config.tls_server_name = name.map(str::to_owned);
    let client = connect::connect(loaded, None).await.unwrap();
    let request = http::Request::get("/version").body(kube::client::Body::empty()).unwrap();
    match client.send(request).await {
        Ok(response) => Ok(response.status().as_u16()),
        Err(error) => Err(Error::transport("GET /version", error).to_string()),
    }
}

#[tokio::test]
async fn c80_in_the_cluster_the_service_address_or_name_must_be_in_the_certificate() {
    let by_address = TlsServer::on("127.0.0.1", &["127.0.0.1"], |_| 404);
    assert_eq!(in_a_pod("127.0.0.1", &by_address, None).await, Ok(404));
    assert_eq!(by_address.tokens(), ["Bearer t"]);

    let by_name = TlsServer::on("127.0.0.1", &["kubernetes.default.svc"], |_| 404);
    assert!(in_a_pod("127.0.0.1", &by_name, None).await.is_err());
    assert_eq!(in_a_pod("127.0.0.1", &by_name, Some("kubernetes.default.svc")).await, Ok(404));
    assert_eq!(by_name.take()[0].sni.as_deref(), Some("kubernetes.default.svc"));

    let by_v6 = TlsServer::on("::1", &["::1"], |_| 404);
    assert_eq!(in_a_pod("::1", &by_v6, None).await, Ok(404));

    let local = TlsServer::on("127.0.0.1", &["localhost"], |_| 404);
    assert_eq!(in_a_pod("localhost", &local, None).await, Ok(404), "the host may be a name");
}

#[test]
fn c83_a_ca_file_is_given_to_kube_to_be_read_again_and_ca_data_is_not() {
    let files = folder(&[("ca.crt", CA)]);
    let path = files.path().join("ca.crt");
    let loaded = |authority: &str| {
        let text = tls::kubeconfig(&format!("{{server: \"https://10.0.0.1\", {authority}}}"), "null");
        ClientConfig::kubeconfig_content(text).load().unwrap().config
    };
    let by_file = format!("certificate-authority: \"{}\"", path.display());
    assert_eq!(loaded(&by_file).root_cert_file, Some(path));
    let data = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, CA);
    let config = loaded(&format!("{by_file}, certificate-authority-data: {data}"));
    assert_eq!((config.root_cert_file, config.root_cert.map(|c| c.len())), (None, Some(1)), "data comes first");
    assert_eq!(loaded("certificate-authority-data: \"\"").root_cert, None, "empty is absent: the system's roots");
}

#[test]
fn a_server_without_a_scheme_is_reached_by_tls_when_something_is_about_tls() {
    let address = |more: &str, user: &str| {
        let text = tls::kubeconfig(&format!("{{server: \"10.0.0.1:6443\"{more}}}"), user);
        ClientConfig::kubeconfig_content(text).load().unwrap().config.cluster_url.to_string()
    };
    assert_eq!(address("", "{token: t}"), "http://10.0.0.1:6443/");
    assert_eq!(address(", insecure-skip-tls-verify: true", "null"), "https://10.0.0.1:6443/");
    assert_eq!(address("", "{client-certificate: x, client-key: y}"), "https://10.0.0.1:6443/");
}

#[test]
fn our_clients_do_not_compress_and_nobody_below_retries() {
    let text = tls::kubeconfig("{server: \"https://10.0.0.1/prefix/\"}", "null");
    let config = connect::prepare(ClientConfig::kubeconfig_content(text).load().unwrap()).unwrap();
    assert!(!config.default_retry && config.disable_compression);
    assert_eq!(config.read_timeout, None, "a watch may be silent");
}
