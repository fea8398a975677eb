//! Between the driver and the callbacks: what happened, merged until somebody takes it; and who takes it when.

use std::sync::Arc;

use k8s_types::ChangeStats;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::callback::{Callback, ChangeContext};
use crate::debounce::{Debouncer, Decision};
use crate::group::Gate;
use crate::handle::{Shared, WatcherHandle};

/// What the driver leaves for the callbacks: a few numbers, however slow they are.
pub(crate) struct Mailbox {
    state: Mutex<Mail>,
    wake: Notify,
    /// Whether anybody is told of the load, and of what happens after it.
    hears_load: bool,
    hears_live: bool,
}

#[derive(Default)]
struct Mail {
    /// What the initial load brought.
    load: ChangeStats,
    /// What happened after it.
    live: ChangeStats,
    /// What the load brought altogether, once it is complete.
    loaded: Option<usize>,
    forced: bool,
    closed: bool,
}

impl Mailbox {
    pub(crate) fn new<S>(callbacks: &Callbacks<S>) -> Self {
        let hears_live = callbacks.on_change.is_some();
        Self {
            state: Mutex::default(),
            wake: Notify::new(),
            hears_load: hears_live && callbacks.during_sync,
            hears_live,
        }
    }

    /// Something happened; the initial load is told apart from what comes after it.
    pub(crate) fn changed(&self, stats: &ChangeStats) {
        let is_heard = if stats.is_initial_sync { self.hears_load } else { self.hears_live };
        if !is_heard {
            return;
        }
        let mut mail = self.state.lock();
        if stats.is_initial_sync {
            mail.load.merge(stats)
        } else {
            mail.live.merge(stats)
        }
        drop(mail);
        self.wake.notify_one();
    }

    /// What happened that `on_change` was not called for yet.
    pub(crate) fn untold(&self) -> ChangeStats {
        let mail = self.state.lock();
        let mut untold = mail.load;
        untold.merge(&mail.live);
        untold.is_initial_sync = !mail.load.is_empty() && mail.live.is_empty();
        untold
    }

    /// The initial load is complete and has this many objects.
    pub(crate) fn loaded(&self, objects: usize) {
        self.state.lock().loaded = Some(objects);
        self.wake.notify_one();
    }

    /// A callback is wanted now.
    pub(crate) fn force(&self) {
        self.state.lock().forced = true;
        self.wake.notify_one();
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_one();
    }
}

/// The user's side of a watcher.
#[derive(Debug)]
pub(crate) struct Callbacks<S> {
    pub(crate) on_change: Option<Callback<ChangeContext<S>>>,
    pub(crate) on_sync_complete: Option<Callback<(ChangeContext<S>, usize)>>,
    pub(crate) during_sync: bool,
}

impl<S> Default for Callbacks<S> {
    fn default() -> Self {
        Self { on_change: None, on_sync_complete: None, during_sync: false }
    }
}

/// Runs the callbacks, one at a time, off the reading task.
pub(crate) struct Notifier<S> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) store: S,
    pub(crate) callbacks: Callbacks<S>,
    pub(crate) debouncer: Debouncer,
    pub(crate) gate: Gate,
}

/// What callbacks may be told of.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    /// The initial load, for those who asked for it.
    Loading,
    /// Nothing: other watchers of the group are not synced yet.
    Gated,
    /// What happens after the load.
    Live,
}

impl<S: Clone + Send + 'static> Notifier<S> {
    /// Goes on until the mailbox is closed and what was in it has been told.
    pub(crate) async fn run(mut self) {
        let mut stage = Stage::Loading;
        loop {
            if stage == Stage::Gated && self.gate.is_open() {
                stage = Stage::Live;
            }
            let now = Instant::now();
            let (loaded, closed) = self.look(now, stage);
            if let Some(objects) = loaded.filter(|_| stage == Stage::Loading && !closed) {
                self.complete_sync(objects).await;
                stage = Stage::Gated;
                continue;
            }
            match self.debouncer.poll(now) {
                // Stopping before the sync, or before that of the group, flushes nothing.
                _ if closed && stage != Stage::Live => return,
                Decision::Fire if stage != Stage::Gated => self.fire(stage == Stage::Live).await,
                _ if closed => {
                    if self.has_news() {
                        self.fire(true).await;
                    }
                    return;
                }
                decision => {
                    let shared = self.shared.clone();
                    tokio::select! {
                        () = shared.mailbox.wake.notified() => {}
                        () = due(decision) => {}
                        () = self.gate.opened(), if stage == Stage::Gated => {}
                    }
                }
            }
        }
    }

    /// Tells the debouncer what came.
    fn look(&mut self, now: Instant, stage: Stage) -> (Option<usize>, bool) {
        let mut mail = self.shared.mailbox.state.lock();
        // A call that is wanted while others of the group are not synced waits for them.
        let forced = stage != Stage::Gated && std::mem::take(&mut mail.forced);
        let outcome = (mail.loaded, mail.closed);
        // What comes between the load and its announcement waits for the announcement.
        let news = match stage {
            Stage::Loading if self.callbacks.during_sync => &mail.load,
            Stage::Loading | Stage::Gated => return outcome,
            Stage::Live => &mail.live,
        };
        if forced && self.callbacks.on_change.is_some() {
            self.debouncer.force(now);
        }
        if !news.is_empty() {
            self.debouncer.event(now);
        }
        outcome
    }

    /// Whether something happened after the load that no callback was told.
    fn has_news(&self) -> bool {
        !self.shared.mailbox.state.lock().live.is_empty()
    }

    /// Calls `on_change` with what has gathered: since the load, or before the sync what belongs to the load.
    async fn fire(&mut self, synced: bool) {
        let mut stats = {
            let mut mail = self.shared.mailbox.state.lock();
            std::mem::take(if synced { &mut mail.live } else { &mut mail.load })
        };
        stats.is_initial_sync = !synced;
        self.debouncer.started(Instant::now());
        let callback = self.callbacks.on_change.as_ref();
        Callback::tell(callback, "on_change", self.context(stats), &self.shared.control).await;
        self.debouncer.finished();
    }

    /// The end of the initial load, in the order that users can rely on: callbacks about it, then synced, then
    /// `on_sync_complete`.
    async fn complete_sync(&mut self, objects: usize) {
        let has_load = !self.shared.mailbox.state.lock().load.is_empty();
        if has_load {
            self.fire(false).await;
        }
        self.shared.feed.loaded();
        self.shared.control.status.synced(objects);
        self.gate.synced();
        tracing::info!(resource = %self.shared.control.resource, objects, "synced");
        if let Some(callback) = &self.callbacks.on_sync_complete {
            self.debouncer.hold();
            let argument = (self.context(ChangeStats::default()), objects);
            Callback::tell(Some(callback), "on_sync_complete", argument, &self.shared.control).await;
            self.debouncer.finished();
        }
    }

    fn context(&self, stats: ChangeStats) -> ChangeContext<S> {
        let snapshot = self.shared.store.snapshot();
        ChangeContext { snapshot, stats, watcher: WatcherHandle::new(self.shared.clone(), self.store.clone()) }
    }
}

/// When the debouncer wants to be asked again, if nothing comes before.
async fn due(decision: Decision) {
    match decision {
        Decision::WaitUntil(due) => tokio::time::sleep_until(due).await,
        _ => std::future::pending().await,
    }
}
