//! Any bytes of a watch are the same events however they are cut, and each line is what it is by itself.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| k8s_watcher::fuzzing::check_watch(bytes));
