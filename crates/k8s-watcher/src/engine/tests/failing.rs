//! Pace: backoff that grows, resets on progress only, and Retry-After.

use std::time::Duration;

use super::super::*;
use super::sim::*;

#[test]
fn c07_a_missing_kind_is_asked_for_ever_more_rarely() {
    let end = secs(600);
    for config in [paged(), streaming()] {
        let streams = config.list_mode == ListMode::Streaming;
        let mut sim = Sim::new(config, |_, at| match at {
            at if at < end => refuse(404),
            _ if streams => watch("+5 END@10"),
            _ => page(10, 1),
        });
        sim.run(end);
        assert!(sim.requests.len() <= 40, "{}", sim.requests.len());
        let times = sim.times();
        for pair in times[times.len() - 5..].windows(2) {
            assert!(pair[1] - pair[0] >= secs(20), "{times:?}");
        }
        assert!(matches!(sim.phase(), Phase::BackingOff { .. }));
        sim.run(end + secs(30));
        assert_eq!(sim.finished(), 1, "full within one gap");
    }
}

#[test]
fn c33_a_kind_that_is_installed_later_is_found_within_35_seconds() {
    for seed in 0..50 {
        let end = secs(180);
        let config = EngineConfig { seed, ..paged() };
        let mut sim = Sim::new(config, |_, at| if at < end { refuse(404) } else { page(10, 1) });
        sim.run(end);
        assert!(sim.requests.len() < 25, "{}", sim.requests.len());
        let reports = sim.reports();
        assert_eq!(reports.iter().filter(|report| report.first).count(), 1, "one log a change");
        assert_eq!(reports[0].class, ErrorClass::NotFound);
        assert_eq!(reports[0].verb, Verb::List);
        sim.run(end + secs(35));
        assert!(sim.engine.progress.synced);
        assert_eq!(sim.count(|a| matches!(a, Action::Recovered { .. })), 1);
    }
}

#[test]
fn c35_a_missing_right_is_reported_with_verb_and_message() {
    let forbidden = || {
        let why = ApiStatus { message: "pods is forbidden".into(), ..failure(403, "Forbidden") };
        vec![Say::Refuse(403, None, Some(why))]
    };
    let mut sim = Sim::new(paged(), |text, at| match text {
        "LIST" if at < secs(60) => forbidden(),
        "LIST" => page(10, 1),
        _ => watch(""),
    });
    sim.run(secs(10));
    let report = sim.reports()[0].clone();
    assert_eq!((report.class, report.code, report.verb), (ErrorClass::Forbidden, Some(403), Verb::List));
    assert_eq!(report.message, "pods is forbidden");
    sim.run(secs(95));
    assert!(sim.engine.progress.synced);

    // The watch only: the list goes through, the watch is tried without further lists.
    for config in [paged(), streaming()] {
        let mut sim = Sim::new(config, |text, at| match text {
            "LIST" => page(10, 1),
            _ if at < secs(60) => forbidden(),
            _ => watch("+11"),
        });
        sim.run(secs(5));
        assert!(sim.engine.progress.synced);
        assert_eq!(sim.reports().last().map(|report| report.verb), Some(Verb::Watch));
        sim.run(secs(95));
        assert_eq!(sim.finished(), 1);
        assert_eq!(sim.engine.resume_version(), Some("11"));
        assert!(!sim.refused_streaming());
    }

    // In mid-stream.
    let mut sim = Sim::scripted(paged(), vec![page(10, 1), watch("+11 ERR403"), watch("+12")]);
    sim.run(secs(5));
    sim.expect_asked(&["LIST", "WATCH 10", "WATCH 11"]);
    assert_eq!(sim.reports()[0].class, ErrorClass::Forbidden);

    // Neither by list nor by stream: said once each, not again and again.
    let mut sim = Sim::new(streaming(), |_, _| forbidden());
    sim.run(secs(600));
    assert_eq!(sim.reports().iter().filter(|report| report.first).count(), 2);
    let streams = sim.asked().iter().filter(|text| **text == "STREAM").count();
    assert!(streams.abs_diff(sim.requests.len() - streams) <= 1, "either way in turn: {:?}", sim.asked());
    assert!(sim.requests.len() <= 40);
}

#[test]
fn c08_after_a_healthy_watch_a_failure_is_the_first_again() {
    let mut script = vec![page(10, 1)];
    script.extend(vec![watch("300s RESET"); 5]);
    script.push(watch("+11"));
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(1_600));
    assert_eq!(sim.requests.len(), 7);
    for pair in sim.times()[1..].windows(2) {
        let gap = pair[1] - pair[0];
        assert!(gap >= secs(300) && gap <= secs(302), "{gap:?}");
    }
    // Refusals before it are forgotten too.
    let mut script = vec![page(10, 1)];
    script.extend(vec![refuse(500); 8]);
    script.extend([watch("60s RESET"), watch("")]);
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(400));
    let times = sim.times();
    assert_eq!(times.len(), 11);
    assert!(times[10] - times[9] <= secs(61));
}

