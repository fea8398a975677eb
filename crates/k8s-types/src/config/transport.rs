//! How lists and watches are made: the same settings for both kinds of watcher.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration;
use crate::error::ConfigError;

/// How the initial load, and the one after an expired watch, reads the objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ListMode {
    /// As a watch that begins with all objects (`sendInitialEvents`), which costs the server the least memory; in
    /// pages where the server does not offer it.
    #[default]
    Streaming,
    /// In pages.
    Paged,
}

/// How lists and watches are made. `Default` is right for most programs.
///
/// In serde durations are text (`"290s"`, `"1m30s"`) or a number of seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Transport {
    /// How objects are loaded. Default: streaming, with a fallback to pages.
    pub list_mode: ListMode,
    /// Objects in a page. Default: 500.
    pub page_size: u32,
    /// The server is asked to end each watch after a time drawn between this and twice this, so that a fleet does not
    /// reconnect in step. Default: 290 seconds, hence 5 to 10 minutes as in client-go.
    #[serde(with = "duration")]
    pub watch_timeout: Duration,
    /// A watch that brings nothing for this long, not even a bookmark, is taken for dead and opened again where it
    /// was. Default: 150 seconds; the API server sends a bookmark about each minute, so two in a row were missed.
    /// After such a silence the server is asked to end watches sooner than this, so that a quiet kind of a server without
    /// bookmarks is no trouble; if it does not even do that, lists take the place of watches.
    #[serde(with = "duration")]
    pub idle_limit: Duration,
    /// Waits between attempts that fail.
    pub backoff: Backoff,
}

/// What a server takes as the length of a watch, and more than anybody means.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// Less would be a flood of requests.
const SHORTEST: Duration = Duration::from_millis(10);
/// The shortest idle limit: servers are asked in whole seconds to end watches before it.
const SHORTEST_IDLE: Duration = Duration::from_secs(3);

impl Default for Transport {
    fn default() -> Transport {
        Transport {
            list_mode: ListMode::Streaming,
            page_size: 500,
            watch_timeout: Duration::from_secs(290),
            idle_limit: Duration::from_secs(150),
            backoff: Backoff::default(),
        }
    }
}

impl Transport {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        if self.page_size == 0 {
            return Err(ConfigError::new("page_size", "zero"));
        }
        if self.watch_timeout < Duration::from_secs(1) {
            return Err(ConfigError::new("watch_timeout", "less than a second"));
        }
        if self.watch_timeout > LONGEST {
            return Err(ConfigError::new("watch_timeout", "more than 30 days"));
        }
        if self.idle_limit < SHORTEST_IDLE {
            return Err(ConfigError::new("idle_limit", "less than 3 seconds"));
        }
        self.backoff.validate()
    }
}

/// Waits between attempts that fail: they grow from `initial` by `factor` up to `max`, each shortened at random by up
/// to a quarter (jitter), and begin anew after real progress. What the server asks for by `Retry-After` is a lower
/// bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Backoff {
    /// The first wait. Default: 800 milliseconds.
    #[serde(with = "duration")]
    pub initial: Duration,
    /// The longest wait. Default: 30 seconds.
    #[serde(with = "duration")]
    pub max: Duration,
    /// The growth from one wait to the next. Default: 2.
    pub factor: f64,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { initial: Duration::from_millis(800), max: Duration::from_secs(30), factor: 2.0 }
    }
}

impl Backoff {
    /// Waits that double from `initial` up to `max`.
    pub fn new(initial: Duration, max: Duration) -> Backoff {
        Backoff { initial, max, ..Backoff::default() }
    }

    /// Sets the growth from one wait to the next.
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Backoff {
        self.factor = factor;
        self
    }

    /// The wait after this many failures in a row (the first is 0), before jitter. Never more than `max`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use k8s_types::Backoff;
    ///
    /// let backoff = Backoff::default();
    /// assert_eq!(backoff.delay(0), Duration::from_millis(800));
    /// assert_eq!(backoff.delay(1), Duration::from_millis(1600));
    /// assert_eq!(backoff.delay(u32::MAX), Duration::from_secs(30));
    /// ```
    pub fn delay(&self, failures: u32) -> Duration {
        let power = i32::try_from(failures).unwrap_or(i32::MAX);
        let seconds = self.initial.as_secs_f64() * self.factor.powi(power);
        // An infinite or undefined product is beyond any maximum.
        Duration::try_from_secs_f64(seconds).map_or(self.max, |delay| delay.min(self.max))
    }

    fn validate(&self) -> Result<(), ConfigError> {
        if self.initial.is_zero() {
            return Err(ConfigError::new("backoff.initial", "zero"));
        }
        if self.initial < SHORTEST {
            return Err(ConfigError::new("backoff.initial", "less than 10 ms"));
        }
        if self.max < self.initial {
            return Err(ConfigError::new("backoff.max", "less than backoff.initial"));
        }
        if !self.factor.is_finite() || self.factor < 1.0 {
            return Err(ConfigError::new("backoff.factor", "less than 1 or not finite"));
        }
        Ok(())
    }
}

/// The chainable setters of the transport, for a configuration that has it in `spec.transport`.
macro_rules! transport_setters {
    () => {
        /// Sets how objects are loaded. Default: [`ListMode::Streaming`](crate::ListMode::Streaming), with a fallback
        /// to pages.
        #[must_use]
        pub fn list_mode(mut self, mode: crate::ListMode) -> Self {
            self.spec.transport.list_mode = mode;
            self
        }

        /// Sets the number of objects in a page. Default: 500; zero is an error.
        #[must_use]
        pub fn page_size(mut self, objects: u32) -> Self {
            self.spec.transport.page_size = objects;
            self
        }

        /// Sets the time after which the server is asked to end a watch; each asks for one drawn between this and
        /// twice this. Default: 290 seconds; less than a second and more than 30 days are errors.
        #[must_use]
        pub fn watch_timeout(mut self, timeout: std::time::Duration) -> Self {
            self.spec.transport.watch_timeout = timeout;
            self
        }

        /// Sets how long a watch may bring nothing, not even a bookmark, before it is taken for dead. Default: 150
        /// seconds; less than 3 seconds is an error.
        ///
        /// kube-apiserver sends a bookmark each minute. With a shorter limit a quiet kind looks dead once; from then on
        /// the server is asked to end watches before the limit, in whole seconds from one up, and that they end is a
        /// sign of life. So a limit of a few seconds costs a request each second or two.
        #[must_use]
        pub fn idle_limit(mut self, limit: std::time::Duration) -> Self {
            self.spec.transport.idle_limit = limit;
            self
        }

        /// Sets the waits between attempts that fail. Default: 800 milliseconds to 30 seconds, doubling, with jitter;
        /// a first wait of less than 10 milliseconds is an error.
        #[must_use]
        pub fn backoff(mut self, backoff: crate::Backoff) -> Self {
            self.spec.transport.backoff = backoff;
            self
        }

        /// Sets all of the transport at once.
        #[must_use]
        pub fn transport(mut self, transport: crate::Transport) -> Self {
            self.spec.transport = transport;
            self
        }
    };
}
pub(super) use transport_setters;
