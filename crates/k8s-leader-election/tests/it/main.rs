//! The elector against the embedded API server, on tokio's paused clock.
#![forbid(unsafe_code)]

mod auto_traits;
mod basics;
mod configured;
mod failing;
mod health;
mod logs;
mod races;
mod stopping;
mod support;
mod work;
