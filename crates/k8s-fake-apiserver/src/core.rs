//! What all requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::Clock;
use crate::fault::Faults;
use crate::journal::Journal;
use crate::log::Log;
use crate::rng::Rng;

/// How the server answers a watch that asks for its initial list as a stream (`sendInitialEvents`).
///
/// `bool` converts into it: true is served, false is refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamingLists {
    /// As current servers do: initial events, then a bookmark that marks their end.
    #[default]
    Served,
    /// As a server whose feature gate is off: 422 `Invalid`.
    Refused,
    /// As a server that is too old to know the parameter: a plain watch from now on, with no mark.
    Ignored,
}

impl From<bool> for StreamingLists {
    fn from(served: bool) -> Self {
        if served { Self::Served } else { Self::Refused }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) streaming: StreamingLists,
    pub(crate) bookmark_interval: Duration,
    pub(crate) watch_timeout: Duration,
    pub(crate) watch_buffer: u64,
    pub(crate) watch_grace: Duration,
    pub(crate) strict_namespaces: bool,
    pub(crate) default_namespace: String,
}

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) log: Mutex<Log>,
    pub(crate) rng: Mutex<Rng>,
    pub(crate) clock: Clock,
    pub(crate) options: Options,
    pub(crate) faults: Faults,
    pub(crate) journal: Journal,
}

/// Through which replica a request looks: how many revisions its cache is behind.
#[derive(Debug, Clone, Default)]
pub(crate) struct View(Arc<AtomicU64>);

impl View {
    pub(crate) fn set_lag(&self, lag: u64) {
        self.0.store(lag, Ordering::SeqCst);
    }

    /// The newest revision that this replica has seen.
    pub(crate) fn visible(&self, log: &Log) -> u64 {
        log.revision().saturating_sub(self.0.load(Ordering::SeqCst))
    }
}
