//! What a kubeconfig makes of a client. Only what kube's loader gives and what ours adds to it.

use std::fs;

use k8s_client::{ClientConfig, Error};

use crate::support::{ask, script, told};
use crate::tls::{PlainServer, TlsServer, header, kubeconfig};

/// A kubeconfig whose server is never asked.
pub(crate) fn config(user: &str) -> String {
    kubeconfig("{server: \"http://127.0.0.1:1\"}", user)
}

#[tokio::test]
async fn own_namespace_is_the_configured_one_then_the_contexts() {
    let text = config("{token: t}");
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

/// A folder with `conf/config`, which names all its files by relative paths.
pub(crate) fn folder_of_relative_paths(server: &TlsServer, token: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    let (certificate, key) = server.authority.identity();
    write("conf/certs/ca.crt", &server.authority.pem());
    write("conf/me.crt", &certificate);
    write("conf/me.key", &key);
    write("conf/tok", token);
    let user = "{tokenFile: ./tok, client-certificate: me.crt, client-key: me.key}";
    write(
        "conf/config",
        &kubeconfig(&format!("{{server: \"{}\", certificate-authority: certs/ca.crt}}", server.url), user),
    );
    root
}

#[tokio::test]
async fn c75_relative_paths_are_relative_to_the_file_that_names_them() {
    let server = TlsServer::start();
    let root = folder_of_relative_paths(&server, "from-file");
    let file = root.path().join("conf/config");
    let client = ClientConfig::kubeconfig(&file).build().await.unwrap();
    ask(&client).await.unwrap();
    let heard = server.take().pop().unwrap();
    assert_eq!(heard.header("authorization").as_deref(), Some("Bearer from-file"));
    assert!(heard.certified, "the client's certificate was found too");

    let answer = "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"from-exec\"}}'";
    script(&root.path().join("bin/tok.sh"), answer);
    let exec = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ../bin/tok.sh, interactiveMode: Never}}";
    fs::write(&file, server.kubeconfig(exec)).unwrap();
    let client = ClientConfig::kubeconfig(&file).build().await.unwrap();
    ask(&client).await.unwrap();
    assert_eq!(server.tokens(), ["Bearer from-exec"]);
}

#[tokio::test]
async fn c77_a_single_path_is_not_merged_and_a_context_is_chosen_by_name() {
    let server = TlsServer::start();
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("a:b");
    fs::write(&file, server.kubeconfig("{token: t}")).unwrap();
    let client = ClientConfig::kubeconfig(&file).context("named").build().await.unwrap();
    assert_eq!(client.namespace().unwrap(), "shop");
    assert!(ClientConfig::kubeconfig(&file).context("other").build().await.is_err());
}

#[tokio::test]
async fn c78_no_user_null_user_unknown_user_go_on_without_credentials() {
    let server = TlsServer::start();
    let text = |users: &str, user: &str| {
        let text = server.kubeconfig("null").replace("users: [{name: u, user: null}]", &format!("users: {users}"));
        text.replace("{cluster: c, user: u}", &format!("{{cluster: c{user}}}"))
    };
    let cases = [
        ("[]", ""),
        ("null", ""),
        ("[]", ", user: nobody"),
        ("[]", ", user: \"\""),
        ("[]", ", user: null"),
        ("[{name: u}]", ", user: u"),
        ("[{name: u, user: null}]", ", user: u"),
        ("[{name: u, user: {}}]", ", user: u"),
        ("[{name: u, user: {token: \"\", tokenFile: \"\", client-key-data: \"\"}}]", ", user: u"),
    ];
    for (users, user) in cases {
        let client = ClientConfig::kubeconfig_content(text(users, user)).build().await.unwrap();
        ask(&client).await.unwrap();
        assert_eq!(server.tokens(), ["-"], "{users} {user}");
    }
}

#[tokio::test]
async fn c78_over_plain_http_no_credentials_are_sent_nor_made() {
    let server = PlainServer::start();
    let cluster = format!("{{server: \"{}\"}}", server.url);
    let users = [
        "{username: me, password: hunter2}",
        "{token: hunter2}",
        "{tokenFile: /no/such/file}",
        "{exec: {apiVersion: client.authentication.k8s.io/v1, command: /no/such/plugin}}",
        "{client-certificate: /no/such/file, client-key: /no/such/file}",
        "{auth-provider: {name: gcp}}",
    ];
    for user in users {
        let client = ClientConfig::kubeconfig_content(kubeconfig(&cluster, user)).build().await.unwrap();
        assert_eq!(ask(&client).await.unwrap(), 404, "{user}");
    }
    // Whom to act as is no secret.
    let text = kubeconfig(&cluster, "{token: hunter2, as: someone}");
    ask(&ClientConfig::kubeconfig_content(text).build().await.unwrap()).await.unwrap();
    let heads = server.heads.lock().unwrap();
    assert_eq!(heads.len(), users.len() + 1);
    assert!(heads.iter().all(|head| header(head, "authorization").is_none()), "{heads:?}");
    assert_eq!(header(&heads[users.len()], "impersonate-user").as_deref(), Some("someone"));
}

