//! The watcher over one named object: the present state, then each change, at once.

mod handle;
mod news;
mod notify;
mod sink;

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

use k8s_client::Client;
use k8s_types::{ConfigError, Object, SingleWatcherConfig};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub use self::handle::SingleWatcherHandle;
use self::news::News;
use self::notify::{Callbacks, Notifier};
use self::sink::SingleSink;
use crate::callback::{Callback, Outcome};
use crate::control::Control;
use crate::driver::Driver;
use crate::group::{Gate, SyncGroup};
use crate::plan::SinglePlan;
use crate::running::{Running, side_by_side};

/// Puts together what a [`SingleWatcher`] needs besides its configuration.
#[must_use = "a builder does nothing until `build` or `spawn`"]
pub struct SingleWatcherBuilder {
    client: Client,
    config: SingleWatcherConfig,
    callbacks: Callbacks,
    group: Option<(SyncGroup, String)>,
}

/// A watcher over one named object that has not been started: nothing was sent.
///
/// The server is asked for that name alone, on each list and watch (`metadata.name=…`), so rights that are limited to
/// it by `resourceNames` are enough. There is no index and no debounce: the first callback is about the present
/// state, each change is told at once.
///
/// # What is told
///
/// - Nothing before the sync. Then [`wait_for_sync`](SingleWatcherHandle::wait_for_sync) gives the object or none, and
///   `on_sync_complete` is called with it, once.
/// - From then on `on_change` is called with the object after each change, and with none after a delete, wherever that
///   is first seen: in the watch or in a later list. Another uid under the name is a delete and a create: two calls.
/// - Calls come one after the other. While one runs the latest state wins, and a delete between is kept; an object
///   that came and went meanwhile is not told, nor one that is again as it was told last.
/// - An object that cannot be decoded stays as it was, until it is good again or deleted; one that never could be is
///   told as none. The [status](SingleWatcherHandle::status) counts and names it.
/// - No change: the same uid and either the same version or equal content apart from `resourceVersion` and ignored
///   fields. For kinds without a generation (Secret, ConfigMap) each other update is told;
///   [`skip_status_updates`](SingleWatcherConfig::skip_status_updates) leaves out, for kinds with one, those that
///   change neither it nor the metadata (labels and annotations are no status).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use k8s_types::{Object, SingleWatcherConfig};
/// use k8s_watcher::SingleWatcher;
///
/// # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// # let server = k8s_fake_apiserver::FakeApiServer::builder()
/// #     .object(serde_json::json!({
/// #         "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "haproxy", "name": "credentials"}
/// #     }))
/// #     .start()
/// #     .await?;
/// # let client = server.client();
/// # async fn reload(object: Option<Object>) -> Result<(), std::io::Error> { Ok(()) }
/// let secret = SingleWatcher::builder(client, SingleWatcherConfig::new("v1/secrets", "haproxy", "credentials"))
///     .on_change_async(|object: Option<Object>| async move { reload(object).await }) // none: deleted
///     .spawn()?;
/// let present = secret.wait_for_sync(Duration::from_secs(10)).await?;
/// assert_eq!(present.unwrap().name(), "credentials");
/// secret.shutdown().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a watcher does nothing until `run` or `spawn`"]
pub struct SingleWatcher {
    handle: SingleWatcherHandle,
    driver: Driver<SingleSink>,
    notifier: Notifier,
    ending: Ending,
}

/// A [`SingleWatcher`] that runs on a task of its own.
pub type RunningSingleWatcher = Running<SingleWatcherHandle>;

/// What the parts of a watcher have in common.
struct Shared {
    control: Arc<Control>,
    news: Mutex<News>,
    wake: Notify,
    /// The initial list is complete.
    loaded: CancellationToken,
    /// The reading has ended.
    ended: CancellationToken,
}

impl SingleWatcher {
    /// Begins a watcher of the object that `config` names.
    pub fn builder(client: impl Into<Client>, config: SingleWatcherConfig) -> SingleWatcherBuilder {
        SingleWatcherBuilder { client: client.into(), config, callbacks: Callbacks::default(), group: None }
    }

    /// The handle, to keep when the watcher is given to [`run`](Self::run).
    pub fn handle(&self) -> &SingleWatcherHandle {
        &self.handle
    }

    /// Watches until `token` is cancelled or [`stop`](SingleWatcherHandle::stop) is called, then tells what was not
    /// told and ends. Failures of the server never end it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the watcher at once: requests are dropped and async callbacks aborted (one on a
    /// blocking thread runs to its end).
    pub async fn run(self, token: CancellationToken) {
        let Self { driver, notifier, ending, .. } = self;
        let reading = async {
            driver.run().await;
            ending.0.ended.cancel();
        };
        side_by_side(token, ending.0.control.stop.clone(), reading, notifier.run()).await;
    }

