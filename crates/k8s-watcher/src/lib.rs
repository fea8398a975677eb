//! List/watch engine and watchers for Kubernetes: debounced callbacks, coalesced change streams, a cache that does not lie.
//!
//! A [`Watcher`] keeps a [store](k8s_store) equal to what the API server has, over lists, watches and whatever goes
//! wrong between them, and tells of changes in the way that suits: a debounced callback with statistics, a stream
//! of net changes, or not at all. A [`SingleWatcher`] tells of one named object, at once. Watchers of a [`SyncGroup`]
//! start together; [`SelfWrites`] keeps the echoes of a program's own writes from it.
//!
//! ```
//! use std::time::Duration;
//! use k8s_packed::Path;
//! use k8s_types::WatcherConfig;
//! use k8s_watcher::Watcher;
//!
//! # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! # let server = k8s_fake_apiserver::FakeApiServer::builder()
//! #     .object(serde_json::json!({
//! #         "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
//! #         "metadata": {"namespace": "shop", "name": "cart-x7k2p", "labels": {"kubernetes.io/service-name": "cart"}},
//! #         "endpoints": [{"addresses": ["10.0.0.7"]}]
//! #     }))
//! #     .start()
//! #     .await?;
//! # let client = server.client();
//! let config = WatcherConfig::new("discovery.k8s.io/v1/endpointslices")
//!     .index_by(["metadata.namespace", "metadata.labels['kubernetes.io/service-name']"]);
//!
//! let slices = Watcher::builder(client, config)
//!     .on_change(|change| println!("{}, {} in all", change.stats, change.snapshot.len()))
//!     .spawn()?;
//! slices.wait_for_sync(Duration::from_secs(30)).await?;
//!
//! let snapshot = slices.store().snapshot();
//! let addresses: Path = "endpoints[*].addresses[*]".parse()?;
//! for slice in snapshot.get(["shop", "cart"])? {
//!     for address in slice.all(&addresses) {
//!         println!("{address}");
//!     }
//! }
//! slices.shutdown().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What you can rely on
//!
//! - **The store** has, for each object, some version that the server had, and never goes back to an older one, unless
//!   the cluster itself was set back (a restore from a backup, also one that raises versions), which is noticed with
//!   the next event, bookmark or list that tells of it, and reported. When the watch is caught up it equals the server's
//!   selection. A commit is seen whole: indexes and objects agree.
//! - **A relist reports differences only**: an object that vanished while the watch was down is a delete like any
//!   other; one that is as it was is nothing.
//! - **No change** is one that left uid and content alone, apart from `metadata.resourceVersion` and ignored fields.
//!   The stored version moves on all the same.
//! - **A new uid** under the same name is a delete and a create.
//! - **Deleted** means deleted, or gone from the selection: a server tells both in the same way.
//! - **The order at the end of the initial load** is: store complete; `on_change` about the load has returned (only
//!   with `call_on_change_during_sync`); [`is_synced`](WatcherHandle::is_synced) turns true and waiters wake;
//!   `on_sync_complete` is called, once. What happens after the load is never marked as initial.
//! - **Callbacks** run off the reading task and one at a time. While one runs, or none is due, changes gather as
//!   numbers; nothing is lost, and the next call has them. The statistics delivered add up to what happened.
//! - **Nobody waits for who is slow.** The reading goes on whatever callbacks and readers of [`Changes`] do. What waits for
//!   them is numbers, and one entry an object; [`backlog`](WatcherHandle::backlog) says how much it is. Who stalls for an
//!   hour and wakes gets the latest state and each delete.
//! - **Failures** of the server are tried again for ever, slower and slower up to the backoff's limit, and show in
//!   [`status`](WatcherHandle::status). A watch that is silent for longer than its idle limit is taken for dead, and
//!   where watches bring nothing at all, lists take their place. Whatever it is that keeps a store from being current,
//!   [`is_healthy`](WatcherHandle::is_healthy) turns false.
//! - **An object that cannot be held** (nested deeper than 127 levels, without a name, or no JSON) is skipped, counted
//!   in the status and logged once; its last good state stays in the store until a delete, as far as its name can be
//!   read.
//!
//! # Features
//!
//! | feature | default | what it does |
//! |---|---|---|
//! | `cached` | no | `WatcherBuilder::cached`: references in memory, whole objects in a cache of bounded size |
//! | `metrics` | no | `Metrics`: the state of watchers for a registry of `prometheus_client` |
//!
//! The minimum supported Rust version is 1.89; a rise is a minor release.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod applier;
mod backlog;
mod cache_link;
#[cfg(feature = "cached")]
mod cached;
mod callback;
mod changes;
mod control;
mod debounce;
mod driver;
mod engine;
mod error;
mod frame;
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
mod group;
mod handle;
#[cfg(feature = "metrics")]
mod metrics;
mod notify;
mod plan;
mod running;
mod self_write;
mod single;
mod status;
mod sync;
mod transition;
mod watcher;

pub use backlog::Backlog;
pub use callback::{ChangeContext, Outcome};
pub use changes::{Batch, Changes};
pub use debounce::{Debouncer, Decision};
pub use error::SyncError;
pub use group::{Deadline, GroupError, MemberProgress, SyncGroup};
pub use handle::WatcherHandle;
#[cfg(feature = "metrics")]
pub use metrics::Metrics;
pub use running::Running;
pub use self_write::{SelfWrites, WriteInFlight};
pub use single::{RunningSingleWatcher, SingleWatcher, SingleWatcherBuilder, SingleWatcherHandle};
pub use status::{ErrorClass, Failures, Phase, Status, Verb, WatchError};
pub use watcher::{RunningWatcher, Watcher, WatcherBuilder};

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
