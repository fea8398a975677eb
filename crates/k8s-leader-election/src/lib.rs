//! Leader election over a Kubernetes Lease: safe by locally observed time, releases after the work has ended.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod api;
mod config;
mod driver;
mod elector;
mod error;
mod handle;
mod hooks;
mod lead;
mod machine;
mod record;
mod term;
mod work;

pub use config::{AfterWork, LeaseConfig};
pub use elector::{LeaderElector, LeaderElectorBuilder};
pub use error::Error;
pub use handle::{ElectorHandle, Leadership};
pub use lead::Lead;
pub use work::{Outcome, WorkResult};
