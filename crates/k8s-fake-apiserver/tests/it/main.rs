//! Integration tests of the crate, one binary.

mod fault;
mod list;
mod support;
mod watch;
mod write;
