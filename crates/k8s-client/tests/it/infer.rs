//! What `ClientConfig::infer()` makes of the environment: each case in a process of its own, as the environment of
//! this one is shared by all tests.

use std::fs;
use std::path::Path;

use k8s_client::ClientConfig;

use crate::kubeconfig::{config, folder_of_relative_paths};
use crate::support::{ask, script, told};
use crate::tls::TlsServer;

/// Runs in a process of its own (see [`infer_with`]), since it reads the environment.
#[tokio::test]
#[allow(clippy::print_stdout, reason = "read by the parent process")]
async fn child_of_infer_with() {
    if std::env::var_os("K8S_CLIENT_TEST_CHILD").is_none() {
        return;
    }
    let config = ClientConfig::infer();
    let config = match std::env::var("K8S_CLIENT_TEST_CONTEXT") {
        Ok(context) => config.context(context),
        Err(_) => config,
    };
    match config.build().await {
        Ok(client) => {
            let _ = ask(&client).await;
            println!("\nOUTCOME ok {}", client.namespace().unwrap_or("-"));
        }
        Err(error) => println!("\nOUTCOME {}", told(&error)),
    }
}

/// What `ClientConfig::infer()` gives in a given environment.
pub(crate) fn infer_with(environment: &[(&str, &str)]) -> String {
    infer_in(Path::new("."), environment)
}

/// The same with a working directory.
fn infer_in(folder: &Path, environment: &[(&str, &str)]) -> String {
    let mut program = std::process::Command::new(std::env::current_exe().unwrap());
    for name in ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"] {
        program.env_remove(name);
    }
    let output = program
        .args(["--exact", "infer::child_of_infer_with", "--nocapture"])
        .current_dir(folder)
        .env("K8S_CLIENT_TEST_CHILD", "1")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|l| l.strip_prefix("OUTCOME ")).unwrap_or(&text).to_owned()
}

#[test]
fn c75_each_file_of_a_list_has_its_own_folder_and_bare_commands_go_by_path() {
    let server = TlsServer::start();
    let (a, elsewhere) = (folder_of_relative_paths(&server, "a"), tempfile::tempdir().unwrap());
    let b = folder_of_relative_paths(&server, "b");
    // The first file names only the user, the second all the rest; a decoy lies where the program is run.
    let user_only = "users: [{name: u, user: {tokenFile: tok}}]";
    fs::write(a.path().join("conf/config"), user_only).unwrap();
    fs::create_dir(elsewhere.path().join("certs")).unwrap();
    fs::write(elsewhere.path().join("tok"), "decoy").unwrap();
    fs::write(elsewhere.path().join("certs/ca.crt"), "decoy").unwrap();
    let list = format!("{}:{}", a.path().join("conf/config").display(), b.path().join("conf/config").display());
    assert_eq!(infer_in(elsewhere.path(), &[("KUBECONFIG", &list)]), "ok -");
    assert_eq!(server.tokens(), ["Bearer a"]);

    // By a relative name of the kubeconfig itself.
    assert_eq!(infer_in(b.path(), &[("KUBECONFIG", "conf/config")]), "ok -");
    assert_eq!(infer_in(&b.path().join("conf"), &[("KUBECONFIG", "config")]), "ok -");
    assert_eq!(server.tokens(), ["Bearer b", "Bearer b"]);

    script(&b.path().join("bin/tok-by-path"), "echo 'status: {token: by-path}'");
    script(&elsewhere.path().join("tok-by-path"), "echo 'status: {token: decoy}'");
    let exec = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: tok-by-path, interactiveMode: Never}}";
    fs::write(b.path().join("conf/config"), server.kubeconfig(exec)).unwrap();
    let path = format!("{}:{}", b.path().join("bin").display(), std::env::var("PATH").unwrap());
    let file = b.path().join("conf/config").display().to_string();
    assert_eq!(infer_in(elsewhere.path(), &[("KUBECONFIG", &file), ("PATH", &path)]), "ok -");
    assert_eq!(server.tokens(), ["Bearer by-path"]);
}

#[test]
fn c77_several_files_are_merged_and_the_first_wins() {
    let server = TlsServer::start();
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name).display().to_string();
    let write = |name: &str, text: &str| {
        fs::write(path(name), text).unwrap();
        path(name)
    };
    // B is complete; A names the same user otherwise, and no current-context: not at all, or an empty one.
    let full = server.kubeconfig("{token: second}").replace("current-context: main", "current-context: named");
    let b = write("b", &full);
    let user = "apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: first}}]\n";
    let a = write("a", user);
    let a_empty = write("a-empty", &format!("{user}current-context: \"\"\npreferences: {{}}\nclusters: null\n"));
    // The user of the first file counts as a whole: nothing of the second's is mixed in.
    let a_none = write("a-none", "users: [{name: u, user: {as: someone}}]\ncurrent-context: main");
    let missing = path("missing");
    let cases = [
        (format!("{a}:{b}"), "ok shop", "Bearer first"),
        (format!("{a}::{missing}:{b}"), "ok shop", "Bearer first"),
        (format!("{a_empty}:{b}"), "ok shop", "Bearer first"),
        (format!("{a_none}:{b}"), "ok -", "-"),
        (format!("{b}:{a}"), "ok shop", "Bearer second"),
        (b.clone(), "ok shop", "Bearer second"),
        (format!(":{b}:"), "ok shop", "Bearer second"),
    ];
    for (list, expected, token) in cases {
        assert_eq!(infer_with(&[("KUBECONFIG", &list)]), expected, "{list}");
        assert_eq!(server.tokens(), [token], "{list}");
    }
    assert_eq!(infer_with(&[("KUBECONFIG", &b), ("K8S_CLIENT_TEST_CONTEXT", "main")]), "ok -");
    assert_eq!(
        infer_with(&[("KUBECONFIG", &missing)]),
        "cannot load the kubeconfig files in $KUBECONFIG: none of them exists"
    );
    let broken = write("broken", "users: [");
    let told = infer_with(&[("KUBECONFIG", &format!("{b}:{broken}"))]);
    assert!(
        told.starts_with(&format!("cannot load kubeconfig {broken}: ")),
        "a file that is there must be right: {told}"
    );
}

#[test]
fn inference_prefers_the_cluster_to_the_users_file() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".kube")).unwrap();
    fs::write(home.path().join(".kube/config"), config("{token: t}")).unwrap();
    let home = home.path().to_str().unwrap();
    assert_eq!(infer_with(&[("HOME", home)]), "ok -");
    let inside = infer_with(&[("HOME", home), ("KUBERNETES_SERVICE_HOST", "10.0.0.1")]);
    assert!(inside.starts_with("cannot load the in-cluster configuration"), "{inside}");
    let by_context =
        infer_with(&[("HOME", home), ("KUBERNETES_SERVICE_HOST", "10.0.0.1"), ("K8S_CLIENT_TEST_CONTEXT", "named")]);
    assert_eq!(by_context, "ok shop");
}
