//! Fuzzing: each target in turn, from its seeds.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run::{output, root, run};

/// `fuzz [--seconds N] [TARGET]...`: runs the targets, or all of them, for so long each. Not among what CI checks: it
/// needs a nightly toolchain and cargo-fuzz. Without them nothing is run, and that is said.
pub(crate) fn fuzz(arguments: &[&str]) -> Result<()> {
    let (mut seconds, mut wanted, mut rest) = (60, Vec::new(), arguments.iter());
    while let Some(argument) = rest.next() {
        match *argument {
            "--seconds" => seconds = rest.next().context("--seconds N")?.parse::<u64>().context("--seconds")?,
            option if option.starts_with('-') => bail!("unknown option {option}"),
            target => wanted.push(target),
        }
    }
    let targets = targets()?;
    if let Some(unknown) = wanted.iter().find(|name| !targets.contains_key(**name)) {
        bail!("no target {unknown}; there are {}", targets.keys().map(String::as_str).collect::<Vec<_>>().join(", "));
    }
    if output(&mut cargo_fuzz(&["--version"])).is_err() {
        println!("cargo-fuzz or the nightly toolchain is not installed (see fuzz/README.md): nothing was run");
        return Ok(());
    }
    for (name, seeds) in targets.iter().filter(|(name, _)| wanted.is_empty() || wanted.contains(&name.as_str())) {
        let corpus = root().join("fuzz/corpus").join(name);
        fs::create_dir_all(&corpus)?;
        let mut command = cargo_fuzz(&["run", name]);
        run(command.arg(corpus).arg(seeds).args(["--", "-timeout=10", &format!("-max_total_time={seconds}")]))?;
    }
    Ok(())
}

fn cargo_fuzz(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(root()).args(["run", "nightly", "cargo", "fuzz"]).args(arguments);
    command
}

/// Each target's name, and the folder of its seeds, which lies beside the tests of the crate that it is about.
fn targets() -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    for package in fs::read_dir(root().join("crates"))? {
        let Ok(folders) = fs::read_dir(package?.path().join("tests/seeds")) else { continue };
        for seeds in folders {
            let seeds = seeds?;
            found.insert(seeds.file_name().to_string_lossy().into_owned(), seeds.path());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_has_seeds_and_all_seeds_have_a_target() {
        let targets: Vec<_> = targets().unwrap().into_keys().collect();
        let sources = fs::read_dir(root().join("fuzz/fuzz_targets")).unwrap();
        let mut names: Vec<_> =
            sources.map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect();
        names.sort();
        assert_eq!(names, targets);
        let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
        let readme = fs::read_to_string(root().join("fuzz/README.md")).unwrap();
        for name in names {
            assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is not in the manifest");
            assert!(readme.contains(&format!("| `{name}` |")), "{name} is not in the README");
        }
    }
}
