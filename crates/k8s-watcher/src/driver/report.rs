//! What the status and the log are told of all scopes together.

use std::time::SystemTime;

use super::{Driver, Sink};
use crate::engine::Report;
use crate::status::{ErrorClass, Phase, WatchError};

impl<K: Sink> Driver<K> {
    pub(super) fn report(&mut self, at: usize, report: Report) {
        let namespace = self.scopes[at].namespace.clone();
        let error = report.to_watch_error(&self.requests.gvr.to_string(), namespace.as_deref(), SystemTime::now());
        // What the protocol brings along every day is no news to an operator.
        if report.first && report.class != ErrorClass::Expired {
            tracing::warn!(resource = %self.requests.gvr, namespace, %error, "watch trouble");
        } else {
            tracing::debug!(resource = %self.requests.gvr, namespace, %error, "watch trouble");
        }
        self.failed(error);
    }

    pub(super) fn failed(&mut self, error: WatchError) {
        self.failures.count(error.class);
        self.last_error = Some(error);
    }

    /// What all scopes together are at: the least happy phase, the oldest contact.
    pub(super) fn publish_status(&self) {
        let progress: Vec<_> = self.scopes.iter().map(|s| s.engine.progress()).collect();
        let phase = progress.iter().map(|p| p.phase).reduce(worse).unwrap_or_default();
        let last_contact = progress.iter().map(|p| p.last_contact).min().flatten();
        let current_at = progress.iter().map(|p| p.current_at).min().flatten();
        let resource_version = match &self.scopes[..] {
            [scope] => scope.engine.resume_version().map(str::to_owned),
            _ => None,
        };
        self.control.status.update(|s| {
            self.sink.report(s);
            self.skipped.report(s);
            s.last_event = self.last_event;
            s.failures = self.failures;
            s.phase = phase;
            s.last_contact = last_contact;
            s.current_at = current_at;
            s.resource_version = resource_version;
            s.relists = progress.iter().map(|p| p.relists).sum();
            s.restarts = progress.iter().map(|p| p.restarts).sum();
            s.last_watch_error.clone_from(&self.last_error);
        });
    }
}

/// The phase that stands for two scopes: the less happy one. What both have read is added up.
fn worse(a: Phase, b: Phase) -> Phase {
    let rank = |phase: &Phase| match phase {
        Phase::Stopped => 0,
        Phase::Watching => 1,
        Phase::NotStarted | Phase::Starting => 2,
        Phase::Listing { .. } => 3,
        Phase::BackingOff { .. } => 4,
    };
    match (a, b) {
        (Phase::Listing { pages, items }, Phase::Listing { pages: more_pages, items: more_items }) => {
            Phase::Listing { pages: pages.saturating_add(more_pages), items: items.saturating_add(more_items) }
        }
        (a, b) if rank(&a) >= rank(&b) => a,
        (_, b) => b,
    }
}
