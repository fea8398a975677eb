//! A real control plane of its own: etcd and kube-apiserver on free loopback ports, in a scratch folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use crate::assets::Assets;
use crate::ports;
use process::Process;

mod access;
mod etcd;
mod process;

pub use access::{client_of, config_of};

/// How long etcd and the API server may take to answer: a start takes about 5 s on an idle machine, 16 s with a
/// folder full of objects, more while a build runs beside it.
const READY: Duration = Duration::from_secs(120);

/// How often a start is tried again when somebody else took one of the ports meanwhile.
const TRIES: usize = 3;

/// A running control plane. Ends its two processes, and only these, when dropped.
///
/// No controller-manager runs: nothing fills EndpointSlices or collects orphans. A static token of the group
/// `system:masters` is always authorised and outside API Priority and Fairness. etcd does not sync to disk, the folder is
/// scratch; it survives a killed process.
#[derive(Debug)]
pub struct ControlPlane {
    // The order matters when dropped: the API server goes first, the folder last.
    api_server: Option<Process>,
    etcd: Option<Process>,
    assets: Assets,
    ports: Ports,
    folder: PathBuf,
    /// Whether its processes are meant to outlive this one.
    outlives: bool,
    _scratch: Option<TempDir>,
}

#[derive(Debug, Clone, Copy)]
struct Ports {
    etcd: u16,
    peer: u16,
    api: u16,
}

impl Ports {
    /// All are held open at once so that they differ.
    fn free() -> Result<Self> {
        let bound = [(); 3].map(|()| ports::listen());
        let mut ports = [0; 3];
        for (port, listener) in ports.iter_mut().zip(bound) {
            *port = listener?.local_addr()?.port();
        }
        let [etcd, peer, api] = ports;
        Ok(Self { etcd, peer, api })
    }
}

impl ControlPlane {
    /// Starts one in a temporary folder and waits until it is ready.
    ///
    /// # Errors
    ///
    /// One of the programs ended or did not get ready; the text has the end of its log.
    pub async fn start(assets: &Assets) -> Result<Self> {
        let scratch = tempfile::Builder::new().prefix("control-plane-").tempdir()?;
        let mut plane = Self::start_as(assets, scratch.path(), false).await?;
        plane._scratch = Some(scratch);
        Ok(plane)
    }

    /// Starts one in `folder`, which keeps its objects: the next start there has them at once. Meant for
    /// [`detach`](Self::detach): a Ctrl-C does not reach its processes.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), or one runs there already.
    pub async fn start_in(assets: &Assets, folder: &Path) -> Result<Self> {
        Self::start_as(assets, folder, true).await
    }

