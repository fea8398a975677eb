//! The corpora of the fuzz targets, and what chance makes of them, on any toolchain.

use proptest::prelude::*;
use test_support::{Corpus, cases};

use crate::fuzzed::{check_bytes, check_path};

fn corpus(target: &str, pieces: &'static [&'static str]) -> Corpus {
    Corpus::new(env!("CARGO_MANIFEST_DIR"), target, pieces)
}

fn objects() -> Corpus {
    let pieces = &[
        "{",
        "}",
        "[",
        "]",
        "\"",
        ":",
        ",",
        "\\",
        "\\u0",
        "0",
        "19",
        ".",
        "-",
        "e",
        "E",
        "true",
        "false",
        "null",
        "{}",
        "[]",
        "\"metadata\":{",
        "\"name\":",
        "$serde_json::private::Number",
    ];
    corpus("packed_roundtrip", pieces)
}

fn paths() -> Corpus {
    let pieces = &[
        ".", "..", "[", "]", "*", "'", "\"", "\\", "\\u0061", "$", "@", "{", "}", ",", "?", "-", "0", "1", "a",
        "labels", "metadata", " ",
    ];
    corpus("path", pieces)
}

#[test]
fn seeds_hold() {
    objects().check(check_bytes);
    paths().check(|seed| check_path(std::str::from_utf8(seed).unwrap()));
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn mutated_seeds_hold(bytes in objects().mutated()) {
        check_bytes(&bytes);
    }

    #[test]
    fn mutated_paths_hold(bytes in paths().mutated()) {
        check_path(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_bytes_hold(bytes in prop::collection::vec(any::<u8>(), 0..40), text in "\\PC{0,30}") {
        check_bytes(&bytes);
        check_bytes(text.as_bytes());
        check_path(&text);
    }
}
