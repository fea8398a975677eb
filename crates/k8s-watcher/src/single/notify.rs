//! Runs the callbacks of a watcher over one object, one at a time, off the reading task.

use std::sync::Arc;

use k8s_types::Object;

use super::Shared;
use crate::callback::Callback;
use crate::group::Gate;

/// The user's side.
#[derive(Debug, Default)]
pub(super) struct Callbacks {
    pub(super) on_change: Option<Callback<Option<Object>>>,
    pub(super) on_sync_complete: Option<Callback<Option<Object>>>,
}

pub(super) struct Notifier {
    pub(super) shared: Arc<Shared>,
    pub(super) callbacks: Callbacks,
    pub(super) gate: Gate,
}

impl Notifier {
    /// Goes on until the reading has ended and what there was to tell is told. Stopping before the sync, or before
    /// that of the group, tells nothing.
    pub(super) async fn run(self) {
        let shared = &self.shared;
        tokio::select! {
            // An end that comes with the sync is an end before it.
            biased;
            () = shared.ended.cancelled() => return,
            () = shared.loaded.cancelled() => {}
        }
        self.complete_sync().await;
        tokio::select! {
            biased;
            () = self.gate.opened() => {}
            () = shared.ended.cancelled() => return,
        }
        loop {
            let ended = shared.ended.is_cancelled();
            while let Some(object) = self.next() {
                Callback::tell(self.callbacks.on_change.as_ref(), "on_change", object, &shared.control).await;
            }
            if ended {
                return;
            }
            tokio::select! {
                () = shared.wake.notified() => {}
                () = shared.ended.cancelled() => {}
            }
        }
    }

    fn next(&self) -> Option<Option<Object>> {
        self.shared.news.lock().next()
    }

    /// Synced, waiters wake, `on_sync_complete`; what comes from then on is told by `on_change`.
    async fn complete_sync(&self) {
        let object = self.shared.news.lock().know();
        let control = &self.shared.control;
        control.status.synced(usize::from(object.is_some()));
        self.gate.synced();
        tracing::info!(resource = %control.resource, present = object.is_some(), "synced");
        Callback::tell(self.callbacks.on_sync_complete.as_ref(), "on_sync_complete", object, control).await;
    }
}