    async fn start_as(assets: &Assets, folder: &Path, outlives: bool) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        for name in [API_SERVER, ETCD] {
            if let Some(pid) = process::running(&folder, name) {
                bail!("{name} runs in {} already, process {pid}", folder.display());
            }
        }
        access::write_token(&folder)?;
        for attempt in 1.. {
            let ports = Ports::free()?;
            let mut plane = Self {
                api_server: None,
                etcd: None,
                assets: assets.clone(),
                ports,
                folder: folder.clone(),
                outlives,
                _scratch: None,
            };
            match plane.start_all().await {
                Ok(()) => return Ok(plane),
                Err(e) if attempt < TRIES && format!("{e:#}").contains("address already in use") => {}
                Err(e) => return Err(e),
            }
        }
        unreachable!("the loop ends by returning")
    }

    async fn start_all(&mut self) -> Result<()> {
        // A folder that is started again has other ports by now, which its etcd must be told.
        let has_moved = self.etcd_data().exists();
        self.etcd = Some(self.spawn_etcd(has_moved)?);
        self.start_api_server().await
    }

    fn etcd_data(&self) -> PathBuf {
        self.folder.join("etcd")
    }

    /// With `has_moved` it takes the ports of today, and forgets what was not yet marked as committed when it ended:
    /// nothing after an orderly end, the last writes after a crash. So a crashed one is started without.
    fn spawn_etcd(&self, has_moved: bool) -> Result<Process> {
        let client = etcd_url(self.ports.etcd);
        let peer = etcd_url(self.ports.peer);
        let data = self.etcd_data();
        let mut arguments = vec![
            "--name=e2e".to_owned(),
            format!("--data-dir={}", data.display()),
            "--unsafe-no-fsync".to_owned(),
            "--logger=zap".to_owned(),
            "--log-level=warn".to_owned(),
            "--quota-backend-bytes=8589934592".to_owned(),
            "--max-request-bytes=16777216".to_owned(),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=e2e={peer}"),
        ];
        if has_moved {
            arguments.push("--force-new-cluster".to_owned());
        }
        Process::spawn(&self.folder, ETCD, &self.assets.etcd(), &arguments, self.outlives)
    }

    fn spawn_api_server(&self) -> Result<Process> {
        let pki = self.folder.join("pki");
        // The server signs its own certificate; the key of it serves for service accounts too.
        let key = pki.join("apiserver.key");
        let arguments = [
            format!("--etcd-servers={}", etcd_url(self.ports.etcd)),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.ports.api),
            format!("--cert-dir={}", pki.display()),
            format!("--token-auth-file={}", self.folder.join(access::TOKENS).display()),
            "--authorization-mode=RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", key.display()),
            format!("--service-account-signing-key-file={}", key.display()),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            // Pods can be made without a controller-manager, and writes are not slowed by admission nobody tests here.
            "--disable-admission-plugins=ServiceAccount,LimitRanger,ResourceQuota,Priority,RuntimeClass,\
             TaintNodesByCondition,StorageObjectInUseProtection,PersistentVolumeClaimResize"
                .to_owned(),
            "--enable-priority-and-fairness=false".to_owned(),
            "--max-requests-inflight=0".to_owned(),
            "--max-mutating-requests-inflight=0".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            "--profiling=false".to_owned(),
        ];
        Process::spawn(&self.folder, API_SERVER, &self.assets.api_server(), &arguments, self.outlives)
    }

    /// Starts the API server again on the same port and data, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// It ended or did not get ready; the text has the end of its log.
    pub async fn start_api_server(&mut self) -> Result<()> {
        if self.api_server.is_some() {
            bail!("the API server runs already");
        }
        self.api_server = Some(self.spawn_api_server()?);
        self.ready().await
    }

    async fn ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY;
        loop {
            self.check_alive()?;
            if self.is_ready().await {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("the control plane is not ready after {READY:?}: {}", self.log_tail(API_SERVER));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn check_alive(&mut self) -> Result<()> {
        let mut ended = None;
        for (name, process) in [(ETCD, &mut self.etcd), (API_SERVER, &mut self.api_server)] {
            if let Some(status) = process.as_mut().map(Process::ended).transpose()?.flatten() {
                ended = Some((name, status));
                break;
            }
        }
        match ended {
            Some((name, status)) => bail!("{name} ended with {status}: {}", self.log_tail(name)),
            None => Ok(()),
        }
    }

    async fn is_ready(&self) -> bool {
        let Ok(client) = self.client().await else { return false };
        let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else { return false };
        let answer = client.request_text(request);
        tokio::time::timeout(Duration::from_secs(5), answer).await.is_ok_and(|a| a.is_ok_and(|text| text == "ok"))
    }

    /// Kills the API server without warning, as a crash would. Does nothing when it does not run.
    pub fn kill_api_server(&mut self) {
        self.api_server = None;
    }

    /// Kills etcd without warning, as a crash would; the API server, if it runs, goes on without. Does nothing when it
    /// does not run.
    pub fn kill_etcd(&mut self) {
        self.etcd = None;
    }

    /// Starts etcd again on the same ports and data, and waits until the API server, if it runs, is ready again.
    ///
    /// # Errors
    ///
    /// It runs already; it ended; or the API server did not get ready.
    pub async fn start_etcd(&mut self) -> Result<()> {
        if self.etcd.is_some() {
            bail!("etcd runs already");
        }
        self.etcd = Some(self.spawn_etcd(false)?);
        if self.api_server.is_some() { self.ready().await } else { Ok(()) }
    }

    /// Kills the API server and starts it again on the same port and data.
    ///
    /// # Errors
    ///
    /// As [`start_api_server`](Self::start_api_server).
    pub async fn restart_api_server(&mut self) -> Result<()> {
        self.kill_api_server();
        self.start_api_server().await
    }

    /// Compacts etcd up to now while the API server runs, which goes on serving what its watch cache has and refuses
    /// what only etcd knew.
    ///
    /// # Errors
    ///
    /// etcd refused.
    pub async fn compact_etcd(&self) -> Result<()> {
        let port = self.ports.etcd;
        tokio::task::spawn_blocking(move || etcd::compact(port)).await?
    }

    /// Makes every resourceVersion before now too old: compacts etcd and restarts the API server, whose watch cache
    /// would go on serving old versions otherwise.
    ///
    /// # Errors
    ///
    /// etcd refused, or the API server did not come back.
    pub async fn compact(&mut self) -> Result<()> {
        self.kill_api_server();
        self.compact_etcd().await?;
        self.start_api_server().await
    }

    /// Puts whole objects of a core kind (`configmaps`) into etcd, past the API server: thirty thousand in a few seconds
    /// instead of half a minute. They need all that the API server would have filled in, and nobody should be
    /// watching: many of them share a resourceVersion.
    ///
    /// # Errors
    ///
    /// An object has no namespace or name, or etcd refused.
    pub async fn load(&self, resource: &str, objects: impl IntoIterator<Item = Value>) -> Result<()> {
        let key = |object: Value| {
            let text =
                |name: &str| object["metadata"][name].as_str().with_context(|| format!("an object without {name}"));
            Ok((format!("/registry/{resource}/{}/{}", text("namespace")?, text("name")?), object))
        };
        let values = objects.into_iter().map(key).collect::<Result<Vec<_>>>()?;
        let port = self.ports.etcd;
        tokio::task::spawn_blocking(move || etcd::put(port, &values)).await?
    }

    /// The kubeconfig file, valid as long as this value lives.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// The server's address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.api)
    }

    /// A plain kube client of it, without kube's retries.
    ///
    /// # Errors
    ///
    /// The server has not written its certificate yet.
    pub async fn client(&self) -> Result<kube::Client> {
        access::write_kubeconfig(&self.folder, &self.url(), &self.kubeconfig())?;
        client_of(&self.kubeconfig()).await
    }

    /// Leaves both processes running when this value goes; [`stop_in`] ends them.
    pub fn detach(mut self) {
        for process in [self.api_server.take(), self.etcd.take()].into_iter().flatten() {
            process.detach();
        }
    }

    fn log_tail(&self, name: &str) -> String {
        process::log_tail(&self.folder, name)
    }
}

const ETCD: &str = "etcd";
const API_SERVER: &str = "kube-apiserver";

fn etcd_url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// Ends the processes that a detached control plane left in `folder`, and only these.
///
/// # Errors
///
/// There is no such folder, or a process would not end.
pub fn stop_in(folder: &Path) -> Result<()> {
    let folder = folder.canonicalize().with_context(|| format!("no folder {}", folder.display()))?;
    for name in [API_SERVER, ETCD] {
        process::stop(&folder, name)?;
    }
    Ok(())
}
