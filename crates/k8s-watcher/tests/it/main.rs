//! The watcher against the embedded API server, in-process, on paused time.

mod basics;
mod support;
