//! What the engine can be told about its work.

use std::time::Duration;

/// How the full state is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListMode {
    /// As a watch that begins with the state (`sendInitialEvents`), with a fallback to pages.
    Streaming,
    /// In pages.
    Paged,
}

/// The knobs of one [`Engine`](super::Engine). Every combination of values is safe: nothing here
/// can make it hot or make it panic.
#[derive(Clone, Debug)]
pub(crate) struct EngineConfig {
    pub(crate) list_mode: ListMode,
    /// The client has already learned that this server has no streaming lists.
    pub(crate) streaming_refused: bool,
    /// Objects a page; zero asks for everything in one answer.
    pub(crate) page_size: u32,
    /// How long the server shall keep a watch open, at least; up to twice that is asked, at random.
    pub(crate) watch_timeout: Duration,
    /// How long an open watch may be silent, bookmarks included, before it is given up and resumed.
    pub(crate) idle_limit: Duration,
    /// How long a request may go without an answer's head, and a page without a byte. The
    /// smaller of this and `idle_limit` counts.
    pub(crate) response_limit: Duration,
    /// How long an initial stream may be silent before the server is suspected to have ignored
    /// the flag. The smaller of this and `idle_limit` counts.
    pub(crate) silence_limit: Duration,
    /// A watch that lived this long was healthy: the next failure is the first again.
    pub(crate) healthy_after: Duration,
    /// How long a server may be behind the last version before versions are believed to have
    /// been set back.
    pub(crate) behind_limit: Duration,
    /// The first wait after a failure.
    pub(crate) backoff_initial: Duration,
    /// The longest wait after a failure.
    pub(crate) backoff_max: Duration,
    /// By how much the wait grows from failure to failure.
    pub(crate) backoff_factor: f64,
    /// Seed of the jitter.
    pub(crate) seed: u64,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            list_mode: ListMode::Streaming,
            streaming_refused: false,
            page_size: 500,
            watch_timeout: Duration::from_secs(290),
            idle_limit: Duration::from_secs(330),
            response_limit: Duration::from_secs(65),
            silence_limit: Duration::from_secs(20),
            healthy_after: Duration::from_secs(10),
            behind_limit: Duration::from_secs(30),
            backoff_initial: Duration::from_millis(800),
            backoff_max: Duration::from_secs(30),
            backoff_factor: 2.0,
            seed: 0,
        }
    }
}

impl EngineConfig {
    pub(crate) fn response_limit(&self) -> Duration {
        self.response_limit.min(self.idle_limit)
    }

    /// How long a watch shall be kept open, at least, where bookmarks do not come within the idle limit: up to twice
    /// this is less than the limit, if that is more than the two seconds that are the least which can be asked for.
    pub(super) fn brief_watch(&self) -> Duration {
        self.idle_limit.mul_f64(0.375).min(self.watch_timeout)
    }

    pub(super) fn silence_limit(&self) -> Duration {
        self.silence_limit.min(self.idle_limit)
    }
}
