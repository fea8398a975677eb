//! Scenarios that span crates.
