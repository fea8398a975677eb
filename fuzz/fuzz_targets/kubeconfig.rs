//! Any bytes are a kubeconfig, or an error without a secret in it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| k8s_client::fuzzing::check_kubeconfig(bytes));
