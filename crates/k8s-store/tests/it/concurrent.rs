//! One writer and several readers at once.
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use k8s_indexer::Indexer;
use k8s_store::StorePlan;

use crate::fixture::{Fixture, TEAM, ZONES, empty, multi_valued};

/// Runs `flip` on one thread until each of eight readers has run `read` `rounds` times.
fn race(rounds: usize, mut flip: impl FnMut(usize) + Send, read: impl Fn(usize) + Sync) {
    const READERS: usize = 8;
    let finished = AtomicUsize::new(0);
    let started = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut turn = 0;
            while finished.load(Ordering::Relaxed) < READERS {
                flip(turn);
                turn += 1;
                started.store(true, Ordering::Release);
            }
        });
        for _ in 0..READERS {
            scope.spawn(|| {
                while !started.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                // Counts as finished also when an assertion fails.
                struct Finish<'a>(&'a AtomicUsize);
                impl Drop for Finish<'_> {
                    fn drop(&mut self) {
                        self.0.fetch_add(1, Ordering::Relaxed);
                    }
                }
                let _finish = Finish(&finished);
                (0..rounds).for_each(&read);
            });
        }
    });
}

#[test]
fn c57_two_indexes_are_read_at_one_moment() {
    let plan = StorePlan::index_by([TEAM])
        .expect("valid")
        .named("by-zone", Indexer::new([ZONES]).expect("valid"))
        .expect("new name");
    let (mut writer, store) = empty(plan);
    let forms = [("a", "y"), ("x", "b")].map(|(team, zone)| Fixture::new("ns", "o").team(team).zones(&[zone]).object());
    let flip = |turn: usize| {
        writer.upsert(forms[turn % 2].clone());
        writer.commit();
    };
    // A million queries in all.
    race(125_000, flip, |_| {
        let snapshot = store.snapshot();
        let teams = |team: &str| snapshot.get([team]).expect("one").len();
        let zones = snapshot.index("by-zone").expect("known");
        let zones = |zone: &str| zones.get([zone]).expect("one").len();
        let (a, b) = (teams("a"), zones("b"));
        assert!(a == 0 || b == 0, "an object matched both of what it never was together");
        assert_eq!(a + teams("x"), 1, "in exactly one place");
        assert_eq!(b + zones("y"), 1, "in exactly one place");
    });
}

#[test]
fn readers_never_see_an_object_in_two_buckets_or_in_none() {
    const OBJECTS: usize = 64;
    const TEAMS: usize = 4;
    let plan = StorePlan::index_by(["metadata.namespace", TEAM])
        .expect("valid")
        .named("by-zone", Indexer::new([multi_valued(ZONES)]).expect("valid"))
        .expect("new name");
    let (mut writer, store) = empty(plan);
    let teams: Vec<String> = (0..TEAMS).map(|team| format!("t{team}")).collect();
    let forms: Vec<Vec<_>> = (0..OBJECTS)
        .map(|object| {
            let name = format!("o-{object:02}");
            let form = |team: usize| {
                let zones = [&*teams[team], &*teams[(team + 1) % TEAMS]];
                Fixture::new("ns", &name).team(&teams[team]).zones(&zones).object()
            };
            (0..TEAMS).map(form).collect()
        })
        .collect();
    // The first commit has every object; each later one moves some of them, or all.
    let flip = |turn: usize| {
        let moved = if turn.is_multiple_of(8) { OBJECTS } else { 1 + turn % 5 };
        for step in 0..moved {
            let object = (turn * 7 + step) % OBJECTS;
            writer.upsert(forms[object][(turn + object * 3) % TEAMS].clone());
        }
        writer.commit();
    };
    race(750, flip, |_| {
        let snapshot = store.snapshot();
        assert_eq!(snapshot.len(), OBJECTS);
        let mut found: Vec<&str> = teams
            .iter()
            .flat_map(|team| snapshot.get(["ns", team]).expect("two"))
            .map(|object| object.name())
            .collect();
        found.sort_unstable();
        let list: Vec<&str> = snapshot.list().map(|object| object.name()).collect();
        assert_eq!(found, list, "each object under exactly one team");
        let zones = snapshot.index("by-zone").expect("known");
        let twice: usize = teams.iter().map(|team| zones.get([team]).expect("one").len()).sum();
        assert_eq!(twice, 2 * OBJECTS, "each object under exactly two zones");
    });
}

#[test]
fn a_batch_is_seen_whole_or_not_at_all() {
    let (mut writer, store) = empty(StorePlan::index_by([TEAM]).expect("valid"));
    let forms: Vec<Vec<_>> = (0..20)
        .map(|object| {
            let form = |version: u32| {
                Fixture::new("ns", &format!("o-{object}")).team(&version.to_string()).version(version).object()
            };
            (0..4).map(form).collect()
        })
        .collect();
    let flip = |turn: usize| {
        for form in &forms {
            writer.upsert(form[turn % 4].clone());
        }
        writer.commit();
    };
    race(1250, flip, |_| {
        let snapshot = store.snapshot();
        let version = snapshot.list().first().and_then(|o| o.resource_version());
        assert!(snapshot.list().all(|o| o.resource_version() == version));
        let bucket = snapshot.get([version.expect("a version")]).expect("one");
        assert_eq!(bucket.len(), 20);
    });
}
