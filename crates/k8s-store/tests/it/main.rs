//! Tests of the store as its users see it.
mod allocations;
mod auto_traits;
mod cases;
mod compaction;
mod concurrent;
mod fixture;
mod model;
mod reads;
mod relist;
mod size;
mod stress;
