//! Which lease, who asks for it, and how long things take.

use std::time::Duration;

use k8s_types::ConfigError;

/// The shortest retry period: a configuration cannot ask for a hot loop.
const SHORTEST_RETRY: Duration = Duration::from_millis(10);
/// Retry periods are lengthened by up to a fifth at random, so that candidates do not ask in step.
pub(crate) const JITTER: f64 = 0.2;

/// Which lease to compete for, and in which rhythm. Plain data; checked by
/// [`build`](crate::LeaderElectorBuilder::build).
///
/// ```
/// use std::time::Duration;
/// use k8s_leader_election::LeaseConfig;
///
/// let config = LeaseConfig::new("kube-system", "my-controller", "my-controller-7d4b9-x2x7p")
///     .lease_duration(Duration::from_secs(60))
///     .renew_deadline(Duration::from_secs(40))
///     .retry_period(Duration::from_secs(5));
/// assert!(config.validate().is_ok());
/// let error = config.renew_deadline(Duration::from_secs(60)).validate().unwrap_err();
/// assert_eq!(error.to_string(), "renew_deadline: 60s is not less than lease_duration, 60s");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseConfig {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) identity: String,
    pub(crate) lease_duration: Duration,
    pub(crate) renew_deadline: Duration,
    pub(crate) retry_period: Duration,
    pub(crate) stop_timeout: Duration,
    pub(crate) release: bool,
    pub(crate) after_work: AfterWork,
}

/// What happens when the work ends, fails or panics while it has the lead. In each case the elector steps down and
/// releases the lease first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AfterWork {
    /// [`run`](crate::LeaderElector::run) returns and says how the work ended.
    #[default]
    Return,
    /// The end is logged and the elector campaigns again, after a pause in which another candidate can take the lead.
    Campaign,
}

impl LeaseConfig {
    /// A candidate called `identity` for the lease `name` in `namespace`.
    ///
    /// The identity must be unique among the candidates, the name of the Pod for instance: two candidates that share
    /// one take each other's lease for their own.
    #[must_use]
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            stop_timeout: Duration::from_secs(15),
            release: true,
            after_work: AfterWork::Return,
        }
    }

    /// How long other candidates wait, from when they see the lease renewed, before they take it (15 s). Whole
    /// seconds; longer than the renew deadline.
    ///
    /// The ratio of the two is what clocks may differ in *speed* between the machines: 1.5 by default. What time they
    /// show does not matter.
    #[must_use]
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = duration;
        self
    }

    /// How long a leader leads on after it sent the last request that renewed the lease (10 s). More than 1.2 retry
    /// periods.
    #[must_use]
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.renew_deadline = deadline;
        self
    }

    /// How long to wait between two attempts to get or to renew the lease (2 s), to which up to a fifth is added at
    /// random. At least 10 ms.
    #[must_use]
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.retry_period = period;
        self
    }

    /// How long the work, and `on_stopped` after it, may take to end once the work's token is cancelled (15 s; with
    /// the release that fits into the 30 s that a Pod has by default). Work that takes longer is aborted, the lease is
    /// *not* released, and `run` returns [`Error::Overdue`](crate::Error::Overdue).
    #[must_use]
    pub fn stop_timeout(mut self, timeout: Duration) -> Self {
        self.stop_timeout = timeout;
        self
    }

    /// Whether the lease is given up when the elector stops leading in good order (it is): another candidate then
    /// leads within a retry period, instead of a lease duration.
    #[must_use]
    pub fn release(mut self, on: bool) -> Self {
        self.release = on;
        self
    }

    /// What happens when the work ends by itself ([`AfterWork::Return`]).
    #[must_use]
    pub fn after_work(mut self, after: AfterWork) -> Self {
        self.after_work = after;
        self
    }

    /// Checks all settings.
    ///
    /// # Errors
    ///
    /// The first setting that cannot work, by name.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_path_segment("namespace", &self.namespace, 63)?;
        check_path_segment("name", &self.name, 253)?;
        if self.identity.trim().is_empty() {
            return Err(ConfigError::new("identity", "is empty"));
        }
        let Self { lease_duration, renew_deadline, retry_period, .. } = *self;
        if lease_duration.subsec_nanos() != 0 || lease_duration.is_zero() {
            return Err(ConfigError::new("lease_duration", format!("{lease_duration:?} is not in whole seconds")));
        }
        if i32::try_from(lease_duration.as_secs()).is_err() {
            return Err(ConfigError::new("lease_duration", format!("{lease_duration:?} does not fit into a lease")));
        }
        if renew_deadline >= lease_duration {
            let message = format!("{renew_deadline:?} is not less than lease_duration, {lease_duration:?}");
            return Err(ConfigError::new("renew_deadline", message));
        }
        if retry_period < SHORTEST_RETRY {
            let message = format!("{retry_period:?} is less than {SHORTEST_RETRY:?}");
            return Err(ConfigError::new("retry_period", message));
        }
        if retry_period >= renew_deadline || retry_period.mul_f64(1.0 + JITTER) >= renew_deadline {
            let message = format!("1.2 times {retry_period:?} is not less than renew_deadline, {renew_deadline:?}");
            return Err(ConfigError::new("retry_period", message));
        }
        Ok(())
    }
}

