//! What a kubeconfig makes of a client. Only what kube's loader gives and what ours adds to it.

use std::error::Error as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use k8s_client::{ClientConfig, Error};

use crate::support::Recorder;

/// A kubeconfig with one cluster, one context and the given user.
fn config(server: &str, user: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{server}"}}}}]
contexts:
- {{name: main, context: {{cluster: c, user: u}}}}
- {{name: named, context: {{cluster: c, user: u, namespace: shop}}}}
- {{name: empty, context: {{cluster: c, user: u, namespace: ""}}}}
users: [{{name: u, user: {user}}}]
current-context: main
"#
    )
}

fn script(path: &Path, body: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The message and all its causes.
fn told(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

#[tokio::test]
async fn own_namespace_is_the_configured_one_then_the_contexts() {
    let text = config("http://127.0.0.1:1", "{token: t}");
    let with = |context: &str| ClientConfig::kubeconfig_content(&text).context(context);
    let client = with("named").build().await.unwrap();
    assert_eq!((client.namespace().unwrap(), client.kube().default_namespace()), ("shop", "shop"));
    let client = with("named").namespace("cart").build().await.unwrap();
    assert_eq!((client.namespace().unwrap(), client.kube().default_namespace()), ("cart", "cart"));
    for context in ["main", "empty"] {
        let client = with(context).build().await.unwrap();
        assert!(matches!(client.namespace(), Err(Error::NoNamespace)), "{context}");
        assert_eq!(client.kube().default_namespace(), "default");
    }
    assert!(matches!(with("main").namespace(" ").build().await, Err(Error::InvalidName { field: "namespace", .. })));
}

#[tokio::test]
async fn a_configured_namespace_serves_reads_that_name_none() {
    let recorder = Recorder::start();
    let text = config(&recorder.url, "{token: t}");
    let client = ClientConfig::kubeconfig_content(text).namespace("shop").build().await.unwrap();
    // The recorder answers 404 to discovery, so the read ends there; what counts is that it got that far.
    let error = client.get(&"v1/pods".parse().unwrap(), None, "cart").await.unwrap_err();
    assert!(error.is_kind_not_served(), "{error}");
}

#[tokio::test]
async fn c75_relative_paths_are_relative_to_the_file_that_names_them() {
    let recorder = Recorder::start();
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("conf/config");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(root.path().join("conf/tok"), "from-file").unwrap();
    fs::write(&file, config(&recorder.url, "{tokenFile: tok}")).unwrap();
    let client = ClientConfig::kubeconfig(&file).build().await.unwrap();
    assert_eq!(recorder.authorization_of(&client).await.as_deref(), Some("Bearer from-file"));

    script(
        &root.path().join("bin/tok.sh"),
        r#"echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"from-exec"}}'"#,
    );
    let exec = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ../bin/tok.sh, interactiveMode: Never}}";
    fs::write(&file, config(&recorder.url, exec)).unwrap();
    let client = ClientConfig::kubeconfig(&file).build().await.unwrap();
    assert_eq!(recorder.authorization_of(&client).await.as_deref(), Some("Bearer from-exec"));
}

#[tokio::test]
async fn c76_a_failing_plugin_shows_its_words_but_not_its_credential() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("plugin");
    let exec = format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: \"{}\", interactiveMode: Never}}}}",
        path.display()
    );
    let text = config("http://127.0.0.1:1", &exec);
    let cases = [
        ("echo hunter2; echo 'log in first' >&2; exit 1", Some("log in first")),
        ("echo '{\"status\": hunter2'", None),
    ];
    for (body, expected) in cases {
        script(&path, body);
        let error = ClientConfig::kubeconfig_content(&text).build().await.unwrap_err();
        let text = told(&error);
        assert!(matches!(error, Error::Build { .. }), "{text}");
        assert!(!format!("{text} {error:?}").contains("hunter2"), "{text}");
        assert!(expected.is_none_or(|e| text.contains(e)), "{text}");
    }
}

