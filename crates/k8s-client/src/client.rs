//! The client: a `kube::Client` and what it has learned about its server.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use k8s_packed::Object;
use k8s_types::Gvr;
use kube::client::Body;

use crate::config::ClientConfig;
use crate::error::Error;
use crate::namespace;
use crate::resource::{GroupVersion, ResourceScope, group_version_path, object_path};
use crate::status::StatusError;

/// A cheap handle to a `kube::Client` that remembers what its server can do.
///
/// Clones share the connection pool and the memory. Made by [`Client::try_default`], by [`ClientConfig::build`], or
/// from a `kube::Client` of any tower stack:
///
/// ```
/// # fn wrap(kube: kube::Client) {
/// let client = k8s_client::Client::from(kube);
/// # }
/// ```
///
/// # A client handed in
///
/// `Client::from` takes a `kube::Client` as it is. Switch these off when you build it, since the engines on top
/// own them: `kube::Config::default_retry = false` (else kube retries 429, 503 and 504 by itself, replays writes and
/// hides `Retry-After`), and read timeouts shorter than a watch (`read_timeout = None`). Requests sent through
/// [`send`](Self::send) ask for uncompressed answers, whatever the stack offers.
#[derive(Clone)]
pub struct Client {
    kube: kube::Client,
    shared: Arc<Shared>,
}

struct Shared {
    /// The client's own namespace: configured, or discovered.
    own_namespace: Option<String>,
    /// Only the configured one: what reads without a namespace use.
    read_namespace: Option<String>,
    streaming_refused: AtomicBool,
    /// By group version. The outer lock covers only the map; the slot's is held while one caller asks the server.
    /// Bounded by the group versions that the server has: a slot that stayed empty is removed.
    discovered: Mutex<HashMap<String, Slot>>,
}

type Slot = Arc<tokio::sync::Mutex<Option<Arc<GroupVersion>>>>;

impl Client {
    pub(crate) fn assemble(kube: kube::Client, own: Option<String>, read: Option<String>) -> Self {
        Self {
            kube,
            shared: Arc::new(Shared {
                own_namespace: own,
                read_namespace: read,
                streaming_refused: AtomicBool::new(false),
                discovered: Mutex::default(),
            }),
        }
    }

    /// Connects to the server that the environment names: `$KUBECONFIG`, else in-cluster, else `~/.kube/config`.
    ///
    /// The same as [`ClientConfig::infer`] and [`build`](ClientConfig::build). Sends nothing.
    ///
    /// # Errors
    ///
    /// As [`ClientConfig::build`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is kept when the future is dropped.
    pub async fn try_default() -> Result<Self, Error> {
        ClientConfig::infer().build().await
    }

    /// The `kube::Client` underneath, for `kube::Api` and everything else.
    #[must_use]
    pub fn kube(&self) -> &kube::Client {
        &self.kube
    }

    /// The client's own namespace: the configured one, else the context's, else the service account's. For a
    /// `kube::Client` handed in it is that client's default namespace, which kube sets to `default` when nothing
    /// else is known.
    ///
    /// # Errors
    ///
    /// [`Error::NoNamespace`] when none is known; nothing but this call depends on it.
    pub fn namespace(&self) -> Result<&str, Error> {
        self.shared.own_namespace.as_deref().ok_or(Error::NoNamespace)
    }

    /// Whether a streaming initial list (`sendInitialEvents`) is worth a try: true until
    /// [`note_streaming_refused`](Self::note_streaming_refused).
    #[must_use]
    pub fn supports_streaming(&self) -> bool {
        !self.shared.streaming_refused.load(Ordering::Relaxed)
    }

    /// Remembers, for all clones, that this server refuses streaming lists.
    pub fn note_streaming_refused(&self) {
        if !self.shared.streaming_refused.swap(true, Ordering::Relaxed) {
            tracing::debug!("the server refuses streaming lists; lists are paged from now on");
        }
    }

