//! Follows a stream of changes, slowly, and holds it against the store and against everything seen before.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_packed::Object;
use k8s_store::Snapshot;
use k8s_types::Change;
use k8s_watcher::{Batch, Changes};

use crate::support::{Key, key};

/// What lies between two looks at the stream: a reader who is slow gets bigger batches.
const PAUSE: Duration = Duration::from_millis(100);
/// What lies between two looks at all objects.
const BETWEEN_SCANS: Duration = Duration::from_secs(5);

/// The latest version of each object that ever was, by uid.
type Versions = HashMap<u128, u64>;

/// What was told so far.
#[derive(Debug, Default)]
pub(super) struct Witness {
    state: BTreeMap<Key, Object>,
    told: Versions,
    stored: Versions,
    pub(super) batches: u64,
    pub(super) changes: u64,
    pub(super) scans: u64,
}

impl Witness {
    /// Follows until the watcher ends.
    pub(super) async fn follow(mut changes: Changes, may_come_back: bool) -> Result<Self> {
        let mut witness = Self::default();
        let mut scanned = None::<Instant>;
        while let Some(batch) = changes.next().await {
            witness.take(&batch, may_come_back)?;
            if scanned.is_none_or(|at| at.elapsed() > BETWEEN_SCANS) {
                tokio::task::block_in_place(|| witness.scan(&batch.snapshot))?;
                scanned = Some(Instant::now());
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(witness)
    }

    fn take(&mut self, batch: &Batch, may_come_back: bool) -> Result<()> {
        ensure!(batch.is_initial == (self.batches == 0), "the first batch, and it alone, is the state");
        self.batches += 1;
        for change in &batch.changes {
            let after = change.object();
            let key = key(after);
            let before = self.state.remove(&key);
            match change {
                Change::Created(_) => {
                    ensure!(before.is_none(), "{key:?} was created though it was there");
                    let (uid, _) = identity(after)?;
                    ensure!(may_come_back || !self.told.contains_key(&uid), "{after:?} came back from the dead");
                }
                Change::Modified { old, new } => {
                    let before = before.with_context(|| format!("{new:?} was modified though not there"))?;
                    ensure!(before.same_content(old), "{new:?} was modified from something it was not");
                    ensure!(old.uid() == new.uid(), "{new:?} is another object");
                    ensure!(!old.same_content(new), "{new:?} was modified and stayed the same");
                }
                Change::Deleted(_) => ensure!(before.is_some(), "{after:?} was deleted though not there"),
            }
            if !change.is_deleted() {
                ensure!(
                    rises(&mut self.told, after, false)?,
                    "{after:?} was told in a version not above the one before"
                );
                self.state.insert(key, after.clone());
            }
            self.changes += 1;
        }
        Ok(())
    }

    /// The changes led to this state, and no object in it is older than it was.
    pub(super) fn scan(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.scans += 1;
        ensure!(self.state.len() == snapshot.len(), "{} by changes, {} stored", self.state.len(), snapshot.len());
        for (object, (key, told)) in snapshot.list().iter().zip(&self.state) {
            ensure!(object.namespace() == Some(&key.0) && object.name() == key.1, "{object:?} was never told");
            ensure!(told.same_content(object), "{object:?} is not as it was told");
            ensure!(rises(&mut self.stored, object, true)?, "{object:?} is stored in an older version than before");
        }
        Ok(())
    }
}

/// Takes note of an object's version; false if it was there in a later one, or in this one unless that is `or_equal`.
fn rises(versions: &mut Versions, object: &Object, or_equal: bool) -> Result<bool> {
    let (uid, version) = identity(object)?;
    let last = versions.insert(uid, version);
    Ok(last.is_none_or(|last| last < version || (or_equal && last == version)))
}

/// A uid and a version as numbers, which take a tenth of the room.
pub(super) fn identity(object: &Object) -> Result<(u128, u64)> {
    let uid = object.uid().context("no uid")?.replace('-', "");
    let version = object.resource_version().context("no version")?;
    Ok((u128::from_str_radix(&uid, 16)?, version.parse()?))
}
