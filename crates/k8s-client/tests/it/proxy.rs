//! Proxies on loopback that keep what they are asked and connect to whatever server the test has.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use k8s_client::{ClientConfig, Error};
use rustls::{ServerConnection, StreamOwned};

use crate::infer::infer_with;
use crate::support::{ask, told};
use crate::tls::{TlsServer, header, kubeconfig, read_head};

/// What came to a proxy: a head of HTTP, or the address that was asked for by SOCKS.
type Asked = Arc<Mutex<Vec<String>>>;

/// Serves each connection on a thread of its own, and gives the port.
fn listen(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

/// Carries bytes both ways until both ends are done.
fn splice(client: TcpStream, upstream: &str) {
    let server = TcpStream::connect(upstream).unwrap();
    let (mut client_in, mut server_out) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut client_in, &mut server_out);
        let _ = server_out.shutdown(Shutdown::Write);
    });
    let (mut server_in, mut client_out) = (server, client);
    let _ = std::io::copy(&mut server_in, &mut client_out);
    let _ = client_out.shutdown(Shutdown::Write);
}

/// An HTTP proxy in front of `upstream`.
fn http_proxy(upstream: &str) -> (u16, Asked) {
    let (asked, upstream) = (Asked::default(), upstream.to_owned());
    let log = Arc::clone(&asked);
    let port = listen(move |mut stream| {
        let Some(head) = read_head(&mut stream) else { return };
        log.lock().unwrap().push(head);
        stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").unwrap();
        splice(stream, &upstream);
    });
    (port, asked)
}

/// A SOCKS5 proxy, without authentication, in front of `upstream`.
fn socks_proxy(upstream: &str) -> (u16, Asked) {
    let (asked, upstream) = (Asked::default(), upstream.to_owned());
    let log = Arc::clone(&asked);
    let port = listen(move |mut stream| {
        let read = |n: usize, stream: &mut TcpStream| {
            let mut bytes = vec![0; n];
            stream.read_exact(&mut bytes).map(|()| bytes).unwrap_or_default()
        };
        let greeting = read(2, &mut stream);
        read(greeting[1].into(), &mut stream);
        stream.write_all(&[5, 0]).unwrap();
        let request = read(5, &mut stream);
        assert_eq!(request[3], 3, "the proxy resolves names");
        let name = read(request[4].into(), &mut stream);
        let port = read(2, &mut stream);
        let port = u16::from_be_bytes([port[0], port[1]]);
        log.lock().unwrap().push(format!("{}:{port}", String::from_utf8(name).unwrap()));
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
        splice(stream, &upstream);
    });
    (port, asked)
}

/// A server that can only be reached through a proxy, since nothing resolves its name.
fn hidden() -> (TlsServer, String) {
    let server = TlsServer::on("127.0.0.1", &["api.example.test", "127.0.0.1"], |_| 404);
    let upstream = server.url.trim_start_matches("https://").to_owned();
    (server, upstream)
}

fn through(server: &TlsServer, proxy: &str) -> String {
    let text = server.kubeconfig("{token: t}").replace(&server.url, "https://api.example.test:6443");
    text.replace("{server: ", &format!("{{proxy-url: \"{proxy}\", server: "))
}

#[tokio::test]
async fn c84_an_http_proxy_is_used_with_user_and_password() {
    let (server, upstream) = hidden();
    let (port, asked) = http_proxy(&upstream);
    let cases = [
        ("", None),
        // me:pass
        ("me:pass@", Some("Basic bWU6cGFzcw==")),
        // me:p@ss:w/rd%é
        ("me:p%40ss%3Aw%2Frd%25%C3%A9@", Some("Basic bWU6cEBzczp3L3JkJcOp")),
    ];
    for (user, expected) in cases {
        let client = ClientConfig::kubeconfig_content(through(&server, &format!("http://{user}127.0.0.1:{port}")));
        assert_eq!(ask(&client.build().await.unwrap()).await.unwrap(), 404);
        let head = asked.lock().unwrap().pop().unwrap();
        assert!(head.starts_with("CONNECT api.example.test:6443 HTTP/1.1"), "{head}");
        assert_eq!(header(&head, "proxy-authorization").as_deref(), expected, "{user}");
        assert_eq!(header(&head, "authorization"), None, "the proxy sees no token");
        assert_eq!(server.tokens(), ["Bearer t"]);
    }
}

