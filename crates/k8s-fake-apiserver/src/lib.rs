//! An embedded Kubernetes API server for tests.
//!
//! What client-go's fake clientset is for Go, but honest: real HTTP requests against one revision log like etcd's, from
//! which lists, pages, watches, bookmarks, conflicts and `410 Gone` follow as they do on a cluster. It starts in
//! milliseconds, needs no binary, no container and, for in-process clients, no socket, so that it runs under tokio's
//! paused clock. Any `kube` program can be tested with it, and on a loopback port kubectl and programs in other
//! languages as well.
//!
//! Use envtest or a real control plane instead when what matters is admission, validation or defaulting of specs, or
//! the behaviour of controllers: see [the differences](#where-it-differs-from-a-real-kube-apiserver).
//!
//! ```
//! use k8s_fake_apiserver::{FakeApiServer, List, Watch};
//! use k8s_openapi::api::core::v1::Pod;
//! use kube::{Api, api::ListParams};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = FakeApiServer::builder()
//!     .object(json!({
//!         "apiVersion": "v1", "kind": "Pod",
//!         "metadata": {"name": "cart-1", "namespace": "shop", "labels": {"app": "cart"}},
//!         "spec": {"nodeName": "n1", "containers": [{"name": "cart", "image": "cart:1"}]},
//!         "status": {"phase": "Running"},
//!     }))
//!     .start()
//!     .await?;
//!
//! // A kube::Client, as your program uses it.
//! let pods: Api<Pod> = Api::namespaced(server.client(), "shop");
//! let running = ListParams::default().labels("app=cart").fields("status.phase=Running");
//! assert_eq!(pods.list(&running).await?.items.len(), 1);
//!
//! // Faults: the next watch of Pods gets a 410 after three events, the next list a 429.
//! server.faults().on(Watch::of("v1/pods")).after(3).gone();
//! server.faults().on(List::of("v1/pods")).status(429);
//! assert!(pods.list(&running).await.is_err());
//!
//! // What was asked of the server.
//! assert_eq!(server.journal().count(List::of("v1/pods")), 2);
//! server.journal().assert_no_writes();
//! # Ok(()) }
//! ```
//!
//! # Concepts
//!
//! - **State.** [`FakeApiServer::apply`], [`delete`](FakeApiServer::delete) and [`objects`](FakeApiServer::objects)
//!   reach the state directly, past the rules for clients; every write, whoever makes it, gets a revision and reaches
//!   the watches. [`FakeApiServerBuilder::load_dir`] reads fixtures.
//! - **Clients.** [`client`](FakeApiServer::client) is a `kube::Client` over a [`tower::Service`]; [`FakeService`] is that
//!   service, for stacks with layers of their own. [`listen`](FakeApiServer::listen) opens a loopback port,
//!   [`kubeconfig`](FakeApiServer::kubeconfig) says how to reach it.
//! - **Time.** Everything that waits, waits on tokio's clock; timestamps follow it from
//!   [`FakeApiServerBuilder::now`]. With `start_paused = true` an hour of bookmarks passes in no time.
//! - **Faults.** [`Faults::on`] takes a description of requests ([`List`], [`Watch`], … narrowed by namespace, name, query
//!   or client), [`FaultRule`] has the actions: statuses, delays, broken and silent connections, bodies cut at a line or a
//!   byte, ERROR events, raw lines, objects changed on their way.
//! - **Time travel.** [`compact`](FakeApiServer::compact) forgets the history, [`advance`](FakeApiServer::advance) moves
//!   the revision on, [`restart_at`](FakeApiServer::restart_at) restores a backup whose revisions run backwards,
//!   [`replica`](FakeApiServer::replica) is a second API server that lags behind,
//!   [`close_watches`](FakeApiServer::close_watches) ends the watches.
//! - **Journal.** [`Journal`] holds every request with its query and the status of its answer.
//! - **Kinds.** Built in: core (Pods, Services, ConfigMaps, Secrets, Namespaces, Nodes, Endpoints, Events,
//!   ServiceAccounts, PersistentVolumeClaims), apps, batch, networking.k8s.io, discovery.k8s.io, coordination.k8s.io and
//!   rbac.authorization.k8s.io. Others by [`ResourceKind`], also while the server runs, as CustomResourceDefinitions come
//!   and go.
//! - **Load.** [`generate::Cluster`] makes believable objects by the ten thousand; the binary `k8s-fake-apiserver` serves
//!   them to other processes.
//!
//! # What it promises
//!
//! - Revisions are one counter. A list shows one moment, pages of one list too. A watch sends every write after its
//!   revision once and in order, then goes on live.
//! - A watch from a revision before the kept history ([`FakeApiServerBuilder::history`]) gets an ERROR event of code 410 in
//!   a 200 answer, a list at such a revision or an old continue token HTTP 410.
//! - A watch with a selector says DELETED, with the last state that matched, when an object leaves the selection, and ADDED
//!   when it comes back.
//! - Statuses, reasons and texts are those of kube-apiserver 1.36, as recorded from it.
//! - Objects are serialised once, when they are written: lists and watches copy bytes and leave in chunks of 64 KiB.
//!
//! # Where it differs from a real kube-apiserver
//!
//! - **No authentication, authorization or admission.** Everybody may do everything; script a
//!   [403](Status::forbidden) where it matters.
//! - **Specs are not validated, and hardly defaulted.** Checked are names, namespaces, versions, uids, finalizers, and that
//!   labels and annotations are texts. Filled in are the phase of Namespaces and Pods and a few more fields that selectors
//!   and kubectl look at, `stringData` and type of Secrets, type and address of Services. Nothing is immutable.
//! - **`managedFields` are stored as they come and not maintained.** Server-side apply creates or merges; it has no owners,
//!   no conflicts, and leaves fields that a later apply no longer names.
//! - **Strategic merge patch** knows the merge keys of common lists by name (containers, env, ports, volumes, conditions, …),
//!   not from types.
//! - **JSON only.** YAML, protobuf, CBOR and compression are not spoken: 415 or 406, or JSON where the client accepts it too.
//!   So `kubectl create namespace x`, which sends protobuf, is refused, `kubectl create -f` works. What is wrong with a
//!   text that is no JSON is said in another parser's words.
//! - **No OpenAPI.** `kubectl create` and `apply` want `--validate=false`. Discovery is the classic one.
//! - **Tables** have the columns Name and Age.
//! - **Subresources** are `status`, and `finalize` of Namespaces: no scale, log, exec, eviction, binding or token.
//! - **No CustomResourceDefinition objects**: kinds are registered by code. One kind has one version; there is no conversion.
//! - **A missing namespace is made** when something is created in it, unless
//!   [`strict_namespaces`](FakeApiServerBuilder::strict_namespaces) is set.
//! - **One history for all kinds.** Writes to other kinds push a quiet kind's history out, where a real server keeps a window
//!   for each. Bookmarks come in exact intervals, watches without a timeout end after
//!   [45 minutes](FakeApiServerBuilder::watch_timeout), not at random times.
//! - **No controllers**, as with a kube-apiserver alone: nothing collects garbage, finishes Namespaces or schedules Pods. A
//!   deleted Pod that has a node stays, terminating, until it is deleted with a grace period of 0, as its kubelet would.
//!   [`FakeApiServer::delete`] removes anything at once.
//!
//! # Features and MSRV
//!
//! There are no features. MSRV 1.89.
#![forbid(unsafe_code)]

mod base64;
mod body;
mod builder;
mod clock;
mod core;
mod discovery;
mod error;
mod fault;
pub mod generate;
mod journal;
mod kind;
mod log;
mod loopback;
mod matcher;
mod names;
mod patch;
mod query;
mod replica;
mod represent;
mod rng;
mod route;
mod selector;
mod server;
mod service;
mod state;
mod status;
mod stored;
mod verb;

pub use crate::core::StreamingLists;
pub use body::ResponseBody;
pub use builder::FakeApiServerBuilder;
pub use error::Error;
pub use fault::{FaultHandle, FaultRule, Faults, Hold};
pub use journal::{Journal, Request};
pub use kind::ResourceKind;
pub use matcher::{Any, Create, Delete, Get, List, Patch, RequestMatcher, Update, Watch, Write};
pub use replica::Replica;
pub use server::FakeApiServer;
pub use service::FakeService;
pub use status::Status;
pub use verb::Verb;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
