//! How a watcher runs, whatever it watches: it reads and tells side by side until somebody asks for the end.

use std::fmt;
use std::future::Future;
use std::ops::Deref;

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// A watcher that runs on a task of its own: a [`RunningWatcher`](crate::RunningWatcher) or a
/// [`RunningSingleWatcher`](crate::RunningSingleWatcher). Dropping it ends the watcher at once and loses what no callback
/// was told yet; [`shutdown`](Self::shutdown) ends it in good order.
///
/// It dereferences to the watcher's handle.
#[must_use = "dropping it ends the watcher"]
pub struct Running<H> {
    handle: H,
    stop: CancellationToken,
    task: AbortOnDropHandle<()>,
}

/// Reads and tells until both have ended. A cancelled `token` asks for that, as does `stop`, which is what they heed.
pub(crate) async fn side_by_side(
    token: CancellationToken,
    stop: CancellationToken,
    reading: impl Future<Output = ()>,
    telling: impl Future<Output = ()>,
) {
    let forward = async {
        token.cancelled().await;
        stop.cancel();
        // The other two end by themselves now.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = async { tokio::join!(reading, telling) } => {}
        () = forward => {}
    }
}

impl<H> Running<H> {
    /// Runs a watcher on a task of the current runtime.
    #[track_caller]
    pub(crate) fn spawn(
        handle: H,
        stop: CancellationToken,
        watcher: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self { handle, stop, task: AbortOnDropHandle::new(tokio::spawn(watcher)) }
    }

    /// The handle, to keep beyond this value.
    pub fn handle(&self) -> &H {
        &self.handle
    }

    /// Asks the watcher to end, waits until it has told its callbacks what they had not heard, and until the last
    /// callback has returned.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the watcher at once, as dropping the watcher does.
    pub async fn shutdown(self) {
        self.stop.cancel();
        self.join().await;
    }

    /// Waits until the watcher has ended by itself, after a `stop` of the handle.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the watcher at once, as dropping the watcher does.
    pub async fn join(self) {
        // The task cannot panic: user code runs elsewhere. When its runtime shuts down it is cancelled.
        let _ = self.task.await;
    }

    /// Leaves the watcher running until its runtime ends or `stop` of the handle is called.
    pub fn detach(self) -> H {
        self.task.detach();
        self.handle
    }
}

// === trait impls ===

impl<H> Deref for Running<H> {
    type Target = H;

    fn deref(&self) -> &H {
        &self.handle
    }
}

impl<H: fmt::Debug> fmt::Debug for Running<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("handle", &self.handle).finish_non_exhaustive()
    }
}
