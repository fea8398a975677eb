//! The server's handle: clients, state, faults, journal, time travel.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use crate::builder::FakeApiServerBuilder;
use crate::core::{Core, View};
use crate::error::Error;
use crate::fault::Faults;
use crate::journal::Journal;
use crate::kind::ResourceKind;
use crate::loopback::{self, Listening};
use crate::replica::Replica;
use crate::service::FakeService;
use crate::state;
use crate::stored::{Prepared, key};
use crate::verb::prepare::meta;

/// A running API server. Clones are handles to the same one.
///
/// In-process clients need nothing but a tokio runtime. A loopback port, if there is one, is closed when the last handle
/// is dropped; clients, replicas and services do not keep it open, though they go on working in-process.
#[derive(Debug, Clone)]
pub struct FakeApiServer {
    core: Arc<Core>,
    listening: Arc<Mutex<Option<Listening>>>,
}

impl FakeApiServer {
    /// Describes a server with the built-in kinds and the namespaces of a fresh cluster.
    pub fn builder() -> FakeApiServerBuilder {
        FakeApiServerBuilder::new()
    }

    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core, listening: Arc::default() }
    }

    /// A client without a socket. Must be called inside a tokio runtime, as `kube::Client` spawns a worker.
    ///
    /// It has no retry layer and no timeouts: what the server does is what the caller sees.
    ///
    /// # Panics
    /// Outside a tokio runtime (in `kube::Client::new`).
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), self.core.options.default_namespace.clone())
    }

    /// A client whose requests carry this `User-Agent`, by which [faults](crate::RequestMatcher::client) and the
    /// journal tell clients apart.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn client_as(&self, agent: &str) -> kube::Client {
        kube::Client::new(self.service().with_user_agent(agent), self.core.options.default_namespace.clone())
    }

    /// The server as a tower service, for clients with layers of their own.
    pub fn service(&self) -> FakeService {
        FakeService::new(self.core.clone(), View::default())
    }

    /// A second API server over the same storage, whose cache lags behind when told to.
    pub fn replica(&self) -> Replica {
        Replica::new(self.core.clone())
    }

    /// Opens a free port of 127.0.0.1, unless one is open; gives the URL.
    ///
    /// # Errors
    /// The port cannot be opened.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the server without a port.
    pub async fn listen(&self) -> Result<String, Error> {
        self.listen_on(0).await
    }

    pub(crate) async fn listen_on(&self, port: u16) -> Result<String, Error> {
        if let Ok(url) = self.url() {
            return Ok(url);
        }
        let listening = loopback::listen(self.service(), port).await?;
        let url = listening.url();
        *self.listening.lock() = Some(listening);
        Ok(url)
    }

    /// The URL of the loopback port: `http://127.0.0.1:PORT`.
    ///
    /// # Errors
    /// The server does not listen.
    pub fn url(&self) -> Result<String, Error> {
        self.listening.lock().as_ref().map(Listening::url).ok_or(Error::NotListening)
    }

    /// A kubeconfig for the loopback port: plain HTTP, no credentials.
    ///
    /// # Errors
    /// The server does not listen.
    pub fn kubeconfig(&self) -> Result<String, Error> {
        Ok(loopback::kubeconfig(&self.url()?, &self.core.options.default_namespace))
    }

    /// Writes [`kubeconfig`](Self::kubeconfig) to a file.
    ///
    /// # Errors
    /// The server does not listen, or the file cannot be written.
    pub fn write_kubeconfig(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        std::fs::write(path, self.kubeconfig()?).map_err(|source| Error::Write { path: path.to_owned(), source })
    }

    /// The scripted faults.
    pub fn faults(&self) -> Faults {
        self.core.faults.clone()
    }

    /// The requests that came.
    pub fn journal(&self) -> Journal {
        self.core.journal.clone()
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.core.log.lock().revision()
    }

    /// Serves a further kind from now on. Nothing happens when it is served already.
    pub fn register(&self, kind: ResourceKind) {
        self.core.log.lock().register(kind);
    }

    /// Stops serving a kind: its objects go, its watches end, requests get 404. False when it was not served.
    pub fn unregister(&self, resource: &str) -> bool {
        self.core.log.lock().unregister(resource)
    }

    /// Makes or replaces an object, past all rules for clients: status and metadata are stored as given.
    ///
    /// uid and creation time are kept from the object that was there, or made, unless given. A missing namespace is
    /// `default`, and is made if it does not exist. Gives the new resourceVersion.
    ///
    /// # Errors
    /// The object has no kind or no name, or its kind is not registered.
    pub fn apply(&self, object: Value) -> Result<String, Error> {
        Ok(state::apply(&self.core, object, 0)?.revision.to_string())
    }

    /// Makes or replaces many objects.
    ///
    /// # Errors
    /// As [`apply`](Self::apply); the error tells the place of the object. The ones before it are stored.
    pub fn apply_all(&self, objects: impl IntoIterator<Item = Value>) -> Result<(), Error> {
        state::apply_all(&self.core, objects)
    }

    /// Where an object is: without a namespace in the default one, as [`apply`](Self::apply) puts it.
    fn place<'a>(&'a self, namespaced: bool, namespace: Option<&'a str>) -> Option<&'a str> {
        namespaced.then(|| namespace.unwrap_or(&self.core.options.default_namespace))
    }

    /// Removes an object at once, finalizers or not. False when there is none. A missing namespace is `default`.
    ///
    /// # Errors
    /// The resource is not registered.
    pub fn delete(&self, resource: &str, namespace: Option<&str>, name: &str) -> Result<bool, Error> {
        let mut log = self.core.log.lock();
        let id = log.id(resource).ok_or_else(|| state::unknown(resource))?;
        let namespaced = log.table(id).is_some_and(|t| t.kind.namespaced);
        Ok(log.remove(id, &key(self.place(namespaced, namespace), name)).is_some())
    }

    /// An object as it is stored. A missing namespace is `default`.
    ///
    /// # Errors
    /// The resource is not registered.
    pub fn object(&self, resource: &str, namespace: Option<&str>, name: &str) -> Result<Option<Value>, Error> {
        let log = self.core.log.lock();
        let table = log.named(resource).ok_or_else(|| state::unknown(resource))?;
        let found = table.objects.get(&*key(self.place(table.kind.namespaced, namespace), name)).cloned();
        drop(log);
        Ok(found.map(|o| o.value()))
    }

    /// All objects of a resource, ordered by key.
    ///
    /// # Errors
    /// The resource is not registered.
    pub fn objects(&self, resource: &str) -> Result<Vec<Value>, Error> {
        let found: Vec<_> = {
            let log = self.core.log.lock();
            log.named(resource).ok_or_else(|| state::unknown(resource))?.objects.values().cloned().collect()
        };
        Ok(found.iter().map(|o| o.value()).collect())
    }

    /// How many objects of a resource there are.
    ///
    /// # Errors
    /// The resource is not registered.
    pub fn len(&self, resource: &str) -> Result<usize, Error> {
        let log = self.core.log.lock();
        Ok(log.named(resource).ok_or_else(|| state::unknown(resource))?.objects.len())
    }

    /// Forgets the history: requests for any earlier revision are told 410. Running watches lose nothing.
    pub fn compact(&self) {
        let mut log = self.core.log.lock();
        let now = log.revision();
        log.compact(now);
    }

    /// Forgets the history before a revision; that revision itself can still be asked for.
    pub fn compact_to(&self, revision: u64) {
        self.core.log.lock().compact(revision);
    }

    /// Moves the revision counter on, as writes to resources that nobody here looks at do.
    pub fn advance(&self, revisions: u64) {
        self.core.log.lock().advance(revisions);
    }

    /// Ends all running watches cleanly, as a server does that is told to stop.
    pub fn close_watches(&self) {
        self.core.log.lock().close_watches();
    }

    /// Restores the cluster from a backup: everything is dropped, the counter is set to `revision` (back in time, if
    /// that is smaller), these objects and the usual namespaces are there, and all watches end. Earlier revisions
    /// answer 410; later ones are in the future.
    ///
    /// Objects keep a `metadata.resourceVersion` that is a number up to `revision`, else they get `revision`.
    ///
    /// # Errors
    /// An object is incomplete or of an unknown kind; the server is then as it was.
    pub fn restart_at(&self, revision: u64, objects: impl IntoIterator<Item = Value>) -> Result<(), Error> {
        let mut placed = Vec::new();
        let mut namespaces: Vec<String> = crate::builder::NAMESPACES.map(str::to_owned).to_vec();
        for (index, object) in objects.into_iter().enumerate() {
            let (table, kind) = state::kind_of(&self.core, &object, index)?;
            let mut object = state::complete(&self.core, &kind, object, index)?;
            state::identify(&self.core, &kind, None, &mut object);
            let at = meta(&object, "resourceVersion").parse().ok().filter(|at| *at <= revision).unwrap_or(revision);
            namespaces.push(meta(&object, "namespace").to_owned());
            placed.push((table, Prepared::new(&kind, &object), at));
        }
        let found = self.core.log.lock().named("v1/namespaces").map(|t| t.kind.clone());
        if let Some(kind) = found {
            let id = self.core.log.lock().id("v1/namespaces");
            namespaces.retain(|n| !n.is_empty());
            for (name, id) in namespaces.iter().zip(std::iter::repeat(id)) {
                let object = serde_json::json!({ "metadata": { "name": name } });
                let mut object = state::complete(&self.core, &kind, object, 0)?;
                state::identify(&self.core, &kind, None, &mut object);
                placed.extend(id.map(|id| (id, Prepared::new(&kind, &object), revision)));
            }
        }
        let mut log = self.core.log.lock();
        log.restart(revision);
        for (table, prepared, at) in placed {
            log.place(table, prepared, at);
        }
        Ok(())
    }
}
