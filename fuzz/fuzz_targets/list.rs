//! Any bytes of a list are the same items however they are cut, and those that `serde_json` reads.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| k8s_watcher::fuzzing::check_list(bytes));
