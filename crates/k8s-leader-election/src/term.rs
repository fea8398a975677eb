//! One term of leading from the work's side: hook, work, hook, each when the one before has ended.

use std::future::Future;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

use crate::error::Cause;
use crate::hooks::{Hook, Hooks};
use crate::lead::Lead;
use crate::work::WorkResult;

/// The work on its task. Dropping it aborts the work.
pub(crate) struct Term {
    work: AbortOnDropHandle<Result<(), Cause>>,
    end: Option<WorkEnd>,
    /// Taken when it is called.
    on_stopped: Option<Hook>,
    stopping: Option<JoinHandle<()>>,
}

/// How the work ended.
#[derive(Debug)]
pub(crate) enum WorkEnd {
    Done,
    Failed(Cause),
    Panicked,
}

impl Term {
    pub(crate) fn begin<W, F>(lead: Lead, hooks: &Hooks, work: Arc<W>) -> Self
    where
        W: Fn(Lead) -> F + Send + Sync + 'static,
        F: Future<Output: WorkResult> + Send + 'static,
    {
        let on_started = hooks.on_started.clone();
        let task = tokio::spawn(async move {
            if let Some(hook) = on_started {
                let _ = hook.call().await;
            }
            // The hook may have taken all the time there was.
            if lead.token().is_cancelled() {
                return Ok(());
            }
            work(lead).await.into_result()
        });
        Self { work: AbortOnDropHandle::new(task), end: None, on_stopped: hooks.on_stopped.clone(), stopping: None }
    }

    /// Waits until the work has ended. Dropping the future loses nothing.
    pub(crate) async fn work_ends(&mut self) {
        if self.end.is_none() {
            self.end = Some(match (&mut self.work).await {
                Ok(Ok(())) => WorkEnd::Done,
                Ok(Err(cause)) => WorkEnd::Failed(cause),
                Err(e) if e.is_panic() => WorkEnd::Panicked,
                // Only when the runtime shuts down, and so do we.
                Err(_) => WorkEnd::Done,
            });
        }
    }

    /// Waits until the work has ended and `on_stopped` has returned. Dropping the future loses nothing.
    pub(crate) async fn ends(&mut self) {
        self.work_ends().await;
        if let Some(hook) = self.on_stopped.take() {
            self.stopping = Some(hook.call());
        }
        if let Some(stopping) = &mut self.stopping {
            let _ = stopping.await;
            self.stopping = None;
        }
    }

    /// How the work ended, after [`ends`](Self::ends).
    pub(crate) fn into_end(self) -> WorkEnd {
        self.end.unwrap_or(WorkEnd::Done)
    }

    /// Waits no longer: aborts the work and says what is overdue. `on_stopped` is called if it was not yet.
    pub(crate) fn give_up(mut self) -> &'static str {
        if self.end.is_some() {
            return "on_stopped";
        }
        if let Some(hook) = self.on_stopped.take() {
            // Nobody waits for it any more.
            drop(hook.call());
        }
        "the work"
    }
}

impl WorkEnd {
    /// For ends that nobody is told of by a return value.
    pub(crate) fn log(&self) {
        match self {
            Self::Done => {}
            Self::Failed(error) => tracing::warn!(%error, "the work failed"),
            Self::Panicked => tracing::error!("the work panicked"),
        }
    }
}
