//! The bulk watcher: built from a configuration, run as a future or on a task of its own.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

use k8s_client::Client;
use k8s_store::{MemoryStore, Writer, memory_store};
use k8s_types::{ConfigError, SelfWriteFilter, WatcherConfig};
use tokio_util::sync::CancellationToken;

use crate::applier::Applier;
use crate::cache_link::CacheLink;
use crate::callback::{Callback, ChangeContext, Outcome};
use crate::control::Control;
use crate::debounce::Debouncer;
use crate::driver::Driver;
use crate::group::{Gate, SyncGroup};
use crate::handle::{Shared, WatcherHandle};
use crate::notify::{Callbacks, Mailbox, Notifier};
use crate::plan::Plan;
use crate::running::{Running, side_by_side};

/// Puts together what a [`Watcher`] needs besides its configuration: callbacks, and a filter for own writes.
#[must_use = "a builder does nothing until `build` or `spawn`"]
pub struct WatcherBuilder<S = MemoryStore> {
    client: Client,
    config: WatcherConfig,
    make: MakeStore<S>,
    callbacks: Callbacks<S>,
    own_writes: Option<Arc<dyn SelfWriteFilter>>,
    group: Option<(SyncGroup, String)>,
    /// What was wrong with how the builder was used.
    misuse: Option<ConfigError>,
}

/// Makes the store of a plan.
type MakeStore<S> = Box<dyn FnOnce(&Client, &mut Plan) -> Result<Made<S>, ConfigError> + Send>;

/// A store with its writer.
pub(crate) struct Made<S> {
    pub(crate) writer: Writer,
    /// Where the writer's commits are read.
    pub(crate) written: MemoryStore,
    pub(crate) cache: CacheLink,
    pub(crate) store: S,
}

/// A watcher that has not been started: its store is empty and nothing was sent.
///
/// Everything that can be done with a running one can be prepared here through its [`WatcherHandle`], to which it
/// dereferences: hand out the store, subscribe to changes.
#[must_use = "a watcher does nothing until `run` or `spawn`"]
pub struct Watcher<S = MemoryStore> {
    handle: WatcherHandle<S>,
    driver: Driver<Applier>,
    notifier: Notifier<S>,
    ending: Ending,
}

/// A [`Watcher`] that runs on a task of its own.
pub type RunningWatcher<S = MemoryStore> = Running<WatcherHandle<S>>;

impl Watcher {
    /// Begins a watcher of the objects that `config` describes.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use k8s_types::WatcherConfig;
    /// use k8s_watcher::Watcher;
    ///
    /// # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    /// # runtime.block_on(async {
    /// let server = k8s_fake_apiserver::FakeApiServer::builder()
    ///     .object(serde_json::json!({
    ///         "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "cart-0"}
    ///     }))
    ///     .start()
    ///     .await?;
    ///
    /// let config = WatcherConfig::new("v1/pods").index_by(["metadata.namespace", "metadata.name"]);
    /// let pods = Watcher::builder(server.client(), config)
    ///     .on_change(|change| println!("{}", change.stats))
    ///     .spawn()?;
    /// assert_eq!(pods.wait_for_sync(Duration::from_secs(10)).await?, 1);
    /// assert_eq!(pods.store().snapshot().get(["shop"])?.len(), 1);
    /// pods.shutdown().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(client: impl Into<Client>, config: WatcherConfig) -> WatcherBuilder {
        WatcherBuilder {
            client: client.into(),
            config,
            make: Box::new(|_, plan| Ok(in_memory(plan))),
            callbacks: Callbacks::default(),
            own_writes: None,
            group: None,
            misuse: None,
        }
    }
}

/// All objects in memory.
fn in_memory(plan: &mut Plan) -> Made<MemoryStore> {
    let (writer, store) = memory_store(std::mem::take(&mut plan.indexes), std::mem::take(&mut plan.encoder));
    Made { writer, written: store.clone(), cache: CacheLink::default(), store }
}

impl<S: Clone + Send + Sync + 'static> Watcher<S> {
    /// The handle, to keep when the watcher is given to [`run`](Self::run).
    pub fn handle(&self) -> &WatcherHandle<S> {
        &self.handle
    }

    /// Lists and watches until `token` is cancelled or [`stop`](WatcherHandle::stop) is called, then tells the
    /// callbacks what they have not heard and ends.
    ///
    /// Failures of the server never end it: they show in the [status](WatcherHandle::status) and are tried again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the watcher at once: requests are dropped, async callbacks aborted (one on a
    /// blocking thread runs to its end), and what was collected since the last callback is not delivered.
    pub async fn run(self, token: CancellationToken) {
        let Self { driver, notifier, ending, .. } = self;
        let reading = async {
            driver.run().await;
            ending.0.mailbox.close();
        };
        side_by_side(token, ending.0.control.stop.clone(), reading, notifier.run()).await;
    }

    /// Runs the watcher on a task of the current tokio runtime.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, as `tokio::spawn`.
    #[track_caller]
    pub fn spawn(self) -> RunningWatcher<S> {
        let (handle, stop) = (self.handle.clone(), self.ending.0.control.stop.clone());
        Running::spawn(handle, stop, self.run(CancellationToken::new()))
    }
}

