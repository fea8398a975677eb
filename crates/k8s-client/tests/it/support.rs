//! A scripted server: in-process for what is answered, on a socket for what a kubeconfig makes of a connection.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use http::{HeaderMap, Request, Response};
use k8s_client::Client;
use kube::client::Body;

/// What the server was asked: method and path with query.
pub(crate) type Seen = Arc<Mutex<Vec<(String, HeaderMap)>>>;

/// Answers every request by one function of "METHOD /path?query".
pub(crate) struct Server {
    pub(crate) seen: Seen,
    kube: kube::Client,
}

impl Server {
    pub(crate) fn answering(answer: impl Fn(&str) -> (u16, String) + Send + Sync + 'static) -> Self {
        Self::in_namespace("default", answer)
    }

    pub(crate) fn in_namespace(
        namespace: &str,
        answer: impl Fn(&str) -> (u16, String) + Send + Sync + 'static,
    ) -> Self {
        let seen = Seen::default();
        let log = Arc::clone(&seen);
        let answer = Arc::new(answer);
        let service = tower::service_fn(move |request: Request<Body>| {
            let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
            async move {
                let line = format!("{} {}", request.method(), request.uri());
                let (status, body) = answer(&line);
                log.lock().unwrap().push((line, request.headers().clone()));
                // Others get their turn between question and answer.
                tokio::task::yield_now().await;
                let response = Response::builder().status(status).header("retry-after", "7");
                Ok::<_, std::convert::Infallible>(response.body(Body::from(body.into_bytes())).unwrap())
            }
        });
        Self { seen, kube: kube::Client::new(service, namespace) }
    }

    pub(crate) fn client(&self) -> Client {
        Client::from(&self.kube)
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|(line, _)| line.clone()).collect()
    }
}

/// A plain HTTP listener on loopback that answers 404 to everything and keeps each request's head.
pub(crate) struct Recorder {
    pub(crate) url: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heads = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&heads);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut head = String::new();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while reader.read_line(&mut head).is_ok_and(|n| n > 2) {}
                log.lock().unwrap().push(head);
                let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        });
        Self { url, heads }
    }

    /// Sends one request with `client` and gives back the value of its `Authorization` header.
    pub(crate) async fn authorization_of(&self, client: &Client) -> Option<String> {
        let response = client.send(Request::get("/version").body(Vec::new()).unwrap()).await.unwrap();
        assert_eq!(response.status(), 404, "the raw status, not an error");
        let head = self.heads.lock().unwrap().pop().unwrap();
        authorization(&head)
    }

    /// The `Authorization` headers of all requests so far that had one.
    pub(crate) fn tokens(&self) -> Vec<String> {
        self.heads.lock().unwrap().iter().filter_map(|head| authorization(head)).collect()
    }
}

fn authorization(head: &str) -> Option<String> {
    head.lines().find_map(|l| Some(l.split_once("authorization: ")?.1.to_owned()))
}
