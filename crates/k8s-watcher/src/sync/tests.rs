//! Every order in which those who write a status and those who read it or wait can meet: `cargo xtask loom`.

use std::sync::Arc;

use loom::future::block_on;
use loom::thread;

use crate::control::{Control, Life};
use crate::group::{Deadline, GroupError, SyncGroup};
use crate::status::Phase;

fn control() -> Arc<Control> {
    Arc::new(Control::new("v1/configmaps".parse().expect("a resource")))
}

#[test]
fn loom_who_waits_for_the_sync_is_woken_by_it_and_sees_it_in_the_status() {
    loom::model(|| {
        let control = control();
        let driver = {
            let control = control.clone();
            thread::spawn(move || {
                control.status.update(|s| s.started = true);
                control.status.synced(3);
                control.status.stopped();
            })
        };
        assert_eq!(block_on(control.status.decided()), Life::Synced(3), "an end that comes later changes nothing");
        let status = control.status.get();
        assert!(status.started && status.synced && status.initial_objects == Some(3));
        driver.join().expect("no panic");
        assert_eq!(control.status.get().phase, Phase::Stopped);
    });
}

#[test]
fn loom_who_waits_for_the_sync_is_woken_by_the_end_and_sees_it_in_the_status() {
    loom::model(|| {
        let control = control();
        let driver = {
            let control = control.clone();
            thread::spawn(move || control.status.stopped())
        };
        assert_eq!(block_on(control.status.decided()), Life::Stopped);
        assert_eq!(control.status.get().phase, Phase::Stopped);
        driver.join().expect("no panic");
    });
}

#[test]
fn loom_a_status_is_of_one_moment_and_none_is_older_than_the_one_before() {
    loom::model(|| {
        let control = control();
        // A callback counts its panic while the driver counts what it does.
        let writers = [0, 1].map(|_| {
            let control = control.clone();
            thread::spawn(move || {
                control.status.update(|s| {
                    s.relists += 1;
                    s.skipped += 1;
                });
            })
        });
        let mut former = 0;
        for _ in 0..2 {
            let status = control.status.get();
            assert_eq!(status.relists, status.skipped);
            assert!(status.relists >= former);
            former = status.relists;
        }
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        assert_eq!(control.status.get().relists, 2, "no update takes another one back");
    });
}

/// At most two switches against the will of a thread, at any two places: all orders of three threads would take hours.
fn few_switches(model: impl Fn() + Send + Sync + 'static) {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(2);
    bounded.check(model);
}

#[test]
fn loom_a_group_is_complete_with_its_last_member_whoever_that_is() {
    few_switches(|| {
        let group = SyncGroup::new();
        let members = ["a", "b"].map(|name| {
            let control = control();
            let gate = group.join(name.to_owned(), control.clone()).expect("open");
            thread::spawn(move || {
                control.status.synced(1);
                gate.synced();
                block_on(gate.opened());
                assert!(gate.is_open());
            })
        });
        assert_eq!(block_on(group.wait(Deadline::never())).expect("both are synced"), 2);
        assert!(group.is_complete());
        members.into_iter().for_each(|member| member.join().expect("no panic"));
    });
}

#[test]
fn loom_a_member_that_ends_ends_the_wait_and_opens_nothing() {
    few_switches(|| {
        let group = SyncGroup::new();
        let (control, other) = (control(), control());
        let _gate = group.join("a".to_owned(), control.clone()).expect("open");
        let gate = group.join("b".to_owned(), other.clone()).expect("open");
        let ending = thread::spawn(move || control.status.stopped());
        let syncing = thread::spawn(move || {
            other.status.synced(1);
            gate.synced();
        });
        let ended = block_on(group.wait(Deadline::never()));
        assert!(matches!(&ended, Err(GroupError::Stopped { member, .. }) if member == "a"), "{ended:?}");
        assert!(!group.is_complete());
        [ending, syncing].into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}
