//! Watches that open and bring nothing: when that is believed, what is asked instead, what is said of it.

use std::time::Duration;

use super::super::*;
use super::sim::*;

/// As a watcher is configured.
fn usual(config: EngineConfig) -> EngineConfig {
    EngineConfig { idle_limit: secs(150), ..config }
}

/// For how long each watch was asked to be kept open.
fn asked_for(sim: &Sim<'_>) -> Vec<u64> {
    let seconds = |action: &Action| match action {
        Action::Watch(WatchQuery::Resume { timeout_seconds, .. } | WatchQuery::Initial { timeout_seconds, .. }) => {
            Some(*timeout_seconds)
        }
        _ => None,
    };
    sim.actions.iter().filter_map(|(_, action)| seconds(action)).collect()
}

fn lines(sim: &Sim<'_>) -> usize {
    sim.count(|a| matches!(a, Action::Report(Report { first: true, .. }) | Action::Recovered { .. }))
}

#[test]
fn c17_after_a_silence_watches_are_to_end_before_they_look_dead_until_a_bookmark_comes() {
    let end = || vec![Say::Ok, Say::Wait(secs(100)), Say::End];
    // The probe that two silent watches lead to finds nothing.
    let mut script = std::collections::VecDeque::from([watch(""), end(), end(), watch("BM@20 10s EOF"), watch("+21")]);
    let mut sim = Sim::new(usual(paged()), move |text, _| match text {
        "LIST" | "PROBE" => page(10, 1),
        _ => script.pop_front().unwrap_or_default(),
    });
    sim.run(secs(400));
    sim.expect_asked(&["LIST", "WATCH 10", "WATCH 10", "PROBE", "WATCH 10", "WATCH 10", "WATCH 20"]);
    let asked = asked_for(&sim);
    let is_brief = |seconds: &u64| *seconds < 150;
    assert_eq!(asked.iter().map(is_brief).collect::<Vec<_>>(), [false, true, true, true, false], "{asked:?}");
    assert!(asked.iter().all(|s| (56..=112).contains(s) || *s >= 290), "{asked:?}");
    assert_eq!(lines(&sim), 2, "one silence, and its end");
    assert_eq!(sim.phase(), Phase::Watching);
}

#[test]
fn c17_a_watch_that_does_not_even_end_is_replaced_by_lists() {
    let mut version = 10;
    let mut sim = Sim::new(usual(paged()), |text, _| {
        version += 10;
        if text.starts_with("LIST") { page(version, 1) } else { watch("") }
    });
    sim.run(secs(3_600));
    let lists = sim.finished();
    assert!((18..=24).contains(&lists), "one for each idle limit: {:?}", sim.asked());
    assert!(!sim.asked().contains(&"PROBE"), "the list says as much");
    let stale = sim.now - sim.engine.progress().current_at.unwrap();
    assert!(stale <= secs(155), "{stale:?}");
    assert!(matches!(sim.phase(), Phase::BackingOff { .. }), "and it is not called a watch");
    assert!(lines(&sim) <= 4, "{}", lines(&sim));
}

#[test]
fn watches_that_end_at_once_are_replaced_by_lists_and_said_once() {
    let mut version = 10;
    let mut sim = Sim::new(paged(), |text, _| {
        version += 10;
        if text.starts_with("LIST") { page(version, 1) } else { watch("EOF") }
    });
    sim.run(secs(3_600));
    assert!((20..=60).contains(&sim.finished()), "{}", sim.finished());
    assert!(sim.requests.len() < 200, "{}", sim.requests.len());
    assert!(matches!(sim.phase(), Phase::BackingOff { .. }));
    assert!(lines(&sim) <= 4, "{}", lines(&sim));
    // Where there is nothing to read but lists that fail, the store is known to be old.
    let mut first = true;
    let mut sim = Sim::new(paged(), |text, _| match text {
        "LIST" if std::mem::take(&mut first) => page(10, 1),
        _ if text.starts_with("LIST") => refuse(500),
        _ => watch("EOF"),
    });
    sim.run(secs(3_600));
    assert_eq!(sim.engine.progress().current_at, Some(sim.start));
}