#[test]
fn c07_a_finished_list_begins_a_new_row() {
    let mut script = vec![refuse(500); 6];
    script.extend([page(10, 1), refuse(500), watch("")]);
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(100));
    let times = sim.times();
    assert!(times[6] - times[5] >= secs(15));
    assert!(times[8] - times[7] <= secs(1));
}

#[test]
fn c09_retry_after_is_obeyed_by_the_same_request() {
    let header = || vec![Say::Refuse(429, Some(7), None)];
    let body = || {
        let failure = ApiStatus { retry_after: Some(secs(7)), ..failure(429, "TooManyRequests") };
        vec![Say::Refuse(429, None, Some(failure))]
    };
    let stream = || {
        let failure = ApiStatus { retry_after: Some(secs(7)), ..failure(429, "TooManyRequests") };
        vec![Say::Ok, Say::Error(failure), Say::End]
    };
    let unavailable = || vec![Say::Refuse(503, Some(7), None)];
    for throttled in [header(), body(), stream(), unavailable()] {
        let script = vec![page(10, 1), throttled.clone(), throttled.clone(), watch("+11")];
        let mut sim = Sim::scripted(paged(), script);
        sim.run(secs(30));
        assert_eq!(sim.asked(), ["LIST", "WATCH 10", "WATCH 10", "WATCH 10"], "{throttled:?}");
        for pair in sim.times()[1..].windows(2) {
            assert!(pair[1] - pair[0] >= secs(7) && pair[1] - pair[0] < secs(8));
        }
        assert_eq!(sim.engine.resume_version(), Some("11"));
    }
    // Backoff grows behind it: a server that always says "1" is not asked every second.
    let mut sim = Sim::new(paged(), |_, _| vec![Say::Refuse(429, Some(1), None)]);
    sim.run(secs(600));
    assert!(sim.requests.len() <= 40);
}

#[test]
fn watches_that_fail_resume_and_do_not_list() {
    let script = vec![
        page(10, 1),
        refuse(500),
        refuse(503),
        refuse(504),
        vec![Say::Break(Broken::Connect)],
        refuse(401),
        refuse(404),
        watch("+11 ERR500"),
        watch("+12 CUT"),
        watch("+13"),
    ];
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(200));
    let mut expected = vec!["LIST"];
    expected.extend(["WATCH 10"; 7]);
    expected.extend(["WATCH 11", "WATCH 12"]);
    sim.expect_asked(&expected);
    assert_eq!(sim.finished(), 1);
    // The last failures came after progress: first step again.
    let times = sim.times();
    assert!(times[9] - times[8] <= secs(1));
}

#[test]
fn a_stream_that_always_breaks_at_one_version_is_helped_by_a_list() {
    for broken in [watch("ERR500"), watch("CUT"), vec![Say::Ok, Say::Break(Broken::Malformed)]] {
        let mut sim = Sim::new(paged(), |text, _| match text {
            "LIST" => page(10, 1),
            "LIST>=10" => page(20, 1),
            "WATCH 20" => watch("+21"),
            _ => broken.clone(),
        });
        sim.run(secs(60));
        assert_eq!(sim.engine.resume_version(), Some("21"));
        assert_eq!(sim.finished(), 2);
    }
}

#[test]
fn a_version_refused_as_invalid_is_helped_by_a_list_without_it() {
    let mut sim = Sim::new(paged(), |text, _| match text {
        "LIST" => page(20, 1),
        "WATCH 20" => refuse(400),
        _ => watch(""),
    });
    sim.run(secs(10));
    let asked = sim.asked();
    assert_eq!(asked[..4], ["LIST", "WATCH 20", "WATCH 20", "LIST"]);
    sim.run(secs(600));
    assert!(sim.requests.len() < 100, "{}", sim.requests.len());
}

#[test]
fn no_server_makes_the_engine_hot() {
    type Answer = fn(&str) -> Vec<Say>;
    let rows: [(&str, Answer); 9] = [
        ("empty watches", |text| if text.starts_with("LIST") { page(10, 1) } else { watch("EOF") }),
        ("the same bookmark", |text| if text.starts_with("LIST") { page(10, 1) } else { watch("BM@10 EOF") }),
        ("always expired", |text| if text.starts_with("LIST") { page(10, 1) } else { watch("ERR410") }),
        ("always expired, by HTTP", |text| if text.starts_with("LIST") { page(10, 1) } else { refuse(410) }),
        ("always backwards", |text| if text.starts_with("LIST") { page(10, 1) } else { watch("BM@9") }),
        ("everything is gone", |_| refuse(410)),
        ("streams that end at the mark", |text| {
            if text.starts_with("STREAM") { watch("+5 END@10 EOF") } else { watch("EOF") }
        }),
        ("streams that expire at the mark", |_| watch("+5 END@10 ERR410")),
        ("empty answers", |_| vec![Say::Ok, Say::End]),
    ];
    for (name, answer) in rows {
        for config in [paged(), streaming()] {
            let mut sim = Sim::new(config, |text, _| answer(text));
            sim.run(secs(600));
            assert!(sim.requests.len() <= 100, "{name}: {}", sim.requests.len());
        }
    }
}

