//! How much a cache holds, for how long, and how it asks.
use std::time::Duration;

use k8s_types::ConfigError;

/// How much a [`CachedStore`](crate::CachedStore) holds, for how long, and how it asks for objects. Plain data:
/// nothing is checked before [`validate`](Self::validate), which the watcher's builder calls.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use k8s_store::CacheConfig;
///
/// let config = CacheConfig::default().max_bytes(16 << 20).ttl(Duration::from_secs(300));
/// assert_eq!(config.validate(), Ok(()));
///
/// let error = config.ttl(Duration::ZERO).validate().unwrap_err();
/// assert_eq!(error.to_string(), "cache.ttl: zero");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CacheConfig {
    pub(crate) max_bytes: u64,
    pub(crate) ttl: Duration,
    pub(crate) max_parallel_fetches: usize,
    pub(crate) fetch_timeout: Duration,
    pub(crate) negative_ttl: Duration,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            max_bytes: 64 << 20,
            ttl: Duration::from_secs(130),
            max_parallel_fetches: 16,
            fetch_timeout: Duration::from_secs(10),
            negative_ttl: Duration::from_secs(5),
        }
    }
}

impl CacheConfig {
    /// Sets how many bytes of whole objects are held: their packed size and what the cache needs to find them.
    /// Default: 64 MiB; zero is an error. An object that alone is bigger is fetched for each read.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets for how long an object is given out without asking again, counted from when it was fetched and not from
    /// when it was last read. Default: 130 seconds; zero is an error.
    ///
    /// Each object has a time of its own, up to a fifth shorter at random, so that what was loaded together does not
    /// expire together. Watch events refresh or drop objects at once; this is for the ones that never come.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets how many fetches may run at the same time, whoever waits for them; those beyond queue in order. Default:
    /// 16; zero is an error.
    #[must_use]
    pub fn max_parallel_fetches(mut self, fetches: usize) -> Self {
        self.max_parallel_fetches = fetches;
        self
    }

    /// Sets how long one fetch may take, not counting its place in the queue. Default: 10 seconds; zero is an error.
    #[must_use]
    pub fn fetch_timeout(mut self, timeout: Duration) -> Self {
        self.fetch_timeout = timeout;
        self
    }

    /// Sets for how long it is remembered that an object does not exist; an event that shows it ends this at once.
    /// Default: 5 seconds; zero means not at all.
    #[must_use]
    pub fn negative_ttl(mut self, ttl: Duration) -> Self {
        self.negative_ttl = ttl;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// The first one that cannot work, by name: `cache.ttl: zero`.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let zeros = [
            ("cache.max_bytes", self.max_bytes == 0),
            ("cache.ttl", self.ttl.is_zero()),
            ("cache.max_parallel_fetches", self.max_parallel_fetches == 0),
            ("cache.fetch_timeout", self.fetch_timeout.is_zero()),
        ];
        match zeros.iter().find(|(_, zero)| *zero) {
            Some((field, _)) => Err(ConfigError::new(*field, "zero")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_named() {
        let check = |config: CacheConfig, expected: &str| {
            assert_eq!(config.validate().expect_err(expected).to_string(), expected);
        };
        let config = CacheConfig::default();
        assert_eq!(config.validate(), Ok(()));
        assert_eq!(config.clone().negative_ttl(Duration::ZERO).validate(), Ok(()));
        check(config.clone().max_bytes(0), "cache.max_bytes: zero");
        check(config.clone().ttl(Duration::ZERO), "cache.ttl: zero");
        check(config.clone().max_parallel_fetches(0), "cache.max_parallel_fetches: zero");
        check(config.fetch_timeout(Duration::ZERO), "cache.fetch_timeout: zero");
    }
}
