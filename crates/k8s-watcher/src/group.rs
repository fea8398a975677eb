//! Several watchers, one start: what is held back until all of them are synced, and who is waited for.

mod deadline;
mod error;

use std::collections::HashMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use k8s_types::ConfigError;
use tokio::time::Instant;

pub use self::deadline::Deadline;
pub use self::error::GroupError;
use crate::control::Control;
use crate::status::{Phase, Status, WatchError};
use crate::sync::{Mutex, watch};

/// Watchers that start together: `on_change` of none of them is called before all of them are synced, so that nobody
/// acts on half a configuration, and one call waits for all.
///
/// A watcher joins by its builder's `sync_group`, under a name that errors and progress tell. Then:
///
/// - [`wait`](Self::wait) declares that all members have joined and waits until each has its initial load. Until
///   then `on_change` about what happened after a member's own load is held back: when the group is complete, one
///   call has all of it. Without `wait` (or [`close`](Self::close)) the group is not complete as long as it has a
///   handle, since another member might still join; with its last handle it closes.
/// - Each member's own `wait_for_sync` and `on_sync_complete` are about that member alone, and callbacks about the load
///   itself come for those who asked for them (`call_on_change_during_sync`).
/// - Stores and streams of changes are open all the time: the state at the end of `wait` has everything that came
///   meanwhile.
/// - A member that ends before it is synced, stopped or dropped, is an error of `wait`: what was held back stays
///   held back, unless the member is [dismissed](Self::dismiss).
///
/// Clones are the same group.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use k8s_types::WatcherConfig;
/// use k8s_watcher::{Deadline, SyncGroup, Watcher};
///
/// # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// # let server = k8s_fake_apiserver::FakeApiServer::builder().start().await?;
/// # let client = server.client();
/// let group = SyncGroup::new();
/// let ingresses = Watcher::builder(&client, WatcherConfig::new("networking.k8s.io/v1/ingresses").index_by(["metadata.namespace"]))
///     .sync_group(&group, "ingresses")
///     .on_change(|change| println!("ingresses: {}", change.stats))
///     .spawn()?;
/// let services = Watcher::builder(&client, WatcherConfig::new("v1/services").index_by(["metadata.namespace"]))
///     .sync_group(&group, "services")
///     .spawn()?;
/// group.wait(Deadline::no_progress(Duration::from_secs(20))).await?;
/// assert!(ingresses.is_synced() && services.is_synced());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SyncGroup {
    inner: Arc<Inner>,
    _open: Arc<Open>,
}

/// What all handles of a group hold together: with the last of them goes the possibility to join.
struct Open(Arc<Inner>);

struct Inner {
    members: Mutex<Members>,
    /// All members are synced, and no other can join.
    complete: watch::Sender<bool>,
}

#[derive(Default)]
struct Members {
    list: Vec<Member>,
    closed: bool,
}

struct Member {
    name: String,
    control: Arc<Control>,
    dismissed: bool,
}

/// How far a member of a [`SyncGroup`] is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MemberProgress {
    /// The name under which it joined.
    pub name: String,
    /// Whether its initial load is complete.
    pub synced: bool,
    /// How many objects it has read.
    pub objects: u64,
    /// What it does.
    pub phase: Phase,
    /// Its last failure, kept after recovery.
    pub last_watch_error: Option<WatchError>,
}

impl SyncGroup {
    /// A group without members.
    #[must_use]
    pub fn new() -> Self {
        let inner = Arc::new(Inner { members: Mutex::default(), complete: watch::Sender::new(false) });
        Self { _open: Arc::new(Open(inner.clone())), inner }
    }

    /// Declares that all members have joined. [`wait`](Self::wait) does so too. A watcher that is built for the group
    /// later is an error.
    pub fn close(&self) {
        self.inner.close();
    }

    /// Goes on without a member, as where a kind turns out not to be there: nobody waits for it any more. Says
    /// whether there is such a member. The watcher itself is left as it is.
    pub fn dismiss(&self, name: &str) -> bool {
        let mut members = self.inner.members.lock();
        let found = members.list.iter_mut().find(|m| m.name == name).map(|m| m.dismissed = true);
        drop(members);
        self.inner.look();
        found.is_some()
    }

