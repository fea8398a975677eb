//! Random histories of an API server, of what goes wrong between it and its clients, and of those who watch it: what a
//! watcher shows and tells is at any moment some true story of the server, and in the end the whole one.
//!
//! A history is plain data (`plan`, `fault`), made from a seed; `play` carries it out on paused time against the embedded
//! server (`cluster`) and measures the watcher (`many`, `single`, `cached`) by every state that the server ever had
//! (`truth`). `runner` plays many of them, and makes the first that diverges short (`shrink`) before it tells of it.
//!
//! `K8S_WATCHER_HISTORIES` sets how many are played, of all kinds together, and `K8S_WATCHER_FIRST` from which seed on;
//! `K8S_WATCHER_SEED` plays the one of that seed. `cargo xtask soak` plays any number.

#[cfg(feature = "cached")]
mod cached;
mod cluster;
mod fault;
mod many;
mod plan;
mod play;
mod runner;
mod shrink;
mod single;
mod story;
mod truth;

use std::collections::BTreeMap;

use self::fault::What;
use self::plan::{History, Kind, Step};
use self::play::play;
use self::runner::{Failure, check, play_all, shortest};
use self::shrink::shrink;
use self::story::Story;

#[test]
fn whatever_happens_the_store_ends_as_the_server_is() {
    play_all(Kind::Many);
}

#[test]
fn whatever_happens_what_is_told_is_the_objects_story() {
    play_all(Kind::Single);
}

#[cfg(feature = "cached")]
#[test]
fn whatever_happens_reads_are_never_older_than_what_the_watch_showed() {
    play_all(Kind::Cached);
}

#[test]
fn a_seed_has_one_story() {
    let is_played = |seed: &u64| cfg!(feature = "cached") || Kind::of(*seed) != Kind::Cached;
    for seed in (0..60).chain(1_000_000..1_000_006).filter(is_played) {
        let stories = [(); 2].map(|()| {
            let story = Story::kept();
            play(&History::of(seed), &story);
            story.lines()
        });
        assert!(stories[0].len() > 10, "seed {seed} has no story");
        for (first, second) in stories[0].iter().zip(&stories[1]) {
            assert_eq!(first, second, "seed {seed}");
        }
        assert_eq!(stories[0].len(), stories[1].len(), "seed {seed}");
    }
}

#[test]
fn every_kind_of_step_and_fault_comes_up_and_strikes() {
    let mut tally: BTreeMap<&'static str, u64> = BTreeMap::new();
    for seed in 0..300 {
        let story = Story::default();
        play(&History::of(seed), &story);
        for (what, times) in story.tally() {
            *tally.entry(what).or_default() += times;
        }
    }
    let steps = [
        "a write",
        "a fault",
        "the end of all watches",
        "a restart",
        "a compaction",
        "a restore",
        "a lag",
        "a relist",
        "time",
    ];
    for what in steps.into_iter().chain(What::KINDS) {
        assert!(tally.get(what).is_some_and(|times| *times > 0), "{what} never happened: {tally:?}");
    }
}

#[test]
fn a_divergence_is_shrunk_to_what_it_needs() {
    // Planted: it diverges where a compaction comes some time after a relist.
    let planted = |history: &History, _: &Story| {
        let is_relist = |step: &Step| matches!(step, Step::Relist);
        let mut rest = history.steps.iter().skip_while(|step| !is_relist(step)).skip(1);
        assert!(!rest.any(|step| matches!(step, Step::Compact(_))), "a compaction after a relist");
    };
    let (mut diverged, mut longest) = (0, 0);
    for seed in 0..60 {
        let history = History::of(seed);
        let Err(failure) = check(&history, planted) else { continue };
        assert_eq!(failure.message, "a compaction after a relist");
        let short = shortest(&history, &failure, planted);
        assert_eq!(short.steps, [Step::Relist, Step::Compact(0)], "seed {seed}");
        assert!(short.setup.objects.is_empty() && short.setup.afterwards.is_empty());
        assert_eq!(check(&short, planted), Err(failure));
        (diverged, longest) = (diverged + 1, longest.max(history.steps.len()));
    }
    assert!(diverged > 5 && longest > 50, "{diverged} with up to {longest} steps");
}

#[test]
fn a_divergence_of_another_kind_is_not_what_is_looked_for() {
    let planted = |history: &History, _: &Story| {
        assert!(history.steps.len() > 3, "too short");
        assert!(history.steps.is_empty(), "planted");
    };
    let history = History::of(0);
    let failure = check(&history, planted).expect_err("planted");
    assert_eq!(failure.message, "planted");
    assert_eq!(shortest(&history, &failure, planted).steps.len(), 4);
    assert!(matches!(check(&history, |_, _| ()), Ok::<(), Failure>(())));
}

#[test]
fn shrinking_spares_what_it_can_and_ends() {
    let items: Vec<u32> = (0..100).collect();
    let check = |needed: &[u32]| {
        let mut budget = 1_000;
        let fails = &mut |kept: &[u32]| needed.iter().all(|n| kept.contains(n));
        assert_eq!(shrink(&items, &mut budget, fails), needed);
    };
    check(&[]);
    check(&[0]);
    check(&[99]);
    check(&[3, 50, 51, 98]);
    check(&(0..100).collect::<Vec<_>>());
    let mut budget = 5;
    let kept = shrink(&items, &mut budget, &mut |kept| kept.contains(&7));
    assert!(budget == 0 && kept.contains(&7) && kept.len() < 100);
    assert_eq!(shrink::<u32>(&[], &mut 5, &mut |_| true), [0; 0]);
}
