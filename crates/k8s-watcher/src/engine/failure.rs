//! A failure as the server tells it (a Kubernetes `Status`), and what it means to a watcher.

use std::time::Duration;

use serde_json::Value;

use crate::status::ErrorClass;

/// Longer texts of the server are cut: they end in logs and in the status.
const LONGEST_TEXT: usize = 500;

/// The parts of a `Status` that decide what happens next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The code in the `Status`; zero if it has none.
    pub(crate) code: u16,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// `details.retryAfterSeconds`.
    pub(crate) retry_after: Option<Duration>,
    /// `details.causes[*].reason`.
    pub(crate) causes: Vec<String>,
}

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

impl Failure {
    /// Reads the `Status` in the body of an answer; none if it is something else, of which nothing may be told.
    pub(crate) fn from_json(json: &[u8]) -> Option<Self> {
        let status: Value = serde_json::from_slice(json).ok()?;
        (status["kind"] == "Status").then(|| Self::read(&status))
    }

    /// Reads the object of an ERROR event, which is a `Status` whether or not it says so.
    pub(crate) fn of_event(json: &[u8]) -> Self {
        let status: Value = serde_json::from_slice(json).unwrap_or_default();
        if status["kind"].is_null() || status["kind"] == "Status" { Self::read(&status) } else { Self::default() }
    }

    /// Missing parts are no hindrance, nor are odd ones: each is read by itself.
    fn read(status: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let details = &status["details"];
        let causes = details["causes"].as_array().into_iter().flatten();
        Self {
            code: status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0),
            reason: text(&status["reason"]),
            message: text(&status["message"]),
            retry_after: details["retryAfterSeconds"].as_u64().filter(|s| *s > 0).map(Duration::from_secs),
            causes: causes.map(|cause| text(&cause["reason"])).filter(|reason| !reason.is_empty()).collect(),
        }
    }

    /// The code, or the one that goes with the reason.
    fn effective_code(&self) -> u16 {
        if self.code != 0 {
            return self.code;
        }
        match self.reason.as_str() {
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
    fn is_behind(&self) -> bool {
        self.causes.iter().any(|cause| cause == "ResourceVersionTooLarge")
            || self.message.contains("Too large resource version")
    }

    /// The store's own words for an expired version, where a server hands them on as an error of its own.
    fn is_compacted(&self) -> bool {
        self.message.contains("required revision has been compacted")
    }
}

impl Problem {
    /// A refusal in the head of an answer. The HTTP status is what the server did; the `Status`
    /// in the body says why.
    pub(super) fn from_head(status: u16, retry_after: Option<Duration>, failure: Option<&Failure>) -> Self {
        let empty = Failure::default();
        let failure = failure.unwrap_or(&empty);
        let mut class = classify(status, failure);
        if failure.effective_code() == 410 && status >= 400 {
            class = ErrorClass::Expired;
        }
        Self {
            class,
            origin: Origin::Head,
            code: Some(status),
            reason: shorten(&failure.reason),
            message: shorten(&failure.message),
            retry_after: retry_after.max(failure.retry_after),
        }
    }

    /// An ERROR event in a watch.
    pub(super) fn from_event(failure: &Failure) -> Self {
        let code = failure.effective_code();
        let class = if matches!(failure.reason.as_str(), "Expired" | "Gone") {
            ErrorClass::Expired
        } else {
            classify(code, failure)
        };
        Self {
            class,
            origin: Origin::Body,
            code: (code != 0).then_some(code),
            reason: shorten(&failure.reason),
            message: shorten(&failure.message),
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
pub(crate) fn classify(code: u16, failure: &Failure) -> ErrorClass {
    match code {
        410 => ErrorClass::Expired,
        429 => ErrorClass::Throttled,
        401 => ErrorClass::Unauthorized,
        403 => ErrorClass::Forbidden,
        404 => ErrorClass::NotFound,
        // A server that knows no such method or format refuses for good, whatever its number.
        501 => ErrorClass::Rejected,
        500..=599 if failure.is_compacted() => ErrorClass::Expired,
        408 | 500..=599 if failure.is_behind() => ErrorClass::Behind,
        408 | 500..=599 => ErrorClass::Server,
        400..=499 => ErrorClass::Rejected,
        _ => ErrorClass::Protocol,
    }
}

fn shorten(message: &str) -> String {
    if message.len() <= LONGEST_TEXT {
        return message.to_owned();
    }
    let mut end = LONGEST_TEXT;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &message[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_whatever_it_lacks() {
        let json = br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
            "message":"Timeout: Too large resource version: 1200, current: 1000","reason":"Timeout",
            "details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"x"}],"retryAfterSeconds":1},
            "code":504}"#;
        let failure = Failure::from_json(json).expect("a Status");
        assert_eq!(failure.code, 504);
        assert_eq!(failure.retry_after, Some(Duration::from_secs(1)));
        assert_eq!(failure.causes, ["ResourceVersionTooLarge"]);
        for text in ["no", "[]", "{}", r#"{"kind":"Pod"}"#, r#"{"message":"hunter2","code":404}"#, ""] {
            assert_eq!(Failure::from_json(text.as_bytes()), None, "{text}");
        }
        // What is odd about one part does not hide the others.
        let odd = br#"{"kind":"Status","code":429,"reason":7,"message":null,
            "details":{"retryAfterSeconds":-1,"causes":[null,7,{"reason":"x"}]}}"#;
        let failure = Failure::from_json(odd).expect("a Status");
        assert_eq!((failure.code, failure.retry_after, &*failure.causes), (429, None, &["x".to_owned()][..]));
        for code in ["-1", "70000", "1e3", r#""410""#, "null", "{}"] {
            let text = format!(r#"{{"kind":"Status","code":{code},"reason":"Expired","details":[]}}"#);
            let failure = Failure::of_event(text.as_bytes());
            assert_eq!((failure.code, &*failure.reason), (0, "Expired"), "{code}");
        }
        assert_eq!(Failure::of_event(br#"{"code":410}"#).code, 410);
        for text in ["no", "[]", "{}", "7", r#"{"kind":"Pod","code":410}"#, ""] {
            assert_eq!(Failure::of_event(text.as_bytes()), Failure::default(), "{text}");
        }
    }

    #[test]
    fn c04_gone_is_recognised_in_each_form() {
        let gone = |code, reason: &str| Failure { code, reason: reason.into(), ..Failure::default() };
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
        let compacted = Failure { code: 500, reason: "InternalError".into(), message, ..Failure::default() };
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
        let behind = Failure { code: 504, causes: vec!["ResourceVersionTooLarge".into()], ..Failure::default() };
        assert_eq!(Problem::from_head(504, None, Some(&behind)).class, E::Behind);
        assert_eq!(Problem::from_event(&behind).class, E::Behind);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "ä".repeat(1_000);
        let failure = Failure { message: long.clone(), reason: long, ..Failure::default() };
        for problem in [Problem::from_event(&failure), Problem::from_head(500, None, Some(&failure))] {
            for text in [problem.message, problem.reason] {
                assert!(text.len() <= LONGEST_TEXT + 3 && text.ends_with("ä…"));
            }
        }
    }
}