#[cfg(feature = "cached")]
impl WatcherBuilder<MemoryStore> {
    /// The same builder with another kind of store.
    pub(crate) fn with_store<S>(
        self,
        make: impl FnOnce(&Client, &mut Plan) -> Result<Made<S>, ConfigError> + Send + 'static,
    ) -> WatcherBuilder<S> {
        let Self { client, config, callbacks, own_writes, group, misuse, .. } = self;
        // They were written for the store of before: to drop them in silence would be worse than to refuse.
        let has_callbacks = callbacks.on_change.is_some() || callbacks.on_sync_complete.is_some();
        let misuse = misuse.or_else(|| has_callbacks.then(|| ConfigError::new("cached", "comes before the callbacks")));
        WatcherBuilder {
            client,
            config,
            make: Box::new(make),
            callbacks: Callbacks::default(),
            own_writes,
            group,
            misuse,
        }
    }
}

impl<S: Clone + Send + Sync + 'static> WatcherBuilder<S> {
    /// Calls `function` after changes: at once after a quiet time, then at most once in the debounce interval,
    /// never twice at the same time, with everything that happened since the last call.
    ///
    /// The function may block: it runs on a thread for blocking work, never on the task that reads from the
    /// server. What it returns is `()` or a `Result` whose error is logged. A panic is caught, logged and counted
    /// in the status; the watcher lives. A second function replaces the first.
    pub fn on_change<R: Outcome>(mut self, function: impl Fn(ChangeContext<S>) -> R + Send + Sync + 'static) -> Self {
        self.callbacks.on_change = Some(Callback::blocking(function));
        self
    }

    /// As [`on_change`](Self::on_change) with an async function, which runs on a task of its own.
    pub fn on_change_async<F, R>(mut self, function: impl Fn(ChangeContext<S>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = R> + Send + 'static,
        R: Outcome,
    {
        self.callbacks.on_change = Some(Callback::future(function));
        self
    }

    /// Calls `function` once, when the initial load is complete and [`is_synced`](WatcherHandle::is_synced) has
    /// turned true, with the number of objects. Until it returns, `on_change` waits.
    pub fn on_sync_complete<R: Outcome>(
        mut self,
        function: impl Fn(ChangeContext<S>, usize) -> R + Send + Sync + 'static,
    ) -> Self {
        self.callbacks.on_sync_complete = Some(Callback::blocking(move |(context, count)| function(context, count)));
        self
    }

    /// As [`on_sync_complete`](Self::on_sync_complete) with an async function.
    pub fn on_sync_complete_async<F, R>(
        mut self,
        function: impl Fn(ChangeContext<S>, usize) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = R> + Send + 'static,
        R: Outcome,
    {
        self.callbacks.on_sync_complete = Some(Callback::future(move |(context, count)| function(context, count)));
        self
    }

    /// Does not report what this filter recognises as the program's own writes; see
    /// [`SelfWrites`](crate::SelfWrites).
    pub fn self_writes(mut self, filter: impl SelfWriteFilter + 'static) -> Self {
        self.own_writes = Some(Arc::new(filter));
        self
    }

    /// Joins a group: `on_change` is not called before all members are synced. The name tells the watcher apart in
    /// the group's errors. A second group replaces the first.
    pub fn sync_group(mut self, group: &SyncGroup, name: impl Into<String>) -> Self {
        self.group = Some((group.clone(), name.into()));
        self
    }

    /// Checks the configuration and puts the watcher together. Sends nothing and spawns nothing.
    ///
    /// # Errors
    ///
    /// The first setting that cannot work, by name: see [`WatcherConfig`] for the rules; besides, expressions that
    /// are no JSONPath, ignored fields that an index, a selector or the identity of objects needs,
    /// `namespaced_watch` for a client that knows no namespace of its own, and a [group](SyncGroup) that has a member
    /// of this name or is closed.
    pub fn build(self) -> Result<Watcher<S>, ConfigError> {
        let Self { client, config, make, mut callbacks, own_writes, group, misuse } = self;
        if let Some(misuse) = misuse {
            return Err(misuse);
        }
        let mut plan = Plan::new(&client, &config, own_writes)?;
        callbacks.during_sync = plan.call_on_change_during_sync;
        let Made { writer, written, cache, store } = make(&client, &mut plan)?;
        let Plan { reading, selector, own_writes, debounce, .. } = plan;
        let control = Arc::new(Control::new(reading.requests.gvr.clone()));
        let gate = match group {
            Some((group, name)) => group.join(name, control.clone())?,
            None => Gate::default(),
        };
        let shared = Arc::new(Shared::new(control.clone(), written, Mailbox::new(&callbacks)));
        let applier = Applier::new(writer, selector, own_writes, cache, shared.clone());
        let debouncer = Debouncer::new(debounce);
        Ok(Watcher {
            handle: WatcherHandle::new(shared.clone(), store.clone()),
            notifier: Notifier { shared: shared.clone(), store, callbacks, debouncer, gate },
            driver: Driver::new(client, reading, applier, control),
            ending: Ending(shared),
        })
    }

    /// [`build`](Self::build)s and [`spawn`](Watcher::spawn)s.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, as `tokio::spawn`.
    #[track_caller]
    pub fn spawn(self) -> Result<RunningWatcher<S>, ConfigError> {
        Ok(self.build()?.spawn())
    }
}

/// However a watcher ends, those who wait for it learn of it.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.mailbox.close();
        self.0.feed.close();
        self.0.control.status.stopped();
    }
}

// === trait impls ===

impl<S> Deref for Watcher<S> {
    type Target = WatcherHandle<S>;

    fn deref(&self) -> &WatcherHandle<S> {
        &self.handle
    }
}

impl<S> fmt::Debug for WatcherBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatcherBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for Watcher<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("handle", &self.handle).finish_non_exhaustive()
    }
}
