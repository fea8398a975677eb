//! A scripted server in the process, and small helpers.

use std::path::Path;
use std::process::Command;
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

/// The message of an error and all its causes.
pub(crate) fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

/// Writes a shell script that can be run.
///
/// By a shell, not by this process: a file that is open for writing, here or in a child that another test forks at
/// this moment, cannot be run.
pub(crate) fn script(path: &Path, body: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let write = r#"rm -f "$1" && printf '#!/bin/sh\n%s\n' "$2" >"$1" && chmod 755 "$1""#;
    let status = Command::new("sh").args(["-c", write, "script"]).arg(path).arg(body).status().unwrap();
    assert!(status.success());
}

/// The status of the answer to one request.
pub(crate) async fn ask(client: &Client) -> Result<u16, k8s_client::Error> {
    let request = Request::get("/version").body(Vec::new()).unwrap();
    let response = client.send(request).await?;
    let status = response.status().as_u16();
    response.into_body().collect_bytes().await.unwrap();
    Ok(status)
}