#[tokio::test]
async fn c78_basic_authentication_and_tokens_are_sent_over_tls_but_not_both() {
    let server = TlsServer::start();
    let cases = [
        ("{username: me, password: pw}", "Basic bWU6cHc="),
        ("{token: \" t \"}", "Bearer t"),
        ("{token: t, tokenFile: /no/such/file}", "Bearer t"),
        ("{token: t, exec: {command: /no/such/plugin}}", "Bearer t"),
        ("{username: me, password: pw, exec: {command: /no/such/plugin}}", "Basic bWU6cHc="),
        ("{auth-provider: {name: oidc, config: {id-token: t}}}", "Bearer t"),
    ];
    for (user, expected) in cases {
        let client = ClientConfig::kubeconfig_content(server.kubeconfig(user)).build().await.unwrap();
        ask(&client).await.unwrap();
        assert_eq!(server.tokens(), [expected], "{user}");
    }
    let refused = [
        ("{username: me, password: hunter2, token: hunter2}", "only one of them can be used"),
        ("{token: \"hunter2\\nx\"}", "the user's token cannot be sent: it is no valid header"),
        ("{token: \"hunter2\\0\"}", "the user's token cannot be sent: it is no valid header"),
        ("{auth-provider: {name: gcp, config: {access-token: hunter2}}}", "use a credential plugin (exec)"),
        ("{tokenFile: /no/such/file}", "cannot read the token file /no/such/file: No such file"),
    ];
    for (user, expected) in refused {
        let error = ClientConfig::kubeconfig_content(server.kubeconfig(user)).build().await.unwrap_err();
        assert!(told(&error).contains(expected), "{}", told(&error));
        assert!(!format!("{} {error:?}", told(&error)).contains("hunter2"), "{error:?}");
    }
}

#[tokio::test]
async fn c78_odd_files_give_errors_that_name_them_and_never_panic() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("config");
    let valid = config("{token: t}");
    let marked = |text: &str| -> Vec<u16> { [0xFEFF].into_iter().chain(text.encode_utf16()).collect() };
    let utf16 = |text: &str| -> Vec<u8> { marked(text).into_iter().flat_map(u16::to_le_bytes).collect() };
    let big_endian = |text: &str| -> Vec<u8> { marked(text).into_iter().flat_map(u16::to_be_bytes).collect() };
    let mut cut = utf16(&valid);
    cut.pop();
    let cases: Vec<(&str, Vec<u8>, bool)> = vec![
        ("empty", vec![], false),
        ("byte order mark", [b"\xEF\xBB\xBF", valid.as_bytes()].concat(), true),
        ("UTF-16", utf16(&valid), true),
        ("UTF-16, the other way round", big_endian(&valid), true),
        ("UTF-16, half a pair", vec![0xFF, 0xFE, 0x00, 0xD8], false),
        ("only a mark", vec![0xFF, 0xFE], false),
        ("several documents", format!("---\n{valid}---\nkind: Config\n").into_bytes(), true),
        ("nothing but null", b"null".to_vec(), false),
        ("a list", b"[]".to_vec(), false),
        ("no server", valid.replace("server: ", "extra: ").into_bytes(), false),
        ("no such cluster", valid.replace("{cluster: c, user: u}", "{cluster: d}").into_bytes(), false),
        ("null context", valid.replace("context: {cluster: c, user: u}", "context: null").into_bytes(), false),
        ("server without scheme", valid.replace("http://", "").into_bytes(), true),
        ("server of another scheme", valid.replace("http://", "ftp://").into_bytes(), false),
        ("server that is no address", valid.replace("http://127.0.0.1:1", "http://a b").into_bytes(), false),
        ("server with a password", valid.replace("http://", "http://me:hunter2@").into_bytes(), false),
        ("null server", valid.replace("\"http://127.0.0.1:1\"", "null").into_bytes(), false),
        ("empty server", valid.replace("http://127.0.0.1:1", "").into_bytes(), false),
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
                assert!(!format!("{} {error:?}", told(&error)).contains("hunter2"), "{what}: {error:?}");
                assert_eq!(error.to_string(), format!("cannot load kubeconfig {}", file.display()), "{what}");
            }
        }
    }
    let told_of = async |config: ClientConfig| told(&config.build().await.unwrap_err());
    let marked = format!("\u{feff}{valid}");
    assert!(ClientConfig::kubeconfig_content(marked).build().await.is_ok(), "a mark in given text");
    let error = told_of(ClientConfig::kubeconfig_content(&valid).context("nope")).await;
    assert_eq!(error, "cannot load the given kubeconfig: there is no context \"nope\"");
    let error = told_of(ClientConfig::kubeconfig_content("")).await;
    assert!(error.ends_with(": no context is chosen and current-context is not set"), "{error}");
    let error = told_of(ClientConfig::kubeconfig_content(valid.replace("{cluster: c, user: u}", "{cluster: d}"))).await;
    assert!(error.ends_with(": context \"main\" names the cluster \"d\", which is not there"), "{error}");
}

