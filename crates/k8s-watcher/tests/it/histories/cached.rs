//! A watcher with references in memory, and readers beside it: what they get is never older than what it showed.

use std::collections::BTreeMap;

use k8s_store::{CacheConfig, CachedStore, Error};
use k8s_types::Object;
use k8s_watcher::{RunningWatcher, Status, Watcher};
use tokio::task::JoinSet;

use super::cluster::Cluster;
use super::many::is_same;
use super::plan::{Read, Setup};
use super::play::Subject;
use super::truth::{Cursor, Place, Seen, View};
use crate::support::{check_index, ms, secs};

pub(crate) struct Cached {
    watcher: RunningWatcher<CachedStore>,
    view: View,
    cursor: Cursor,
    /// Which references were looked at.
    looked_at: Option<u64>,
    readers: JoinSet<()>,
}

impl Subject for Cached {
    fn begin(setup: &Setup, cluster: &Cluster) -> Self {
        let cache = CacheConfig::default().ttl(secs(setup.ttl_seconds)).max_parallel_fetches(2);
        let watcher = Watcher::builder(cluster.client(setup), setup.config())
            .cached(cache)
            .spawn()
            .expect("a sound configuration");
        Self { watcher, view: setup.view, cursor: Cursor::default(), looked_at: None, readers: JoinSet::new() }
    }

    fn look(&mut self, cluster: &Cluster) {
        while let Some(reader) = self.readers.try_join_next() {
            reader.expect("what was read was right");
        }
        let snapshot = self.watcher.store().snapshot();
        if self.looked_at.replace(snapshot.version()) == Some(snapshot.version()) {
            return;
        }
        check_index(&snapshot);
        let truth = cluster.truth();
        let mut present: BTreeMap<Place, Seen> = BTreeMap::new();
        for object in snapshot.list() {
            present.insert(Place::of(object), Seen::reference(object));
        }
        for place in Place::all() {
            let seen = present.get(&place);
            if seen.is_some() || self.watcher.is_synced() {
                self.cursor.see(&truth, self.view, place, seen);
            }
        }
    }

    fn relist(&self) {
        self.watcher.relist();
    }

    fn read(&mut self, read: Read, cluster: &Cluster) {
        // What was shown until now binds, and no more.
        self.look(cluster);
        let (store, view, truth) = (self.watcher.store().clone(), self.view, cluster.share_truth());
        let mut cursor = self.cursor.clone();
        let story = cluster.story.clone();
        self.readers.spawn(async move {
            let (Read::ByName(_, patience) | Read::Get(_, _, patience) | Read::List(patience)) = read;
            let found = tokio::time::timeout(ms(patience), async {
                match read {
                    Read::ByName(Place { namespace, name }, _) => {
                        store.by_name(Some(namespace), name).await.map(|found| found.into_iter().collect())
                    }
                    Read::Get(namespace, value, _) => store.get([namespace, value]).await,
                    Read::List(_) => store.list().await,
                }
            });
            let Ok(found) = found.await else { return };
            story.tell(|| format!("    {read:?} gives {:?}", found.as_ref().map(Vec::len)));
            let objects: Vec<Object> = match found {
                Ok(objects) => objects,
                // The server may be in trouble.
                Err(Error::Fetch { .. } | Error::Incomplete { .. }) => return,
                Err(error) => panic!("{error:?}"),
            };
            let truth = truth.lock().expect("no panic under the lock");
            if let (Read::ByName(place, _), []) = (read, &objects[..]) {
                cursor.see(&truth, view, place, None);
            }
            for object in &objects {
                cursor.see(&truth, view, Place::of(object), Some(&Seen::whole(object, view)));
            }
        });
    }

    async fn sync(&self) {
        self.watcher.wait_for_sync(secs(900)).await.expect("it syncs");
    }

    fn is_current(&self, cluster: &Cluster) -> bool {
        let snapshot = self.watcher.store().snapshot();
        let truth = cluster.truth();
        Place::all().all(|place| {
            let known = snapshot.by_name(Some(place.namespace), place.name).map(Seen::reference);
            is_same(known.as_ref(), &truth, self.view, place)
        })
    }

    fn status(&self) -> Status {
        self.watcher.status()
    }

    fn trouble(&self) -> String {
        format!("{:?}\n{:?}", self.watcher.status(), self.watcher.store().snapshot().list())
    }

    async fn end(mut self, setup: &Setup, cluster: &Cluster) {
        while let Some(reader) = self.readers.join_next().await {
            reader.expect("what was read was right");
        }
        // With nothing wrong reads give what the server has, all together and, for some, one by one.
        let listed = self.watcher.store().list().await.expect("nothing is wrong");
        let listed: BTreeMap<_, _> =
            listed.iter().map(|object| (Place::of(object), Seen::whole(object, self.view))).collect();
        for place in Place::all() {
            assert!(is_same(listed.get(&place), &cluster.truth(), self.view, place), "{place:?} in {listed:?}");
        }
        for place in Place::all().skip((setup.seed / 3 % 4) as usize).step_by(4) {
            let found = self.watcher.store().by_name(Some(place.namespace), place.name).await;
            let found = found.expect("nothing is wrong").map(|object| Seen::whole(&object, self.view));
            assert!(is_same(found.as_ref(), &cluster.truth(), self.view, place), "{place:?} is read as {found:?}");
        }
        self.watcher.shutdown().await;
    }
}
