//! Many threads read what one watcher writes: status, snapshots, backlog. On real threads and the real clock.

use std::sync::atomic::{AtomicBool, Ordering};

use k8s_types::Change;
use k8s_watcher::{Status, Watcher, WatcherHandle};

use crate::support::*;

const READERS: usize = 8;
const OBJECTS: usize = 100;
const WRITES: usize = 1_500;

/// Sets a flag also when the thread panics.
struct AtEnd<'a>(&'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Nothing of a later status is from before an earlier one, and what is in one status is of one moment.
fn check(before: &Status, now: &Status) {
    let counts = |s: &Status| {
        let changes = s.changes;
        [
            u64::from(s.started),
            u64::from(s.synced),
            changes.created,
            changes.modified,
            changes.deleted,
            s.failures.total(),
            s.relists,
            s.restarts,
        ]
    };
    for (before_count, count) in counts(before).into_iter().zip(counts(now)) {
        assert!(before_count <= count, "{before:?}, then {now:?}");
    }
    assert!(before.last_contact <= now.last_contact && before.last_event <= now.last_event);
    let version = |s: &Status| s.resource_version.as_ref().and_then(|text| text.parse::<u64>().ok());
    assert!(version(before) <= version(now), "{before:?}, then {now:?}");
    if now.synced {
        assert_eq!(now.changes.created - now.changes.deleted, now.objects as u64, "{now:?}");
        assert_eq!((now.initial_objects, now.synced_at.is_some()), (Some(OBJECTS), true));
    }
}

/// Reads as fast as it goes until it is told to stop; gives how often.
fn read(watcher: &WatcherHandle, stop: &AtomicBool) -> u64 {
    let mut before = watcher.status();
    let mut version = 0;
    let mut rounds = 0;
    while !stop.load(Ordering::SeqCst) {
        let now = watcher.status();
        check(&before, &now);
        let snapshot = watcher.snapshot();
        assert!(snapshot.version() >= version);
        version = snapshot.version();
        let backlog = watcher.backlog();
        assert!(backlog.unread.iter().all(|objects| *objects <= 2 * OBJECTS), "{backlog:?}");
        assert!(!now.synced || watcher.is_synced());
        if rounds % 16 == 0 {
            check_index(&snapshot);
        }
        before = now;
        rounds += 1;
        std::thread::yield_now();
    }
    rounds
}

/// Waits until the watcher has seen a revision.
async fn follows(watcher: &WatcherHandle, revision: u64) {
    let mut statuses = watcher.status_changes();
    let version = |status: &Status| status.resource_version.as_deref()?.parse::<u64>().ok();
    let there = statuses.wait_for(|status| version(status) >= Some(revision));
    tokio::time::timeout(LONG, there).await.expect("it follows").expect("it lives");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_threads_read_status_snapshots_and_backlog_while_the_watcher_writes_them() {
    let server = server(many(OBJECTS)).await;
    let watcher = Watcher::builder(server.client(), config()).on_change(drop).build().unwrap();
    let mut stalled = watcher.changes();
    let stop = AtomicBool::new(false);
    let handle = watcher.handle().clone();
    // The threads may borrow: they end before this block does.
    let rounds = tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            let _stop = AtEnd(&stop);
            let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(|| read(&handle, &stop))).collect();
            tokio::runtime::Handle::current().block_on(async {
                let watcher = watcher.spawn();
                watcher.wait_for_sync(LONG).await.unwrap();
                stalled.next().await.unwrap();
                for i in 0..WRITES {
                    let name = format!("m{:04}", i * 7 % OBJECTS);
                    if i % 11 == 0 {
                        server.delete(MAPS, Some("shop"), &name).unwrap();
                    }
                    server.apply(config_map(&name, &(i % 7).to_string())).unwrap();
                    match i % 300 {
                        100 => watcher.relist(),
                        200 => {
                            server.compact();
                            server.close_watches();
                        }
                        _ => {}
                    }
                    if i % 25 == 24 {
                        follows(&watcher, server.revision()).await;
                    }
                }
                assert_eq!(stored(&watcher.snapshot()), served(&server, MAPS));
                watcher.shutdown().await;
            });
            stop.store(true, Ordering::SeqCst);
            readers.into_iter().map(|reader| reader.join().expect("consistent")).collect::<Vec<_>>()
        })
    });
    assert!(rounds.iter().all(|rounds| *rounds > 50), "{rounds:?}");
    assert!(handle.status().relists > 0);
    let batch = stalled.next().await.unwrap();
    assert!(batch.changes.iter().any(Change::is_deleted) && batch.stats.total() > 1_000, "{}", batch.stats);
}
