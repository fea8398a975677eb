//! The watcher against the embedded API server, in-process, on paused time.

mod auto_traits;
mod bad_objects;
mod basics;
mod blind;
mod build_errors;
#[cfg(feature = "cached")]
mod cached;
mod callbacks;
mod changes_stream;
mod connections;
mod debounce;
mod expiry;
mod group;
mod histories;
mod lifecycle;
mod lists;
mod logs;
#[cfg(feature = "metrics")]
mod metrics;
mod namespaces;
mod odd_answers;
mod promises;
#[cfg(feature = "cached")]
mod review_cached;
mod review_group;
mod review_held;
mod review_restored;
mod review_single;
mod selection;
mod self_writes;
mod single;
mod slow_readers;
mod status;
mod stress;
mod support;
