//! What a server is made of.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::Value;

use crate::clock::Clock;
use crate::core::{Core, Options, StreamingLists};
use crate::error::Error;
use crate::fault::Faults;
use crate::journal::Journal;
use crate::kind::{self, ResourceKind};
use crate::log::Log;
use crate::rng::Rng;
use crate::server::FakeApiServer;

/// The namespaces of a fresh cluster.
pub(crate) const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Describes a [`FakeApiServer`]; begun by [`FakeApiServer::builder`].
///
/// Nothing is opened and nothing is spawned before [`start`](Self::start).
#[derive(Debug)]
#[must_use = "a builder does nothing until it is started"]
pub struct FakeApiServerBuilder {
    kinds: Vec<ResourceKind>,
    objects: Vec<Value>,
    /// The file of each range of objects that came from one, by where the range begins.
    files: Vec<(usize, PathBuf)>,
    history: usize,
    journal: usize,
    revision: u64,
    seed: u64,
    now: SystemTime,
    port: Option<u16>,
    options: Options,
}

impl FakeApiServerBuilder {
    pub(crate) fn new() -> Self {
        Self {
            kinds: kind::built_in(),
            objects: Vec::new(),
            files: Vec::new(),
            history: 10_000,
            journal: 10_000,
            revision: 0,
            seed: 0,
            now: SystemTime::now(),
            port: None,
            options: Options {
                streaming: StreamingLists::Served,
                bookmark_interval: Duration::from_secs(60),
                watch_timeout: Duration::from_secs(45 * 60),
                watch_buffer: 1_000,
                watch_grace: Duration::from_secs(5),
                strict_namespaces: false,
                default_namespace: "default".into(),
            },
        }
    }

    /// Serves a further kind. A kind of the same group, version and plural is replaced.
    pub fn resource(mut self, kind: ResourceKind) -> Self {
        self.kinds.retain(|k| k.resource() != kind.resource());
        self.kinds.push(kind);
        self
    }

    /// Stops serving a kind that is there from the start.
    pub fn without_resource(mut self, resource: &str) -> Self {
        self.kinds.retain(|k| k.resource() != resource);
        self
    }

    /// Puts an object into the server, as [`FakeApiServer::apply`] does: complete, with its status.
    pub fn object(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// Puts several objects into the server.
    pub fn objects(mut self, objects: impl IntoIterator<Item = Value>) -> Self {
        self.objects.extend(objects);
        self
    }

    /// Puts the objects of all `.json` files of a folder into the server, in the order of the file names.
    ///
    /// A file holds one object, an array of objects, or a list (`items`). Folders inside are not looked at, other
    /// files neither; YAML is not read.
    ///
    /// # Errors
    /// The folder or a file cannot be read, or a file is not JSON; the error names it.
    pub fn load_dir(mut self, folder: impl AsRef<Path>) -> Result<Self, Error> {
        let folder = folder.as_ref();
        let read = |source| Error::Read { path: folder.to_owned(), source };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(read)? {
            let path = entry.map_err(read)?.path();
            if path.extension().is_some_and(|e| e == "json") {
                files.push(path);
            }
        }
        files.sort();
        for path in files {
            self.files.push((self.objects.len(), path.clone()));
            let text = std::fs::read(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
            let value: Value =
                serde_json::from_slice(&text).map_err(|source| Error::Parse { path: path.clone(), source })?;
            match value {
                Value::Array(list) => self.objects.extend(list),
                Value::Object(mut map) if map.get("items").is_some_and(Value::is_array) => {
                    if let Some(Value::Array(items)) = map.remove("items") {
                        self.objects.extend(items);
                    }
                }
                object => self.objects.push(object),
            }
            self.files.push((self.objects.len(), PathBuf::new()));
        }
        Ok(self)
    }

    /// How many revisions of history are kept (10,000). Older ones answer 410, and so do watches that fall behind it.
    pub fn history(mut self, revisions: usize) -> Self {
        self.history = revisions;
        self
    }

    /// The revision from which the counter starts (0).
    pub fn revision(mut self, revision: u64) -> Self {
        self.revision = revision;
        self
    }

    /// How often a watch that allows bookmarks gets one (1 minute).
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.options.bookmark_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// When a watch ends that names no `timeoutSeconds` (45 minutes).
    pub fn watch_timeout(mut self, timeout: Duration) -> Self {
        self.options.watch_timeout = timeout;
        self
    }

    /// Whether streaming lists are served (they are); see [`StreamingLists`] for a server that does not know them.
    pub fn streaming_lists(mut self, streaming: impl Into<StreamingLists>) -> Self {
        self.options.streaming = streaming.into();
        self
    }

    /// When a watch is closed because nobody reads it: more than `events` wait for it and nothing was taken for `time`
    /// (1,000 events, 5 seconds).
    pub fn slow_watchers(mut self, events: u64, time: Duration) -> Self {
        self.options.watch_buffer = events;
        self.options.watch_grace = time;
        self
    }

    /// Refuses objects in namespaces that do not exist, as a real server does. Otherwise a missing namespace is made.
    pub fn strict_namespaces(mut self, strict: bool) -> Self {
        self.options.strict_namespaces = strict;
        self
    }

    /// The namespace of the clients and of the kubeconfig (`default`).
    pub fn default_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.options.default_namespace = namespace.into();
        self
    }

    /// How many requests the journal keeps (10,000).
    pub fn journal_capacity(mut self, requests: usize) -> Self {
        self.journal = requests;
        self
    }

    /// Makes other uids and generated names. They are the same in every run for one seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The wall time at the start of the server; from there it moves with tokio's clock.
    pub fn now(mut self, now: SystemTime) -> Self {
        self.now = now;
        self
    }

    /// Listens on a free port of 127.0.0.1 as well.
    pub fn loopback(self) -> Self {
        self.port(0)
    }

    /// Listens on this port of 127.0.0.1 as well; 0 is a free one.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Starts the server.
    ///
    /// # Errors
    /// An object has no kind, no name or a kind that is not registered, or the port cannot be opened.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn start(self) -> Result<FakeApiServer, Error> {
        let mut log = Log::new(self.revision, self.history.max(1));
        for kind in self.kinds {
            log.register(kind);
        }
        let core = Arc::new(Core {
            log: Mutex::new(log),
            rng: Mutex::new(Rng::new(self.seed)),
            clock: Clock::new(self.now),
            options: self.options,
            faults: Faults::default(),
            journal: Journal::new(self.journal),
        });
        for namespace in NAMESPACES {
            let _ = crate::verb::create::make_namespace(&core, namespace);
        }
        let files = self.files;
        for (index, object) in self.objects.into_iter().enumerate() {
            let file =
                files.iter().rev().find(|(from, _)| *from <= index).filter(|(_, path)| !path.as_os_str().is_empty());
            let in_file = file.map_or(index, |(from, _)| index - from);
            crate::state::apply(&core, object, in_file).map_err(|e| match file {
                Some((_, path)) => Error::Fixture { path: path.clone(), source: Box::new(e) },
                None => e,
            })?;
        }
        let server = FakeApiServer::new(core);
        if let Some(port) = self.port {
            server.listen_on(port).await?;
        }
        Ok(server)
    }
}