#[tokio::test]
async fn c84_an_https_proxy_is_asked_by_tls() {
    let (server, _) = hidden();
    let asked = Asked::default();
    let (log, tls) = (Arc::clone(&asked), server.authority.server_config(&["127.0.0.1"]));
    let port = listen(move |stream| {
        let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(&tls)).unwrap(), stream);
        let head = read_head(&mut stream).unwrap_or_default();
        log.lock().unwrap().push(head);
        let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").and_then(|()| stream.flush());
    });
    let text = through(&server, &format!("https://me:hunter2@127.0.0.1:{port}"));
    let error = ask(&ClientConfig::kubeconfig_content(text).build().await.unwrap()).await.unwrap_err();
    assert!(!format!("{} {error:?}", told(&error)).contains("hunter2"), "{error:?}");
    let head = asked.lock().unwrap().pop().unwrap();
    assert!(head.starts_with("CONNECT api.example.test:6443 HTTP/1.1"), "{head}");
    assert!(header(&head, "proxy-authorization").is_some());
}

#[tokio::test]
async fn c84_a_socks5_proxy_is_used_and_resolves_the_name() {
    let (server, upstream) = hidden();
    let (port, asked) = socks_proxy(&upstream);
    let text = through(&server, &format!("socks5://127.0.0.1:{port}"));
    assert_eq!(ask(&ClientConfig::kubeconfig_content(text).build().await.unwrap()).await.unwrap(), 404);
    assert_eq!(*asked.lock().unwrap(), ["api.example.test:6443"]);
}

#[test]
fn c84_the_environments_proxy_is_for_servers_that_no_proxy_does_not_name() {
    let (server, upstream) = hidden();
    let (port, asked) = http_proxy(&upstream);
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("config");
    let url = format!("http://127.0.0.1:{port}");
    let infer = |text: &str, variables: &[(&str, &str)]| {
        std::fs::write(&file, text).unwrap();
        let config = [("KUBECONFIG", file.to_str().unwrap())];
        let outcome = infer_with(&[&config, variables].concat());
        assert_eq!(outcome, "ok -", "{variables:?}");
        (std::mem::take(&mut *asked.lock().unwrap()).len(), server.take().len())
    };
    let hidden = server.kubeconfig("null").replace(&server.url, "https://api.example.test:6443");
    assert_eq!(infer(&hidden, &[("HTTPS_PROXY", &url)]), (1, 1));
    assert_eq!(infer(&hidden, &[("HTTPS_PROXY", &url), ("NO_PROXY", "a.test, example.test,")]), (0, 0));
    // The proxy's own address is not what NO_PROXY is about.
    assert_eq!(infer(&hidden, &[("HTTPS_PROXY", &url), ("NO_PROXY", "127.0.0.1")]), (1, 1));
    // The cluster's own proxy comes first, whatever the environment says.
    let other = [("HTTPS_PROXY", "http://127.0.0.1:1"), ("NO_PROXY", "*")];
    assert_eq!(infer(&through(&server, &url), &other), (1, 1));
    // A server on this machine needs none.
    assert_eq!(infer(&server.kubeconfig("null"), &[("HTTPS_PROXY", "http://127.0.0.1:1")]), (0, 1));
    // Nor is an unrelated variable looked at.
    assert_eq!(infer(&hidden, &[("HTTP_PROXY", &url), ("ALL_PROXY", &url)]), (0, 0));
}

#[tokio::test]
async fn c84_a_proxy_that_cannot_be_used_fails_when_the_client_is_built_without_its_password() {
    let cases = [
        ("ftp://me:hunter2@proxy.test:3128", "the cluster's proxy-url has the scheme \"ftp\""),
        ("proxy.test:3128", "the cluster's proxy-url has the scheme \"\""),
        ("http://me:hunter2@pro xy", "the cluster's proxy-url is no address"),
        ("socks5://me:hunter2@proxy.test:1080", "the cluster's proxy-url has a user and password"),
    ];
    for (proxy, expected) in cases {
        let text = kubeconfig(&format!("{{proxy-url: \"{proxy}\", server: \"https://127.0.0.1:1\"}}"), "null");
        let config = ClientConfig::kubeconfig_content(text);
        assert!(!format!("{config:?}").contains("hunter2"));
        let error = config.build().await.unwrap_err();
        assert!(matches!(error, Error::Config { .. }) && told(&error).contains(expected), "{}", told(&error));
        assert!(!format!("{} {error:?}", told(&error)).contains("hunter2"), "{error:?}");
    }
}

#[tokio::test]
async fn c84_a_proxy_that_is_down_is_told_without_its_password() {
    let (server, _) = hidden();
    for scheme in ["http", "https"] {
        let text = through(&server, &format!("{scheme}://me:hunter2@127.0.0.1:1"));
        let error = ask(&ClientConfig::kubeconfig_content(text).build().await.unwrap()).await.unwrap_err();
        assert!(error.is_retryable());
        assert!(!format!("{} {error:?}", told(&error)).contains("hunter2"), "{error:?}");
    }
}
