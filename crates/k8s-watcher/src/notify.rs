//! Between the driver and the callbacks: what happened, merged until somebody takes it; and who takes it when.

use std::sync::Arc;

use k8s_types::ChangeStats;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::callback::{Callback, ChangeContext, Ending};
use crate::debounce::{Debouncer, Decision};
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
    pub(crate) fn new(callbacks: &Callbacks) -> Self {
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
#[derive(Debug, Default)]
pub(crate) struct Callbacks {
    pub(crate) on_change: Option<Callback<ChangeContext>>,
    pub(crate) on_sync_complete: Option<Callback<(ChangeContext, usize)>>,
    pub(crate) during_sync: bool,
}

/// Runs the callbacks, one at a time, off the reading task.
pub(crate) struct Notifier {
    pub(crate) shared: Arc<Shared>,
    pub(crate) callbacks: Callbacks,
    pub(crate) debouncer: Debouncer,
}

impl Notifier {
    /// Goes on until the mailbox is closed and what was in it has been told.
    pub(crate) async fn run(mut self) {
        let mut synced = false;
        loop {
            let now = Instant::now();
            let (loaded, closed) = self.look(now, synced);
            if let Some(objects) = loaded.filter(|_| !synced && !closed) {
                self.complete_sync(objects).await;
                synced = true;
                continue;
            }
            match self.debouncer.poll(now) {
                // Stopping before the sync flushes nothing.
                _ if closed && !synced => return,
                Decision::Fire => self.fire(synced).await,
                _ if closed => {
                    if self.has_news() {
                        self.fire(synced).await;
                    }
                    return;
                }
                Decision::WaitUntil(due) => {
                    tokio::select! {
                        () = self.shared.mailbox.wake.notified() => {}
                        () = tokio::time::sleep_until(due) => {}
                    }
                }
                Decision::Idle => self.shared.mailbox.wake.notified().await,
            }
        }
    }

    /// Tells the debouncer what came.
    fn look(&mut self, now: Instant, synced: bool) -> (Option<usize>, bool) {
        let mut mail = self.shared.mailbox.state.lock();
        let forced = std::mem::take(&mut mail.forced);
        let outcome = (mail.loaded, mail.closed);
        if synced || self.callbacks.during_sync {
            if forced && self.callbacks.on_change.is_some() {
                self.debouncer.force(now);
            }
            // What comes between the load and its announcement waits for the announcement.
            let news = if synced { &mail.live } else { &mail.load };
            if !news.is_empty() {
                self.debouncer.event(now);
            }
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
        if let Some(callback) = &self.callbacks.on_change {
            let ending = callback.call(self.context(stats)).await;
            self.ended("on_change", &ending);
        }
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
        self.shared.status.synced(objects);
        tracing::info!(resource = %self.shared.resource, objects, "synced");
        if let Some(callback) = &self.callbacks.on_sync_complete {
            self.debouncer.hold();
            let ending = callback.call((self.context(ChangeStats::default()), objects)).await;
            self.ended("on_sync_complete", &ending);
            self.debouncer.finished();
        }
    }

    fn context(&self, stats: ChangeStats) -> ChangeContext {
        let snapshot = self.shared.store.snapshot();
        ChangeContext { snapshot, stats, watcher: WatcherHandle::new(self.shared.clone()) }
    }

    fn ended(&self, callback: &'static str, ending: &Ending) {
        let resource = &self.shared.resource;
        match ending {
            Ending::Done => {}
            Ending::Failed(error) => tracing::warn!(%resource, callback, error, "callback failed"),
            Ending::Panicked => {
                self.shared.status.update(|s| s.callback_panics += 1);
                tracing::error!(%resource, callback, "callback panicked");
            }
        }
    }
}
