//! What goes into the engine and what comes out.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use k8s_types::ApiStatus;
use tokio::time::Instant;

use super::failure::Broken;
use crate::status::{ErrorClass, Verb, WatchError};

/// The kind of a watch event about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// Something that happened to the outstanding request, or to the world.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Input<'a> {
    /// Begin. Once.
    Start,
    /// The owner wants the full state read again (a periodic repair, or by hand). Ignored while a
    /// list is under way.
    Relist,
    /// The head of the answer. For any status outside 200 to 299 the body has been read (bounded)
    /// for its `Status`, and the request is over.
    Response {
        status: u16,
        /// The header, if it is a number of seconds.
        retry_after: Option<Duration>,
        failure: Option<&'a ApiStatus>,
    },
    /// A whole page of a list is decoded; the request is over. Whether its objects may go to the
    /// store is the answer ([`Action::Apply`] or [`Action::Ignore`]).
    Page {
        /// `metadata.resourceVersion` of the list.
        resource_version: &'a str,
        /// `metadata.continue`, if there.
        continue_token: Option<&'a str>,
        /// How many objects the page has, undecodable ones included.
        items: usize,
    },
    /// An event about an object; the answer is [`Action::Apply`] or [`Action::Ignore`].
    Event {
        kind: EventKind,
        /// The object's `metadata.resourceVersion`; empty if it has none.
        resource_version: &'a str,
    },
    /// A BOOKMARK.
    Bookmark {
        resource_version: &'a str,
        /// It has the annotation `k8s.io/initial-events-end: "true"`.
        initial_events_end: bool,
    },
    /// An ERROR event.
    Error(&'a ApiStatus),
    /// One event that cannot be decoded. It never stops the rest; its version, if it could be read,
    /// counts like any other, and the answer is as for one that can be.
    Undecodable { resource_version: Option<&'a str> },
    /// The list that was just finished showed objects in a state from before what is kept of them,
    /// though its version is not from before: history was set back, and versions raised above it.
    SetBack,
    /// The body of a watch ended as it should; the request is over.
    StreamEnd,
    /// The request is over because it broke. The message must not hold credentials or bodies.
    TransportError { broken: Broken, message: &'a str },
    /// The moment of [`Engine::deadline`](super::Engine::deadline) has come. Too early is no harm.
    Tick,
}

/// Something the driver has to do, in the order given.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Send a list request; it is now the outstanding one.
    List(ListQuery),
    /// Send a watch request; it is now the outstanding one.
    Watch(WatchQuery),
    /// Drop the outstanding request and whatever of its body is still unread or undelivered.
    CancelRequest,
    /// The event or page just given goes to the store. Between [`Action::BeginRelist`] and
    /// [`Action::FinishRelist`] its objects also count as seen.
    Apply,
    /// The event or page just given must not reach the store.
    Ignore,
    /// The full state follows: nothing counts as seen from here on.
    BeginRelist {
        /// Versions of before mean nothing any more: an object with a lower version than the
        /// stored one is right. Otherwise the store does not go back before [`Action::FinishRelist`].
        from_scratch: bool,
    },
    /// The full state will not be complete: nothing is deleted, what was applied stays, what was
    /// seen is forgotten.
    AbortRelist,
    /// The full state is complete at this version: what was not seen since
    /// [`Action::BeginRelist`] is deleted; what was shown as older than what is known, though that is not later than
    /// this version, is the truth ([`Input::SetBack`]). The first one is the sync.
    FinishRelist { resource_version: String },
    /// Something failed. For the status always, for the log where it is `first`.
    Report(Report),
    /// What failed works again, after so many reports: for the log.
    Recovered { failures: u64 },
    /// This server has no streaming lists: remember it with the client, for other engines.
    NoteStreamingRefused {
        /// Why, for the log.
        message: String,
    },
}

/// A failure, for the status and the log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) verb: Verb,
    pub(crate) class: ErrorClass,
    /// The HTTP status, or the code inside an ERROR event.
    pub(crate) code: Option<u16>,
    /// `reason` of the `Status`; may be empty.
    pub(crate) reason: String,
    /// The server's message or the engine's own; bounded, without bodies or credentials.
    pub(crate) message: String,
    /// The first of its kind (verb, class and code) since things last worked.
    pub(crate) first: bool,
    /// Which report in a row since things last worked, from one.
    pub(crate) failures: u64,
    /// When the next request goes out.
    pub(crate) retry_at: Instant,
}

impl Report {
    /// The report as the status shows it: of which kind, where, and when.
    pub(crate) fn to_watch_error(&self, resource: &str, namespace: Option<&str>, at: SystemTime) -> WatchError {
        let message = if self.message.is_empty() { &self.reason } else { &self.message };
        WatchError {
            at,
            class: self.class,
            code: self.code,
            verb: self.verb,
            resource: resource.to_owned(),
            namespace: namespace.map(str::to_owned),
            message: message.clone(),
        }
    }
}

