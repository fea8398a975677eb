//! What a failure, as the server tells it, means to a watcher.

use std::time::Duration;

use k8s_types::{ApiStatus, shorten};

use crate::status::ErrorClass;

/// How a request broke below HTTP, or in its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// No answer: the connection could not be made, or TLS or authentication failed in the client.
    Connect,
    /// The connection broke while the answer came.
    Body,
    /// The body ended in the middle of a page or an event.
    Truncated,
    /// The body is not what was asked for.
    Malformed,
}

/// Where a failure showed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The head of the answer: the request was not served.
    Head,
    /// In the body of an answer that had begun well.
    Body,
    /// The answer did not come, or did not go on.
    Silence,
}

/// A failure, classified.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) class: ErrorClass,
    pub(super) origin: Origin,
    pub(super) code: Option<u16>,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) retry_after: Option<Duration>,
}

/// The code, or the one that goes with the reason.
fn effective_code(status: &ApiStatus) -> u16 {
    if status.code != 0 {
        return status.code;
    }
    match status.reason.as_str() {
        "BadRequest" => 400,
        "Unauthorized" => 401,
        "Forbidden" => 403,
        "NotFound" => 404,
        "MethodNotAllowed" => 405,
        "Expired" | "Gone" => 410,
        "Invalid" => 422,
        "TooManyRequests" => 429,
        "InternalError" => 500,
        "ServiceUnavailable" => 503,
        "Timeout" | "ServerTimeout" => 504,
        _ => 0,
    }
}

/// The server has not reached the version that was asked for.
fn is_behind(status: &ApiStatus) -> bool {
    status.causes.iter().any(|cause| cause == "ResourceVersionTooLarge")
        || status.message.contains("Too large resource version")
}

/// The store's own words for an expired version, where a server hands them on as an error of its own.
fn is_compacted(status: &ApiStatus) -> bool {
    status.message.contains("required revision has been compacted")
}

impl Problem {
    /// A refusal in the head of an answer. The HTTP status is what the server did; the `Status`
    /// in the body says why.
    pub(super) fn from_head(status: u16, retry_after: Option<Duration>, failure: Option<&ApiStatus>) -> Self {
        let empty = ApiStatus::default();
        let failure = failure.unwrap_or(&empty);
        let mut class = classify(status, failure);
        if effective_code(failure) == 410 && status >= 400 {
            class = ErrorClass::Expired;
        }
        Self {
            class,
            origin: Origin::Head,
            code: Some(status),
            reason: failure.reason.clone(),
            message: failure.message.clone(),
            retry_after: retry_after.max(failure.retry_after),
        }
    }

    /// An ERROR event in a watch.
    pub(super) fn from_event(failure: &ApiStatus) -> Self {
        let code = effective_code(failure);
        let class = if matches!(failure.reason.as_str(), "Expired" | "Gone") {
            ErrorClass::Expired
        } else {
            classify(code, failure)
        };
        Self {
            class,
            origin: Origin::Body,
            code: (code != 0).then_some(code),
            reason: failure.reason.clone(),
            message: failure.message.clone(),
            retry_after: failure.retry_after,
        }
    }

    pub(super) fn from_transport(broken: Broken, message: &str) -> Self {
        let (class, origin) = match broken {
            Broken::Connect => (ErrorClass::Connection, Origin::Silence),
            Broken::Body | Broken::Truncated => (ErrorClass::Connection, Origin::Body),
            Broken::Malformed => (ErrorClass::Protocol, Origin::Body),
        };
        Self::own(class, origin, message)
    }

    /// Something the engine noticed itself.
    pub(super) fn own(class: ErrorClass, origin: Origin, message: &str) -> Self {
        Self { class, origin, code: None, reason: String::new(), message: shorten(message), retry_after: None }
    }
}

/// What an HTTP status, or the code inside an ERROR event, means to a watcher.
pub(crate) fn classify(code: u16, failure: &ApiStatus) -> ErrorClass {
    match code {
        410 => ErrorClass::Expired,
        429 => ErrorClass::Throttled,
        401 => ErrorClass::Unauthorized,
        403 => ErrorClass::Forbidden,
        404 => ErrorClass::NotFound,
        // A server that knows no such method or format refuses for good, whatever its number.
        501 => ErrorClass::Rejected,
        500..=599 if is_compacted(failure) => ErrorClass::Expired,
        408 | 500..=599 if is_behind(failure) => ErrorClass::Behind,
        408 | 500..=599 => ErrorClass::Server,
        400..=499 => ErrorClass::Rejected,
        _ => ErrorClass::Protocol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c04_gone_is_recognised_in_each_form() {
        let gone = |code, reason: &str| ApiStatus { code, reason: reason.into(), ..ApiStatus::default() };
        for failure in [gone(410, "Expired"), gone(410, ""), gone(0, "Gone"), gone(500, "Expired")] {
            assert_eq!(Problem::from_event(&failure).class, ErrorClass::Expired, "{failure:?}");
        }
        for (status, failure) in
            [(410, None), (410, Some(gone(410, "Expired"))), (410, Some(gone(0, ""))), (400, Some(gone(410, "Gone")))]
        {
            let problem = Problem::from_head(status, None, failure.as_ref());
            assert_eq!(problem.class, ErrorClass::Expired, "{status} {failure:?}");
        }
        let message = "etcdserver: mvcc: required revision has been compacted".to_owned();
        let compacted = ApiStatus { code: 500, reason: "InternalError".into(), message, ..ApiStatus::default() };
        assert_eq!(Problem::from_event(&compacted).class, ErrorClass::Expired);
        assert_eq!(Problem::from_head(500, None, Some(&compacted)).class, ErrorClass::Expired);
    }

    #[test]
    fn classes() {
        use ErrorClass as E;
        let table = [
            (400, E::Rejected),
            (401, E::Unauthorized),
            (403, E::Forbidden),
            (404, E::NotFound),
            (405, E::Rejected),
            (408, E::Server),
            (410, E::Expired),
            (422, E::Rejected),
            (429, E::Throttled),
            (500, E::Server),
            (501, E::Rejected),
            (503, E::Server),
            (504, E::Server),
            (302, E::Protocol),
            (0, E::Protocol),
            (999, E::Protocol),
        ];
        for (status, class) in table {
            assert_eq!(Problem::from_head(status, None, None).class, class, "{status}");
        }
        let behind = ApiStatus { code: 504, causes: vec!["ResourceVersionTooLarge".into()], ..ApiStatus::default() };
        assert_eq!(Problem::from_head(504, None, Some(&behind)).class, E::Behind);
        assert_eq!(Problem::from_event(&behind).class, E::Behind);
    }
}