    /// Sends one request and gives the answer back as it came: the status is **not** turned into an error, the body
    /// is not read. The URI is a path with its query; the server's address is added underneath.
    ///
    /// Asks for JSON and for an uncompressed answer unless the request has its own `Accept` and `Accept-Encoding`.
    ///
    /// A 401 is given back only when there is no other token to try: see [`ClientConfig::build`].
    ///
    /// # Errors
    ///
    /// [`Error::Transport`] when no answer came.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the request; the server may have received it.
    pub async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Body>, Error> {
        let mut request = request.map(Body::from);
        let headers = request.headers_mut();
        headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        headers.entry(header::ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        // Only the path: a query may be long, and continue tokens are nobody's business.
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        self.kube.send(request).await.map_err(|e| Error::transport(format!("{method} {path}"), e))
    }

    /// What the server says about `gvr`: kind, scope, verbs. Asked once per client and group version, then answered
    /// from memory; callers that come meanwhile wait for the same answer. A kind that is not there is asked for
    /// again next time, since a CRD may come.
    ///
    /// # Errors
    ///
    /// [`Error::KindNotServed`] when the server does not have it, [`Error::Status`] and [`Error::Transport`] when it
    /// would not say, [`Error::Decode`] when the answer makes no sense.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped the next waiter asks.
    pub async fn resource_scope(&self, gvr: &Gvr) -> Result<ResourceScope, Error> {
        let path = group_version_path(gvr)?;
        let slot = Arc::clone(self.slots().entry(path.clone()).or_default());
        let mut known = slot.lock().await;
        if let Some(scope) = known.as_ref().and_then(|gv| gv.find(gvr.resource())) {
            return Ok(scope.clone());
        }
        let fresh = match self.discover(gvr, &path).await {
            Ok(fresh) => known.insert(Arc::new(fresh)),
            Err(error) => {
                if known.is_none() {
                    let mut slots = self.slots();
                    if slots.get(&path).is_some_and(|s| Arc::ptr_eq(s, &slot)) {
                        slots.remove(&path);
                    }
                }
                return Err(error);
            }
        };
        fresh.find(gvr.resource()).cloned().ok_or_else(|| Error::KindNotServed { resource: gvr.to_string() })
    }

    async fn discover(&self, gvr: &Gvr, path: &str) -> Result<GroupVersion, Error> {
        let operation = || format!("discover {gvr}");
        let body = self.read(path, operation).await.map_err(|error| match error {
            error if error.is_not_found() => Error::KindNotServed { resource: gvr.to_string() },
            error => error,
        })?;
        GroupVersion::parse(&body).map_err(|e| Error::Decode { operation: operation(), source: e.into() })
    }

    fn slots(&self) -> std::sync::MutexGuard<'_, HashMap<String, Slot>> {
        self.shared.discovered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads one object, complete, in packed form.
    ///
    /// For a cluster-scoped kind `namespace` is ignored, as the server would. For a namespaced kind without one the
    /// namespace set by [`ClientConfig::namespace`] is used; a discovered namespace is not assumed.
    ///
    /// # Errors
    ///
    /// [`Error::NamespaceRequired`], [`Error::InvalidName`], [`Error::KindNotServed`]; [`Error::Status`] for the
    /// server's refusals ([`is_not_found`](Error::is_not_found) when there is no such object);
    /// [`Error::Transport`] when no answer came; [`Error::Decode`] when the answer is no object.
    ///
    /// # Cancel safety
    ///
    /// Reads only: the future may be dropped at any time.
    pub async fn get(&self, gvr: &Gvr, namespace: Option<&str>, name: &str) -> Result<Object, Error> {
        let scope = self.resource_scope(gvr).await?;
        let namespace = if scope.is_namespaced() {
            let given = namespace.or(self.shared.read_namespace.as_deref());
            Some(given.ok_or_else(|| Error::NamespaceRequired { operation: format!("get {gvr} {name}") })?)
        } else {
            None
        };
        let operation = || match namespace {
            Some(namespace) => format!("get {gvr} {namespace}/{name}"),
            None => format!("get {gvr} {name}"),
        };
        let body = self.read(&object_path(gvr, namespace, name)?, operation).await?;
        Object::from_slice(&body).map_err(|e| Error::Decode { operation: operation(), source: e.into() })
    }

    /// GET, with the whole body read and a status that is no success turned into an error.
    async fn read(&self, path: &str, operation: impl Fn() -> String) -> Result<Bytes, Error> {
        let mut request = Request::new(Vec::new());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = path
            .parse()
            .map_err(|e: http::uri::InvalidUri| Error::Decode { operation: operation(), source: e.into() })?;
        let response = self.send(request).await.map_err(|error| match error {
            Error::Transport { source, .. } => Error::Transport { operation: operation(), source },
            error => error,
        })?;
        let (parts, body) = response.into_parts();
        let body = body.collect_bytes().await;
        if parts.status.is_success() {
            body.map_err(|e| Error::transport(operation(), e))
        } else {
            // The status is the answer, even when its body was cut off.
            let status = StatusError::new(parts.status, &parts.headers, &body.unwrap_or_default());
            Err(Error::Status { operation: operation(), status: Box::new(status) })
        }
    }
}

impl From<kube::Client> for Client {
    /// Takes the client as it is; see [what to switch off](Client#a-client-handed-in).
    fn from(kube: kube::Client) -> Self {
        let namespace = namespace::non_empty(kube.default_namespace());
        Self::assemble(kube, namespace, None)
    }
}

impl From<&kube::Client> for Client {
    fn from(kube: &kube::Client) -> Self {
        kube.clone().into()
    }
}

impl From<&Client> for Client {
    fn from(client: &Client) -> Self {
        client.clone()
    }
}

/// The client underneath, so that what takes `impl Into<kube::Client>` takes this one. Clones a handle.
impl From<&Client> for kube::Client {
    fn from(client: &Client) -> Self {
        client.kube.clone()
    }
}

/// The client underneath. Others may share it; what was learned about the server is dropped with the last clone.
impl From<Client> for kube::Client {
    fn from(client: Client) -> Self {
        client.kube
    }
}

/// Shows what the client knows about itself, nothing of its credentials.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("namespace", &self.shared.own_namespace)
            .field("supports_streaming", &self.supports_streaming())
            .finish_non_exhaustive()
    }
}
