//! An embedded Kubernetes API server for tests: real HTTP, list, watch, bookmarks, 410, patches, fault scripts, journal.
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
