//! Which lists and watches a watcher needs: one for each namespace, or a single one.

use std::time::{Duration, SystemTime};

use k8s_client::Error as ClientError;
use k8s_types::ApiStatus;
use tokio::time::Instant;

use super::scope::chain;
use super::{Driver, Sink};
use crate::engine::{Backoff, classify};
use crate::plan::Scopes;
use crate::status::{ErrorClass, Phase, Verb, WatchError};

/// Why an object without a namespace is not looked for in all of them.
const NAMESPACE_MISSING: &str = "the kind is namespaced and no namespace was given";

impl<K: Sink> Driver<K> {
    /// Only a restriction to namespaces needs the server's word: a cluster-scoped kind has none, and is watched
    /// once. Goes on until the server has said it.
    pub(super) async fn find_scopes(&mut self) -> Vec<Option<String>> {
        let namespaces = match &self.wanted {
            Scopes::All => return vec![None],
            Scopes::Namespaces(namespaces) => Some(namespaces.clone()),
            Scopes::ClusterScoped => None,
        };
        let engine = &self.engine;
        let mut backoff =
            Backoff::new(engine.backoff_initial, engine.backoff_max, engine.backoff_factor, fastrand::u64(..));
        for attempt in 0.. {
            let asked = self.client.resource_scope(&self.requests.gvr);
            let (error, retry_after) = match tokio::time::timeout(self.engine.response_limit(), asked).await {
                Ok(Ok(scope)) if !scope.is_namespaced() => return vec![None],
                Ok(Ok(_)) if namespaces.is_some() => break,
                Ok(Ok(_)) => (self.discovery_error(ErrorClass::Rejected, None, NAMESPACE_MISSING.into()), None),
                // Who may not discover may still list: if namespaces were given, the kind has them.
                Ok(Err(e)) if e.status_code() == Some(403) => break,
                Ok(Err(e)) => (self.discovery_error(class_of(&e), e.status_code(), chain(&e)), e.retry_after()),
                Err(_) => (self.discovery_error(ErrorClass::Idle, None, "no answer came".into()), None),
            };
            let wait = backoff.step(attempt);
            let asked_for = retry_after.map_or(Duration::ZERO, |asked| backoff.retry_after(asked));
            let until = Instant::now() + wait.max(asked_for);
            if self.last_error.as_ref().map(|e| (e.class, e.code)) != Some((error.class, error.code)) {
                tracing::warn!(resource = %self.requests.gvr, %error, "cannot discover the kind; trying again");
            }
            self.failed(error);
            self.control.status.update(|s| {
                s.last_watch_error.clone_from(&self.last_error);
                s.failures = self.failures;
                s.phase = Phase::BackingOff { until, attempt: attempt.saturating_add(1) };
            });
            tokio::time::sleep_until(until).await;
        }
        namespaces.map_or_else(|| vec![None], |namespaces| namespaces.into_iter().map(Some).collect())
    }

    fn discovery_error(&self, class: ErrorClass, code: Option<u16>, message: String) -> WatchError {
        WatchError {
            at: SystemTime::now(),
            class,
            code,
            verb: Verb::List,
            resource: self.requests.gvr.to_string(),
            namespace: None,
            message,
        }
    }
}

fn class_of(error: &ClientError) -> ErrorClass {
    match error {
        _ if error.is_kind_not_served() => ErrorClass::NotFound,
        ClientError::Decode { .. } => ErrorClass::Protocol,
        _ => error.status_code().map_or(ErrorClass::Connection, |code| classify(code, &ApiStatus::default())),
    }
}
