//! Those who look on all the time: no status looks healthy while its watcher is blind, no read is older than the watch.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, anyhow, ensure};
use fastrand::Rng;
use k8s_packed::Object;
use k8s_store::CachedStore;
use k8s_watcher::{Phase, Status, WatcherHandle};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::line::{Line, State, state_of};
use super::watched::{IDLE_LIMIT, LONGEST_WAIT};
use super::witness::identity;

/// How long a busy machine may take for what should take no time.
const SLACK: Duration = Duration::from_secs(3);

/// The first complaint of those who look on.
#[derive(Debug, Clone, Default)]
pub(super) struct Complaints(Arc<Mutex<Option<String>>>);

impl Complaints {
    pub(super) fn add(&self, complaint: impl FnOnce() -> String) {
        if let Ok(mut first) = self.0.lock() {
            first.get_or_insert_with(complaint);
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let first = self.0.lock().map_err(|_| anyhow!("an onlooker panicked"))?;
        first.clone().map_or(Ok(()), |complaint| Err(anyhow!(complaint)))
    }
}

/// Somebody's status, and what lies between them and the server.
pub(super) struct Patient {
    pub(super) name: String,
    pub(super) status: Box<dyn Fn() -> Status + Send>,
    pub(super) lines: Vec<Line>,
}

/// All that look on until they are told to stop.
pub(super) struct Onlookers {
    stop: CancellationToken,
    blindness: JoinHandle<u64>,
    reads: JoinHandle<Reads>,
}

impl Onlookers {
    pub(super) fn start(
        patients: Vec<Patient>,
        cached: WatcherHandle<CachedStore>,
        rng: Rng,
        complaints: &Complaints,
    ) -> Self {
        let stop = CancellationToken::new();
        let blindness = tokio::spawn(watch_for_blindness(patients, complaints.clone(), stop.clone()));
        let reads = tokio::spawn(read_all_the_time(cached, rng, complaints.clone(), stop.clone()));
        Self { stop, blindness, reads }
    }

    /// What they have seen.
    pub(super) async fn finish(self) -> Result<()> {
        self.stop.cancel();
        let (blind, reads) = (self.blindness.await?, self.reads.await?);
        println!("            {blind} looks at a watcher that was blind; {reads}");
        // One server that does not answer costs a reader the time-out of one fetch.
        ensure!(reads.answered > 0 && reads.longest < Duration::from_secs(20), "{reads}");
        ensure!(blind > 0, "nobody was blind for long enough");
        Ok(())
    }
}

/// Looks at all of them until stopped; gives how often somebody was blind for longer than it may take to notice.
async fn watch_for_blindness(patients: Vec<Patient>, complaints: Complaints, stop: CancellationToken) -> u64 {
    let mut seen = 0;
    while stop.run_until_cancelled(tokio::time::sleep(Duration::from_millis(200))).await.is_some() {
        for patient in &patients {
            let (state, lasts) = state_of(&patient.lines);
            let limit = match state {
                State::Open => continue,
                State::Broken => LONGEST_WAIT + SLACK,
                // A list that begins as a stream is tried in pages before silence is a failure: two silences.
                State::Silent => 2 * IDLE_LIMIT + LONGEST_WAIT + SLACK,
            };
            if lasts < limit {
                continue;
            }
            let status = (patient.status)();
            // It may be over by now.
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
#[derive(Debug, Default)]
struct Reads {
    answered: u64,
    failed: u64,
    longest: Duration,
}

impl fmt::Display for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answered, failed, longest } = self;
        write!(f, "{answered} cached reads, {failed} more failed, the longest took {longest:.1?}")
    }
}

/// Reads objects by name all the time. A read may fail while the server is away, but what it gives is never older than
/// what the watch had shown before.
async fn read_all_the_time(
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
