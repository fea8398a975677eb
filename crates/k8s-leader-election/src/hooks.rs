//! What the user gave us to call besides the work. Hooks may block: they run on threads for that.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::handle::Leadership;

#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) on_started: Option<Hook>,
    pub(crate) on_stopped: Option<Hook>,
    pub(crate) on_new_leader: Option<NewLeader>,
}

pub(crate) type NewLeader = Arc<dyn Fn(&str) + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Hook {
    name: &'static str,
    function: Arc<dyn Fn() + Send + Sync>,
}

impl Hook {
    pub(crate) fn new(name: &'static str, function: impl Fn() + Send + Sync + 'static) -> Self {
        Self { name, function: Arc::new(function) }
    }

    /// Starts it. A panic in it is logged and counts as its end; the task itself fails only when the runtime shuts
    /// down.
    pub(crate) fn call(&self) -> JoinHandle<()> {
        let Self { name, function } = self.clone();
        spawn_blocking(move || {
            if catch_unwind(AssertUnwindSafe(|| function())).is_err() {
                tracing::error!(hook = name, "a hook of the elector panicked");
            }
        })
    }
}

impl Hooks {
    /// Calls `on_new_leader` for each leader that is another than the one it was called for last. While it runs, the
    /// latest wins. Ends when the elector does, or at once if there is no such hook.
    pub(crate) async fn new_leaders(&self, mut state: watch::Receiver<Leadership>) {
        let Some(function) = &self.on_new_leader else { return };
        let mut told = None;
        loop {
            let leader = state.borrow_and_update().leader().map(Arc::<str>::from);
            if leader.is_some() && leader != told {
                told.clone_from(&leader);
                let function = function.clone();
                let hook = Hook::new("on_new_leader", move || function(leader.as_deref().unwrap_or_default()));
                // Fails only when the runtime shuts down, and we with it.
                let _ = hook.call().await;
            }
            if state.changed().await.is_err() {
                return;
            }
        }
    }
}
