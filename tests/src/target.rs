//! The server that a scenario runs against.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_fake_apiserver::{Any, Status};
use serde_json::Value;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::assets::Assets;
use crate::control_plane::{ControlPlane, client_of};
use crate::embedded::Embedded;

/// One real control plane at a time in a process: two on the same cores get in each other's way and prove nothing more.
static ONE_AT_A_TIME: LazyLock<Arc<Mutex<()>>> = LazyLock::new(Arc::default);

/// An API server of a scenario's own; ends with it.
///
/// Everything here works the same on both; what follows for clients is what a real server would do.
pub struct Target {
    kind: Kind,
    client: kube::Client,
    // Last: it is let go when the processes have ended.
    _alone: Option<OwnedMutexGuard<()>>,
}

#[derive(Debug)]
enum Kind {
    Embedded(Box<Embedded>),
    Real(Box<ControlPlane>),
}

impl Target {
    /// The embedded server.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub async fn embedded() -> Result<Self> {
        let embedded = Embedded::start().await?;
        let client = client_of(&embedded.kubeconfig()).await?;
        Ok(Self { kind: Kind::Embedded(Box::new(embedded)), client, _alone: None })
    }

    /// A real kube-apiserver with its etcd, or `None` when there are none on this machine, which has been said loudly.
    /// Never builds them.
    ///
    /// # Errors
    ///
    /// It cannot be started, or there are none and this is CI.
    pub async fn real() -> Result<Option<Self>> {
        let Some(assets) = crate::or_skip(Assets::find()?)? else { return Ok(None) };
        let alone = Arc::clone(&ONE_AT_A_TIME).lock_owned().await;
        let plane = ControlPlane::start(&assets).await?;
        let client = plane.client().await?;
        Ok(Some(Self { kind: Kind::Real(Box::new(plane)), client, _alone: Some(alone) }))
    }

    /// Whether it is a real kube-apiserver.
    #[must_use]
    pub fn is_real(&self) -> bool {
        matches!(self.kind, Kind::Real(_))
    }

    /// `embedded` or `real`, for messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::Embedded(_) => "embedded",
            Kind::Real(..) => "real",
        }
    }

    /// A plain kube client over the network, without kube's retries. It outlives restarts: the address stays.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// A kubeconfig file, valid as long as this value lives.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        match &self.kind {
            Kind::Embedded(embedded) => embedded.kubeconfig(),
            Kind::Real(plane) => plane.kubeconfig(),
        }
    }

    /// The embedded server, for what only it can: faults, journal.
    #[must_use]
    pub fn as_embedded(&self) -> Option<&Embedded> {
        match &self.kind {
            Kind::Embedded(embedded) => Some(embedded),
            Kind::Real(..) => None,
        }
    }

    /// Takes the API server away without warning: connections break, new ones are refused. The objects stay.
    pub async fn stop(&mut self) {
        match &mut self.kind {
            Kind::Embedded(embedded) => embedded.shut().await,
            Kind::Real(plane) => plane.kill_api_server(),
        }
    }

    /// Brings it back at the same address and waits until it is ready.
    ///
    /// # Errors
    ///
    /// It does not come back.
    pub async fn start(&mut self) -> Result<()> {
        match &mut self.kind {
            Kind::Embedded(embedded) => embedded.open().await?,
            Kind::Real(plane) => plane.start_api_server().await?,
        }
        self.forget_broken_connections().await
    }

    /// The client keeps connections for later, and may not have noticed yet that they are broken. A write over one
    /// would fail; that is the clients' business who were there before, not of the scenario's next step.
    async fn forget_broken_connections(&self) -> Result<()> {
        let answer = async {
            while self.client.apiserver_version().await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), answer).await.context("the server does not answer")
    }

    /// [`stop`](Self::stop) and [`start`](Self::start).
    ///
    /// # Errors
    ///
    /// It does not come back.
    pub async fn restart(&mut self) -> Result<()> {
        self.stop().await;
        self.start().await
    }

    /// Puts whole ConfigMaps into the storage, past the API, which is the quickest way to fill it. They need namespace,
    /// name, `uid` and `creationTimestamp`; nobody should be watching.
    ///
    /// # Errors
    ///
    /// The storage refuses.
    pub async fn load(&self, config_maps: impl IntoIterator<Item = Value>) -> Result<()> {
        match &self.kind {
            Kind::Embedded(embedded) => embedded.server().apply_all(config_maps)?,
            Kind::Real(plane) => plane.load("configmaps", config_maps).await?,
        }
        Ok(())
    }

    /// Takes the storage away from under the API server without warning: etcd is killed. Open watches stay open and
    /// silent, requests fail or wait. The embedded server, which has no storage, refuses all requests instead.
    pub fn stop_storage(&mut self) {
        match &mut self.kind {
            Kind::Embedded(embedded) => {
                let lost = Status::internal_error("the storage does not answer");
                embedded.server().faults().on(Any::request()).always().status(lost);
            }
            Kind::Real(plane) => plane.kill_etcd(),
        }
    }

    /// Brings it back with all that it had, and waits until the API server, if it runs, is ready.
    ///
    /// # Errors
    ///
    /// It does not come back.
    pub async fn start_storage(&mut self) -> Result<()> {
        match &mut self.kind {
            Kind::Embedded(embedded) => embedded.server().faults().clear(),
            Kind::Real(plane) => plane.start_etcd().await?,
        }
        Ok(())
    }

    /// Compacts the storage while the API server runs. What a real one has in its watch cache it goes on serving.
    ///
    /// # Errors
    ///
    /// The storage refuses.
    pub async fn compact_storage(&self) -> Result<()> {
        match &self.kind {
            Kind::Embedded(embedded) => embedded.server().compact(),
            Kind::Real(plane) => plane.compact_etcd().await?,
        }
        Ok(())
    }

    /// Forgets all history: every earlier resourceVersion and continue token is too old from now on. The API server
    /// is restarted in the course of it, since a real one would go on serving old versions from its watch cache.
    ///
    /// # Errors
    ///
    /// It does not come back.
    pub async fn compact(&mut self) -> Result<()> {
        match &mut self.kind {
            Kind::Embedded(embedded) => {
                embedded.shut().await;
                embedded.server().compact();
                embedded.open().await?;
            }
            Kind::Real(plane) => plane.compact().await?,
        }
        self.forget_broken_connections().await
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.kind).finish()
    }
}
