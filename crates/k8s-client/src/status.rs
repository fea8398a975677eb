//! What the server says when it refuses: the HTTP status and the parts of a `Status` object that a person needs.

use std::fmt;
use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use k8s_types::ApiStatus;

/// An answer of the server whose HTTP status is no success.
///
/// Holds the code and, when the body was a Kubernetes `Status`, its reason and message. Any other body is dropped
/// unread: it may hold data that must not reach a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusError {
    code: u16,
    reason: Box<str>,
    message: Box<str>,
    retry_after: Option<Duration>,
}

impl StatusError {
    /// Reads the answer's status, headers and body. Never fails: what cannot be read is left empty.
    pub(crate) fn new(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let status = ApiStatus::from_json(body).unwrap_or_default();
        Self {
            code: code.as_u16(),
            reason: status.reason.into(),
            message: status.message.into(),
            retry_after: retry_after(headers),
        }
    }

    /// The HTTP status code.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.code
    }

    /// The machine-readable reason (`NotFound`, `Expired`, …); empty when the server gave none.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The server's own words, cut to a line's length; empty when the server gave none.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How long the server asks to wait (`Retry-After` in seconds).
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// `403 Forbidden: pods is forbidden: …`, as much of it as there is.
impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        let phrase = StatusCode::from_u16(self.code).ok().and_then(|c| c.canonical_reason()).unwrap_or("");
        let reason = if self.reason.is_empty() { phrase } else { &self.reason };
        if !reason.is_empty() {
            write!(f, " {reason}")?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for StatusError {}

/// Seconds only: the API server sends no dates.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Whatever the body of a refusal is, the error is short; a body that is no Status is not in it.
///
/// # Panics
///
/// When that does not hold.
#[cfg(any(fuzzing, test))]
pub fn check_answer(body: &[u8]) {
    let error = StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, &HeaderMap::new(), body);
    let text = error.to_string();
    assert!(text.len() <= 2 * 512 + 64, "{} bytes", text.len());
    if let Ok(value @ serde_json::Value::Object(_)) = serde_json::from_slice(body)
        && value.get("kind").is_none_or(|kind| kind != "Status")
    {
        assert_eq!(text, "500 Internal Server Error");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: u16, body: &str, expected: &str) {
        let error = StatusError::new(StatusCode::from_u16(code).unwrap(), &HeaderMap::new(), body.as_bytes());
        assert_eq!(error.to_string(), expected, "{code} {body}");
    }

    #[test]
    fn an_odd_part_hides_none_of_the_others() {
        let body = br#"{"kind":"Status","reason":7,"message":"busy","details":{"retryAfterSeconds":-1}}"#;
        let error = StatusError::new(StatusCode::SERVICE_UNAVAILABLE, &HeaderMap::new(), body);
        assert_eq!(error.to_string(), "503 Service Unavailable: busy");
    }

    #[test]
    fn text_is_made_of_what_the_server_gave() {
        check(
            403,
            r#"{"kind":"Status","reason":"Forbidden","message":"pods is forbidden","code":403}"#,
            "403 Forbidden: pods is forbidden",
        );
        check(503, "upstream connect error", "503 Service Unavailable");
        check(404, "404 page not found", "404 Not Found");
        check(410, r#"{"kind":"Status","reason":"Expired"}"#, "410 Expired");
        check(599, "", "599");
    }

    #[test]
    fn a_body_that_is_no_status_never_reaches_the_message() {
        check(500, r#"{"kind":"Secret","message":"hunter2"}"#, "500 Internal Server Error");
        check(500, r#"{"message":"hunter2"}"#, "500 Internal Server Error");
        check(500, r#"{"kind":"Status","message":7}"#, "500 Internal Server Error");
    }

    #[test]
    fn retry_after_is_read_in_seconds() {
        for (value, expected) in [("3", Some(3)), (" 3 ", Some(3)), ("-1", None), ("Wed, 21 Oct 2026", None)] {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, value.parse().unwrap());
            let error = StatusError::new(StatusCode::TOO_MANY_REQUESTS, &headers, b"");
            assert_eq!(error.retry_after(), expected.map(Duration::from_secs), "{value:?}");
        }
    }
}
