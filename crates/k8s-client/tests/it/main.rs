//! Integration tests of k8s-client.

mod auto_traits;
mod client;
mod kubeconfig;
mod server;
mod support;
