//! Integration tests of k8s-client.

mod auto_traits;
mod client;
mod infer;
mod kubeconfig;
mod plugin;
mod proxy;
mod server;
mod support;
mod throttle;
mod tls;
mod token;
mod trust;
