//! Vocabulary of the k8s-informer crates: what is watched, how it is selected and keyed, and what happened to it.
//!
//! Plain data without I/O, shared by the indexer, the store, the client and the watchers, and by programs that
//! configure them. Programs usually get it through the facade crate `k8s-informer`.
//!
//! # Examples
//!
//! ```
//! use std::time::Duration;
//! use k8s_types::{IndexExpression, ListMode, WatcherConfig};
//!
//! let config = WatcherConfig::new("networking.k8s.io/v1/ingresses")
//!     .namespaces(["shop", "blog"])
//!     .label_selector("tier=front,!canary")
//!     .index_by([
//!         IndexExpression::new("metadata.namespace"),
//!         IndexExpression::multi_valued("spec.rules[*].host"),
//!     ])
//!     .ignore_fields(["status"])
//!     .debounce(Duration::from_millis(250))
//!     .list_mode(ListMode::Paged);
//! config.validate()?;
//!
//! // The same from a file: all but resource and index has a default.
//! let read: WatcherConfig = serde_json::from_str(
//!     r#"{"resource": "v1/pods", "indexBy": ["spec.nodeName"], "debounce": "1s"}"#,
//! )?;
//! assert_eq!(read.spec().debounce, Duration::from_secs(1));
//!
//! // A mistake is named, not dropped.
//! let error = read.label_selector("app==").namespaces([""; 0]).validate().unwrap_err();
//! assert_eq!(error.to_string(), "namespaces: empty list");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is where
//!
//! - [`Gvr`]: a kind of objects by group, version and plural.
//! - [`WatcherConfig`], [`SingleWatcherConfig`]: what to watch and how.
//! - [`LabelSelector`]: the API's structure and the grammar of `kubectl -l`.
//! - [`ObjectKey`], [`IndexKey`]: keys by name and by index, compared part by part, never as joined text.
//! - [`compare_resource_versions`]: which of two versions is newer, if that can be told.
//! - [`Change`], [`ChangeStats`]: what happened.
//! - [`SelfWriteFilter`]: recognition of a program's own writes.
//! - [`Object`], [`Path`]: packed objects and paths into them, from `k8s-packed`.
//!
//! # Features
//!
//! None. The minimum supported Rust version is 1.89; a rise is a minor release.
#![forbid(unsafe_code)]

mod change;
mod config;
mod error;
mod filter;
mod gvr;
mod key;
mod names;
mod selector;
mod status;
mod version;

pub use change::{Change, ChangeStats};
pub use config::{
    Backoff, IndexExpression, ListMode, NamedIndex, ResourceRef, SelectorRef, SingleWatcherConfig, SingleWatcherSpec,
    Transport, WatcherConfig, WatcherSpec,
};
pub use error::{ConfigError, ParseError};
pub use filter::SelfWriteFilter;
pub use gvr::Gvr;
pub use k8s_packed::{Object, Path};
pub use key::{IndexKey, IndexKeyBuilder, ObjectKey, Segments};
pub use selector::{LabelOperator, LabelRequirement, LabelSelector};
pub use status::ApiStatus;
#[doc(hidden)]
pub use status::shorten;
pub use version::compare_resource_versions;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
