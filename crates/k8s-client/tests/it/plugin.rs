//! Credential plugins: what they are given, what they may answer, how they fail.

use std::path::Path;
use std::time::{Duration, Instant};

use k8s_client::{ClientConfig, Error};

use crate::support::{ask, script, told};
use crate::tls::{TlsServer, kubeconfig};

const V1: &str = "client.authentication.k8s.io/v1";

/// The user that runs `command`, with further members of the exec section.
fn user(command: &Path, more: &str) -> String {
    format!("{{exec: {{apiVersion: {V1}, command: \"{}\", interactiveMode: Never{more}}}}}", command.display())
}

fn answer(status: &str) -> String {
    format!(r#"{{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {status}}}"#)
}

/// A script that prints `text`.
fn printing(path: &Path, text: &str) {
    script(path, &format!("cat <<'END'\n{text}\nEND"));
}

#[tokio::test]
async fn c76_an_answer_may_be_json_or_yaml_of_v1_or_v1beta1_and_may_lack_an_expiry() {
    let server = TlsServer::start();
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("plugin");
    let cases = [
        ("v1", r#"{"apiVersion": "VERSION", "kind": "ExecCredential", "status": {"token": "json"}}"#, "json"),
        ("v1beta1", r#"{"apiVersion": "VERSION", "kind": "ExecCredential", "status": {"token": "beta"}}"#, "beta"),
        ("v1", "apiVersion: VERSION\nkind: ExecCredential\nstatus:\n  token: yaml", "yaml"),
        ("v1", "status: {token: bare}", "bare"),
        ("v1", "status: {token: dated, expirationTimestamp: 2999-01-01T00:00:00Z}", "dated"),
        ("v1", r#"{"status": {"token": "space\n", "clientKeyData": "", "expirationTimestamp": null}}"#, "space"),
    ];
    for (short, answer, token) in cases {
        let version = format!("client.authentication.k8s.io/{short}");
        printing(&path, &answer.replace("VERSION", &version));
        // The kubeconfig has no authority data for the plugin, and asks for none of the optional things.
        let user = format!("{{exec: {{apiVersion: {version}, command: \"{}\"}}}}", path.display());
        let client = ClientConfig::kubeconfig_content(server.kubeconfig(&user)).build().await.unwrap();
        ask(&client).await.unwrap();
        assert_eq!(server.tokens(), [format!("Bearer {token}")], "{answer}");
    }
}

#[tokio::test]
async fn c76_a_plugin_is_run_once_with_its_arguments_and_without_a_terminal() {
    let server = TlsServer::start();
    let root = tempfile::tempdir().unwrap();
    let (path, log) = (root.path().join("plugin"), root.path().join("log"));
    // What it reads from standard input ends at once: no terminal, no pipe that waits.
    let answer = answer(r#"{"token": "t"}"#);
    let body = format!("echo \"$1|$2|$GIVEN|$(cat)|$KUBERNETES_EXEC_INFO\" >>{}\necho '{answer}'", log.display());
    script(&path, &body);
    let more = ", args: [one, \"\"], env: [{name: GIVEN, value: x}], provideClusterInfo: true";
    let client = ClientConfig::kubeconfig_content(server.kubeconfig(&user(&path, more))).build().await.unwrap();
    for _ in 0..3 {
        ask(&client).await.unwrap();
    }
    let told = std::fs::read_to_string(&log).unwrap();
    assert_eq!(told.lines().count(), 1, "{told}");
    let info: serde_json::Value = serde_json::from_str(told.strip_prefix("one||x||").expect(&told)).unwrap();
    assert_eq!(info["apiVersion"], V1);
    assert_eq!(info["kind"], "ExecCredential");
    assert_eq!(info["spec"]["interactive"], false);
    assert_eq!(info["spec"]["cluster"]["server"], server.url.as_str());
    assert!(info["spec"]["cluster"]["certificate-authority-data"].is_string());
}

#[tokio::test]
async fn c76_cluster_information_without_authority_data_is_no_error() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("plugin");
    printing(&path, &answer(r#"{"token": "t"}"#));
    let text = kubeconfig("{server: \"https://127.0.0.1:1\"}", &user(&path, ", provideClusterInfo: true"));
    ClientConfig::kubeconfig_content(text).build().await.unwrap();
}

#[tokio::test]
async fn c76_a_plugin_may_give_a_certificate() {
    let server = TlsServer::start();
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("plugin");
    let (certificate, key) = server.authority.identity();
    for token in [None, Some("t")] {
        let status = serde_json::json!({"clientCertificateData": certificate, "clientKeyData": key, "token": token,
            "expirationTimestamp": "2999-01-01T00:00:00Z"});
        printing(&path, &answer(&status.to_string()));
        let client = ClientConfig::kubeconfig_content(server.kubeconfig(&user(&path, ""))).build().await.unwrap();
        ask(&client).await.unwrap();
        let heard = server.take().pop().unwrap();
        assert!(heard.certified);
        assert_eq!(heard.header("authorization"), token.map(|t| format!("Bearer {t}")));
        // kube cannot replace it, so its end is told.
        assert_eq!(client.kube().valid_until().is_some(), token.is_none());
    }
}

#[tokio::test]
async fn c76_a_failing_plugin_shows_its_words_but_not_its_credential() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("plugin");
    let text =
        kubeconfig("{server: \"https://127.0.0.1:1\"}", &user(&path, ", env: [{name: PASSWORD, value: hunter2}]"));
    let cases = [
        ("echo hunter2; echo 'log in first' >&2; exit 1", "ended with exit status: 1: log in first"),
        ("echo hunter2; exit 7", "ended with exit status: 7"),
        ("kill -9 $$", "ended with signal: 9 (SIGKILL)"),
        ("yes complaint >&2; exit 1", "complaint"),
        ("exit 0", "is empty"),
        ("echo", "is empty"),
        ("echo '{\"status\": hunter2'", "cannot be read"),
        ("echo 'status: [hunter2]'", "cannot be read"),
        ("echo 'kind: ExecCredential'", "holds no status"),
        ("echo 'status: {}'", "holds neither a token nor a certificate"),
        ("echo 'status: {token: \"\"}'", "holds neither a token nor a certificate"),
        ("echo 'status: {token: \"hunter2\\u0007\"}'", "holds a token that is no valid header"),
        ("echo 'status: {clientKeyData: hunter2}'", "holds a certificate without its key, or the reverse"),
        ("echo 'status: {token: hunter2, expirationTimestamp: soon}'", "holds an expirationTimestamp that is no time"),
        (
            "echo '{apiVersion: client.authentication.k8s.io/v1beta1, status: {token: hunter2}}'",
            "has another apiVersion than the kubeconfig asks for",
        ),
        ("yes hunter2", "ended with"),
    ];
    for (body, expected) in cases {
        script(&path, body);
        let error = ClientConfig::kubeconfig_content(&text).build().await.unwrap_err();
        let text = told(&error);
        assert!(matches!(error, Error::Build { .. }), "{text}");
        assert!(text.starts_with("cannot build a client from the given kubeconfig: "), "{text}");
        assert!(text.contains(expected), "{text}");
        assert!(text.len() < 1000 && !format!("{text} {error:?}").contains("hunter2"), "{text} {error:?}");
    }
}

#[tokio::test]
async fn c76_a_plugin_that_is_not_installed_is_named_with_its_hint() {
    let cluster = "{server: \"https://127.0.0.1:1\"}";
    let missing = Path::new("/no/such/plugin");
    let error = |more: &str| {
        let config = ClientConfig::kubeconfig_content(kubeconfig(cluster, &user(missing, more)));
        async { told(&config.build().await.unwrap_err()) }
    };
    let text = error(", installHint: \"get it from the shelf\"").await;
    assert!(
        text.contains("the credential plugin \"/no/such/plugin\" cannot be run (get it from the shelf): "),
        "{text}"
    );
    let text = error("").await;
    assert!(text.contains("the credential plugin \"/no/such/plugin\" cannot be run: No such file"), "{text}");
}

#[tokio::test]
async fn c76_an_exec_section_that_kubectl_refuses_is_refused() {
    let cases = [
        ("{apiVersion: client.authentication.k8s.io/v1}", "the user's exec section names no command"),
        ("{command: x}", "the user's exec section names no apiVersion"),
        (
            "{command: x, apiVersion: client.authentication.k8s.io/v1alpha1}",
            "the user's exec section has an apiVersion that is not supported: \"client.authentication.k8s.io/v1alpha1\"",
        ),
    ];
    for (exec, expected) in cases {
        let text = kubeconfig("{server: \"https://127.0.0.1:1\"}", &format!("{{exec: {exec}}}"));
        let error = ClientConfig::kubeconfig_content(text).build().await.unwrap_err();
        assert!(told(&error).ends_with(expected), "{}", told(&error));
    }
}

#[tokio::test]
async fn c76_a_plugin_that_hangs_ends_with_the_future_that_waits_for_it() {
    let root = tempfile::tempdir().unwrap();
    let (path, log) = (root.path().join("plugin"), root.path().join("pid"));
    script(&path, &format!("echo $$ >{}.new; mv {0}.new {0}; exec sleep 600", log.display()));
    let text = kubeconfig("{server: \"https://127.0.0.1:1\"}", &user(&path, ""));
    let build = tokio::spawn(ClientConfig::kubeconfig_content(text).build());
    let limit = Instant::now() + Duration::from_secs(30);
    let pid = loop {
        assert!(!build.is_finished() && Instant::now() < limit);
        match std::fs::read_to_string(&log) {
            Ok(pid) => break pid.trim().to_owned(),
            Err(_) => tokio::task::yield_now().await,
        }
    };
    build.abort();
    assert!(build.await.unwrap_err().is_cancelled());
    // Killed at once, and reaped by the runtime soon after; a zombie counts as ended.
    let alive = || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    while alive() {
        assert!(Instant::now() < limit);
        tokio::task::yield_now().await;
    }
}