#[tokio::test]
async fn c78_broken_yaml_is_refused_without_quoting_it() {
    let text = "users:\n- name: u\n  user: {token: [hunter2}\n";
    let error = ClientConfig::kubeconfig_content(text).build().await.unwrap_err();
    assert!(!format!("{} {error:?}", told(&error)).contains("hunter2"), "{}", told(&error));
    assert!(told(&error).contains("line 3"), "{}", told(&error));
}

/// Builds a client of a file with this content and of the same as text.
fn build_of(content: &[u8]) -> Option<k8s_client::Client> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), content).unwrap();
    in_a_runtime(ClientConfig::kubeconfig(file.path()).build()).ok();
    in_a_runtime(ClientConfig::kubeconfig_content(String::from_utf8_lossy(content)).build()).ok()
}

fn in_a_runtime<F: Future>(future: F) -> F::Output {
    // One for all, since a client belongs to the runtime that it was made in.
    static RUNTIME: std::sync::LazyLock<tokio::runtime::Runtime> =
        std::sync::LazyLock::new(|| tokio::runtime::Runtime::new().unwrap());
    RUNTIME.block_on(future)
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(256))]

    #[test]
    fn c78_random_text_never_panics(text in "(?s)(apiVersion|users|contexts|clusters|cluster|user|name|server|current-context|token|: |- |\n|  |[{]|[}]|\\[|\\]|\"|null|.){0,40}") {
        build_of(text.as_bytes());
    }

    #[test]
    fn c78_random_bytes_never_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..64), mark in 0..4usize) {
        let marks: [&[u8]; 4] = [b"", b"\xEF\xBB\xBF", b"\xFF\xFE", b"\xFE\xFF"];
        build_of(&[marks[mark], &bytes].concat());
    }

    /// A kubeconfig that is right as a whole, with anything in one place. Most still make a client, which must not
    /// panic when it is used either.
    #[test]
    fn c78_random_values_never_panic(
        field in 0..USER.len() + CLUSTER.len(),
        value in "(?s)\"(\\PC|[\u{1}-\u{1f}]){0,12}\"|\\[\\]|\\{\\}|null|-?[0-9]{1,20}|true",
    ) {
        let (of_user, of_cluster) = (USER.get(field), CLUSTER.get(field.wrapping_sub(USER.len())));
        let user = of_user.map_or("{}".to_owned(), |field| format!("{{{field}: {value}}}"));
        let cluster = of_cluster.map_or(String::new(), |field| format!(", {field}: {value}"));
        let text = kubeconfig(&format!("{{server: \"https://127.0.0.1:1\"{cluster}}}"), &user);
        // Nothing listens there; a proxy of a random name is not looked for.
        if let Some(client) = build_of(text.as_bytes()).filter(|_| of_cluster != Some(&"proxy-url")) {
            assert!(in_a_runtime(ask(&client)).is_err());
        }
    }
}

const USER: [&str; 9] = [
    "token",
    "username",
    "password",
    "client-certificate-data",
    "client-key-data",
    "as",
    "as-groups",
    "auth-provider",
    "other",
];
const CLUSTER: [&str; 4] = ["certificate-authority-data", "tls-server-name", "proxy-url", "other"];

#[test]
fn outside_a_runtime_building_is_an_error() {
    let text = config("{token: t}");
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
    assert_eq!(
        format!("{config:?}"),
        r#"ClientConfig { source: "content", context: Some("c"), namespace: None, tls_server_name: None, rate_limit: None }"#
    );
}
