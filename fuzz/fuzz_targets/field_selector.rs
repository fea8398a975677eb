//! Any text is a field selector with a canonical form, or an error with a position.
#![no_main]

// The same functions run over the seeds and their mutations in the tests of the crate.
#[path = "../../crates/k8s-indexer/tests/it/fuzzed.rs"]
#[allow(dead_code)]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|text: &str| fuzzed::check_field_selector(text));
