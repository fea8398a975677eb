//! Those who look on all the time: no status looks healthy while its watcher is blind, no read is older than the watch.

use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, ensure};
use fastrand::Rng;
use k8s_packed::Object;
use k8s_store::CachedStore;
use k8s_watcher::{Phase, Status, WatcherHandle};
use tokio_util::sync::CancellationToken;

use super::line::{Complaints, Line, State, state_of};
use super::watched::{BACKOFF, IDLE_LIMIT};
use super::witness::identity;

/// How long a busy machine may take for what should take no time.
const SLACK: Duration = Duration::from_secs(2);

/// Somebody's status, and what lies between them and the server.
pub(super) struct Patient {
    pub(super) name: String,
    pub(super) status: Box<dyn Fn() -> Status + Send>,
    pub(super) lines: Vec<Line>,
}

/// Looks at all of them until stopped; gives how often somebody was blind for longer than it may take to notice.
pub(super) async fn watch_for_blindness(
    patients: Vec<Patient>,
    complaints: Complaints,
    stop: CancellationToken,
) -> u64 {
    let mut seen = 0;
    while stop.run_until_cancelled(tokio::time::sleep(Duration::from_millis(200))).await.is_some() {
        for patient in &patients {
            let (state, lasts) = state_of(&patient.lines);
            let [_, longest_wait] = BACKOFF;
            let limit = match state {
                State::Open => continue,
                State::Broken => longest_wait + SLACK,
                State::Silent => IDLE_LIMIT + longest_wait + SLACK,
            };
            if lasts < limit {
                continue;
            }
            let status = (patient.status)();
            // It may have ended meanwhile.
            if state_of(&patient.lines).0 == State::Open {
                continue;
            }
            seen += 1;
            if let Err(error) = admits_blindness(&status, lasts) {
                complaints.add(|| format!("{}, {state:?} for {lasts:?}: {error}: {status:?}", patient.name));
            }
        }
    }
    seen
}

/// Phase, last contact and last error say that nothing has been heard for so long.
fn admits_blindness(status: &Status, lasts: Duration) -> Result<()> {
    ensure!(status.phase != Phase::Watching, "it says that it watches");
    let age = status.contact_age(tokio::time::Instant::now());
    ensure!(age.is_some_and(|age| age + SLACK >= lasts), "it says that the server was heard {age:?} ago");
    let error = status.last_watch_error.as_ref().and_then(|e| SystemTime::now().duration_since(e.at).ok());
    ensure!(error.is_some_and(|age| age <= lasts), "its last error is {error:?} old");
    Ok(())
}

/// What came of the reads of a cached store.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Reads {
    pub(super) answered: u64,
    pub(super) failed: u64,
    longest: Duration,
}

/// Reads objects by name all the time. A read may fail while the server is away, but what it gives is never older than
/// what the watch had shown before.
pub(super) async fn read_all_the_time(
    handle: WatcherHandle<CachedStore>,
    mut rng: Rng,
    complaints: Complaints,
    stop: CancellationToken,
) -> Reads {
    let mut reads = Reads::default();
    while stop.run_until_cancelled(tokio::time::sleep(Duration::from_millis(20))).await.is_some() {
        let snapshot = handle.snapshot();
        let at = rng.usize(..snapshot.len().max(1));
        let Some(shown) = snapshot.list().iter().nth(at).cloned() else { continue };
        let begun = Instant::now();
        let read = handle.store().by_name(shown.namespace(), shown.name()).await;
        reads.longest = reads.longest.max(begun.elapsed());
        match read {
            Err(_) => reads.failed += 1,
            Ok(read) => {
                reads.answered += 1;
                if read.is_some_and(|read| !is_as_late(&read, &shown)) {
                    complaints.add(|| format!("cached: a read is older than {shown:?}, which was shown before"));
                }
            }
        }
    }
    reads
}

fn is_as_late(read: &Object, shown: &Object) -> bool {
    matches!((identity(read), identity(shown)), (Ok((_, read)), Ok((_, shown))) if read >= shown)
}

impl Reads {
    /// One server that does not answer may cost a reader one time-out of a fetch, no more.
    pub(super) fn check(self) -> Result<()> {
        ensure!(self.answered > 0 && self.longest < Duration::from_secs(20), "{self:?}");
        Ok(())
    }
}
