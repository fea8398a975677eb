//! The requests to the API server, and what their answers mean.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use k8s_types::ApiStatus;
use kube::client::Body;
use serde_json::Value;

use crate::machine::{Answer, Request};
use crate::record::Record;

/// The largest answer that is read: more than the server lets any object have.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// One Lease on the server.
#[derive(Clone)]
pub(crate) struct LeaseApi {
    client: kube::Client,
    collection: String,
    path: String,
}

/// Why a request brought nothing. Its text is for the log: no body, no token.
#[derive(Debug, PartialEq)]
pub(crate) struct Failure(String);

impl LeaseApi {
    /// Namespace and name have been checked: they are parts of a path.
    pub(crate) fn new(client: kube::Client, namespace: &str, name: &str) -> Self {
        let collection = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        Self { client, path: format!("{collection}/{name}"), collection }
    }

    /// Sends a request and waits for its answer for as long as `patience`.
    pub(crate) async fn send(self, request: Request, patience: Duration) -> (Answer, Option<Failure>) {
        let exchange = tokio::time::timeout(patience, self.exchange(request));
        match exchange.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(failure)) => (Answer::Lost, Some(failure)),
            Err(_) => (Answer::Lost, Some(Failure(format!("no answer within {patience:?}")))),
        }
    }

    /// An answer, perhaps with what is to be told about it; or none.
    async fn exchange(&self, request: Request) -> Result<(Answer, Option<Failure>), Failure> {
        let (method, path, body) = match &request {
            Request::Read => (Method::GET, &self.path, None),
            Request::Create(object) => (Method::POST, &self.collection, Some(object)),
            Request::Replace(object) => (Method::PUT, &self.path, Some(object)),
        };
        let http = http::Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, "application/json")
            .header(header::ACCEPT_ENCODING, "identity")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.map(Value::to_string).unwrap_or_default().into_bytes()))
            .map_err(|e| Failure(format!("no request: {e}")))?;
        let response = self.client.send(http).await.map_err(Failure::transport)?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, BODY_LIMIT).collect().await.map(|b| b.to_bytes());
        match (head.status, request) {
            (StatusCode::NOT_FOUND, Request::Read | Request::Replace(_)) => Ok((Answer::Missing, None)),
            (StatusCode::CONFLICT, Request::Create(_) | Request::Replace(_)) => Ok((Answer::Conflict, None)),
            (status, _) if status.is_success() => {
                let body = body.map_err(|e| Failure(format!("the answer broke off: {}", in_full(&*e))))?;
                let record = Record::parse(&body).ok_or_else(|| Failure("the answer is no Lease".into()))?;
                Ok((Answer::Found(record), None))
            }
            (status, _) => {
                let failure = Failure::refusal(status, &body.unwrap_or_default());
                Ok((Answer::Refused { retry_after: retry_after(&head.headers) }, Some(failure)))
            }
        }
    }
}

impl Failure {
    /// Only what the HTTP stack says is told as it is: other texts may quote credentials.
    fn transport(error: kube::Error) -> Self {
        Self(match error {
            kube::Error::HyperError(e) => in_full(&e),
            kube::Error::Service(e) => in_full(&*e),
            kube::Error::Auth(_) => "no credentials".into(),
            _ => "the request could not be sent".into(),
        })
    }

    /// `403 Forbidden: …`, as much of it as there is.
    fn refusal(status: StatusCode, body: &[u8]) -> Self {
        let told = ApiStatus::from_json(body).unwrap_or_default();
        let canonical = status.canonical_reason().unwrap_or_default();
        let reason = if told.reason.is_empty() { canonical } else { &told.reason };
        let mut text = format!("{} {reason}", status.as_u16());
        if !told.message.is_empty() {
            text.push_str(": ");
            text.push_str(&told.message);
        }
        Self(text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An error with its causes.
fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Seconds only: the API server sends no dates.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_servers_words_and_no_other_body_is() {
        let check = |code: u16, body: &str, expected: &str| {
            let failure = Failure::refusal(StatusCode::from_u16(code).unwrap(), body.as_bytes());
            assert_eq!(failure.to_string(), expected);
        };
        check(403, r#"{"kind":"Status","reason":"Forbidden","message":"not yours"}"#, "403 Forbidden: not yours");
        check(503, "hunter2", "503 Service Unavailable");
        check(500, r#"{"kind":"Secret","message":"hunter2"}"#, "500 Internal Server Error");
        check(599, "", "599 ");
        check(404, r#"{"kind":"Status","reason":7,"message":"no such lease"}"#, "404 Not Found: no such lease");
        let long = "x".repeat(1000);
        let body = format!(r#"{{"kind":"Status","reason":"{long}","message":"{long}"}}"#);
        check(404, &body, &format!("404 {0}…: {0}…", &long[..512]));
    }

    #[test]
    fn credentials_never_reach_the_text() {
        let error = kube::Error::Auth(kube::client::AuthError::AuthExec("token hunter2".into()));
        assert_eq!(Failure::transport(error).to_string(), "no credentials");
        let inner = std::io::Error::other("connection reset");
        assert_eq!(Failure::transport(kube::Error::Service(inner.into())).to_string(), "connection reset");
    }

    #[test]
    fn retry_after_is_read_in_seconds() {
        for (value, expected) in [("3", Some(3)), (" 3 ", Some(3)), ("-1", None), ("Wed, 21 Oct 2026", None)] {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, value.parse().unwrap());
            assert_eq!(retry_after(&headers), expected.map(Duration::from_secs), "{value:?}");
        }
    }
}
