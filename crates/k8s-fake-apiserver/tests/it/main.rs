//! Integration tests of the crate, one binary.

mod auto_traits;
mod binary;
mod delete;
mod discovery;
mod fault;
mod forms;
mod generate;
mod history;
mod journal;
mod kubectl;
mod list;
mod loopback;
mod patch;
mod setup;
mod support;
mod time_travel;
mod watch;
mod write;
