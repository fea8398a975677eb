//! What the tests of several crates need. Knows none of them, so that it may be a dev-dependency of each.

mod allocations;
mod corpus;
mod log;

pub use allocations::{Counting, allocations};
pub use corpus::{Corpus, Mutated, cases};
pub use log::{Log, collect_log, listen_to};
