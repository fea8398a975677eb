//! Which server, as whom: the ways to say it, and the client made of it.

use std::fmt;
use std::path::PathBuf;

use crate::client::Client;
use crate::error::Error;
use crate::throttle::ThrottleLayer;

mod connect;
mod files;
#[cfg(any(fuzzing, test))]
mod fuzzed;
mod in_cluster;
mod proxy;
mod select;
#[cfg(test)]
mod tests;

#[cfg(any(fuzzing, test))]
pub use fuzzed::check_kubeconfig;

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
#[derive(Clone, PartialEq)]
pub struct ClientConfig {
    source: Source,
    context: Option<String>,
    namespace: Option<String>,
    tls_server_name: Option<String>,
    /// Requests a second, and how many at once.
    rate_limit: Option<(f64, u32)>,
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
        Self { source, context: None, namespace: None, tls_server_name: None, rate_limit: None }
    }

    /// Finds the server by itself, in this order: the files in `$KUBECONFIG` (merged as kubectl does:
    /// the first to name a thing wins; missing ones are skipped), the in-cluster environment, `~/.kube/config` (not when
    /// `$KUBECONFIG` is set). A [`context`](Self::context) skips the in-cluster environment, which has none.
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

    /// Sets the name that the server's certificate must have, and that the server is told (SNI), above what the
    /// kubeconfig's `tls-server-name` says. For servers that are reached by an address that their certificate does not
    /// hold; in-cluster that name is usually `kubernetes.default.svc`.
    #[must_use]
    pub fn tls_server_name(mut self, name: impl Into<String>) -> Self {
        self.tls_server_name = Some(name.into());
        self
    }

    /// Limits the client to `burst` requests at once, then `qps` a second; [`ThrottleLayer`] says how it counts. By
    /// default there is no limit: API Priority and Fairness of the server does that.
    #[must_use]
    pub fn rate_limit(mut self, qps: f64, burst: u32) -> Self {
        self.rate_limit = Some((qps, burst));
        self
    }

    /// Loads everything and makes the client. Sends nothing to the server, but runs the kubeconfig's credential
    /// plugin, as long as that takes.
    ///
    /// kube's own retry layer and response compression are off in the client: whoever uses it sees each answer as
    /// it came. The exception is a 401 for a token that can be renewed (a token file, a credential plugin): the request
    /// is then sent once more, if there is another token by now.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when the kubeconfig or the service account cannot be loaded or names something that does
    /// not exist, [`Error::Build`] when no client can be made of it, [`Error::InvalidName`] for an empty namespace,
    /// [`Error::InvalidSetting`] for a rate limit out of range, [`Error::NoRuntime`] outside Tokio.
    ///
    /// # Cancel safety
    ///
    /// Nothing is kept when the future is dropped; a credential plugin that runs is killed.
    pub async fn build(self) -> Result<Client, Error> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(Error::NoRuntime);
        }
        if let Some(namespace) = self.namespace.as_deref()
            && namespace.trim().is_empty()
        {
            return Err(Error::InvalidName { field: "namespace", value: namespace.to_owned() });
        }
        let throttle = self.rate_limit.map(|(qps, burst)| ThrottleLayer::new(qps, burst)).transpose()?;
        let mut loaded = self.load()?;
        if let Some(namespace) = &self.namespace {
            loaded.config.default_namespace.clone_from(namespace);
        }
        if self.tls_server_name.is_some() {
            loaded.config.tls_server_name.clone_from(&self.tls_server_name);
        }
        let own = self.namespace.clone().or_else(|| loaded.namespace.clone());
        let kube = connect::connect(loaded, throttle).await?;
        Ok(Client::assemble(kube, own, self.namespace))
    }

    fn load(&self) -> Result<Loaded, Error> {
        let context = self.context.as_deref();
        match &self.source {
            Source::File(path) => select::select(files::read(path)?, context, files::origin(path)),
            Source::Content(text) => {
                let origin = "the given kubeconfig".to_owned();
                select::select(files::parse(text, &origin)?, context, origin)
            }
            Source::InCluster if context.is_some() => {
                Err(Error::config_text("the in-cluster configuration", "it has no contexts to choose from"))
            }
            Source::InCluster => in_cluster::load(),
            Source::Infer => infer(context).map(Loaded::with_overrides),
        }
    }
}

fn infer(context: Option<&str>) -> Result<Loaded, Error> {
    let files = files::from_environment();
    if let Some(merged) = files::read_existing(files.as_deref().unwrap_or_default())? {
        return select::select(merged, context, "the kubeconfig files in $KUBECONFIG".to_owned());
    }
    if context.is_none() && std::env::var_os(in_cluster::HOST).is_some() {
        return in_cluster::load();
    }
    if files.is_some() {
        return Err(Error::config_text("the kubeconfig files in $KUBECONFIG", "none of them exists"));
    }
    let path = files::of_user().ok_or_else(|| Error::config_text("the user's kubeconfig", "no home folder"))?;
    select::select(files::read(&path)?, context, files::origin(&path))
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
            .field("tls_server_name", &self.tls_server_name)
            .field("rate_limit", &self.rate_limit)
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
