use proptest::prelude::*;
use test_support::{Corpus, cases};

use super::{check_answer, check_kubeconfig};

const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ": ",
    ", ",
    "- ",
    "\n",
    "\n  ",
    "\"",
    "'",
    "null",
    "&a ",
    "*a",
    "!!binary ",
    "<<: ",
    "|\n",
    ">-\n",
    "---\n",
    "#",
    "7",
    "true",
    "token",
    "server",
    "user",
    "cluster",
    "name",
    "Status",
    "\u{feff}",
    "https://",
    "@",
    "%",
];

fn corpus(target: &str) -> Corpus {
    Corpus::new(env!("CARGO_MANIFEST_DIR"), target, PIECES)
}

#[test]
fn seeds_hold() {
    corpus("kubeconfig").check(check_kubeconfig);
    corpus("answer").check(check_answer);
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn mutated_kubeconfigs_hold(bytes in corpus("kubeconfig").mutated()) {
        check_kubeconfig(&bytes);
    }

    #[test]
    fn mutated_answers_hold(bytes in corpus("answer").mutated()) {
        check_answer(&bytes);
    }
}
