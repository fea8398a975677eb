//! A TLS server on loopback that keeps what it hears, with certificates of an authority of its own.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// One request as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    /// Which connection, counted from 0.
    pub(crate) connection: usize,
    /// The server name of the TLS handshake.
    pub(crate) sni: Option<String>,
    /// Whether the client showed a certificate.
    pub(crate) certified: bool,
    pub(crate) head: String,
}

impl Heard {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        header(&self.head, name)
    }
}

/// The value of a header in a request's head.
pub(crate) fn header(head: &str, name: &str) -> Option<String> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find_map(|(n, value)| n.eq_ignore_ascii_case(name).then(|| value.to_owned()))
}

/// Certificate authority.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// The authority's certificate in PEM.
    pub(crate) fn pem(&self) -> String {
        encode("CERTIFICATE", self.0.der())
    }

    fn issue(&self, names: &[&str]) -> (CertificateDer<'static>, KeyPair) {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.0).unwrap();
        (certificate.der().clone(), key)
    }

    /// A client's certificate and key in PEM.
    pub(crate) fn identity(&self) -> (String, String) {
        let (certificate, key) = self.issue(&["client.test"]);
        (encode("CERTIFICATE", &certificate), encode("PRIVATE KEY", key.serialized_der()))
    }

    /// For a server by these names, which takes certificates of this authority from its clients.
    pub(crate) fn server_config(&self, names: &[&str]) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let (certificate, key) = self.issue(names);
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients.allow_unauthenticated().build().unwrap())
            .with_single_cert(vec![certificate], key);
        Arc::new(config.unwrap())
    }
}

fn encode(tag: &str, der: &[u8]) -> String {
    pem::encode(&pem::Pem::new(tag, der))
}

pub(crate) struct TlsServer {
    pub(crate) authority: Authority,
    pub(crate) url: String,
    config: Arc<Mutex<Arc<ServerConfig>>>,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl TlsServer {
    /// Answers 404 to everything, on 127.0.0.1 and with a certificate for it.
    pub(crate) fn start() -> Self {
        Self::on("127.0.0.1", &["127.0.0.1"], |_| 404)
    }

    /// Answers by a status for each request, with a certificate for `names`.
    pub(crate) fn on(address: &str, names: &[&str], answer: impl Fn(&Heard) -> u16 + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let authority = Authority::new();
        let config = Arc::new(Mutex::new(authority.server_config(names)));
        let heard = Arc::default();
        let (tls, log, answer) = (Arc::clone(&config), Arc::clone(&heard), Arc::new(answer));
        std::thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let Ok(stream) = stream else { return };
                let tls = Arc::clone(&tls.lock().unwrap());
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let stream = StreamOwned::new(ServerConnection::new(tls).unwrap(), stream);
                    serve(stream, connection, &log, &*answer)
                });
            }
        });
        Self { authority, url, config, heard }
    }

    /// From now on new connections meet a certificate of a new authority, whose own is given back in PEM.
    pub(crate) fn change_authority(&self, names: &[&str]) -> String {
        let authority = Authority::new();
        *self.config.lock().unwrap() = authority.server_config(names);
        authority.pem()
    }

    /// A kubeconfig with this server and the given user.
    pub(crate) fn kubeconfig(&self, user: &str) -> String {
        let authority = STANDARD.encode(self.authority.pem());
        kubeconfig(&format!("{{server: \"{}\", certificate-authority-data: {authority}}}", self.url), user)
    }

    /// What was heard since the last call.
    pub(crate) fn take(&self) -> Vec<Heard> {
        std::mem::take(&mut self.heard.lock().unwrap())
    }

    /// The `Authorization` headers since the last call, `-` for a request without one.
    pub(crate) fn tokens(&self) -> Vec<String> {
        self.take().iter().map(|heard| heard.header("authorization").unwrap_or("-".into())).collect()
    }
}

/// A kubeconfig with one cluster and one user, each given as YAML in one line.
pub(crate) fn kubeconfig(cluster: &str, user: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {cluster}}}]
contexts:
- {{name: main, context: {{cluster: c, user: u}}}}
- {{name: named, context: {{cluster: c, user: u, namespace: shop}}}}
- {{name: empty, context: {{cluster: c, user: u, namespace: ""}}}}
users: [{{name: u, user: {user}}}]
current-context: main
"#
    )
}

/// A server without TLS that answers 404 and keeps the heads of what it is asked.
pub(crate) struct PlainServer {
    pub(crate) url: String,
    pub(crate) heads: Arc<Mutex<Vec<String>>>,
}

impl PlainServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&heads);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                if let Some(head) = read_head(&mut stream) {
                    log.lock().unwrap().push(head);
                    let _ =
                        stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                }
            }
        });
        Self { url, heads }
    }
}

/// Answers requests on one connection until it ends, or the handshake fails.
fn serve(
    mut stream: StreamOwned<ServerConnection, std::net::TcpStream>,
    connection: usize,
    log: &Mutex<Vec<Heard>>,
    answer: &dyn Fn(&Heard) -> u16,
) {
    while let Some(head) = read_head(&mut stream) {
        let sni = stream.conn.server_name().map(str::to_owned);
        let certified = stream.conn.peer_certificates().is_some();
        let heard = Heard { connection, sni, certified, head };
        let status = answer(&heard);
        log.lock().unwrap().push(heard);
        let answer = format!("HTTP/1.1 {status} Whatever\r\ncontent-length: 0\r\n\r\n");
        if stream.write_all(answer.as_bytes()).and_then(|()| stream.flush()).is_err() {
            return;
        }
    }
}

/// The head of a request, without the empty line after it; `None` when there is no more.
pub(crate) fn read_head(stream: &mut impl Read) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&head).trim_end().to_owned())
}
