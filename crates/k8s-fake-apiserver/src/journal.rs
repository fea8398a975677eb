//! What was asked of the server.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::matcher::{RequestFacts, RequestMatcher};
use crate::verb::Verb;

/// The requests that came, the oldest first; a cheap handle.
///
/// The journal keeps the last requests up to its capacity
/// ([`journal_capacity`](crate::FakeApiServerBuilder::journal_capacity)); what it forgot it counts.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use k8s_fake_apiserver::{FakeApiServer, List};
/// let server = FakeApiServer::builder().start().await?;
/// server.client().request_text(http::Request::get("/api/v1/pods").body(vec![])?).await?;
/// assert_eq!(server.journal().count(List::of("v1/pods")), 1);
/// server.journal().assert_no_writes();
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Journal {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    capacity: usize,
    /// Number of the first kept request.
    first: u64,
    requests: VecDeque<Request>,
}

/// One request of the [`Journal`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// What was asked.
    pub verb: Verb,
    /// `v1/pods`; empty for requests that are not about objects.
    pub resource: String,
    /// The namespace of the path.
    pub namespace: Option<String>,
    /// The name of the path.
    pub name: Option<String>,
    /// The subresource of the path.
    pub subresource: Option<String>,
    /// The query parameters, decoded, in their order.
    pub query: Vec<(String, String)>,
    /// The path without the query.
    pub path: String,
    /// The `User-Agent`; empty when there is none.
    pub client: String,
    /// The `Accept` header: which form of the objects was asked for; empty when there is none.
    pub accept: String,
    /// When it came, since the start of the server, by tokio's clock.
    pub at: Duration,
    /// The HTTP status of the answer; `None` while there is none, or when the connection was dropped.
    pub status: Option<u16>,
}

impl Request {
    /// The first value of a query parameter.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    pub(crate) fn facts(&self) -> RequestFacts<'_> {
        RequestFacts {
            verb: self.verb,
            resource: &self.resource,
            namespace: self.namespace.as_deref(),
            name: self.name.as_deref(),
            subresource: self.subresource.as_deref(),
            query: &self.query,
            client: &self.client,
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.path)?;
        for (i, (name, value)) in self.query.iter().enumerate() {
            write!(f, "{}{name}={value}", if i == 0 { '?' } else { '&' })?;
        }
        match self.status {
            Some(status) => write!(f, " -> {status}"),
            None => f.write_str(" -> no answer"),
        }
    }
}

impl Journal {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { inner: Arc::new(Mutex::new(Inner { capacity, first: 0, requests: VecDeque::new() })) }
    }

    /// All kept requests.
    pub fn requests(&self) -> Vec<Request> {
        self.inner.lock().requests.iter().cloned().collect()
    }

    /// The kept requests that match.
    pub fn matching(&self, requests: impl Into<RequestMatcher>) -> Vec<Request> {
        let matcher = requests.into();
        self.inner.lock().requests.iter().filter(|r| matcher.matches(&r.facts())).cloned().collect()
    }

    /// How many kept requests match.
    pub fn count(&self, requests: impl Into<RequestMatcher>) -> usize {
        let matcher = requests.into();
        self.inner.lock().requests.iter().filter(|r| matcher.matches(&r.facts())).count()
    }

    /// How many requests are no longer kept: the journal was full, or was cleared.
    pub fn forgotten(&self) -> u64 {
        self.inner.lock().first
    }

    /// Forgets all requests.
    pub fn clear(&self) {
        let mut inner = self.inner.lock();
        let kept = inner.requests.len() as u64;
        inner.requests.clear();
        // Requests that are under way must not find another one's place.
        inner.first += kept;
    }

    /// Fails when a request tried to change an object, and shows which.
    ///
    /// # Panics
    /// When there is such a request among the kept ones.
    #[track_caller]
    pub fn assert_no_writes(&self) {
        let writes = self.matching(crate::matcher::Write::request());
        assert!(writes.is_empty(), "there were writes: {}", list(&writes));
    }

    pub(crate) fn record(&self, request: Request) -> u64 {
        let mut inner = self.inner.lock();
        while inner.requests.len() >= inner.capacity.max(1) {
            inner.requests.pop_front();
            inner.first += 1;
        }
        inner.requests.push_back(request);
        inner.first + inner.requests.len() as u64 - 1
    }

    pub(crate) fn answered(&self, number: u64, status: u16) {
        let mut inner = self.inner.lock();
        let index = number.checked_sub(inner.first).and_then(|i| usize::try_from(i).ok());
        if let Some(request) = index.and_then(|i| inner.requests.get_mut(i)) {
            request.status = Some(status);
        }
    }
}

fn list(requests: &[Request]) -> String {
    requests.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner.lock();
        f.debug_struct("Journal").field("requests", &inner.requests.len()).field("forgotten", &inner.first).finish()
    }
}
