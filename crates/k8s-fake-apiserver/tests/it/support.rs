//! Shared by the tests: small objects, raw requests, watch lines.

use std::time::Duration;

use futures_util::StreamExt;
use http::{Method, Request};
use http_body_util::{BodyDataStream, BodyExt};
use k8s_fake_apiserver::{FakeApiServer, FakeService, ResponseBody};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::Service;

pub(crate) async fn server() -> FakeApiServer {
    FakeApiServer::builder().start().await.unwrap()
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"k": "v"}})
}

pub(crate) fn pod(namespace: &str, name: &str, labels: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

/// One request; status code and JSON body (null when it is none).
pub(crate) async fn call(client: &Client, method: &str, path: &str, content_type: &str, body: &Value) -> (u16, Value) {
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder()
        .method(Method::from_bytes(method.as_bytes()).unwrap())
        .uri(path)
        .header("content-type", content_type)
        .body(Body::from(bytes))
        .unwrap();
    let response = client.send(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

pub(crate) async fn get(client: &Client, path: &str) -> (u16, Value) {
    call(client, "GET", path, "application/json", &Value::Null).await
}

pub(crate) async fn post(client: &Client, path: &str, body: &Value) -> (u16, Value) {
    call(client, "POST", path, "application/json", body).await
}

pub(crate) async fn merge_patch(client: &Client, path: &str, body: &Value) -> (u16, Value) {
    call(client, "PATCH", path, "application/merge-patch+json", body).await
}

/// A watch, line by line, straight from the service.
pub(crate) struct Lines {
    stream: BodyDataStream<ResponseBody>,
    buffer: Vec<u8>,
}

pub(crate) async fn watch(server: &FakeApiServer, path: &str) -> Lines {
    watch_on(server.service(), path).await
}

pub(crate) async fn watch_on(mut service: FakeService, path: &str) -> Lines {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = service.call(request).await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    Lines { stream: response.into_body().into_data_stream(), buffer: Vec::new() }
}

/// How a watch went on.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    Line(Value),
    End,
    Broken,
    Silent,
}

impl Lines {
    /// The next line within an hour (of paused time).
    pub(crate) async fn next(&mut self) -> Next {
        self.within(Duration::from_secs(3600)).await
    }

    pub(crate) async fn within(&mut self, time: Duration) -> Next {
        loop {
            if let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Next::Line(serde_json::from_slice(&line).unwrap_or(Value::Null));
            }
            match tokio::time::timeout(time, self.stream.next()).await {
                Err(_) => return Next::Silent,
                Ok(None) => return Next::End,
                Ok(Some(Err(_))) => return Next::Broken,
                Ok(Some(Ok(bytes))) => self.buffer.extend_from_slice(&bytes),
            }
        }
    }

    /// The next line as `TYPE name@version`, or how the watch went on.
    pub(crate) async fn short(&mut self) -> String {
        match self.within(Duration::from_secs(1)).await {
            Next::Line(line) => short(&line),
            other => format!("{other:?}"),
        }
    }

    /// The next `n` of them.
    pub(crate) async fn shorts(&mut self, n: usize) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..n {
            all.push(self.short().await);
        }
        all
    }
}

pub(crate) fn short(line: &Value) -> String {
    let object = &line["object"];
    let metadata = &object["metadata"];
    match line["type"].as_str() {
        Some("ERROR") => format!("ERROR {} {}", object["code"], object["reason"].as_str().unwrap_or_default()),
        Some("BOOKMARK") => {
            let end = if metadata["annotations"]["k8s.io/initial-events-end"] == "true" { " end" } else { "" };
            format!("BOOKMARK {}{end}", metadata["resourceVersion"].as_str().unwrap())
        }
        Some(kind) => {
            format!("{kind} {}@{}", metadata["name"].as_str().unwrap(), metadata["resourceVersion"].as_str().unwrap())
        }
        None => format!("{line}"),
    }
}
