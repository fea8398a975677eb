//! The corpora of the fuzz targets, and what chance makes of them, on any toolchain.

use proptest::prelude::*;
use test_support::{Corpus, cases};

use crate::fuzzed::{check_expression, check_field_selector};

const PIECES: &[&str] = &[
    "$", "@", ".", "..", "*", "[", "]", "[*]", "[?(", ")]", "'", "\"", "\\", ",", ":", "-", "0", "1", "==", "!=", "<=",
    "&&", "||", "!", "{", "}", " ", "=", "name", "metadata", "labels", "items", "length(", "match(", "\\u0061",
];

fn corpus(target: &str) -> Corpus {
    Corpus::new(env!("CARGO_MANIFEST_DIR"), target, PIECES)
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[test]
fn seeds_hold() {
    corpus("expression").check(|seed| check_expression(&text(seed)));
    corpus("field_selector").check(|seed| check_field_selector(&text(seed)));
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn mutated_expressions_hold(bytes in corpus("expression").mutated()) {
        check_expression(&text(&bytes));
    }

    #[test]
    fn mutated_field_selectors_hold(bytes in corpus("field_selector").mutated()) {
        check_field_selector(&text(&bytes));
    }

    #[test]
    fn any_text_holds(text in "\\PC{0,30}", other in any::<String>()) {
        for text in [text.clone(), other, format!("${text}"), format!("metadata.{text}=a")] {
            check_expression(&text);
            check_field_selector(&text);
        }
    }
}
