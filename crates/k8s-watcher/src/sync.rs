//! How threads meet in status and groups: a lock, and a value that can be watched.
//!
//! Kept apart so that a model checker can stand in for both: with `--cfg k8s_loom` they are made of loom's parts, and
//! [`tests`] plays every order in which threads can meet there.

#[cfg(k8s_loom)]
mod model;
#[cfg(all(test, k8s_loom))]
mod tests;

#[cfg(not(k8s_loom))]
pub(crate) use parking_lot::Mutex;
#[cfg(not(k8s_loom))]
pub(crate) use tokio::sync::watch;

#[cfg(k8s_loom)]
pub(crate) use self::model::{Mutex, watch};
