//! The harness of the end-to-end scenarios: the same code runs against the embedded and the real API server.
//!
//! A scenario takes a [`Target`] and uses plain kube clients of it. [`Target::embedded`] starts the server of
//! `k8s-fake-apiserver`, [`Target::real`] a kube-apiserver with its etcd. Where they differ, the embedded one is wrong.
#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, reason = "a test harness: what is skipped must be seen")]

mod assets;
mod control_plane;
mod embedded;
#[cfg(doctest)]
mod pages;
mod ports;
mod proxy;
mod target;

pub use assets::Assets;
pub use control_plane::{ControlPlane, client_of, config_of, stop_in};
pub use embedded::Embedded;
pub use proxy::Proxy;
pub use target::Target;

/// What to do about a missing control plane.
pub const HOW_TO_GET_ONE: &str = "no real control plane: set KUBEBUILDER_ASSETS to a folder with etcd and \
     kube-apiserver, or install Go and run `cargo xtask control-plane build` (five minutes, once)";

/// Passes the assets on. Without them, says loudly what is skipped, or fails when `CI` is set: there they must be.
///
/// # Errors
///
/// There are none and `CI` is `true` or `1`.
pub fn or_skip(assets: Option<Assets>) -> anyhow::Result<Option<Assets>> {
    if assets.is_none() {
        if std::env::var("CI").is_ok_and(|v| v == "true" || v == "1") {
            anyhow::bail!(HOW_TO_GET_ONE);
        }
        eprintln!("\n*** SKIPPED: {HOW_TO_GET_ONE} ***\n");
    }
    Ok(assets)
}
