//! An indexed in-memory store of Kubernetes objects: consistent snapshots; exact, prefix and name reads.
//!
//! A [`MemoryStore`] holds packed [`Object`](k8s_packed::Object)s. Its one [`Writer`] changes them in batches; any number
//! of readers take [`Snapshot`]s and ask them by composite key, by a part of it, by name or by further named indexes.
//! The watcher of `k8s-watcher` fills a store from an API server; use this crate by itself to fill one by hand, above all
//! in the tests of code that reads from stores.
//!
//! For kinds of big objects that are rarely read there is `CachedStore` (feature `cached`): the same keys and snapshots
//! over references, and whole objects in a cache of bounded size that fetches what it lacks. Code that reads either is
//! written against [`StoreReader`].
//!
//! # Examples
//!
//! ```
//! use k8s_indexer::{IndexExpression, Indexer};
//! use k8s_packed::{Encoder, object};
//! use k8s_store::{StorePlan, memory_store};
//!
//! // Found by namespace and service, and by each address.
//! let plan = StorePlan::index_by(["metadata.namespace", "metadata.labels['kubernetes.io/service-name']"])?
//!     .named("by-address", Indexer::new([IndexExpression::multi_valued("endpoints[*].addresses[*]")])?)?;
//! let (mut writer, store) = memory_store(plan, Encoder::new());
//!
//! writer.upsert(object!({
//!     "metadata": {
//!         "namespace": "shop", "name": "cart-x7k2p",
//!         "labels": {"kubernetes.io/service-name": "cart"},
//!     },
//!     "endpoints": [{"addresses": ["10.0.0.7"]}, {"addresses": ["10.0.0.8"]}],
//! }));
//! writer.commit();
//!
//! let snapshot = store.snapshot(); // a pointer; consistent for as long as it is held
//! for slice in snapshot.get(["shop", "cart"])? {
//!     assert_eq!(slice.name(), "cart-x7k2p");
//! }
//! assert_eq!(snapshot.get(["shop"])?.len(), 1); // a prefix: all of the namespace
//! assert_eq!(snapshot.index("by-address")?.get(["10.0.0.8"])?.len(), 1);
//! assert!(snapshot.by_name(Some("shop"), "cart-x7k2p").is_some());
//!
//! writer.remove(Some("shop"), "cart-x7k2p");
//! writer.commit();
//! assert!(store.snapshot().is_empty());
//! assert_eq!(snapshot.len(), 1); // what is held does not change
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a reader may rely on
//!
//! - **One moment.** All reads of one snapshot are answered from the same state, indexes included. A snapshot never
//!   changes, nor does an object.
//! - **Whole batches.** What the writer changes between two [commits](Writer::commit) is seen at once or not at all. An
//!   object whose key changes is found under its old key before, under its new one after, never under both and never
//!   under none.
//! - **Never back.** A snapshot taken later shows the same state or a later one; [`Snapshot::version`] counts. Nothing
//!   is said about other stores: two stores are two moments.
//! - **Identity** is namespace and name, within one store: the same name in two namespaces is two objects, also under
//!   one key. An object that is deleted and made again under its name is seen with its new uid; whether a reader sees the
//!   time between is up to the writer's batches.
//! - **Exactly the present keys.** After each commit an object is found under the keys that its content gives, and under
//!   no other, also if it has several or loses one. If a component of its key is missing it is filed under the
//!   components before: it stays listed, is found by prefixes up to there and never by an exact key.
//! - **Order.** Every read gives objects by namespace, then name; objects without a namespace come first. Each object
//!   comes once, however many of its keys match.
//! - **Relists** replace in place: until a [relist](Writer::begin_relist) ends, readers see what was known and what it
//!   brought; at its end what it did not bring goes, in one commit. A store never looks empty on the way, and objects
//!   that did not change stay the same allocation.
//! - **Reads never wait** for the writer's work: only a pointer is exchanged under a lock, and nothing is dropped there.
//!
//! # Cost
//!
//! `n` objects in the store, `k` in the answer:
//!
//! | operation | cost |
//! | --- | --- |
//! | [`MemoryStore::snapshot`] | a pointer, whatever `n` |
//! | [`Snapshot::by_name`], [`Snapshot::get`] with all segments | one hash, a walk of three or four nodes; no allocation |
//! | [`Snapshot::get`] with the namespace alone, if it comes first in the index | `O(log n + k)`, no allocation |
//! | [`Snapshot::get`] with any other prefix | `O(log n + k)` to gather, a merge to put it in order |
//! | [`Snapshot::list`] | nothing is sorted or copied |
//! | [`Writer::upsert`] with unchanged keys | no index is touched |
//! | [`Writer::upsert`], [`Writer::remove`] otherwise | `O(log n)` for each key that changes |
//! | [`Writer::commit`] | a few pointers, whatever the batch |
//!
//! Beside its packed bytes an object costs about 55 bytes with a name of 20: handle, identity, order. An index of
//! namespace and name (or of the namespace alone) is answered by identity and costs nothing; in any other an object
//! costs about five bytes and a distinct key about 70 and its text. [`Snapshot::bytes`] counts all of it.
//!
//! # How it works
//!
//! A state is made of persistent structures: copying one takes a step, changing one copies the path to what changes and
//! shares the rest. Objects stand in a vector by a small number; the indexes, a hash trie and an ordered tree each, hold
//! those numbers only. So an update that keeps the keys changes one leaf of that vector, a copied leaf of an index is
//! a `memcpy` without reference counts, and finding or ordering by name reads a compact copy of the names and never the
//! objects that are not asked for.
//!
//! # Features
//!
//! | feature | what it gives |
//! | --- | --- |
//! | `cached` | `CachedStore` and what belongs to it, with `moka` and parts of `tokio` |
//!
//! None is on by default. The minimum supported Rust version is 1.89; a rise is a minor release.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod bytes;
#[cfg(feature = "cached")]
mod cached;
mod error;
mod identity;
mod index;
mod issues;
mod memory;
mod names;
mod objects;
mod persistent;
mod plan;
mod reader;
mod relist;
mod snapshot;
mod state;
mod sync;
mod writer;

pub use bytes::StoreBytes;
#[cfg(feature = "cached")]
pub use cached::{CacheConfig, CacheStats, CachedBytes, CachedStore, Fetch, FetchFuture, Invalidator, cached_store};
pub use error::{Error, FetchError};
pub use issues::KeyIssues;
pub use memory::MemoryStore;
pub use objects::Objects;
pub use plan::StorePlan;
pub use reader::StoreReader;
pub use snapshot::{IndexView, Snapshot};
pub use writer::{Writer, memory_store};

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
