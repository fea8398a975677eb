//! Vocabulary of the k8s-informer crates: resources, keys, selectors, watcher configuration, change statistics.
#![forbid(unsafe_code)]
