//! Build logic of the workspace: `cargo xtask TASK`. This file dispatches, each task has a file.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program")]

mod bench;
mod control_plane;
mod deny;
mod docs;
mod examples;
mod fuzz;
mod loom;
mod memory;
mod metadata;
mod miri;
mod msrv;
mod package;
mod properties;
mod run;
mod soak;
mod test;
mod tidy;
mod torture;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask TASK

  test [--fast]       everything that CI checks, in this order: format, tidy, clippy, docs, tests and doctests with
                      default and with all features, random histories, packages, licences, scenarios on the real
                      control plane
                      (--fast: format, tidy, clippy and tests with default features)
  tidy                arrows between the crates, manifests, features, module docs, file lengths, oldest Rust
  docs                API documentation; a broken link is an error
  package             the packages as they would be published, each built from its own files
  msrv                build with the oldest supported Rust, if that toolchain is installed
  deny                licences, sources and duplicate versions (needs cargo-deny)
  bench [--pods N] [--runs N]
                      us beside kube's reflector on the same Pods of the embedded server: memory, CPU, look-ups, updates
  loom                models of how threads meet, in every order
  miri                the unit tests of k8s-packed under miri (needs a nightly toolchain that has it)
  fuzz [--seconds N] [TARGET]...
                      each fuzz target for so long (needs a nightly toolchain and cargo-fuzz)
  properties [--runs N] [--seed S] [-p CRATE]
                      every property test N times, each time with another seed
  soak [--histories N] [--seed S]
                      random histories of servers, faults and watchers, each against its model (100,000 from seed 0)
  soak --memory [--short]
                      2,000,000 updates, 200,000 short-lived objects, 4,000 watchers: the memory of the last quarter
                      is that of the second, and nothing stays behind (ten minutes; --short: seconds)
  torture [--minutes N] [--objects N] [--writes N] [--seed S]
                      all watchers on the real control plane under steady writes, while its programs are killed and the
                      network fails, for ten minutes
  control-plane ...   the real etcd and kube-apiserver: build | start DIR | stop DIR";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test"] => test::all(),
        ["test", "--fast"] => test::fast(),
        ["tidy"] => tidy::run(),
        ["docs"] => docs::run(),
        ["package"] => package::run(),
        ["msrv"] => msrv::run(),
        ["fuzz", ref rest @ ..] => fuzz::fuzz(rest),
        ["miri"] => miri::run(),
        ["deny"] => deny::run(),
        ["bench", ref rest @ ..] => bench::bench(rest),
        ["soak", "--memory", ref rest @ ..] => memory::memory(rest),
        ["properties", ref rest @ ..] => properties::properties(rest),
        ["soak", ref rest @ ..] => soak::soak(rest),
        ["loom"] => loom::run_models(),
        ["torture", ref rest @ ..] => torture::torture(rest),
        ["control-plane", ref rest @ ..] if !rest.is_empty() => control_plane::run(rest),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
