//! An indexed in-memory store of Kubernetes objects with consistent snapshots and exact, prefix and name reads.
#![forbid(unsafe_code)]

mod bytes;
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
pub use error::Error;
pub use issues::KeyIssues;
pub use memory::MemoryStore;
pub use objects::Objects;
pub use plan::StorePlan;
pub use reader::StoreReader;
pub use snapshot::{IndexView, Snapshot};
pub use writer::{Writer, memory_store};
