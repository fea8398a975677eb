//! What this process has at the moment: memory, tasks, sockets.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio::runtime::Handle;

use crate::counting::live_bytes;

/// How much more than before may be in use when all is gone: what runtime and libraries keep for the next time.
const KEPT: usize = 96 << 10;

/// How long what was dropped may take to go: tasks are aborted, peers learn of closed connections.
const PATIENCE: Duration = Duration::from_secs(20);

/// What must be there again when all is gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Footprint {
    live: usize,
    tasks: usize,
    sockets: usize,
}

impl Footprint {
    pub(crate) fn now() -> Self {
        Self { live: live_bytes(), tasks: Handle::current().metrics().num_alive_tasks(), sockets: sockets() }
    }

    /// Waits until nothing is left of what came after this, and tells what libraries keep for the next time.
    ///
    /// # Errors
    ///
    /// Something stays.
    pub(crate) async fn again(self) -> Result<String> {
        let begin = Instant::now();
        loop {
            let now = Self::now();
            if now.live <= self.live + KEPT && now.tasks <= self.tasks && now.sockets <= self.sockets {
                return Ok(format!("{} bytes, no task, no socket", now.live.saturating_sub(self.live)));
            }
            if begin.elapsed() > PATIENCE {
                bail!("something was left behind: {now:?} after {self:?}");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Resident memory, by the second field of `/proc/self/statm`; zero where there is none.
pub(crate) fn resident_bytes() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: usize = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * page_size()
}

/// The kernel's page size, from the sizes that it gives in both units.
fn page_size() -> usize {
    static PAGE: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *PAGE.get_or_init(|| {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kib = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.split_whitespace().next()?.parse().ok());
        let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages = statm.split(' ').next().and_then(|pages| pages.parse::<usize>().ok());
        match (kib, pages) {
            (Some(kib @ 1_usize..), Some(pages @ 1..)) => (kib * 1024 / pages).next_power_of_two().max(4096),
            _ => 4096,
        }
    })
}

/// Open sockets of this process, of both sides where it talks to itself.
pub(crate) fn sockets() -> usize {
    let Ok(descriptors) = fs::read_dir("/proc/self/fd") else { return 0 };
    let target = |entry: fs::DirEntry| fs::read_link(entry.path()).ok();
    let links = descriptors.filter_map(|entry| target(entry.ok()?));
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}
