//! One child process with its log and its pid file; ended when dropped, and never anybody else's.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long a process may take to end when asked.
const GRACE: Duration = Duration::from_secs(15);

/// A running program. Killed when dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Option<Child>,
    pid_file: PathBuf,
}

impl Process {
    /// Starts `program`; output goes to `NAME.log` in `folder`, the process id to `NAME.pid`.
    ///
    /// A Ctrl-C reaches it as well, since a program that dies of one drops nothing; unless `outlives` it, that is.
    pub(super) fn spawn(
        folder: &Path,
        name: &str,
        program: &Path,
        arguments: &[String],
        outlives: bool,
    ) -> Result<Self> {
        let log = File::options().create(true).append(true).open(log_file(folder, name))?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        if outlives {
            command.process_group(0);
        }
        let child = command.spawn().with_context(|| format!("cannot run {}", program.display()))?;
        let pid_file = pid_file(folder, name);
        let process = Self { pid_file, child: Some(child) };
        if let Some(child) = &process.child {
            fs::write(&process.pid_file, child.id().to_string())?;
        }
        Ok(process)
    }

    /// How the process ended, if it did.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.as_mut().map(Child::try_wait).transpose()?.flatten())
    }

    /// Lets it run on after this value is gone.
    pub(super) fn detach(mut self) {
        self.child = None;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Nothing can be done about a failure here, and the only one is that it has ended already.
            let _ = child.kill();
            let _ = child.wait();
            let _ = fs::remove_file(&self.pid_file);
        }
    }
}

fn log_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.log"))
}

fn pid_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.pid"))
}

/// The last lines of a log, for an error text.
pub(super) fn log_tail(folder: &Path, name: &str) -> String {
    let text = fs::read(log_file(folder, name)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

/// The process that the pid file names, if it is still the one that was started in `folder`: a pid may be somebody
/// else's by now, a command line that names the folder is not.
pub(super) fn running(folder: &Path, name: &str) -> Option<u32> {
    let pid = fs::read_to_string(pid_file(folder, name)).ok()?.trim().parse().ok()?;
    let command_line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let command_line = String::from_utf8_lossy(&command_line).into_owned();
    (command_line.contains(name) && command_line.contains(folder.to_str()?)).then_some(pid)
}

/// Asks the process of a pid file to end, then makes it.
pub(super) fn stop(folder: &Path, name: &str) -> Result<()> {
    for signal in ["-TERM", "-KILL"] {
        let Some(pid) = running(folder, name) else { break };
        let status = Command::new("kill").args([signal, &pid.to_string()]).status().context("cannot run kill")?;
        let deadline = Instant::now() + GRACE;
        while status.success() && running(folder, name).is_some() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    if let Some(pid) = running(folder, name) {
        bail!("{name}, process {pid}, does not end");
    }
    if pid_file(folder, name).exists() {
        fs::remove_file(pid_file(folder, name))?;
    }
    Ok(())
}
