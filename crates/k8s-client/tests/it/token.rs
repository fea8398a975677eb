//! A token file that is replaced while the client runs, through a kubeconfig and over a socket. What takes minutes is
//! tested beside the code, on a clock that is told.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use k8s_client::{Client, ClientConfig};

use crate::support::{ask, told};
use crate::tls::TlsServer;

/// A server that takes one token only.
fn choosy(token: &str) -> (TlsServer, Arc<Mutex<String>>) {
    let accepted = Arc::new(Mutex::new(format!("Bearer {token}")));
    let wanted = Arc::clone(&accepted);
    let answer = move |heard: &crate::tls::Heard| {
        if heard.header("authorization") == Some(wanted.lock().unwrap().clone()) { 200 } else { 401 }
    };
    (TlsServer::on("127.0.0.1", &["127.0.0.1"], answer), accepted)
}

/// As a kubelet does it: a new folder, and a link that is switched over.
fn mount(root: &Path, version: &str, token: &str) {
    let folder = root.join(version);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("token"), token).unwrap();
    let link = root.join("..data_tmp");
    std::os::unix::fs::symlink(version, &link).unwrap();
    fs::rename(&link, root.join("..data")).unwrap();
    if !root.join("token").exists() {
        std::os::unix::fs::symlink("..data/token", root.join("token")).unwrap();
    }
}

async fn client_with(server: &TlsServer, file: &Path) -> Client {
    let user = format!("{{tokenFile: \"{}\"}}", file.display());
    ClientConfig::kubeconfig_content(server.kubeconfig(&user)).build().await.unwrap()
}

#[tokio::test]
async fn c81_a_token_that_is_refused_is_read_again_at_once() {
    let (server, accepted) = choosy("one");
    let root = tempfile::tempdir().unwrap();
    mount(root.path(), "v1", "one\n");
    let client = client_with(&server, &root.path().join("token")).await;
    assert_eq!(ask(&client).await.unwrap(), 200);
    server.take();

    mount(root.path(), "v2", "two\n");
    *accepted.lock().unwrap() = "Bearer two".to_owned();
    for _ in 0..3 {
        assert_eq!(ask(&client).await.unwrap(), 200, "the user sees no 401");
    }
    assert_eq!(server.tokens(), ["Bearer one", "Bearer two", "Bearer two", "Bearer two"]);

    // The kube::Client underneath is the same one.
    let version = client.kube().request_text(http::Request::get("/version").body(Vec::new()).unwrap()).await;
    assert_eq!(version.unwrap(), "");
}

#[tokio::test]
async fn c81_without_another_token_the_refusal_is_the_answer() {
    let (server, _) = choosy("other");
    let root = tempfile::tempdir().unwrap();
    mount(root.path(), "v1", "one");
    let file = root.path().join("token");
    let client = client_with(&server, &file).await;
    // The same token, a file that is empty for a moment, one that is gone.
    for change in
        [|_: &Path| (), |file: &Path| fs::write(file, "").unwrap(), |file: &Path| fs::remove_file(file).unwrap()]
    {
        change(&file);
        assert_eq!(ask(&client).await.unwrap(), 401);
        assert_eq!(server.tokens(), ["Bearer one"]);
    }
}

#[tokio::test]
async fn a_refused_token_is_in_no_error() {
    let (server, _) = choosy("other");
    let root = tempfile::tempdir().unwrap();
    mount(root.path(), "v1", "hunter2");
    let client = client_with(&server, &root.path().join("token")).await;
    let error = client.get(&"v1/pods".parse().unwrap(), Some("shop"), "cart").await.unwrap_err();
    assert!(error.is_forbidden(), "{error}");
    assert!(!format!("{} {error:?} {client:?}", told(&error)).contains("hunter2"));
}
