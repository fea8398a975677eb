//! A single watcher: what it tells of its object is a true story with gaps, and ends at the present.

use std::sync::{Arc, Mutex};

use fastrand::Rng;
use k8s_types::{Object, SingleWatcherConfig};
use k8s_watcher::{RunningSingleWatcher, SingleWatcher, Status};

use super::cluster::Cluster;
use super::many::is_same;
use super::plan::{Kind, Setup};
use super::play::Subject;
use super::truth::{Cursor, Seen, View};
use crate::support::{MAPS, ms, secs};

/// What callbacks were told, in order.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Option<Seen>>>>);

impl Told {
    fn push(&self, object: Option<&Object>, view: View) {
        self.0.lock().expect("no panic under the lock").push(object.map(|object| Seen::whole(object, view)));
    }

    fn all(&self) -> Vec<Option<Seen>> {
        self.0.lock().expect("no panic under the lock").clone()
    }

    fn last(&self) -> Option<Option<Seen>> {
        self.0.lock().expect("no panic under the lock").last().cloned()
    }
}

pub(crate) struct Single {
    watcher: RunningSingleWatcher,
    view: View,
    told: Told,
    cursor: Cursor,
}

impl Single {
    /// What was told is a part of what happened, in its order; between two that have the name lies a delete, and
    /// nothing is told that was known.
    fn check(&self, cluster: &Cluster) {
        let told = self.told.all();
        let (truth, mut cursor) = (cluster.truth(), Cursor::default());
        for seen in &told {
            cursor.see(&truth, self.view, Kind::ONE, seen.as_ref());
        }
        for pair in told.windows(2) {
            match pair {
                [None, None] => panic!("told twice that there is none"),
                [Some(before), Some(after)] => {
                    assert_eq!(before.uid, after.uid, "no delete between {pair:?}");
                    let is_same = (&before.value, &before.more) == (&after.value, &after.more);
                    assert!(!is_same, "{after:?} told twice");
                }
                _ => {}
            }
        }
        assert_eq!(self.watcher.status().callback_panics, 0);
    }
}

impl Subject for Single {
    fn begin(setup: &Setup, cluster: &Cluster) -> Self {
        let config = SingleWatcherConfig::new(MAPS, Kind::ONE.namespace, Kind::ONE.name)
            .list_mode(setup.list_mode)
            .idle_limit(secs(setup.idle_seconds));
        let (told, view) = (Told::default(), setup.view);
        let (on_sync, on_change) = (told.clone(), told.clone());
        let (slowness, most) = (Mutex::new(Rng::with_seed(setup.seed)), setup.slowness);
        let watcher = SingleWatcher::builder(cluster.client(setup), config)
            .on_sync_complete_async(move |object| {
                on_sync.push(object.as_ref(), view);
                tokio::time::sleep(ms(most))
            })
            .on_change_async(move |object| {
                on_change.push(object.as_ref(), view);
                tokio::time::sleep(ms(slowness.lock().expect("no panic under the lock").u64(0..=most)))
            })
            .spawn()
            .expect("a sound configuration");
        Self { watcher, view, told, cursor: Cursor::default() }
    }

    fn look(&mut self, cluster: &Cluster) {
        if self.watcher.is_synced() {
            let object = self.watcher.object();
            let seen = object.as_ref().map(|object| Seen::whole(object, self.view));
            self.cursor.see(&cluster.truth(), self.view, Kind::ONE, seen.as_ref());
        }
    }

    fn relist(&self) {
        self.watcher.relist();
    }

    async fn sync(&self) {
        self.watcher.wait_for_sync(secs(900)).await.expect("it syncs");
    }

    fn is_current(&self, cluster: &Cluster) -> bool {
        let truth = cluster.truth();
        let known = self.watcher.object().map(|object| Seen::whole(&object, self.view));
        // A version that moved on alone is not told.
        let told = self.told.last().map(|told| told.map(|told| Seen { version: None, ..told }));
        is_same(known.as_ref(), &truth, self.view, Kind::ONE)
            && told.is_some_and(|told| is_same(told.as_ref(), &truth, self.view, Kind::ONE))
    }

    fn status(&self) -> Status {
        self.watcher.status()
    }

    fn trouble(&self) -> String {
        format!("{:?}\ntold: {:?}", self.watcher.status(), self.told.all())
    }

    /// What is known is told before it ends.
    async fn end(self, _: &Setup, cluster: &Cluster) {
        self.check(cluster);
        let handle = self.watcher.handle().clone();
        handle.stop();
        let ended = tokio::time::timeout(secs(600), async {
            while !self.watcher.is_stopped() {
                tokio::time::sleep(ms(100)).await;
            }
        });
        ended.await.expect("it ends");
        let content = |seen: Option<Seen>| seen.map(|seen| Seen { version: None, ..seen });
        let known = handle.object().map(|object| Seen::whole(&object, self.view));
        assert_eq!(self.told.last().map(content), Some(content(known)), "known, and not told");
        self.check(cluster);
    }
}
