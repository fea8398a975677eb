//! The elector: put together from a client and a configuration, run as a future.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::SystemTime;

use k8s_types::ConfigError;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::api::LeaseApi;
use crate::config::LeaseConfig;
use crate::driver::{Driver, WallClock};
use crate::error::Error;
use crate::handle::{Announcer, ElectorHandle};
use crate::hooks::{Hook, Hooks};
use crate::lead::Lead;
use crate::machine::Machine;
use crate::work::{Outcome, WorkResult};

/// Puts together what a [`LeaderElector`] needs besides its configuration.
#[must_use = "a builder does nothing until `build`"]
pub struct LeaderElectorBuilder {
    client: kube::Client,
    config: LeaseConfig,
    hooks: Hooks,
    wall_clock: WallClock,
}

/// A candidate that has not been started.
///
/// What is to be known of it while it runs, its [`ElectorHandle`] tells, to which it dereferences: take one before
/// [`run`](Self::run).
#[must_use = "an elector does nothing until `run`"]
pub struct LeaderElector {
    config: LeaseConfig,
    hooks: Hooks,
    driver: Driver,
    handle: ElectorHandle,
}

impl LeaderElector {
    /// Begins a candidate for the lease that `config` names.
    ///
    /// The client needs the verbs `get`, `create` and `update` on `leases` of the group `coordination.k8s.io` in the
    /// lease's namespace. Its own retries should be off (`kube::Config::default_retry = false`): the elector knows
    /// better until when another try makes sense. They do no harm to safety.
    pub fn builder(client: impl Into<kube::Client>, config: LeaseConfig) -> LeaderElectorBuilder {
        LeaderElectorBuilder {
            client: client.into(),
            config,
            hooks: Hooks::default(),
            wall_clock: Arc::new(SystemTime::now),
        }
    }

    /// The handle, to keep when the elector is given to [`run`](Self::run).
    pub fn handle(&self) -> &ElectorHandle {
        &self.handle
    }

    /// Campaigns, calls `work` with the [`Lead`] when it has been won, and campaigns again when it has been lost;
    /// until `token` is cancelled or the work ends by itself.
    ///
    /// The work runs on a task of its own and is told by its lead when to end: the lead was lost, or the elector is
    /// stopped. It then has the [stop timeout](LeaseConfig::stop_timeout) to do so. The next campaign does not begin
    /// before the work has ended and `on_stopped` has returned.
    ///
    /// When `token` is cancelled, in this order: [`is_leader`](ElectorHandle::is_leader) turns false, the work's token
    /// is cancelled, the work is awaited while the lease is still renewed, `on_stopped` is called and awaited, and the
    /// lease is released if it is still ours. The same happens when the work ends by itself.
    ///
    /// What the work returns after it has lost the lead is logged, no more: it was interrupted, after all.
    ///
    /// # Errors
    ///
    /// The work failed or panicked (with [`AfterWork::Return`](crate::AfterWork::Return)), or failed or panicked
    /// while it was being stopped; or it did not end when it was told to. The API server is no reason: its failures
    /// are logged, once for each time it is in trouble, and the elector goes on.
    ///
    /// # Panics
    ///
    /// When polled outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the candidate at once: its lead is over, the work's token is cancelled, the work
    /// aborted. The lease is *not* released, since that takes a request, and `on_stopped` is not called. Other
    /// candidates wait until the lease has run out. To end in good order, cancel `token` and await the future.
    pub async fn run<W, F>(self, token: CancellationToken, work: W) -> Result<Outcome, Error>
    where
        W: Fn(Lead) -> F + Send + Sync + 'static,
        F: Future<Output: WorkResult> + Send + 'static,
    {
        let Self { config, hooks, driver, handle } = self;
        let LeaseConfig { namespace, name, identity, .. } = &config;
        let span = tracing::info_span!("elect", %namespace, %name, %identity);
        let new_leaders = hooks.new_leaders(handle.leadership());
        let election = driver.run(&config, &hooks, token, Arc::new(work));
        let both = async {
            tokio::pin!(election);
            tokio::select! {
                ended = &mut election => ended,
                // There is no such hook.
                () = new_leaders => election.await,
            }
        };
        both.instrument(span).await
    }
}

impl LeaderElectorBuilder {
    /// Calls `function` when the lead has been won; the work begins when it has returned. It may block. A panic is
    /// logged.
    ///
    /// Calls of `on_started` and `on_stopped` alternate, and the first is an `on_started`.
    pub fn on_started(mut self, function: impl Fn() + Send + Sync + 'static) -> Self {
        self.hooks.on_started = Some(Hook::new("on_started", function));
        self
    }

    /// Calls `function` when the work of a lead has ended, for whatever reason; if the work is
    /// [overdue](Error::Overdue), when it has been given up. It may block, and counts into the
    /// [stop timeout](LeaseConfig::stop_timeout). A panic is logged.
    ///
    /// A candidate that never led calls it never. A lost lead is over *before*: see [`Lead::is_leader`].
    pub fn on_stopped(mut self, function: impl Fn() + Send + Sync + 'static) -> Self {
        self.hooks.on_stopped = Some(Hook::new("on_stopped", function));
        self
    }

    /// Calls `function` with the identity of each new holder of the lease, this candidate among them. Once for each
    /// change, except that while it runs only the latest is remembered. It may block. A panic is logged.
    pub fn on_new_leader(mut self, function: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.hooks.on_new_leader = Some(Arc::new(function));
        self
    }

    /// What the wall clock shows is only written down, for people to read; tests prove it.
    #[cfg(test)]
    pub(crate) fn wall_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.wall_clock = Arc::new(clock);
        self
    }

    /// Checks the configuration and puts the elector together. Sends nothing and spawns nothing.
    ///
    /// # Errors
    ///
    /// The first setting that cannot work, by name.
    pub fn build(self) -> Result<LeaderElector, ConfigError> {
        let Self { client, config, hooks, wall_clock } = self;
        config.validate()?;
        let (announcer, handle) = Announcer::new(&config.identity);
        let api = LeaseApi::new(client, &config.namespace, &config.name);
        let machine = Machine::new(&config, fastrand::u64(..));
        Ok(LeaderElector { driver: Driver::new(api, machine, announcer, wall_clock), config, hooks, handle })
    }
}

// === trait impls ===

impl Deref for LeaderElector {
    type Target = ElectorHandle;

    fn deref(&self) -> &ElectorHandle {
        &self.handle
    }
}

impl fmt::Debug for LeaderElectorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderElectorBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}

impl fmt::Debug for LeaderElector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderElector").field("config", &self.config).finish_non_exhaustive()
    }
}
