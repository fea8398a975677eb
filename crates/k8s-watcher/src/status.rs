//! The state of a watcher as plain data: what a health endpoint prints.
//!
//! [`Status`] is published whenever something in it changes; reading it costs a clone and never
//! waits for the watcher. It says what the watcher does ([`Phase`]), how fresh its data is
//! ([`Status::current_at`]) and what went wrong last ([`WatchError`], kept after recovery).
//! [`Status::is_healthy`] makes one answer of it.

use std::fmt;
use std::time::{Duration, SystemTime};

use k8s_store::KeyIssues;
use k8s_types::ChangeStats;
use tokio::time::Instant;

/// What a watcher is doing at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Not started: it waits for `run` or `spawn`.
    #[default]
    NotStarted,
    /// Asking the server whether the kind has namespaces, or about to send the first request.
    Starting,
    /// Reading the full state, in pages or as a stream. Before the first sync this is the initial
    /// load; later it is a relist, during which reads go on from what is stored.
    Listing {
        /// Pages read so far; zero while the state comes as a stream.
        pages: u32,
        /// Objects read so far.
        items: u64,
    },
    /// Following the changes; after a failure not before a watch that was asked for again has brought something, or was
    /// open for ten seconds.
    Watching,
    /// Something failed and does not work again yet: waiting, or asking again without a good answer so far.
    BackingOff {
        /// When the next request is due; if that is over, it is under way.
        until: Instant,
        /// Which attempt in a row has failed, from one.
        attempt: u32,
    },
    /// Ended: nothing will change any more.
    Stopped,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted => f.write_str("not started: call run or spawn"),
            Self::Starting => f.write_str("starting"),
            Self::Listing { pages, items } => {
                write!(f, "listing ({items} objects, {pages} pages so far)")
            }
            Self::Watching => f.write_str("watching"),
            Self::BackingOff { attempt, .. } => write!(f, "waiting after {attempt} failures"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// A watcher's state at one moment.
///
/// Times that measure an age are [`Instant`]s, so that they follow tokio's clock.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// Whether it was started. Never goes back to false.
    pub started: bool,
    /// What it is doing.
    pub phase: Phase,
    /// Whether the initial load is complete. Never goes back to false.
    pub synced: bool,
    /// When the initial load was complete.
    pub synced_at: Option<Instant>,
    /// How many objects the initial load brought; none before it is complete.
    pub initial_objects: Option<usize>,
    /// How many objects the store holds.
    pub objects: usize,
    /// The version up to which the store is current; none before the first list is complete, and
    /// with several namespaces, which have one each.
    pub resource_version: Option<String>,
    /// When the server was last heard: any byte of a successful answer counts, bookmarks too.
    /// With several namespaces the oldest of theirs. A server may talk and say nothing of the changes;
    /// see [`current_at`](Self::current_at).
    pub last_contact: Option<Instant>,
    /// When the store (of a cached store, the references) was last known to be the server's state: the initial load or
    /// another full list was complete, an open watch brought an event or a bookmark, or a healthy one ended in good
    /// order. Neither the mere head of an answer counts, nor lists that do not come to an end. None before the initial
    /// load is complete; with several namespaces the oldest of theirs.
    pub current_at: Option<Instant>,
    /// When the last watch event about an object came.
    pub last_event: Option<Instant>,
    /// What happened to objects since the start, the initial load included; own writes and what was merged are left out
    /// as they are for callbacks.
    pub changes: ChangeStats,
    /// Lists and watches that failed, by class.
    pub failures: Failures,
    /// Full lists after the initial one.
    pub relists: u64,
    /// Watches that were opened again where the former one had ended.
    pub restarts: u64,
    /// Objects that could not be decoded and were skipped.
    pub skipped: u64,
    /// Why the last of them was skipped: namespace, name if known, and the reason.
    pub last_skipped: Option<String>,
    /// What was wrong with index keys.
    pub key_issues: KeyIssues,
    /// Callbacks that panicked, and questions to a filter of own writes that did.
    pub callback_panics: u64,
    /// Since when the callback that runs at the moment has been running; none while none runs. One that never returns
    /// holds up all further ones, and nothing else.
    pub callback_since: Option<Instant>,
    /// The last failure; kept after recovery.
    pub last_watch_error: Option<WatchError>,
}

impl Status {
    /// How long ago the server was last heard; none before the first contact.
    ///
    /// A healthy watch hears a bookmark about once a minute, so an age of many minutes means that
    /// the cache may be stale although nothing has failed yet.
    #[must_use]
    pub fn contact_age(&self, now: Instant) -> Option<Duration> {
        let last = self.last_contact?;
        Some(now.saturating_duration_since(last))
    }

    /// How old the store may be: how long ago it was last known to be [current](Self::current_at); none before the
    /// initial load is complete.
    #[must_use]
    pub fn staleness(&self, now: Instant) -> Option<Duration> {
        let last = self.current_at?;
        Some(now.saturating_duration_since(last))
    }

    /// Whether the watcher does what it is for: it is synced and not stopped, and its store was known to be
    /// [current](Self::current_at) within this time. The answer of a readiness probe.
    ///
    /// Bookmarks make a store current about once a minute, and a watch that falls silent is given up after the idle
    /// limit (150 s by default), so five minutes is a good limit: a single connection that dies does not show, whatever
    /// lasts does. A missing right, a kind that is no longer served, a server that is away, lists that never end, an
    /// answer that never comes, a proxy that keeps events back: all of them end it, whatever the phase is called.
    /// It turns false by the clock, which wakes nobody: ask when the answer is needed.
    ///
    /// A server that goes on with its bookmarks and leaves out an event cannot be found out by anybody but a
    /// [relist](crate::WatcherHandle::relist). Objects that could not be decoded ([`skipped`](Self::skipped)) and
    /// callbacks that fail or hang ([`callback_since`](Self::callback_since)) do not count. For a liveness probe take a
    /// much longer time or none: a restart brings neither rights nor servers back, and costs the data that can still be
    /// read.
    #[must_use]
    pub fn is_healthy(&self, now: Instant, within: Duration) -> bool {
        self.synced && self.phase != Phase::Stopped && self.staleness(now).is_some_and(|age| age <= within)
    }
}