    /// Runs the watcher on a task of the current tokio runtime.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, as `tokio::spawn`.
    #[track_caller]
    pub fn spawn(self) -> RunningSingleWatcher {
        let (handle, stop) = (self.handle.clone(), self.ending.0.control.stop.clone());
        Running::spawn(handle, stop, self.run(CancellationToken::new()))
    }
}

impl SingleWatcherBuilder {
    /// Calls `function` with the object after each change, and with none after a delete.
    ///
    /// The function may block: it runs on a thread for blocking work. What it returns is `()` or a `Result` whose
    /// error is logged. A panic is caught, logged and counted in the status; the watcher lives. A second function
    /// replaces the first.
    pub fn on_change<R: Outcome>(mut self, function: impl Fn(Option<Object>) -> R + Send + Sync + 'static) -> Self {
        self.callbacks.on_change = Some(Callback::blocking(function));
        self
    }

    /// As [`on_change`](Self::on_change) with an async function, which runs on a task of its own.
    pub fn on_change_async<F, R>(mut self, function: impl Fn(Option<Object>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = R> + Send + 'static,
        R: Outcome,
    {
        self.callbacks.on_change = Some(Callback::future(function));
        self
    }

    /// Calls `function` once, when it is known whether the object exists and
    /// [`is_synced`](SingleWatcherHandle::is_synced) has turned true. Until it returns, `on_change` waits.
    pub fn on_sync_complete<R: Outcome>(
        mut self,
        function: impl Fn(Option<Object>) -> R + Send + Sync + 'static,
    ) -> Self {
        self.callbacks.on_sync_complete = Some(Callback::blocking(function));
        self
    }

    /// As [`on_sync_complete`](Self::on_sync_complete) with an async function.
    pub fn on_sync_complete_async<F, R>(
        mut self,
        function: impl Fn(Option<Object>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = R> + Send + 'static,
        R: Outcome,
    {
        self.callbacks.on_sync_complete = Some(Callback::future(function));
        self
    }

    /// Joins a group: `on_change` is not called before all members are synced. A second group replaces the first.
    pub fn sync_group(mut self, group: &SyncGroup, name: impl Into<String>) -> Self {
        self.group = Some((group.clone(), name.into()));
        self
    }

    /// Checks the configuration and puts the watcher together. Sends nothing and spawns nothing.
    ///
    /// # Errors
    ///
    /// The first setting that cannot work, by name: see [`SingleWatcherConfig`]; besides, ignored fields that the
    /// identity of objects needs, and a [group](SyncGroup) that has a member of this name or is closed.
    pub fn build(self) -> Result<SingleWatcher, ConfigError> {
        let Self { client, config, callbacks, group } = self;
        let SinglePlan { reading, encoder, skip_status_updates } = SinglePlan::new(&config)?;
        let control = Arc::new(Control::new(reading.requests.gvr.clone()));
        let gate = match group {
            Some((group, name)) => group.join(name, control.clone())?,
            None => Gate::default(),
        };
        let shared = Arc::new(Shared {
            control: control.clone(),
            news: Mutex::default(),
            wake: Notify::new(),
            loaded: CancellationToken::new(),
            ended: CancellationToken::new(),
        });
        let spec = config.spec();
        let (namespace, name) = (spec.namespace.clone(), spec.name.clone());
        let sink = SingleSink::new(encoder, namespace, name, skip_status_updates, shared.clone());
        Ok(SingleWatcher {
            handle: SingleWatcherHandle::new(shared.clone()),
            notifier: Notifier { shared: shared.clone(), callbacks, gate },
            driver: Driver::new(client, reading, sink, control),
            ending: Ending(shared),
        })
    }

    /// [`build`](Self::build)s and [`spawn`](SingleWatcher::spawn)s.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, as `tokio::spawn`.
    #[track_caller]
    pub fn spawn(self) -> Result<RunningSingleWatcher, ConfigError> {
        Ok(self.build()?.spawn())
    }
}

impl Shared {
    /// Calls that are due.
    fn backlog(&self) -> usize {
        // Before the sync the state is told by `on_sync_complete`.
        if self.control.status.read(|s| s.synced) { self.news.lock().waiting() } else { 0 }
    }
}

/// However a watcher ends, those who wait for it learn of it.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.ended.cancel();
        self.0.control.status.stopped();
    }
}

// === trait impls ===

impl Deref for SingleWatcher {
    type Target = SingleWatcherHandle;

    fn deref(&self) -> &SingleWatcherHandle {
        &self.handle
    }
}

impl fmt::Debug for SingleWatcherBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleWatcherBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}

impl fmt::Debug for SingleWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleWatcher").field("handle", &self.handle).finish_non_exhaustive()
    }
}