/// Namespace and name are parts of a path: what the server would refuse anyway must not become another path.
fn check_path_segment(field: &str, text: &str, longest: usize) -> Result<(), ConfigError> {
    if text.is_empty() {
        return Err(ConfigError::new(field, "is empty"));
    }
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let allowed = |b: u8| inner(b) || b == b'-' || (b == b'.' && field == "name");
    let bytes = text.as_bytes();
    let ends_well = bytes.first().copied().is_some_and(inner) && bytes.last().copied().is_some_and(inner);
    if text.len() > longest || !ends_well || !bytes.iter().copied().all(allowed) {
        return Err(ConfigError::new(field, format!("{text:?} is no name of Kubernetes")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl FnOnce(LeaseConfig) -> LeaseConfig, expected: &str) {
        let error = change(LeaseConfig::new("shop", "cart", "a")).validate().unwrap_err();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn the_defaults_work_and_so_do_their_limits() {
        let config = LeaseConfig::new("shop", "cart.controller-2", "a");
        assert_eq!(config.validate(), Ok(()));
        let secs = Duration::from_secs;
        let longest = secs(i32::MAX.unsigned_abs().into());
        assert_eq!(config.clone().lease_duration(longest).validate(), Ok(()));
        assert_eq!(config.clone().renew_deadline(secs(15) - Duration::from_nanos(1)).validate(), Ok(()));
        assert_eq!(config.retry_period(Duration::from_millis(8_333)).validate(), Ok(()));
    }

    #[test]
    fn each_relation_is_checked_and_names_its_field() {
        let secs = Duration::from_secs;
        check(|c| c.lease_duration(secs(0)), "lease_duration: 0ns is not in whole seconds");
        check(|c| c.lease_duration(Duration::from_millis(15_500)), "lease_duration: 15.5s is not in whole seconds");
        check(|c| c.lease_duration(secs(1 << 31)), "lease_duration: 2147483648s does not fit into a lease");
        check(
            |c| c.lease_duration(Duration::MAX),
            "lease_duration: 18446744073709551615.999999999s is not in whole seconds",
        );
        check(|c| c.renew_deadline(secs(15)), "renew_deadline: 15s is not less than lease_duration, 15s");
        check(|c| c.renew_deadline(Duration::ZERO), "retry_period: 1.2 times 2s is not less than renew_deadline, 0ns");
        check(|c| c.retry_period(Duration::ZERO), "retry_period: 0ns is less than 10ms");
        check(
            |c| c.retry_period(Duration::MAX),
            "retry_period: 1.2 times 18446744073709551615.999999999s is not less than renew_deadline, 10s",
        );
        check(
            |c| c.retry_period(Duration::from_millis(8_334)),
            "retry_period: 1.2 times 8.334s is not less than renew_deadline, 10s",
        );
    }

    #[test]
    fn names_that_would_be_another_path_are_refused() {
        let names = |namespace: &str, name: &str, identity: &str| {
            LeaseConfig::new(namespace, name, identity).validate().unwrap_err().to_string()
        };
        assert_eq!(names("", "cart", "a"), "namespace: is empty");
        assert_eq!(names("shop", "", "a"), "name: is empty");
        assert_eq!(names("shop", "cart", " "), "identity: is empty");
        assert_eq!(names("shop.x", "cart", "a"), "namespace: \"shop.x\" is no name of Kubernetes");
        for name in ["../pods", "a/b", "a?b", "A", "-a", "a-", "a b", "ä", &"a".repeat(254)] {
            assert_eq!(names("shop", name, "a"), format!("name: {name:?} is no name of Kubernetes"));
        }
    }
}
