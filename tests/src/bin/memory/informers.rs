//! What the parts of the soak have in common: waiting until a watcher has seen everything.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_fake_apiserver::FakeApiServer;
use k8s_informer::watcher::{SingleWatcherHandle, Status, WatcherHandle};
use tokio::sync::watch;

/// More than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A handle of any kind of watcher.
pub(crate) trait Watched {
    fn statuses(&self) -> watch::Receiver<Status>;
}

impl<S> Watched for WatcherHandle<S> {
    fn statuses(&self) -> watch::Receiver<Status> {
        self.status_changes()
    }
}

impl Watched for SingleWatcherHandle {
    fn statuses(&self) -> watch::Receiver<Status> {
        self.status_changes()
    }
}

/// Waits until a watcher knows a revision of the server, which must be of an object that it watches.
pub(crate) async fn reached(watcher: &impl Watched, revision: u64) -> Result<()> {
    let mut statuses = watcher.statuses();
    let version = |status: &Status| status.resource_version.as_deref()?.parse::<u64>().ok();
    let there = statuses.wait_for(|status| version(status) >= Some(revision));
    let reached = tokio::time::timeout(LONG, there).await;
    reached.context("a watcher does not follow")?.context("a watcher has ended").map(drop)
}

/// Makes all watchers read everything again because the history is gone.
pub(crate) fn expire(server: &FakeApiServer) {
    server.compact();
    server.close_watches();
}