#[test]
fn a_short_watch_is_as_good_as_a_long_one_where_it_was_asked_for() {
    let config = EngineConfig { watch_timeout: secs(2), ..paged() };
    let mut sim = Sim::new(config, |text, _| {
        if text == "LIST" || text == "PROBE" { page(10, 1) } else { vec![Say::Ok, Say::Wait(secs(4)), Say::End] }
    });
    sim.run(secs(600));
    assert_eq!((sim.finished(), lines(&sim), sim.reports().len()), (1, 0, 0));
    assert!(sim.now - sim.engine.progress().current_at.unwrap() <= secs(4));
}

#[test]
fn the_phase_of_a_request_after_a_failure_is_that_of_the_failure_until_it_goes_well() {
    // Nothing answers: a minute of asking, a step of waiting.
    let mut sim = Sim::scripted(usual(paged()), vec![page(10, 1), watch("BM@11 RESET")]);
    sim.run(Duration::from_millis(1));
    for second in 1..600 {
        sim.run(secs(second));
        assert!(matches!(sim.phase(), Phase::BackingOff { attempt: 1.., .. }), "{second} {}", sim.phase());
    }
    // An answer's head is not enough, ten seconds are, and so is an event.
    for (answer, from) in [(watch(""), 11), (watch("3s +12"), 4)] {
        let mut sim = Sim::scripted(usual(paged()), vec![page(10, 1), watch("BM@11 RESET"), answer]);
        for second in 1..60 {
            sim.run(secs(second));
            assert_eq!(sim.phase() == Phase::Watching, second >= from, "{second} {}", sim.phase());
        }
    }
    // A page's head is: what it brings is counted.
    let slow = vec![Say::Wait(secs(5)), Say::Ok, Say::Wait(secs(5)), Say::Page("10".into(), None, 1)];
    let mut sim = Sim::scripted(paged(), vec![refuse(500), slow]);
    sim.run(secs(4));
    assert!(matches!(sim.phase(), Phase::BackingOff { attempt: 1, .. }));
    sim.run(secs(8));
    assert_eq!(sim.phase(), Phase::Listing { pages: 0, items: 0 });
}

#[test]
fn what_makes_a_store_current() {
    let at = |sim: &Sim<'_>| sim.engine.progress().current_at.map(|at| at - sim.start);
    let check = |script: Vec<Vec<Say>>, expected: Option<u64>| {
        let mut sim = Sim::scripted(usual(paged()), script.clone());
        sim.run(secs(100));
        assert_eq!(at(&sim), expected.map(secs), "{script:?}");
    };
    check(vec![], None);
    check(vec![part(10, 500, "t")], None);
    check(vec![page(10, 1), watch("20s")], Some(0));
    check(vec![page(10, 1), watch("20s +11")], Some(20));
    check(vec![page(10, 1), watch("20s BM@11")], Some(20));
    check(vec![page(10, 1), watch("20s BM@10")], Some(20));
    check(vec![page(10, 1), watch("20s BAD@11")], Some(20));
    check(vec![page(10, 1), watch("20s BYTES")], Some(0));
    check(vec![page(10, 1), watch("20s EOF")], Some(20));
    check(vec![page(10, 1), watch("5s EOF")], Some(0));
    check(vec![page(10, 1), watch("20s RESET")], Some(0));
    check(vec![page(10, 1), watch("20s ERR500")], Some(0));
    check(vec![page(10, 1), watch("20s ERR410"), part(20, 1, "t")], Some(0));
    check(vec![page(10, 1), watch("20s ERR410"), page(20, 1), watch("")], Some(20));
    check(vec![page(1_200, 1), watch("20s BM@1000"), part(1_000, 1, "t")], Some(0));
    let mut sim = Sim::scripted(usual(streaming()), vec![watch("5s +7 15s END@10")]);
    sim.run(secs(19));
    assert_eq!(at(&sim), None);
    sim.run(secs(30));
    assert_eq!(at(&sim), Some(secs(20)));
}

#[test]
fn c14_a_stream_of_additions_without_a_mark_is_given_up_when_the_server_should_have_ended_it() {
    let mut endless = vec![Say::Ok];
    for version in 1..200 {
        endless.extend([Say::Wait(secs(10)), Say::Event(EventKind::Added, version.to_string())]);
    }
    let mut sim = Sim::scripted(usual(streaming()), vec![endless, page(200, 1), watch("")]);
    sim.run(secs(601));
    let asked = sim.asked();
    assert!(asked[1].starts_with("LIST>="), "{asked:?}");
    assert_eq!((asked[0], asked[2], sim.finished()), ("STREAM", "WATCH 200", 1));
    assert!(sim.times()[1] >= secs(310), "not before its time");
}
