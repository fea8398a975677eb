//! Which server, as whom: the ways to say it, and the client made of it.

use std::fmt;
use std::path::{Path, PathBuf};

use kube::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};

use crate::client::Client;
use crate::error::Error;
use crate::namespace;

mod files;
#[cfg(test)]
mod tests;

/// Where the server's address and the credentials come from; [`build`](Self::build) makes a [`Client`] of it.
///
/// # Examples
///
/// ```
/// # async fn connect() -> Result<(), k8s_client::Error> {
/// let client = k8s_client::ClientConfig::kubeconfig("/etc/controller/kubeconfig")
///     .context("staging")
///     .namespace("shop")
///     .build()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ClientConfig {
    source: Source,
    context: Option<String>,
    namespace: Option<String>,
}

#[derive(Clone, PartialEq, Eq)]
enum Source {
    Infer,
    File(PathBuf),
    Content(String),
    InCluster,
}

impl ClientConfig {
    fn new(source: Source) -> Self {
        Self { source, context: None, namespace: None }
    }

    /// Finds the server by itself, in this order: the files in `$KUBECONFIG` (merged as kubectl does,
    /// missing ones skipped), the in-cluster environment, `~/.kube/config` (not when `$KUBECONFIG` is set). A [`context`](Self::context) skips the in-cluster environment,
    /// which has none.
    #[must_use]
    pub fn infer() -> Self {
        Self::new(Source::Infer)
    }

    /// Reads one kubeconfig file; it is not merged with anything. Relative paths in it are relative to its folder.
    #[must_use]
    pub fn kubeconfig(path: impl Into<PathBuf>) -> Self {
        Self::new(Source::File(path.into()))
    }

    /// Takes the text of a kubeconfig. Relative paths in it are relative to the working directory.
    #[must_use]
    pub fn kubeconfig_content(yaml: impl Into<String>) -> Self {
        Self::new(Source::Content(yaml.into()))
    }

    /// Uses the service account of the Pod that the program runs in.
    #[must_use]
    pub fn in_cluster() -> Self {
        Self::new(Source::InCluster)
    }

    /// Chooses a context of the kubeconfig by name instead of its `current-context`.
    #[must_use]
    pub fn context(mut self, name: impl Into<String>) -> Self {
        self.context = Some(name.into());
        self
    }

    /// Sets the client's own namespace, above what the context or the service account says. Reads of a namespaced
    /// kind for which the caller names no namespace use it too; a namespace found by itself is never used so.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Loads everything and makes the client. Sends nothing to the server, but may run the kubeconfig's credential
    /// plugin.
    ///
    /// kube's own retry layer and response compression are off in the client: whoever uses it sees each answer as
    /// it came.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when the kubeconfig or the service account cannot be loaded or names something that does
    /// not exist, [`Error::Build`] when no client can be made of it, [`Error::InvalidName`] for an empty namespace,
    /// [`Error::NoRuntime`] outside Tokio.
    ///
    /// # Cancel safety
    ///
    /// Nothing is kept when the future is dropped.
    pub async fn build(self) -> Result<Client, Error> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(Error::NoRuntime);
        }
        if let Some(namespace) = self.namespace.as_deref()
            && namespace.trim().is_empty()
        {
            return Err(Error::InvalidName { field: "namespace", value: namespace.to_owned() });
        }
        let loaded = self.load().await?;
        let mut config = loaded.config;
        // The engine above owns retries: a hidden second layer would multiply them and replay writes.
        config.default_retry = false;
        // Compressed watches arrive in bursts, and lists are read as they come.
        config.disable_compression = true;
        if let Some(namespace) = &self.namespace {
            config.default_namespace.clone_from(namespace);
        }
        let kube = kube::Client::try_from(config).map_err(|e| Error::build(&loaded.origin, e))?;
        let own = self.namespace.clone().or(loaded.namespace);
        Ok(Client::assemble(kube, own, self.namespace))
    }

    async fn load(&self) -> Result<Loaded, Error> {
        match &self.source {
            Source::File(path) => self.select(files::read(path)?, files::origin(path)).await,
            Source::Content(text) => {
                let origin = "the given kubeconfig".to_owned();
                let kubeconfig = Kubeconfig::from_yaml(text).map_err(|e| Error::config(&origin, e))?;
                self.select(kubeconfig, origin).await
            }
            Source::InCluster if self.context.is_some() => {
                Err(Error::config_text("the in-cluster configuration", "it has no contexts to choose from"))
            }
            Source::InCluster => in_cluster().await,
            Source::Infer => self.infer_and_load().await,
        }
    }

    async fn infer_and_load(&self) -> Result<Loaded, Error> {
        let files = files::from_environment();
        if let Some(merged) = files::read_existing(files.as_deref().unwrap_or_default())? {
            return self
                .select(merged, "the kubeconfig files in $KUBECONFIG".to_owned())
                .await
                .map(Loaded::with_overrides);
        }
        if self.context.is_none() && std::env::var_os(HOST).is_some() {
            return in_cluster().await.map(Loaded::with_overrides);
        }
        if files.is_some() {
            return Err(Error::config_text("the kubeconfig files in $KUBECONFIG", "none of them exists"));
        }
        let path = files::of_user().ok_or_else(|| Error::config_text("the user's kubeconfig", "no home folder"))?;
        self.select(files::read(&path)?, files::origin(&path)).await.map(Loaded::with_overrides)
    }

    /// Resolves the context of a kubeconfig.
    async fn select(&self, kubeconfig: Kubeconfig, origin: String) -> Result<Loaded, Error> {
        let chosen = self.context.as_ref().or(kubeconfig.current_context.as_ref());
        let namespace = chosen
            .and_then(|name| kubeconfig.contexts.iter().find(|c| &c.name == name))
            .and_then(|c| c.context.as_ref()?.namespace.as_deref())
            .and_then(namespace::non_empty);
        let options = KubeConfigOptions { context: self.context.clone(), ..Default::default() };
        let mut config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|e| Error::config(&origin, e))?;
        if namespace.is_none() {
            // An empty or absent `namespace` means kubectl's default for kube's own API.
            "default".clone_into(&mut config.default_namespace);
        }
        Ok(Loaded { config, namespace, origin })
    }
}

