//! Integration tests of the crate, one binary.

mod allocations;
mod auto_traits;
mod cases;
mod fast_path;
mod fuzzed;
mod ignored;
mod indexer;
mod kubectl;
mod seeds;
mod selector;
