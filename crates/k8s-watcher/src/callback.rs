//! What the user gave us to call, in one shape: a boxed function that runs on a task of its own.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use k8s_store::{MemoryStore, Snapshot};
use k8s_types::ChangeStats;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::WatcherHandle;
use crate::control::Control;

/// What a callback is given: what happened and where it can be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChangeContext<S = MemoryStore> {
    /// The state that includes what is counted in `stats`; it may be newer than when the callback became due. With a
    /// cached store it has the references; the objects are read from `watcher.store()`.
    pub snapshot: Snapshot,
    /// What happened since the last call. Empty when the call was [forced](WatcherHandle::force_sync).
    pub stats: ChangeStats,
    /// The watcher: every accessor may be used inside a callback.
    pub watcher: WatcherHandle<S>,
}

/// What a callback may return: nothing, or a result whose error is logged and counted as nothing worse.
///
/// Sealed: implemented for `()` and for `Result<(), E>` where `E: Display`.
#[diagnostic::on_unimplemented(
    message = "a callback returns `()` or `Result<(), E>` where `E: Display`, not `{Self}`",
    note = "for an async function use the method whose name ends in `_async`"
)]
pub trait Outcome: sealed::Sealed + Send + 'static {
    #[doc(hidden)]
    fn into_message(self) -> Option<String>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for () {}
    impl<E> Sealed for Result<(), E> {}
}

impl Outcome for () {
    fn into_message(self) -> Option<String> {
        None
    }
}

impl<E: fmt::Display + Send + 'static> Outcome for Result<(), E> {
    fn into_message(self) -> Option<String> {
        self.err().map(|e| e.to_string())
    }
}

type Ended = Pin<Box<dyn Future<Output = Result<Option<String>, tokio::task::JoinError>> + Send>>;

/// A callback with argument `A`, ready to be started.
pub(crate) struct Callback<A> {
    start: Arc<dyn Fn(A) -> Ended + Send + Sync>,
}

/// How a callback ended.
#[derive(Debug, PartialEq)]
enum Ending {
    Done,
    Failed(String),
    Panicked,
}

impl<A: Send + 'static> Callback<A> {
    /// A function that may block: it runs on a thread for such work.
    pub(crate) fn blocking<R: Outcome>(function: impl Fn(A) -> R + Send + Sync + 'static) -> Self {
        let function = Arc::new(function);
        let start = move |argument| -> Ended {
            let function = function.clone();
            let task = tokio::task::spawn_blocking(move || function(argument).into_message());
            Box::pin(task)
        };
        Self { start: Arc::new(start) }
    }

    /// An async function: it runs on a task of its own, which ends with the watcher.
    pub(crate) fn future<F, R>(function: impl Fn(A) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = R> + Send + 'static,
        R: Outcome,
    {
        let function = Arc::new(function);
        let start = move |argument| -> Ended {
            let function = function.clone();
            let task = tokio::spawn(async move { function(argument).await.into_message() });
            Box::pin(AbortOnDropHandle::new(task))
        };
        Self { start: Arc::new(start) }
    }

    /// Runs the callback to its end; a panic in it is an ending like others.
    async fn call(&self, argument: A) -> Ending {
        let start = self.start.clone();
        // Starting fails only outside a runtime or when it shuts down; that is no reason to take the watcher along.
        let started = std::panic::catch_unwind(AssertUnwindSafe(|| start(argument)));
        let Ok(ended) = started else { return Ending::Panicked };
        match ended.await {
            Ok(None) => Ending::Done,
            Ok(Some(message)) => Ending::Failed(message),
            Err(e) if e.is_panic() => Ending::Panicked,
            Err(_) => Ending::Done,
        }
    }

    /// Runs the callback to its end, and says in log and status what went wrong with it. None is fine.
    pub(crate) async fn tell(callback: Option<&Self>, name: &'static str, argument: A, control: &Control) {
        let Some(callback) = callback else { return };
        let resource = &control.resource;
        control.status.update(|s| s.callback_since = Some(Instant::now()));
        let ending = callback.call(argument).await;
        control.status.update(|s| {
            s.callback_since = None;
            s.callback_panics += u64::from(ending == Ending::Panicked);
        });
        match ending {
            Ending::Done => {}
            Ending::Failed(error) => tracing::warn!(%resource, callback = name, error, "callback failed"),
            Ending::Panicked => tracing::error!(%resource, callback = name, "callback panicked"),
        }
    }
}

impl<A> fmt::Debug for Callback<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}
