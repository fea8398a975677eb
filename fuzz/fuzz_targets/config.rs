//! Any JSON is a configuration that its own JSON says again, or an error.
#![no_main]

// The same functions run over the seeds and their mutations in the tests of the crate.
#[path = "../../crates/k8s-types/tests/it/fuzzed.rs"]
#[allow(dead_code)]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzed::check_config(bytes));
