//! The corpora of the fuzz targets, and what chance makes of them, on any toolchain.

use proptest::prelude::*;
use test_support::{Corpus, cases};

use crate::fuzzed::{check_config, check_gvr, check_label_selector};

fn corpus(target: &str, pieces: &'static [&'static str]) -> Corpus {
    Corpus::new(env!("CARGO_MANIFEST_DIR"), target, pieces)
}

fn resources() -> Corpus {
    corpus("gvr", &["/", ".", "-", "v1", "pods", "apps", "A", " "])
}

fn selectors() -> Corpus {
    let pieces =
        &["=", "==", "!=", "!", ",", "(", ")", " in ", " notin ", ">", "<", "a", "b.c/d", "7", "-", " ", "\u{a0}"];
    corpus("label_selector", pieces)
}

fn configs() -> Corpus {
    let pieces = &["{", "}", "[", "]", "\"", ":", ",", "null", "0", "-1", "1e9", "\"5s\"", "true", "\"a\"", "v1/pods"];
    corpus("config", pieces)
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[test]
fn seeds_hold() {
    resources().check(|seed| check_gvr(&text(seed)));
    selectors().check(|seed| check_label_selector(&text(seed)));
    configs().check(check_config);
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn mutated_resources_hold(bytes in resources().mutated()) {
        check_gvr(&text(&bytes));
    }

    #[test]
    fn mutated_selectors_hold(bytes in selectors().mutated()) {
        check_label_selector(&text(&bytes));
    }

    #[test]
    fn mutated_configs_hold(bytes in configs().mutated()) {
        check_config(&bytes);
    }

    #[test]
    fn any_text_holds(text in "\\PC{0,30}", other in any::<String>()) {
        for text in [&text, &other] {
            check_gvr(text);
            check_label_selector(text);
            check_config(text.as_bytes());
        }
    }
}