#[tokio::test]
async fn c76_a_plugin_may_answer_in_json_or_yaml_by_v1_or_v1beta1_and_without_expiry() {
    let recorder = Recorder::start();
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("plugin");
    let version = |v: &str| format!("client.authentication.k8s.io/{v}");
    let cases = [
        ("v1", r#"{"apiVersion": "VERSION", "kind": "ExecCredential", "status": {"token": "json"}}"#, "json"),
        ("v1beta1", r#"{"apiVersion": "VERSION", "kind": "ExecCredential", "status": {"token": "beta"}}"#, "beta"),
        ("v1", "apiVersion: VERSION\nkind: ExecCredential\nstatus:\n  token: yaml", "yaml"),
    ];
    for (v, answer, token) in cases {
        // `cat` would give back what is on standard input; the plugin must not get a terminal or a pipe that blocks.
        script(&path, &format!("cat >/dev/null\ncat <<'END'\n{}\nEND", answer.replace("VERSION", &version(v))));
        let exec = format!(
            "{{exec: {{apiVersion: {}, command: \"{}\", interactiveMode: Never}}}}",
            version(v),
            path.display()
        );
        let client = ClientConfig::kubeconfig_content(config(&recorder.url, &exec)).build().await.unwrap();
        assert_eq!(recorder.authorization_of(&client).await, Some(format!("Bearer {token}")), "{v} {answer}");
    }
}

#[tokio::test]
async fn c78_no_user_null_user_unknown_user_go_on_without_credentials() {
    let recorder = Recorder::start();
    let text = |users: &str, user: &str| {
        format!(
            "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: \"{}\"}}}}]\n\
             contexts: [{{name: main, context: {{cluster: c{user}}}}}]\nusers: {users}\ncurrent-context: main\n",
            recorder.url
        )
    };
    for (users, user) in [("[]", ""), ("[]", ", user: nobody"), ("[{name: u, user: null}]", ", user: u")] {
        let client = ClientConfig::kubeconfig_content(text(users, user)).build().await.unwrap();
        assert_eq!(recorder.authorization_of(&client).await, None, "{users} {user}");
    }
}

#[tokio::test]
async fn c78_odd_files_give_errors_that_name_them_and_never_panic() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("config");
    let valid = config("http://127.0.0.1:1", "{token: t}");
    let utf16 = |text: &str| -> Vec<u8> {
        [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
    };
    let mut cut = utf16(&valid);
    cut.pop();
    let cases: Vec<(&str, Vec<u8>, bool)> = vec![
        ("empty", vec![], false),
        ("byte order mark", [b"\xEF\xBB\xBF", valid.as_bytes()].concat(), true),
        ("UTF-16", utf16(&valid), true),
        ("UTF-16, cut", cut, false),
        ("half a mark", vec![0xFF, 0xFE, 0x00], false),
        ("null cluster", valid.replace("{server: \"http://127.0.0.1:1\"}", "null").into_bytes(), false),
        ("no text", vec![0xC3, 0x28], false),
    ];
    for (what, content, good) in cases {
        fs::write(&file, content).unwrap();
        match ClientConfig::kubeconfig(&file).build().await {
            Ok(_) => assert!(good, "{what}"),
            Err(error) => {
                assert!(!good, "{what}: {}", told(&error));
                assert_eq!(error.to_string(), format!("cannot load kubeconfig {}", file.display()), "{what}");
            }
        }
    }
    let error = ClientConfig::kubeconfig_content(&valid).context("nope").build().await.unwrap_err();
    assert_eq!(error.to_string(), "cannot load the given kubeconfig");
    assert!(told(&error).contains("nope"));
}

#[tokio::test]
async fn c78_broken_yaml_is_refused_without_quoting_it() {
    let text = "users:\n- name: u\n  user: {token: [hunter2}\n";
    let error = ClientConfig::kubeconfig_content(text).build().await.unwrap_err();
    assert!(!format!("{} {error:?}", told(&error)).contains("hunter2"), "{}", told(&error));
    assert!(told(&error).contains("line 3"), "{}", told(&error));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(128))]
    #[test]
    fn c78_random_text_never_panics(text in "(?s)(apiVersion|users|contexts|clusters|cluster|user|name|server|current-context|: |- |\n|  |[{]|[}]|\\[|\\]|\"|null|.){0,40}") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _ = runtime.block_on(ClientConfig::kubeconfig_content(text).build());
    }
}

