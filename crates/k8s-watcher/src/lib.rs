//! List/watch engine and bulk watcher for Kubernetes: debounced callbacks, coalesced change streams, a cache that does not lie.
#![forbid(unsafe_code)]
