use super::*;

/// With another sign, so that the check of this workspace finds no tests in it.
const SOURCE: &str = r#"
@[test]
fn c01_plain() {}

/// Not a test.
fn helper() {}

@[tokio::test(start_paused = true)]
@[should_panic(expected = "x")]
// With a remark.
async fn waits() {
    fn inner() {}
}

// @[test]
fn switched_off() {}

proptest! {
    @[test]
    fn holds(text in ".*") {}
}
"#;

fn tests() -> Tests {
    let mut tests = Tests::default();
    tests.collect("crates/k8s-store/tests/it/cases.rs", &SOURCE.replace('@', "#"));
    tests.collect("crates/k8s-types/src/key/index.rs", "mod tests {\n    #[test]\n    fn holds() {}\n}\n");
    tests.collect("tests/src/lib.rs", "#[test]\nfn waits() {}\n");
    tests.collect_scenarios("        Shared live::moves,\n        Alone trouble::ends,\n    ])\n");
    tests
}

/// A sound contract.
fn sound() -> String {
    let mut text = "# The contract\n\nText, with `names` of no test.\n\n".to_owned();
    for section in 1..=SECTIONS {
        text += &format!("## {section}. Something\n\n| | promise | tests |\n|---|---|---|\n");
        text += &format!(
            "| {section}.1 | it `works` | `c01_plain`, `k8s_store::holds` |\n| {section}.2 | so | `moves` |\n\n"
        );
    }
    text += "## Cases\n\n| | case | tests |\n|---|---|---|\n| C01 | one | `c01_plain` |\n\n";
    text += "## Deliberate differences\n\n| | difference | why | tests |\n|---|---|---|---|\n";
    text + "| D1 | a | b | `trouble::ends` |\n"
}

fn check(from: &str, to: &str, expected: &[&str]) {
    let text = sound();
    assert!(text.contains(from), "{from}");
    let wrong = check_contract(&text.replacen(from, to, 1), &tests());
    assert_eq!(wrong.len(), expected.len(), "{wrong:#?}");
    for (wrong, expected) in wrong.iter().zip(expected) {
        assert!(wrong.contains(expected), "{wrong} is not about {expected}");
    }
}

#[test]
fn tests_and_scenarios_are_found_and_nothing_else() {
    let expected = [
        "k8s_store::tests::it::cases::c01_plain",
        "k8s_store::tests::it::cases::waits",
        "k8s_store::tests::it::cases::holds",
        "k8s_types::src::key::index::holds",
        "e2e::src::lib::waits",
        "e2e::live::moves",
        "e2e::trouble::ends",
    ];
    assert_eq!(tests().0, expected);
}

#[test]
fn a_name_means_one_test() {
    let tests = tests();
    let counts =
        ["holds", "k8s_types::holds", "cases::holds", "k8s_types::cases::holds", "helper", "lds", "", "k8s_store"];
    assert_eq!(counts.map(|name| tests.count(name)), [2, 1, 1, 0, 0, 0, 0, 0]);
}

#[test]
fn a_sound_contract_passes() {
    assert_eq!(check_contract(&sound(), &tests()), [""; 0]);
}

#[test]
fn names_must_be_those_of_tests() {
    check("`c01_plain`, `k8s_store::holds`", "`c01_plain`, `helper`", &["md:9: `helper` is no test"]);
    check("`c01_plain`, `k8s_store::holds`", "`switched_off`", &["`switched_off` is no test"]);
    check("`k8s_store::holds`", "`holds`", &["`holds` means 2 tests"]);
    check("`c01_plain`, `k8s_store::holds`", "see above", &["1.1 names no test"]);
    check("`trouble::ends`", "", &["D1 names no test"]);
}

#[test]
fn numbers_run_without_gaps() {
    check("| 4.2 |", "| 4.3 |", &["4.3 does not follow 4.1"]);
    check("| 4.1 |", "| 4.2 |", &["4.2 does not follow 4.0", "4.2 does not follow 4.2"]);
    check("| 4.2 |", "| 5.2 |", &["\"5.2\" is no number of this section"]);
    check("| D1 |", "| D2 |", &["D2 does not follow D0"]);
}

#[test]
fn every_section_is_there_once() {
    check("## 7. Something", "### 7. Something", &["7.1\" is no", "7.2\" is no", "Numbered(7): not there"]);
    check("## 7. Something", "## 6. Something", &["is no", "is no", "Numbered(6)", "Numbered(7)"]);
    check("## Cases", "## Other", &["a table outside the sections", "Cases: not there"]);
    check("## Deliberate differences", "## Deliberate", &["outside", "Differences: not there"]);
}

#[test]
fn a_case_has_a_test_of_its_number() {
    check("| C01 | one | `c01_plain` |", "| C01 | one | `moves` |", &["no test of C01 has the number in its name"]);
    let twice = "| C01 | one | `c01_plain` |\n| C01 | again | `c01_plain` |";
    check("| C01 | one | `c01_plain` |", twice, &["C01 does not follow C01"]);
}

#[test]
fn a_page_is_in_the_map_and_in_the_doctests() {
    let map = "[A](a.md), [B](b.md)";
    let doctests = "Map = \"docs/README.md\",\nA = \"docs/a.md\",\nC = \"docs/c.md\",";
    assert_eq!(check_pages(&["docs/README.md", "docs/a.md"], map, doctests), [""; 0]);
    let wrong = check_pages(&["docs/README.md", "docs/a.md", "docs/b.md", "docs/c.md"], map, doctests);
    assert_eq!(
        wrong,
        [
            "docs/b.md: its examples are not run: tests/src/pages.rs does not have it",
            "docs/c.md: docs/README.md has no link to it",
        ]
    );
}
