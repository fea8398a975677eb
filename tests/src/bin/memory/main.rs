//! Soak of the process's memory: whatever comes and goes, what is left is what there is.
//!
//! `memory [--short] updates | short-lived | watchers`: one part in a process of its own, since they are measured by
//! what the process takes. `cargo xtask soak --memory` runs all of them, the tests of this package the short ones.
//!
//! The embedded API server runs in the same process. Its history and its journal are kept short and constant, so
//! whatever grows is ours; but what is printed as live and as resident has its objects too.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program")]

mod counting;
mod informers;
mod objects;
mod process;
mod quarters;
mod short_lived;
mod updates;
mod watchers;

use std::process::ExitCode;

use anyhow::{Result, bail};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

const USAGE: &str = "memory [--short] updates | short-lived | watchers";

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("memory: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let all = words.len();
    words.retain(|word| *word != "--short");
    let is_short = words.len() < all;
    match words[..] {
        ["updates"] => updates::run(is_short).await,
        ["short-lived"] => short_lived::run(is_short).await,
        ["watchers"] => watchers::run(is_short).await,
        _ => bail!("usage: {USAGE}"),
    }
}
