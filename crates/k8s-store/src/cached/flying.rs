//! One fetch, from its turn to its answer.
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::Shared;
use k8s_packed::Object;
use k8s_types::ObjectKey;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::core::Core;
use super::name::Name;
use super::slot::{Answered, Slot};
use crate::error::FetchError;

/// How a fetch ends, for all who wait for it.
#[derive(Clone)]
pub(super) enum Outcome {
    Settled(Option<Object>),
    /// The watch was faster each time; this was the last answer.
    Overtaken(Option<Object>),
    Failed(FetchError),
}

pub(super) type Answer = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A fetch while it runs. Dropping it, which happens when nobody waits any more, takes it out of the table.
pub(super) struct Flying {
    pub(super) core: Arc<Core>,
    pub(super) key: ObjectKey,
    pub(super) id: u64,
}

impl Flying {
    /// The fetch as a task of its own, which runs while somebody holds this. It does not depend on a reader that polls:
    /// one that has put its read aside would else hold up others, and a turn.
    pub(super) fn start(self) -> Shared<Answer> {
        let answer: Answer = Box::pin(async move {
            let mut task = Task(tokio::spawn(self.land()));
            (&mut task.0).await.unwrap_or(Outcome::Failed(FetchError::Ended))
        });
        answer.shared()
    }

    async fn land(self) -> Outcome {
        loop {
            let answer = match self.ask().await {
                Ok(Asked::Answered(answer)) => answer,
                Ok(Asked::Refreshed(object)) => return Outcome::Settled(object),
                Err(error) => {
                    self.core.counters.fetch_errors.fetch_add(1, Relaxed);
                    return Outcome::Failed(error);
                }
            };
            match self.answered(answer.clone()) {
                Answered::Settled => return Outcome::Settled(answer),
                Answered::Again => {}
                Answered::GivenUp => return Outcome::Overtaken(answer),
            }
        }
    }

    /// Waits for a turn and asks once.
    async fn ask(&self) -> Result<Asked, FetchError> {
        let Self { core, key, .. } = self;
        // Nobody closes it.
        let _permit = core.permits.acquire().await;
        if let Some(kept) = self.change(|slot, stub| slot.ask(Instant::now(), stub)).flatten() {
            return Ok(Asked::Refreshed(kept.object));
        }
        core.counters.fetches.fetch_add(1, Relaxed);
        let limit = core.config.fetch_timeout;
        let answer = timeout(limit, core.fetch.fetch(key.namespace(), key.name())).await;
        let json = answer.map_err(|_| FetchError::Timeout { after: limit })??;
        json.map(|json| self.decode(&json)).transpose().map(Asked::Answered)
    }

    fn decode(&self, json: &Bytes) -> Result<Object, FetchError> {
        let object = self.core.encoder.encode_alone(json).map_err(FetchError::NoObject)?;
        let namespace = object.namespace();
        // Kinds outside namespaces ignore the one that is asked for.
        if object.name() == self.key.name() && (namespace.is_none() || namespace == self.key.namespace()) {
            return Ok(object);
        }
        Err(FetchError::OtherObject { object: ObjectKey::of(&object).to_string() })
    }

    fn answered(&self, answer: Option<Object>) -> Answered {
        let elsewhere = answer.as_ref().is_some_and(|object| object.namespace() != self.key.namespace());
        let kept = self.core.keep(answer);
        let answered = self.change(|slot, _| {
            let answered = slot.answered(kept);
            if elsewhere {
                // No event would ever find it under this name.
                slot.kept = None;
            }
            answered
        });
        // The size is bounded at all times, not at the next convenient one.
        self.core.kept.run_pending_tasks();
        answered.unwrap_or(Answered::GivenUp)
    }

    /// Changes the slot of this fetch, with the present reference at hand; none if another fetch has taken its place.
    fn change<T>(&self, change: impl FnOnce(&mut Slot, Option<&Object>) -> T) -> Option<T> {
        let Self { core, key, id } = self;
        let snapshot = core.refs.snapshot();
        let mut under_way = core.under_way.lock();
        if under_way.get(key).is_none_or(|entry| entry.id != *id) {
            return None;
        }
        let stub = snapshot.by_key(key);
        Some(core.change(&mut under_way, Name::of_key(key), |slot| change(slot, stub)))
    }
}

impl Drop for Flying {
    fn drop(&mut self) {
        self.change(|slot, _| slot.failed());
    }
}

/// A task that ends with its handle.
struct Task(JoinHandle<Outcome>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

enum Asked {
    Answered(Option<Object>),
    /// An event has brought the object before its turn came.
    Refreshed(Option<Object>),
}
