//! Running programs: printed first, spawned directly, the first failure ends the task.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The workspace's root folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// The cargo that runs this task, with the given arguments.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from));
    command.args(arguments).current_dir(root());
    command
}

/// Whether this is a CI run, where nothing may be skipped.
pub(crate) fn is_ci() -> bool {
    env::var("CI").is_ok_and(|v| v == "true" || v == "1")
}

/// Prints the command, runs it to its end, fails when it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("+ {}", shown(command));
    let status = command.status().with_context(|| format!("cannot run {}", shown(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", shown(command));
    }
    Ok(())
}

/// Prints the command, runs it, gives back what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    println!("+ {}", shown(command));
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", shown(command)))?;
    if !output.status.success() {
        bail!("`{}` ended with {}", shown(command), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("the output of `{}`", shown(command)))
}

/// The command as a person would type it: program without its folder, only the variables that we set.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str());
    let variables = command.get_envs().filter_map(|(k, v)| Some((k, v?)));
    let variables = variables.map(|(k, v)| format!("{}={} ", k.display(), quoted(v)));
    let arguments = command.get_args().map(|a| format!(" {}", quoted(a)));
    format!("{}{}{}", variables.collect::<String>(), program.display(), arguments.collect::<String>())
}

fn quoted(text: &OsStr) -> String {
    let text = text.to_string_lossy();
    if text.is_empty() || text.contains(char::is_whitespace) { format!("'{text}'") } else { text.into_owned() }
}

/// The parts of a long task and what each took; printed when dropped, so also after a failure. The CPU time beside the
/// wall time tells work from waiting on a machine that does other things too.
#[derive(Debug)]
pub(crate) struct Parts {
    done: Vec<(&'static str, Duration, Duration)>,
    start: Instant,
}

impl Parts {
    pub(crate) fn new() -> Self {
        Self { done: Vec::new(), start: Instant::now() }
    }

    pub(crate) fn part(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        println!("\n=== {name} ===");
        let (start, cpu) = (Instant::now(), cpu_of_children());
        let result = work().with_context(|| name.to_owned());
        self.done.push((name, start.elapsed(), cpu_of_children().saturating_sub(cpu)));
        result
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        println!("\n=== time of each part ===");
        for (name, wall, cpu) in &self.done {
            println!("{:>8.1} s {:>8.1} CPU s  {name}", wall.as_secs_f64(), cpu.as_secs_f64());
        }
        let (wall, cpu) = (self.start.elapsed(), cpu_of_children());
        println!("{:>8.1} s {:>8.1} CPU s  together", wall.as_secs_f64(), cpu.as_secs_f64());
    }
}

/// User and system time of all programs that have ended so far, theirs included; zero where /proc does not say.
fn cpu_of_children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program's name, in parentheses, may hold spaces: count from behind it. `proc_pid_stat(5)`: 16 and 17.
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    let ticks: u64 = fields.skip(13).take(2).filter_map(|f| f.parse::<u64>().ok()).sum();
    // USER_HZ, which Linux keeps at 100 towards programs.
    Duration::from_millis(ticks * 10)
}
