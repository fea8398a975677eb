//! An indexed in-memory store of Kubernetes objects with consistent snapshots and exact, prefix and name reads.
#![forbid(unsafe_code)]
