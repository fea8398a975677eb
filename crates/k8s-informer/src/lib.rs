//! Informers for Rust Kubernetes controllers: indexed, snapshot-consistent, small. Facade over the k8s-informer crates.
#![forbid(unsafe_code)]
