//! Whatever a server says with a refusal, the wait is bounded and so is what is told of it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| k8s_watcher::fuzzing::check_refusal(bytes));
