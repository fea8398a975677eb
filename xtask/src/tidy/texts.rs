//! The files themselves: what each is for stands on top, none is too long, nothing of anybody's machine is in them.

use std::fs;
use std::process::Command;

use anyhow::Result;

use crate::run::{output, root};

/// A file longer than this wants to be a folder.
const TOO_LONG: usize = 600;
/// A file longer than this is mentioned.
const LONG: usize = 400;

/// Folders of a machine and hosts of registries. Written in two parts, so that this file does not find itself.
const FOREIGN: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("proxy.", "golang.org"),
    concat!("sum.", "golang.org"),
];

/// What stops a test or an example from running.
const ASLEEP: &[&str] = &[concat!("#[igno", "re"), concat!("```igno", "re"), concat!("```no", "_run")];

pub(super) fn check() -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let tracked = ["ls-files", "--cached", "--others", "--exclude-standard"];
    for path in output(Command::new("git").args(tracked).current_dir(root()))?.lines() {
        // A file may be deleted and not yet committed so; a binary one has no lines.
        let Ok(text) = fs::read_to_string(root().join(path)) else { continue };
        wrong.extend(check_file(path, &text));
    }
    Ok(wrong)
}

fn check_file(path: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    // A script that is run directly begins with its interpreter.
    for (number, line) in (1..).zip(text.lines()) {
        for pattern in FOREIGN.iter().filter(|p| line.contains(**p)) {
            if !(number == 1 && line.starts_with("#!")) {
                wrong.push(format!("{path}:{number}: {pattern} belongs to a machine or a registry, not here"));
            }
        }
        if path.ends_with(".rs") || path.ends_with(".md") {
            for pattern in ASLEEP.iter().filter(|p| line.contains(**p)) {
                wrong.push(format!("{path}:{number}: {pattern}: tests and examples run"));
            }
        }
    }
    if path.ends_with(".rs") {
        let lines = text.lines().count();
        if lines > TOO_LONG {
            wrong.push(format!("{path}: {lines} lines, more than {TOO_LONG}; make it a folder"));
        } else if lines > LONG {
            println!("note: {path} has {lines} lines");
        }
        // Unit tests that moved out of their module are explained by it.
        if !text.starts_with("//!") && !path.ends_with("/tests.rs") {
            wrong.push(format!("{path}: does not begin with `//!` and what it is for"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, findings: usize) {
        let wrong = check_file(path, text);
        assert_eq!(wrong.len(), findings, "{path}: {wrong:?}");
    }

    #[test]
    fn findings() {
        check("a.rs", "//! What it is for.\n", 0);
        check("a.rs", "fn main() {}\n", 1);
        check("a.rs", &"//! Long.\n".repeat(TOO_LONG + 1), 1);
        check("a.md", &"Long.\n".repeat(TOO_LONG + 1), 0);
        check("a.md", &format!("see {}x\n", FOREIGN[0]), 1);
        check("a.md", &format!("{}\n", ASLEEP[1]), 1);
        check("a.toml", &format!("{}\n", ASLEEP[1]), 0);
    }
}
