//! Query parameters: decoding, and the options of reads and writes with the checks of the real server.

use std::time::Duration;

use crate::status::{FieldError, Status};

/// All parameters in the order of the request, decoded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(pub(crate) Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&').filter(|p| !p.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name, true), decode(value, true))
        });
        Self(pairs.collect())
    }

    /// The first value; empty when the parameter is absent.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v.as_str())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(n, _)| n == name)
    }

    /// Present and not false: `watch`, `watch=1`, `watch=true`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.has(name) && !matches!(self.get(name), "false" | "0" | "f" | "F" | "False" | "FALSE")
    }

    fn number(&self, name: &str) -> Result<Option<u64>, Status> {
        match self.get(name) {
            "" => Ok(None),
            text => match text.parse::<i64>() {
                Ok(n) => Ok(u64::try_from(n).ok().filter(|n| *n > 0)),
                Err(_) => Err(Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))),
            },
        }
    }
}

/// Percent-decoding; `+` is a space in queries only. Wrong sequences stay as they are.
pub(crate) fn decode(text: &str, plus: bool) -> String {
    if !text.contains(['%', '+']) {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digit = |i: usize| bytes.get(i).and_then(|b| char::from(*b).to_digit(16));
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
                continue;
            }
            (b'+', ..) if plus => out.push(b' '),
            (byte, ..) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// How a list's or a watch's `resourceVersion` is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    Unset,
    Exact,
    NotOlderThan,
}

/// The options of list and watch.
#[derive(Debug, Clone)]
pub(crate) struct ListOptions {
    pub(crate) labels: String,
    pub(crate) fields: String,
    pub(crate) limit: Option<u64>,
    pub(crate) next: String,
    /// As given: empty, `0` or a number (unchecked).
    pub(crate) version: String,
    pub(crate) version_match: Match,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: Option<bool>,
    pub(crate) timeout: Option<Duration>,
}

impl ListOptions {
    pub(crate) fn new(query: &Query, watch: bool, streaming: bool) -> Result<Self, Status> {
        let initial_events = query.has("sendInitialEvents").then(|| query.flag("sendInitialEvents"));
        let version_match = match query.get("resourceVersionMatch") {
            "Exact" => Match::Exact,
            "NotOlderThan" => Match::NotOlderThan,
            _ => Match::Unset,
        };
        let errors =
            if watch { watch_errors(query, initial_events, streaming) } else { list_errors(query, initial_events) };
        if !errors.is_empty() {
            return Err(Status::invalid("meta.k8s.io", "ListOptions", "", &errors));
        }
        Ok(Self {
            labels: query.get("labelSelector").into(),
            fields: query.get("fieldSelector").into(),
            limit: query.number("limit")?,
            next: query.get("continue").into(),
            version: query.get("resourceVersion").into(),
            version_match,
            bookmarks: query.flag("allowWatchBookmarks"),
            initial_events,
            timeout: query.number("timeoutSeconds")?.map(Duration::from_secs),
        })
    }

    /// The version as a number; unset and `0` are both 0.
    pub(crate) fn revision(&self) -> Result<u64, String> {
        parse_version(&self.version)
    }
}

/// Empty reads as 0. The error is in the words of the real server.
pub(crate) fn parse_version(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse::<u64>().map_err(|_| {
        format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")
    })
}

fn list_errors(query: &Query, initial_events: Option<bool>) -> Vec<FieldError> {
    const FIELD: &str = "resourceVersionMatch";
    let mut errors = Vec::new();
    let (wanted, version) = (query.get(FIELD), query.get("resourceVersion"));
    if !wanted.is_empty() {
        if version.is_empty() {
            errors.push(FieldError::forbidden(
                FIELD,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !query.get("continue").is_empty() {
            errors.push(FieldError::forbidden(FIELD, "resourceVersionMatch is forbidden when continue is provided"));
        }
        if !matches!(wanted, "Exact" | "NotOlderThan") {
            errors.push(FieldError::unsupported(FIELD, &format!("{wanted:?}"), &["Exact", "NotOlderThan", ""]));
        }
        if wanted == "Exact" && version == "0" {
            errors.push(FieldError::forbidden(
                FIELD,
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
    }
    if initial_events.is_some() {
        errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    errors
}

fn watch_errors(query: &Query, initial_events: Option<bool>, streaming: bool) -> Vec<FieldError> {
    const FIELD: &str = "resourceVersionMatch";
    let mut errors = Vec::new();
    let wanted = query.get(FIELD);
    if initial_events.is_some() {
        if wanted != "NotOlderThan" {
            errors.push(FieldError::forbidden(
                FIELD,
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        if !streaming {
            let text = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
            errors.push(FieldError::forbidden("sendInitialEvents", text));
        }
    }
    if !wanted.is_empty() {
        if initial_events.is_none() {
            let text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(FIELD, text));
        }
        if wanted != "NotOlderThan" {
            errors.push(FieldError::unsupported(FIELD, &format!("{wanted:?}"), &["NotOlderThan"]));
        }
        if !query.get("continue").is_empty() {
            errors.push(FieldError::forbidden(FIELD, "resourceVersionMatch is forbidden when continue is provided"));
        }
    }
    errors
}

/// `dryRun=All` of a write; any other value is refused. `options` is the kind named in the refusal.
pub(crate) fn dry_run(query: &Query, options: &str) -> Result<bool, Status> {
    let values: Vec<&str> =
        query.0.iter().filter(|(n, v)| n == "dryRun" && !v.is_empty()).map(|(_, v)| v.as_str()).collect();
    if values.iter().all(|v| *v == "All") {
        return Ok(!values.is_empty());
    }
    let error = FieldError::unsupported("dryRun", &format!("{values:?}"), &["All"]);
    Err(Status::invalid("meta.k8s.io", options, "", &[error]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding() {
        let query = Query::parse(Some("labelSelector=a%3Db%2Cc+in+(d)&watch&limit=5&x=%zz"));
        assert_eq!(query.get("labelSelector"), "a=b,c in (d)");
        assert!(query.flag("watch"));
        assert!(!query.flag("limit0"));
        assert_eq!(query.get("x"), "%zz");
        assert_eq!(ListOptions::new(&query, false, true).unwrap().limit, Some(5));
    }

    #[test]
    fn refusals() {
        let check = |query: &str, watch: bool, expected: &str| {
            let status = ListOptions::new(&Query::parse(Some(query)), watch, true).unwrap_err();
            assert!(status.message().contains(expected), "{query}: {}", status.message());
        };
        check("resourceVersionMatch=Exact", false, "unless resourceVersion is provided");
        check("resourceVersionMatch=Exact&resourceVersion=0", false, r#"resourceVersionMatch "exact" is forbidden"#);
        check("resourceVersionMatch=Foo&resourceVersion=5", false, r#"Unsupported value: "Foo": supported values"#);
        check("sendInitialEvents=true", false, "sendInitialEvents is forbidden for list");
        check("sendInitialEvents=true", true, "requires setting resourceVersionMatch to NotOlderThan");
        check("resourceVersionMatch=NotOlderThan", true, "forbidden for watch unless sendInitialEvents");
        check("limit=abc", false, r#"strconv.ParseInt: parsing "abc": invalid syntax"#);
        assert!(dry_run(&Query::parse(Some("dryRun=All")), "CreateOptions").unwrap());
        assert!(dry_run(&Query::parse(Some("dryRun=Some")), "CreateOptions").is_err());
    }
}
