//! Informers for Rust Kubernetes controllers: indexed, snapshot-consistent, small. Facade over the k8s-informer crates.
//!
//! One dependency for a controller that watches Ingresses, Services, EndpointSlices or Pods: it indexes them by
//! JSONPath, waits until they are there, reads them by exact and partial key, and is called back once for a burst
//! of changes. A cached object takes a third (EndpointSlices) to a
//! fourteenth (Pods) of its JSON.
//!
//! | module | what it has |
//! |---|---|
//! | [`client`] | [`Client`](client::Client): kubeconfig, in-cluster, or your `kube::Client` |
//! | [`types`] | [`WatcherConfig`](types::WatcherConfig), [`Gvr`](types::Gvr), selectors, [`ChangeStats`](types::ChangeStats) |
//! | [`watcher`] | [`Watcher`](watcher::Watcher): lists, watches, callbacks, streams of changes; [`SingleWatcher`](watcher::SingleWatcher), [`SyncGroup`](watcher::SyncGroup), [`SelfWrites`](watcher::SelfWrites) |
//! | [`store`] | [`MemoryStore`](store::MemoryStore) and its [`Snapshot`](store::Snapshot)s |
//! | [`indexer`] | JSONPath expressions and field selectors |
//! | [`packed`] | [`Object`](packed::Object): the cached form of an object |
//! | `leader_election` | `LeaderElector`: one of several copies works (feature `leader-election`) |
//!
//! # Examples
//!
//! ```
//! use std::time::Duration;
//! use k8s_informer::packed::Path;
//! use k8s_informer::types::WatcherConfig;
//! use k8s_informer::watcher::Watcher;
//!
//! # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! // A cluster in the box; with a real one: `let client = k8s_informer::client::Client::try_default().await?;`
//! let server = k8s_fake_apiserver::FakeApiServer::builder()
//!     .object(serde_json::json!({
//!         "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
//!         "metadata": {"namespace": "shop", "name": "cart-x7k2p", "labels": {"kubernetes.io/service-name": "cart"}},
//!         "endpoints": [{"addresses": ["10.0.0.7"]}]
//!     }))
//!     .start()
//!     .await?;
//! let client = server.client();
//!
//! let config = WatcherConfig::new("discovery.k8s.io/v1/endpointslices")
//!     .index_by(["metadata.namespace", "metadata.labels['kubernetes.io/service-name']"]);
//! let slices = Watcher::builder(client, config)
//!     .on_change(|change| println!("{}, {} in all", change.stats, change.snapshot.len()))
//!     .spawn()?;
//! assert_eq!(slices.wait_for_sync(Duration::from_secs(30)).await?, 1);
//!
//! let snapshot = slices.store().snapshot();
//! let addresses: Path = "endpoints[*].addresses[*]".parse()?;
//! for slice in snapshot.get(["shop", "cart"])? {
//!     assert_eq!(slice.all(&addresses).next().and_then(|a| a.as_str()), Some("10.0.0.7"));
//! }
//! slices.shutdown().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Depending on it
//!
//! A program also says which version of the Kubernetes API it is built for, since kube's types need one:
//! `k8s-openapi = { version = "0.29", features = ["latest"] }`. `run` takes the `CancellationToken` of `tokio-util`, and
//! writes go through `kube::Api`: depend on `kube` 5 with the feature `client` for those.
//!
//! # Features
//!
//! | feature | default | what it does |
//! |---|---|---|
//! | `cached` | no | [`CachedStore`](store::CachedStore) and [`WatcherBuilder::cached`](watcher::WatcherBuilder::cached): references in memory, objects in a bounded cache |
//! | `metrics` | no | [`Metrics`](watcher::Metrics): the state of watchers for a registry of `prometheus_client` |
//! | `rustls-tls` | yes | TLS by rustls |
//! | `ring` | yes | ring as the cryptography of rustls |
//! | `aws-lc-rs` | no | aws-lc-rs in its place |
//! | `openssl-tls` | no | TLS by OpenSSL |
//! | `http-proxy` | no | a kubeconfig's `proxy-url` of scheme http or https |
//! | `socks5` | no | a kubeconfig's `proxy-url` of scheme socks5 |
//! | `leader-election` | no | the module `leader_election` |
//!
//! The minimum supported Rust version is 1.89; a rise is a minor release.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub use k8s_client as client;
pub use k8s_indexer as indexer;
#[cfg(feature = "leader-election")]
pub use k8s_leader_election as leader_election;
pub use k8s_packed as packed;
pub use k8s_store as store;
pub use k8s_types as types;
pub use k8s_watcher as watcher;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
