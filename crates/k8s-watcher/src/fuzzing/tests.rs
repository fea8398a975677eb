use proptest::prelude::*;
use test_support::{Corpus, cases};

use super::*;

const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\\",
    "\n",
    "\r\n",
    "null",
    "{}",
    "7",
    "-1",
    "99999999999999999999",
    r#""items":["#,
    r#""metadata":{"#,
    r#""name":"a""#,
    r#""resourceVersion":"9""#,
    r#""type":"ADDED""#,
    r#""object":{"#,
    r#""kind":"Status""#,
    r#""code":410"#,
    r#""reason":"Expired""#,
    r#""retryAfterSeconds":"#,
];

fn corpus(target: &str) -> Corpus {
    Corpus::new(env!("CARGO_MANIFEST_DIR"), target, PIECES)
}

#[test]
fn seeds_hold() {
    corpus("watch").check(check_watch);
    corpus("list").check(check_list);
    corpus("refusal").check(check_refusal);
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn mutated_watches_hold(body in corpus("watch").mutated()) {
        check_watch(&body);
    }

    #[test]
    fn mutated_lists_hold(body in corpus("list").mutated()) {
        check_list(&body);
    }

    #[test]
    fn mutated_refusals_hold(body in corpus("refusal").mutated()) {
        check_refusal(&body);
    }

    #[test]
    fn any_bytes_hold(body in prop::collection::vec(any::<u8>(), 0..60), text in "\\PC{0,30}") {
        for body in [&body[..], text.as_bytes()] {
            check_watch(body);
            check_list(body);
            check_refusal(body);
        }
    }
}