    /// Whether all members are synced and no other can join. Stays true.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        *self.inner.complete.borrow()
    }

    /// How far each member is, in the order in which they joined, without those that were dismissed.
    #[must_use]
    pub fn progress(&self) -> Vec<MemberProgress> {
        let members = self.inner.members.lock();
        let waited_for = members.list.iter().filter(|m| !m.dismissed);
        waited_for.map(|m| MemberProgress::new(&m.name, m.control.status.get())).collect()
    }

    /// Waits until every member is synced; gives the number of objects of all their initial loads. Returns at once
    /// when that was earlier, and for a group without members. May be called by several tasks.
    ///
    /// # Errors
    ///
    /// [`GroupError::Deadline`] and [`GroupError::NoProgress`] with the names of those that are missing and how far
    /// they are; the watchers go on, and so may another call. [`GroupError::Stopped`] when a member has ended before
    /// it was synced.
    ///
    /// # Cancel safety
    ///
    /// The group stays closed; nothing else changes when the future is dropped.
    pub async fn wait(&self, deadline: Deadline) -> Result<usize, GroupError> {
        self.close();
        let mut statuses = self.statuses();
        let mut complete = self.inner.complete.subscribe();
        let begin = Instant::now();
        let (mut furthest, mut progressed) = (Furthest::default(), begin);
        loop {
            let now = Instant::now();
            let progress = self.progress();
            if *complete.borrow_and_update() {
                return Ok(self.loaded());
            }
            if let Some(at) = progress.iter().position(|m| !m.synced && m.phase == Phase::Stopped) {
                return Err(GroupError::Stopped { member: progress[at].name.clone(), missing: missing(progress) });
            }
            if furthest.advance(&progress) {
                progressed = now;
            }
            let due = deadline.due(begin, progressed);
            if due.is_some_and(|due| due <= now) {
                return Err(deadline.error(begin, now, missing(progress)));
            }
            let changed = async {
                tokio::select! {
                    biased;
                    () = any_changed(&mut statuses) => {}
                    _ = complete.changed() => {}
                }
            };
            match due {
                Some(due) => drop(tokio::time::timeout_at(due, changed).await),
                None => changed.await,
            }
        }
    }

    fn statuses(&self) -> Vec<watch::Receiver<Status>> {
        self.inner.members.lock().list.iter().map(|m| m.control.status.subscribe()).collect()
    }

    fn loaded(&self) -> usize {
        let members = self.inner.members.lock();
        members.list.iter().filter_map(|m| m.control.status.read(|s| s.initial_objects)).sum()
    }

    /// Takes a watcher in.
    pub(crate) fn join(&self, name: String, control: Arc<Control>) -> Result<Gate, ConfigError> {
        let mut members = self.inner.members.lock();
        let refused = if name.is_empty() {
            Some("a member needs a name".to_owned())
        } else if members.closed {
            Some(format!("{name} comes too late: the group is waited for already"))
        } else if members.list.iter().any(|m| m.name == name) {
            Some(format!("{name} is the name of another member"))
        } else {
            None
        };
        if let Some(reason) = refused {
            return Err(ConfigError::new("sync_group", reason));
        }
        members.list.push(Member { name, control, dismissed: false });
        Ok(Gate { group: Some(self.inner.clone()) })
    }
}

impl Inner {
    fn close(&self) {
        self.members.lock().closed = true;
        self.look();
    }

    /// Whether it is complete now.
    fn look(&self) {
        let members = self.members.lock();
        let synced = |m: &Member| m.dismissed || m.control.status.read(|s| s.synced);
        if members.closed && members.list.iter().all(synced) {
            // Under the lock, so that nobody takes an older look for the newer one.
            self.complete.send_if_modified(|complete| !std::mem::replace(complete, true));
        }
    }
}

/// The most that each member has read. Each counts by itself: what one loses must not hide what another gains, and what
/// one that is synced goes on to gain is no progress.
#[derive(Default)]
struct Furthest(HashMap<String, u64>);

impl Furthest {
    /// Whether any member is further than ever before.
    fn advance(&mut self, progress: &[MemberProgress]) -> bool {
        let mut any = false;
        for member in progress {
            let reached = if member.synced { u64::MAX } else { member.objects };
            let furthest = self.0.entry(member.name.clone()).or_default();
            any |= reached > *furthest;
            *furthest = reached.max(*furthest);
        }
        any
    }
}

fn missing(progress: Vec<MemberProgress>) -> Vec<MemberProgress> {
    progress.into_iter().filter(|m| !m.synced).collect()
}

/// Until one of them has news. A member that is gone altogether has none.
async fn any_changed(statuses: &mut [watch::Receiver<Status>]) {
    let mut changes: Vec<_> = statuses.iter_mut().map(|status| Box::pin(status.changed())).collect();
    poll_fn(|cx| {
        let ready = changes.iter_mut().any(|change| matches!(change.as_mut().poll(cx), Poll::Ready(Ok(()))));
        if ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// What holds back a member's `on_change`; open from the start without a group.
#[derive(Clone, Default)]
pub(crate) struct Gate {
    group: Option<Arc<Inner>>,
}

impl Gate {
    pub(crate) fn is_open(&self) -> bool {
        self.group.as_ref().is_none_or(|group| *group.complete.borrow())
    }

    /// Ready once it is open.
    pub(crate) async fn opened(&self) {
        let Some(group) = &self.group else { return };
        let mut complete = group.complete.subscribe();
        // It cannot fail: the sender lives in the group that we hold.
        let _ = complete.wait_for(|complete| *complete).await.map(drop);
    }

    /// The member is synced.
    pub(crate) fn synced(&self) {
        if let Some(group) = &self.group {
            group.look();
        }
    }
}

// === impl MemberProgress ===

impl MemberProgress {
    fn new(name: &str, status: Status) -> Self {
        let listed = if let Phase::Listing { items, .. } = status.phase { items } else { 0 };
        Self {
            name: name.to_owned(),
            synced: status.synced,
            objects: listed.max(status.objects as u64),
            phase: status.phase,
            last_watch_error: status.last_watch_error,
        }
    }
}

impl fmt::Display for MemberProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, objects, phase, .. } = self;
        write!(f, "{name} ({objects} objects, {phase}")?;
        if let Some(error) = &self.last_watch_error {
            write!(f, "; last failure: {error}")?;
        }
        f.write_str(")")
    }
}

// === trait impls ===

impl Drop for Open {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Default for SyncGroup {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SyncGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.inner.members.lock();
        let names: Vec<_> = members.list.iter().map(|m| &m.name).collect();
        f.debug_struct("SyncGroup")
            .field("members", &names)
            .field("complete", &self.is_complete())
            .finish_non_exhaustive()
    }
}