/// The kind of a failure; what a program may want to decide on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// No connection, or it broke.
    Connection,
    /// The connection said nothing for longer than allowed, and was given up.
    Idle,
    /// 401: the server does not accept the credentials.
    Unauthorized,
    /// 403: the right is missing. Goes on when it is granted.
    Forbidden,
    /// 404: the server does not serve this kind (yet).
    NotFound,
    /// 429: the server asks for patience.
    Throttled,
    /// 410: the version is no longer in the server's history; answered by a relist.
    Expired,
    /// The server is behind a version seen before; waited for.
    Behind,
    /// Versions run backwards, as after a restore from a backup; answered by a relist from scratch.
    Backwards,
    /// 5xx: the server failed.
    Server,
    /// Another refusal (4xx).
    Rejected,
    /// The answer makes no sense.
    Protocol,
}

/// How many lists and watches failed, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    counts: [u64; ErrorClass::ALL.len()],
}

impl Failures {
    /// Failures of a class.
    #[must_use]
    pub fn of(&self, class: ErrorClass) -> u64 {
        self.counts[class as usize]
    }

    /// All failures.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(crate) fn count(&mut self, class: ErrorClass) {
        self.counts[class as usize] += 1;
    }
}

impl ErrorClass {
    /// All classes, in the order of their declaration.
    pub const ALL: [Self; 12] = [
        Self::Connection,
        Self::Idle,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::Throttled,
        Self::Expired,
        Self::Behind,
        Self::Backwards,
        Self::Server,
        Self::Rejected,
        Self::Protocol,
    ];

    /// A short, stable name, fit for a metric's label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Idle => "idle",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Throttled => "throttled",
            Self::Expired => "expired",
            Self::Behind => "behind",
            Self::Backwards => "backwards",
            Self::Server => "server",
            Self::Rejected => "rejected",
            Self::Protocol => "protocol",
        }
    }

    const fn describe(self) -> &'static str {
        match self {
            Self::Connection => "connection failed",
            Self::Idle => "connection went silent",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "kind not served",
            Self::Throttled => "throttled",
            Self::Expired => "version expired",
            Self::Behind => "server is behind",
            Self::Backwards => "versions run backwards",
            Self::Server => "server error",
            Self::Rejected => "rejected",
            Self::Protocol => "unexpected answer",
        }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())
    }
}

/// What was asked, in the words of RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// A list, or a page of one.
    List,
    /// A watch; also one that was asked to begin with the present state.
    Watch,
}

impl Verb {
    /// `list` or `watch`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Watch => "watch",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failure of a list or a watch: when, what was asked, and what came back.
///
/// Displays as `cannot list v1/pods in namespace shop: forbidden (403): …`; holds the message of
/// the server's Status, never a response body or a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchError {
    /// When it happened, for people; ages are in [`Status`].
    pub at: SystemTime,
    /// What kind of failure.
    pub class: ErrorClass,
    /// The HTTP status, or the code inside an error event.
    pub code: Option<u16>,
    /// What was asked.
    pub verb: Verb,
    /// Of which kind (`v1/pods`, `networking.k8s.io/v1/ingresses`).
    pub resource: String,
    /// In which namespace; none for all or for a cluster-scoped kind.
    pub namespace: Option<String>,
    /// In the server's words, or ours.
    pub message: String,
}

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}", self.verb, self.resource)?;
        if let Some(namespace) = &self.namespace {
            write!(f, " in namespace {namespace}")?;
        }
        write!(f, ": {}", self.class)?;
        if let Some(code) = self.code {
            write!(f, " ({code})")?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for WatchError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(namespace: Option<&str>, code: Option<u16>, message: &str) -> WatchError {
        WatchError {
            at: SystemTime::UNIX_EPOCH,
            class: ErrorClass::Forbidden,
            code,
            verb: Verb::List,
            resource: "networking.k8s.io/v1/ingresses".into(),
            namespace: namespace.map(Into::into),
            message: message.into(),
        }
    }

    #[test]
    fn c35_an_error_names_verb_resource_and_namespace() {
        assert_eq!(
            error(Some("shop"), Some(403), "user \"u\" may not").to_string(),
            "cannot list networking.k8s.io/v1/ingresses in namespace shop: forbidden (403): user \"u\" may not"
        );
        assert_eq!(error(None, None, "").to_string(), "cannot list networking.k8s.io/v1/ingresses: forbidden");
    }

    #[test]
    fn failures_are_counted_by_class() {
        let mut failures = Failures::default();
        for (at, class) in ErrorClass::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, at, "{class}");
            (0..=at).for_each(|_| failures.count(class));
        }
        assert!(ErrorClass::ALL.into_iter().enumerate().all(|(at, class)| failures.of(class) == at as u64 + 1));
        assert_eq!(failures.total(), (1..=12).sum::<u64>());
    }

    #[test]
    fn c17_the_age_of_the_last_contact_grows() {
        let start = Instant::now();
        let mut status = Status::default();
        assert_eq!(status.contact_age(start), None);
        status.last_contact = Some(start);
        let later = start + Duration::from_secs(90);
        assert_eq!(status.contact_age(later), Some(Duration::from_secs(90)));
        assert_eq!(status.phase.to_string(), "not started: call run or spawn");
    }
}
