//! `docs/contract.md` against the tests that it names, and the pages of `docs/` against their map and their doctests.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::run::{output, root};

const CONTRACT: &str = "docs/contract.md";
const MAP: &str = "docs/README.md";
const DOCTESTS: &str = "tests/src/pages.rs";
/// Where the scenarios are listed that run without the test harness.
const SCENARIOS: &str = "tests/tests/it/main.rs";
/// The numbered sections.
const SECTIONS: u32 = 9;

pub(super) fn check() -> Result<Vec<String>> {
    let read = |path: &str| fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"));
    let tracked = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let files = output(Command::new("git").args(tracked).current_dir(root()))?;
    let mut tests = Tests::default();
    for path in files.lines().filter(|p| p.ends_with(".rs")) {
        // A file may be deleted and not yet committed so.
        let Ok(text) = fs::read_to_string(root().join(path)) else { continue };
        tests.collect(path, &text);
    }
    tests.collect_scenarios(&read(SCENARIOS)?);
    let mut wrong = check_contract(&read(CONTRACT)?, &tests);
    let pages: Vec<_> = files.lines().filter(|p| p.starts_with("docs/") && p.ends_with(".md")).collect();
    wrong.extend(check_pages(&pages, &read(MAP)?, &read(DOCTESTS)?));
    Ok(wrong)
}

/// The full paths of all tests, as `k8s_store::tests::it::cases::c32_…`.
#[derive(Default)]
struct Tests(Vec<String>);

impl Tests {
    fn collect(&mut self, path: &str, text: &str) {
        let module = module_of(path);
        let mut is_test = false;
        for line in text.lines().map(str::trim_start) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if let Some(name) = function(line) {
                if std::mem::take(&mut is_test) {
                    self.0.push(format!("{module}::{name}"));
                }
            } else if !line.starts_with("#[") && !line.starts_with("//") {
                is_test = false;
            }
        }
    }

    /// Lines as `Shared sync::sync_of_5000_objects,`.
    fn collect_scenarios(&mut self, text: &str) {
        for line in text.lines().map(str::trim) {
            let named = line.strip_prefix("Shared ").or_else(|| line.strip_prefix("Alone "));
            if let Some(name) = named.and_then(|rest| rest.strip_suffix(',')) {
                self.0.push(format!("e2e::{name}"));
            }
        }
    }

    /// How many tests a name means: the function, before it as much of its path as tells it apart.
    fn count(&self, name: &str) -> usize {
        self.0.iter().filter(|path| leads_to(name, path)).count()
    }
}

/// Whether the parts of a name come in this order in the path, the last at its end.
fn leads_to(name: &str, path: &str) -> bool {
    let mut parts = path.rsplit("::");
    let mut wanted = name.rsplit("::");
    wanted.next() == parts.next() && wanted.all(|part| parts.any(|p| p == part))
}

/// `crates/k8s-store/tests/it/cases.rs` is `k8s_store::tests::it::cases`.
fn module_of(path: &str) -> String {
    let path = path.strip_prefix("crates/").unwrap_or(path).trim_end_matches(".rs");
    let (package, module) = path.split_once('/').unwrap_or((path, ""));
    let package = if package == "tests" { "e2e".to_owned() } else { package.replace('-', "_") };
    format!("{package}::{}", module.replace('/', "::"))
}

/// The name of the function that begins on this line.
fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
    let end = line.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(line.len());
    Some(&line[..end])
}

/// Points run without gaps in all sections, and each names tests that exist.
fn check_contract(text: &str, tests: &Tests) -> Vec<String> {
    let mut wrong = vec![];
    // Section and the last number of a point in it.
    let mut section: Option<(Section, u32)> = None;
    let mut seen = vec![];
    for (line, row) in (1..).zip(text.lines()) {
        let mut tell = |finding: String| wrong.push(format!("{CONTRACT}:{line}: {finding}"));
        if let Some(heading) = row.strip_prefix("## ") {
            section = Section::of(heading).map(|section| (section, 0));
            seen.extend(section.as_ref().map(|(section, _)| *section));
            continue;
        }
        let Some(cells) = cells(row) else { continue };
        let Some((section, last)) = &mut section else {
            tell("a table outside the sections".into());
            continue;
        };
        let number = cells[0];
        match section.number(number) {
            Some(n) if section.follows(*last, n) => *last = n,
            Some(n) => {
                tell(format!("{number} does not follow {}", section.written(*last)));
                *last = n;
            }
            None => tell(format!("{number:?} is no number of this section")),
        }
        let names: Vec<_> = cells[cells.len() - 1].split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            tell(format!("{number} names no test"));
        }
        for name in &names {
            match tests.count(name) {
                0 => tell(format!("`{name}` is no test")),
                1 => {}
                n => tell(format!("`{name}` means {n} tests: put its crate or module before it")),
            }
        }
        let case = number.to_lowercase();
        if *section == Section::Cases && !names.iter().any(|name| name.split(['_', ':']).any(|part| part == case)) {
            tell(format!("no test of {number} has the number in its name"));
        }
    }
    for expected in (1..=SECTIONS).map(Section::Numbered).chain([Section::Cases, Section::Differences]) {
        if seen.iter().filter(|section| **section == expected).count() != 1 {
            wrong.push(format!("{CONTRACT}: {expected:?}: not there, or more than once"));
        }
    }
    wrong
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Section {
    /// `5.1`, `5.2`, …
    Numbered(u32),
    /// `C01`, `C04`, … by the field's numbers, which have gaps.
    Cases,
    /// `D1`, `D2`, …
    Differences,
}

impl Section {
    fn of(heading: &str) -> Option<Self> {
        match heading.split_once(". ") {
            _ if heading == "Cases" => Some(Self::Cases),
            _ if heading == "Deliberate differences" => Some(Self::Differences),
            Some((number, _)) => number.parse().ok().map(Self::Numbered),
            None => None,
        }
    }

    fn number(self, text: &str) -> Option<u32> {
        let prefix = match self {
            Self::Numbered(section) => format!("{section}."),
            Self::Cases => "C".into(),
            Self::Differences => "D".into(),
        };
        text.strip_prefix(&prefix)?.parse().ok()
    }

    fn follows(self, last: u32, next: u32) -> bool {
        if self == Self::Cases { next > last } else { next == last + 1 }
    }

    fn written(self, number: u32) -> String {
        match self {
            Self::Numbered(section) => format!("{section}.{number}"),
            Self::Cases => format!("C{number:02}"),
            Self::Differences => format!("D{number}"),
        }
    }
}

/// The cells of a table's row; none for other lines, heads and rules.
fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.strip_prefix('|')?.strip_suffix('|')?;
    let cells: Vec<_> = row.split(" | ").map(str::trim).collect();
    let is_data = cells[0].contains(|c: char| c.is_ascii_digit());
    (is_data && cells.len() > 1).then_some(cells)
}

/// Each page is found from the map, and its examples run.
fn check_pages(pages: &[&str], map: &str, doctests: &str) -> Vec<String> {
    let mut wrong = vec![];
    for page in pages {
        let name = page.trim_start_matches("docs/");
        if *page != MAP && !map.contains(&format!("]({name})")) {
            wrong.push(format!("{page}: {MAP} has no link to it"));
        }
        if !doctests.contains(&format!("\"{page}\"")) {
            wrong.push(format!("{page}: its examples are not run: {DOCTESTS} does not have it"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests;
