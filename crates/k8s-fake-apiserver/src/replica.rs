//! A second API server over the same storage.

use std::sync::Arc;

use crate::core::{Core, View};
use crate::service::FakeService;

/// An API server whose cache may be behind the storage, as one of several behind a load balancer is.
///
/// Lists "at any version" (`resourceVersion=0`), watches and bookmarks show what this replica has seen. Consistent reads
/// (no version) and writes go to the storage. A version that it has not seen is waited for, up to 3 seconds. Faults and
/// journal are the server's. Clones are handles to the same replica.
#[derive(Debug, Clone)]
pub struct Replica {
    core: Arc<Core>,
    view: View,
}

impl Replica {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core, view: View::default() }
    }

    /// Keeps this replica so many revisions behind from now on; 0 lets it catch up.
    pub fn set_lag(&self, revisions: u64) {
        self.view.set_lag(revisions);
        self.core.log.lock().wake_all();
    }

    /// The newest revision that it has seen.
    pub fn revision(&self) -> u64 {
        self.view.visible(&self.core.log.lock())
    }

    /// A client of this replica.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), self.core.options.default_namespace.clone())
    }

    /// This replica as a tower service.
    pub fn service(&self) -> FakeService {
        FakeService::new(self.core.clone(), self.view.clone())
    }
}
