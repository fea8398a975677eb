//! What a server says when it refuses, as a Kubernetes `Status`.

use std::time::Duration;

use serde_json::Value;

/// Longest piece of the server's own words that is kept, in bytes: an error is a line in a log, not a document.
const LONGEST_TEXT: usize = 512;

/// The parts of a Kubernetes `Status` that say what went wrong and what to do about it.
///
/// A part that is missing or odd (a code of `"410"`, a negative time) is empty and hides none of the others. Texts are cut
/// to the length of a line, between characters.
///
/// # Examples
///
/// ```
/// use k8s_types::ApiStatus;
///
/// let body = br#"{"kind": "Status", "code": 403, "reason": "Forbidden", "message": "pods is forbidden"}"#;
/// let status = ApiStatus::from_json(body).expect("a Status");
/// assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
/// assert_eq!(ApiStatus::from_json(br#"{"kind": "Secret", "data": {}}"#), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiStatus {
    /// The HTTP status code as the body has it; zero if it has none.
    pub code: u16,
    /// The reason for programs (`NotFound`, `Expired`, …).
    pub reason: String,
    /// The message for people.
    pub message: String,
    /// `details.retryAfterSeconds`, if it is more than zero.
    pub retry_after: Option<Duration>,
    /// `details.causes[*].reason`.
    pub causes: Vec<String>,
}

impl ApiStatus {
    /// Reads the body of an answer; none if it is not a `Status` by its `kind`: it may hold data that must not reach a
    /// log.
    pub fn from_json(json: &[u8]) -> Option<Self> {
        let status: Value = serde_json::from_slice(json).ok()?;
        (status["kind"] == "Status").then(|| Self::read(&status))
    }

    /// Reads the object of an `ERROR` event of a watch, which is a `Status` whether or not it says so. Empty if it says
    /// that it is something else.
    pub fn of_event(json: &[u8]) -> Self {
        let status: Value = serde_json::from_slice(json).unwrap_or_default();
        if status["kind"].is_null() || status["kind"] == "Status" { Self::read(&status) } else { Self::default() }
    }

    fn read(status: &Value) -> Self {
        let text = |value: &Value| shorten(value.as_str().unwrap_or_default());
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
}

/// The text, cut to the length of a line, between characters.
#[doc(hidden)]
pub fn shorten(text: &str) -> String {
    if text.len() <= LONGEST_TEXT {
        return text.to_owned();
    }
    let end = (0..=LONGEST_TEXT).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    format!("{}…", &text[..end])
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
        let status = ApiStatus::from_json(json).expect("a Status");
        assert_eq!(status.code, 504);
        assert_eq!(status.retry_after, Some(Duration::from_secs(1)));
        assert_eq!(status.causes, ["ResourceVersionTooLarge"]);
        for text in ["no", "[]", "{}", r#"{"kind":"Pod"}"#, r#"{"message":"hunter2","code":404}"#, ""] {
            assert_eq!(ApiStatus::from_json(text.as_bytes()), None, "{text}");
        }
        // What is odd about one part does not hide the others.
        let odd = br#"{"kind":"Status","code":429,"reason":7,"message":null,
            "details":{"retryAfterSeconds":-1,"causes":[null,7,{"reason":"x"}]}}"#;
        let status = ApiStatus::from_json(odd).expect("a Status");
        assert_eq!((status.code, status.retry_after, &*status.causes), (429, None, &["x".to_owned()][..]));
        for code in ["-1", "70000", "1e3", r#""410""#, "null", "{}"] {
            let text = format!(r#"{{"kind":"Status","code":{code},"reason":"Expired","details":[]}}"#);
            let status = ApiStatus::of_event(text.as_bytes());
            assert_eq!((status.code, &*status.reason), (0, "Expired"), "{code}");
        }
        assert_eq!(ApiStatus::of_event(br#"{"code":410}"#).code, 410);
        for text in ["no", "[]", "{}", "7", r#"{"kind":"Pod","code":410}"#, ""] {
            assert_eq!(ApiStatus::of_event(text.as_bytes()), ApiStatus::default(), "{text}");
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "ä".repeat(LONGEST_TEXT);
        let json = format!(
            r#"{{"kind":"Status","message":"{long}","reason":"x{long}","details":{{"causes":[{{"reason":"{long}"}}]}}}}"#
        );
        let status = ApiStatus::from_json(json.as_bytes()).expect("a Status");
        for text in [&status.message, &status.reason, &status.causes[0]] {
            assert!(text.len() <= LONGEST_TEXT + '…'.len_utf8() && text.ends_with("ä…"), "{text}");
        }
    }
}
