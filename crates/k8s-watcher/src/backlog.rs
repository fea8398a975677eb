//! How far behind those are who listen to a watcher.

use k8s_types::ChangeStats;

/// What waits for callbacks and for readers of changes; see [`WatcherHandle::backlog`](crate::WatcherHandle::backlog).
///
/// The reading waits for none of them. For a callback numbers wait, for a stream the former state of each object that has
/// changed since its last batch, so neither is ever more than what there is, however long somebody stalls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backlog {
    /// What happened that no `on_change` was called for yet: a call that runs has been told what it is about. Nothing
    /// without `on_change`.
    pub untold: ChangeStats,
    /// For each [stream of changes](crate::Changes), in the order in which they were begun, how many objects have
    /// changed since its last batch. None of them counts for a stream whose first batch was not taken yet: that one is the
    /// state itself.
    pub unread: Vec<usize>,
}

impl Backlog {
    /// Whether everybody has heard of everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.untold.is_empty() && self.unread.iter().all(|objects| *objects == 0)
    }

    /// How many objects have changed since the last batch of the slowest stream; none without streams.
    #[must_use]
    pub fn longest_stream(&self) -> Option<usize> {
        self.unread.iter().copied().max()
    }
}
