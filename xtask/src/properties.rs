//! Property tests: with one seed where a run must say the same as the last one, with many where something is looked for.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::metadata::Metadata;
use crate::run::{cargo, run};

/// Where proptest begins; it reads the variable itself.
const SEED_VARIABLE: &str = "PROPTEST_RNG_SEED";

/// The seed of every run that does not say another: a rare find must not fail a change that has nothing to do with it.
const SEED: &str = "20261130";

/// Fixes the seed, which is then printed with the command; one that the caller has set stays.
pub(crate) fn seeded(command: &mut Command) -> &mut Command {
    command.env(SEED_VARIABLE, env::var_os(SEED_VARIABLE).unwrap_or_else(|| SEED.into()))
}

/// `properties [--runs N] [--seed S] [-p CRATE]`: runs every property test N times, with the seeds from S on.
///
/// The first failure ends it; its seed and its smallest input are printed, and proptest keeps the input for the next
/// runs. That belongs into a unit test of its own, named after what went wrong.
pub(crate) fn properties(arguments: &[&str]) -> Result<()> {
    let (mut runs, mut first, mut only) = (100, 0, None);
    for pair in arguments.chunks(2) {
        match pair {
            ["--runs", n] => runs = n.replace('_', "").parse::<u64>().context("--runs")?,
            ["--seed", s] => first = s.parse::<u64>().context("--seed")?,
            ["-p", name] => only = Some(*name),
            other => bail!("unknown option {}", other.join(" ")),
        }
    }
    let tests = find(&Metadata::load()?, only)?;
    let packages = tests.keys().flat_map(|package| ["-p", package.as_str()]);
    let names: BTreeSet<_> = tests.values().flatten().map(String::as_str).collect();
    if names.is_empty() {
        bail!("no property tests{}", only.map(|name| format!(" in {name}")).unwrap_or_default());
    }
    let mut arguments: Vec<_> = ["test", "--quiet", "--all-features", "--tests"].into_iter().chain(packages).collect();
    arguments.push("--");
    arguments.extend(&names);
    for seed in first..first.saturating_add(runs) {
        let mut command = cargo(&arguments);
        run(command.env(SEED_VARIABLE, seed.to_string())).with_context(|| format!("seed {seed}"))?;
    }
    println!("{} property tests, {runs} seeds, no failure", names.len());
    Ok(())
}

/// The property tests of each of our crates that has any, by name.
fn find(metadata: &Metadata, only: Option<&str>) -> Result<BTreeMap<String, Vec<String>>> {
    let mut found = BTreeMap::new();
    for (name, package) in metadata.members() {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let manifest = Path::new(package["manifest_path"].as_str().context("a package without manifest")?);
        let folder = manifest.parent().context("a manifest without folder")?;
        let mut tests = Vec::new();
        for part in ["src", "tests"].map(|part| folder.join(part)).iter().filter(|part| part.is_dir()) {
            collect(part, &mut tests)?;
        }
        if !tests.is_empty() {
            found.insert(name.to_owned(), tests);
        }
    }
    Ok(found)
}

fn collect(folder: &Path, tests: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // A folder with a manifest is another package.
        if path.is_dir() && !path.join("Cargo.toml").exists() {
            collect(&path, tests)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            tests.extend(names(&fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// The names of the tests within `proptest!`, in a text that rustfmt has been over.
fn names(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut end = None;
    for line in text.lines() {
        let code = line.trim_start();
        let indent = &line[..line.len() - code.len()];
        if code == "proptest! {" || code == "proptest::proptest! {" {
            end = Some(format!("{indent}}}"));
        } else if end.as_deref() == Some(line) {
            end = None;
        } else if end.is_some()
            && let Some(name) = code.strip_prefix("fn ").and_then(|rest| rest.split_once('(')).map(|(name, _)| name)
        {
            found.push(name.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_within_the_macro_are_found() {
        let text = "\
#[test]
fn plain() {}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn one(a in 0..3) {
        let _ = a;
    }

    #[test]
    fn two(
        a in 0..3,
    ) {}
}

fn helper() {}

mod tests {
    proptest::proptest! {
        #[test]
        fn three(a in 0..3) {}
    }

    fn not_this() {}
}
";
        assert_eq!(names(text), ["one", "two", "three"]);
    }
}