#[tokio::test]
async fn c84_an_unknown_proxy_scheme_fails_at_once_and_without_its_password() {
    let text = config("http://127.0.0.1:1", "{token: t}")
        .replace("{server: ", "{proxy-url: \"ftp://me:hunter2@proxy.test:3128\", server: ");
    let error = ClientConfig::kubeconfig_content(text).build().await.unwrap_err();
    assert!(told(&error).contains("\"ftp\""), "{}", told(&error));
    assert!(!format!("{} {error:?}", told(&error)).contains("hunter2"));
}

#[test]
fn outside_a_runtime_building_is_an_error() {
    let text = config("http://127.0.0.1:1", "{token: t}");
    let mut build = std::pin::pin!(ClientConfig::kubeconfig_content(text).build());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match build.as_mut().poll(&mut context) {
        std::task::Poll::Ready(Err(Error::NoRuntime)) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn debug_output_shows_no_content() {
    let config = ClientConfig::kubeconfig_content("token: hunter2").context("c");
    assert_eq!(format!("{config:?}"), r#"ClientConfig { source: "content", context: Some("c"), namespace: None }"#);
}

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
            let request = http::Request::get("/version").body(Vec::new()).unwrap();
            let _ = client.send(request).await;
            println!("\nOUTCOME ok {}", client.namespace().unwrap_or("-"));
        }
        Err(error) => println!("\nOUTCOME {}", told(&error)),
    }
}

/// What `ClientConfig::infer()` gives in a given environment.
fn infer_with(environment: &[(&str, &str)]) -> String {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kubeconfig::child_of_infer_with", "--nocapture"])
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env("K8S_CLIENT_TEST_CHILD", "1")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|l| l.strip_prefix("OUTCOME ")).unwrap_or(&text).to_owned()
}

#[test]
fn c77_several_files_are_merged_and_the_first_wins() {
    let recorder = Recorder::start();
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name).display().to_string();
    let full = config(&recorder.url, "{token: second}").replace("current-context: main", "current-context: named");
    fs::write(path("b"), full).unwrap();
    // No current-context, a user of the same name.
    fs::write(path("a"), "apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: first}}]\n").unwrap();
    let (a, b, missing) = (path("a"), path("b"), path("missing"));
    for list in [format!("{a}:{b}"), format!("{a}::{missing}:{b}"), b.clone()] {
        assert_eq!(infer_with(&[("KUBECONFIG", &list)]), "ok shop", "{list}");
    }
    assert_eq!(infer_with(&[("KUBECONFIG", &b), ("K8S_CLIENT_TEST_CONTEXT", "main")]), "ok -");
    let tokens = recorder.tokens();
    assert_eq!(tokens, ["Bearer first", "Bearer first", "Bearer second", "Bearer second"]);
    assert_eq!(
        infer_with(&[("KUBECONFIG", &missing)]),
        "cannot load the kubeconfig files in $KUBECONFIG: none of them exists"
    );
}

#[test]
fn inference_prefers_the_cluster_to_the_users_file() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".kube")).unwrap();
    fs::write(home.path().join(".kube/config"), config("http://127.0.0.1:1", "{token: t}")).unwrap();
    let home = home.path().to_str().unwrap();
    assert_eq!(infer_with(&[("HOME", home)]), "ok -");
    let inside = infer_with(&[("HOME", home), ("KUBERNETES_SERVICE_HOST", "10.0.0.1")]);
    assert!(inside.starts_with("cannot load the in-cluster configuration"), "{inside}");
    let by_context =
        infer_with(&[("HOME", home), ("KUBERNETES_SERVICE_HOST", "10.0.0.1"), ("K8S_CLIENT_TEST_CONTEXT", "named")]);
    assert_eq!(by_context, "ok shop");
}
