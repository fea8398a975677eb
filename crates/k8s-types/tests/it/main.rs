//! Integration tests of the crate, one binary.

mod auto_traits;
mod fuzzed;
mod seeds;
mod vocabulary;