#[test]
fn a_server_that_delivers_and_hangs_up_is_not_hammered() {
    // Progress each time, so nothing ever grows; still there is a pace.
    let mut version = 10;
    let mut sim = Sim::new(paged(), move |text, _| {
        if text.starts_with("LIST") {
            return page(version, 1);
        }
        version += 1;
        vec![Say::Ok, Say::Event(EventKind::Added, version.to_string()), Say::End]
    });
    sim.run(secs(60));
    assert!(sim.requests.len() <= 101, "{}", sim.requests.len());
    assert!(sim.requests.len() >= 60, "{}", sim.requests.len());
    // Progress and then 410, each time.
    let mut version = 10;
    let mut sim = Sim::new(paged(), move |text, _| {
        version += 1;
        if text.starts_with("LIST") {
            return page(version, 1);
        }
        vec![Say::Ok, Say::Event(EventKind::Added, version.to_string()), Say::Error(failure(410, ""))]
    });
    sim.run(secs(600));
    assert!(sim.requests.len() <= 100, "{}", sim.requests.len());
}

#[test]
fn recovery_is_told_once_and_the_next_episode_is_new() {
    let script =
        vec![page(10, 1), refuse(500), refuse(500), watch("+11 20s RESET"), refuse(500), watch("60s EOF"), watch("")];
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(100));
    let told: Vec<_> = sim
        .actions
        .iter()
        .filter_map(|(_, action)| match action {
            Action::Report(report) => Some(format!("{} {}", report.class.as_str(), report.first)),
            Action::Recovered { failures } => Some(format!("recovered {failures}")),
            _ => None,
        })
        .collect();
    assert_eq!(
        told,
        [
            "server true",
            "server false",
            "recovered 2",
            "connection true",
            "server true",
            // A quiet watch that lives recovers too, without waiting for an event.
            "recovered 2",
        ]
    );
    assert!(sim.reports().iter().all(|report| report.retry_at >= sim.start));
}

#[test]
fn a_watch_that_delivered_and_ended_is_no_failure() {
    for end in [watch("+11 EOF"), watch("BM@11 EOF")] {
        let mut sim = Sim::scripted(paged(), vec![page(10, 1), end, watch("")]);
        sim.run(Duration::from_millis(100));
        assert_eq!((sim.phase(), sim.requests.len()), (Phase::Watching, 2), "between two watches");
        sim.run(secs(1));
        sim.expect_asked(&["LIST", "WATCH 10", "WATCH 11"]);
    }
    let mut sim = Sim::scripted(streaming(), vec![watch("END@10 EOF"), watch("")]);
    sim.run(Duration::from_millis(100));
    assert_eq!((sim.phase(), sim.requests.len()), (Phase::Watching, 1));
    assert!(sim.reports().is_empty());
}

#[test]
fn the_phase_says_what_is_waited_for() {
    let mut sim = Sim::scripted(paged(), vec![]);
    assert_eq!(sim.phase(), Phase::Starting);
    sim.run(Duration::ZERO);
    assert_eq!(sim.phase(), Phase::Listing { pages: 0, items: 0 });

    let mut sim = Sim::new(paged(), |_, _| refuse(403));
    sim.run(secs(30));
    let Phase::BackingOff { until, attempt } = sim.phase() else { panic!("{}", sim.phase()) };
    assert!(until > sim.now && attempt >= 5);
    assert_eq!(Some(until), sim.engine.deadline());
    assert_eq!(sim.engine.progress().last_contact, None, "a refusal is no contact");
}

#[test]
fn a_retry_without_an_answer_does_not_look_like_watching() {
    // The connection goes silent, and so does each one after it.
    let mut sim = Sim::scripted(paged(), vec![page(10, 1), watch("+11")]);
    sim.run(secs(5));
    assert_eq!(sim.phase(), Phase::Watching);
    let mut asked = sim.requests.len();
    let mut unanswered = 0;
    for second in 336..1_200 {
        sim.run(secs(second));
        assert!(matches!(sim.phase(), Phase::BackingOff { attempt: 1.., .. }), "{} after {second} s", sim.phase());
        unanswered += usize::from(sim.requests.len() > asked);
        asked = sim.requests.len();
    }
    assert!(unanswered > 5, "{:?}", sim.requests);
}
