//! A thin Kubernetes client for informers: kubeconfig or in-cluster, namespace discovery, reads by resource.
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod client;
mod config;
mod credential;
mod error;
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
mod namespace;
mod resource;
mod status;
mod throttle;

pub use client::Client;
pub use config::ClientConfig;
pub use error::Error;
pub use resource::{ResourceScope, collection_path, gvr_of, object_path};
pub use status::StatusError;
pub use throttle::{Throttle, ThrottleLayer};
