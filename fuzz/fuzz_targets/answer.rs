//! An error of the client is short, and holds nothing of a body that is no Status.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| k8s_client::fuzzing::check_answer(bytes));
