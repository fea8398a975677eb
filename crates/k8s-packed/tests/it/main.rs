//! Integration tests of the crate, one binary.

mod auto_traits;
mod decode;
mod doc;
mod equality;
mod errors;
mod fuzzed;
mod ignored;
mod kept;
mod kubernetes;
mod limits;
mod lookup;
mod pod;
mod repeats;
mod roundtrip;
mod seeds;
mod sharing;