/// Shows where the configuration comes from, never its content.
impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source: &dyn fmt::Debug = match &self.source {
            Source::Infer => &"infer",
            Source::File(path) => path,
            Source::Content(_) => &"content",
            Source::InCluster => &"in-cluster",
        };
        f.debug_struct("ClientConfig")
            .field("source", source)
            .field("context", &self.context)
            .field("namespace", &self.namespace)
            .finish()
    }
}

#[derive(Debug)]
struct Loaded {
    config: kube::Config,
    /// The namespace that the context or the service account names.
    namespace: Option<String>,
    origin: String,
}

impl Loaded {
    fn with_overrides(mut self) -> Self {
        self.config.apply_debug_overrides();
        self
    }
}

const HOST: &str = "KUBERNETES_SERVICE_HOST";
const PORT: &str = "KUBERNETES_SERVICE_PORT";
/// The name of everything in the kubeconfig that stands for the service account.
const IN_CLUSTER: &str = "in-cluster";

async fn in_cluster() -> Result<Loaded, Error> {
    let origin = "the in-cluster configuration";
    let read = |name: &str| {
        std::env::var(name).map_err(|_| Error::config_text(origin, format!("the environment has no {name}")))
    };
    service_account(&read(HOST)?, &read(PORT)?, Path::new(namespace::SERVICE_ACCOUNT)).await
}

/// kube's in-cluster loader refuses a service account without a namespace file; ours goes on without a namespace.
/// The files are put into a kubeconfig of one context, so that kube reads, checks and later re-reads them.
async fn service_account(host: &str, port: &str, folder: &Path) -> Result<Loaded, Error> {
    let origin = "the in-cluster configuration".to_owned();
    let port: u16 =
        port.parse().map_err(|_| Error::config_text(&origin, format!("{PORT} is no port number: {port:?}")))?;
    let host = match host.parse::<std::net::Ipv6Addr>() {
        Ok(ip) => format!("[{ip}]"),
        Err(_) => host.to_owned(),
    };
    let file = |name: &str| folder.join(name).to_str().map(str::to_owned);
    let root = folder.join("ca.crt");
    if let Err(error) = std::fs::metadata(folder.join("token")) {
        return Err(Error::Config { origin, source: format!("no service account token: {error}").into() });
    }
    let kubeconfig = Kubeconfig {
        clusters: vec![NamedCluster {
            name: IN_CLUSTER.into(),
            cluster: Some(Cluster {
                server: Some(format!("https://{host}:{port}")),
                certificate_authority: file("ca.crt"),
                ..Default::default()
            }),
            other: Default::default(),
        }],
        auth_infos: vec![NamedAuthInfo {
            name: IN_CLUSTER.into(),
            auth_info: Some(AuthInfo { token_file: file("token"), ..Default::default() }),
            other: Default::default(),
        }],
        contexts: vec![NamedContext {
            name: IN_CLUSTER.into(),
            context: Some(Context { cluster: IN_CLUSTER.into(), user: Some(IN_CLUSTER.into()), ..Default::default() }),
            other: Default::default(),
        }],
        current_context: Some(IN_CLUSTER.into()),
        ..Default::default()
    };
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|e| Error::config(&origin, e))?;
    // The cluster's CA is rotated: kube re-reads this file for new connections.
    config.root_cert_file = Some(root);
    // The server is next door; HTTPS_PROXY of the Pod is for the outside.
    config.proxy_url = None;
    let namespace = namespace::of_service_account(folder);
    if let Some(namespace) = &namespace {
        config.default_namespace.clone_from(namespace);
    }
    Ok(Loaded { config, namespace, origin })
}