/// Parameters of a list request; selectors and path are the driver's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListQuery {
    pub(crate) limit: Option<u32>,
    pub(crate) continue_token: Option<String>,
    /// Nothing older than this; none is a consistent read of the newest.
    pub(crate) not_older_than: Option<String>,
}

impl ListQuery {
    /// Names and values for the URL, values not yet escaped.
    pub(crate) fn to_pairs(&self) -> Vec<(&'static str, Cow<'_, str>)> {
        let mut pairs = Vec::new();
        if let Some(limit) = self.limit {
            pairs.push(("limit", Cow::from(limit.to_string())));
        }
        if let Some(token) = &self.continue_token {
            pairs.push(("continue", Cow::from(token.as_str())));
        }
        push_not_older_than(&mut pairs, self.not_older_than.as_deref());
        pairs
    }
}

/// Parameters of a watch request; selectors and path are the driver's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchQuery {
    /// The present state first, closed by a marked bookmark, then the changes.
    Initial {
        /// Nothing older than this; none is a consistent read of the newest.
        not_older_than: Option<String>,
        timeout_seconds: u64,
    },
    /// The changes after a version.
    Resume { resource_version: String, timeout_seconds: u64 },
}

impl WatchQuery {
    /// Names and values for the URL, values not yet escaped.
    pub(crate) fn to_pairs(&self) -> Vec<(&'static str, Cow<'_, str>)> {
        let mut pairs = vec![("watch", Cow::from("true")), ("allowWatchBookmarks", Cow::from("true"))];
        let timeout = match self {
            Self::Initial { not_older_than, timeout_seconds } => {
                pairs.push(("sendInitialEvents", Cow::from("true")));
                match not_older_than {
                    Some(_) => push_not_older_than(&mut pairs, not_older_than.as_deref()),
                    // Obligatory beside the flag, also without a version.
                    None => pairs.push(("resourceVersionMatch", Cow::from("NotOlderThan"))),
                }
                timeout_seconds
            }
            Self::Resume { resource_version, timeout_seconds } => {
                pairs.push(("resourceVersion", Cow::from(resource_version.as_str())));
                timeout_seconds
            }
        };
        pairs.push(("timeoutSeconds", Cow::from(timeout.to_string())));
        pairs
    }
}

fn push_not_older_than<'a>(pairs: &mut Vec<(&'static str, Cow<'a, str>)>, version: Option<&'a str>) {
    if let Some(version) = version {
        pairs.push(("resourceVersion", Cow::from(version)));
        pairs.push(("resourceVersionMatch", Cow::from("NotOlderThan")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pairs: Vec<(&'static str, Cow<'_, str>)>) -> String {
        let parts: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        parts.join("&")
    }

    #[test]
    fn c35_a_report_becomes_an_error_that_names_what_was_asked() {
        let report = Report {
            verb: Verb::Watch,
            class: ErrorClass::Forbidden,
            code: Some(403),
            reason: "Forbidden".into(),
            message: String::new(),
            first: true,
            failures: 1,
            retry_at: Instant::now(),
        };
        let error = report.to_watch_error("v1/pods", Some("shop"), SystemTime::UNIX_EPOCH);
        let expected = "cannot watch v1/pods in namespace shop: forbidden (403): Forbidden";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn queries_as_the_server_wants_them() {
        let list = ListQuery { limit: Some(500), ..ListQuery::default() };
        assert_eq!(text(list.to_pairs()), "limit=500");
        // A version beside a token is refused by the server.
        let next = ListQuery { continue_token: Some("t".into()), ..list.clone() };
        assert_eq!(text(next.to_pairs()), "limit=500&continue=t");
        let relist = ListQuery { not_older_than: Some("9".into()), ..list };
        assert_eq!(text(relist.to_pairs()), "limit=500&resourceVersion=9&resourceVersionMatch=NotOlderThan");
        let mut initial = WatchQuery::Initial { not_older_than: None, timeout_seconds: 3 };
        assert_eq!(
            text(initial.to_pairs()),
            "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=3"
        );
        initial = WatchQuery::Initial { not_older_than: Some("9".into()), timeout_seconds: 3 };
        assert_eq!(
            text(initial.to_pairs()),
            "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersion=9&resourceVersionMatch=NotOlderThan&timeoutSeconds=3"
        );
        let resume = WatchQuery::Resume { resource_version: "9".into(), timeout_seconds: 3 };
        assert_eq!(text(resume.to_pairs()), "watch=true&allowWatchBookmarks=true&resourceVersion=9&timeoutSeconds=3");
    }
}
