//! Following changes: resuming, bookmarks, 410, silence, versions that run backwards.

use std::time::Duration;

use super::super::*;
use super::sim::*;

#[test]
fn c01_c41_a_410_leads_to_one_full_list() {
    let script = vec![page(10, 3), watch("ERR410"), page(30, 2), watch("~31")];
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(1));
    sim.expect_asked(&["LIST", "WATCH 10", "LIST>=10", "WATCH 30"]);
    assert_eq!(sim.finished(), 2);
    assert_eq!(sim.applied(), 3);
}

#[test]
fn c04_each_form_of_410_leads_to_exactly_one_full_list() {
    let expired = failure(410, "Expired");
    let forms = [
        vec![Say::Ok, Say::Error(failure(410, "")), Say::End],
        vec![Say::Ok, Say::Error(failure(0, "Expired"))],
        vec![Say::Ok, Say::Error(failure(0, "Gone"))],
        vec![Say::Ok, Say::Error(failure(500, "Expired"))],
        vec![Say::Refuse(410, None, Some(expired.clone()))],
        refuse(410),
        vec![Say::Refuse(400, None, Some(expired))],
    ];
    for form in forms {
        let mut sim = Sim::scripted(paged(), vec![page(10, 1), form.clone(), page(40, 1), watch("")]);
        sim.run(secs(30));
        assert_eq!(sim.asked(), ["LIST", "WATCH 10", "LIST>=10", "WATCH 40"], "{form:?}");
        assert_eq!(sim.applied(), 2, "the error's object goes nowhere");
        assert_eq!(sim.reports()[0].class, ErrorClass::Expired);
        assert_eq!(sim.count(|a| matches!(a, Action::Recovered { .. })), 1);

        let mut sim = Sim::scripted(streaming(), vec![watch("+5 END@10 ERR410"), watch("+5 +39 END@40")]);
        sim.run(secs(30));
        sim.expect_asked(&["STREAM", "STREAM>=10"]);
        assert_eq!(sim.finished(), 2);
    }
}

#[test]
fn c18_bookmarks_move_the_resume_version() {
    let script = vec![page(10, 1), watch("BM@900 EOF"), watch("BM@900 300s EOF"), watch("")];
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(310));
    sim.expect_asked(&["LIST", "WATCH 10", "WATCH 900", "WATCH 900"]);
    assert_eq!(sim.applied(), 1, "only the page");
    assert_eq!(sim.engine.resume_version(), Some("900"));
    assert_eq!(sim.engine.progress().restarts, 2);
    assert_eq!(sim.engine.progress().relists, 0);
}

#[test]
fn c17_a_silent_connection_is_given_up_and_resumed() {
    let config = EngineConfig { idle_limit: secs(5), ..paged() };
    let mut sim = Sim::scripted(config, vec![page(10, 1), watch("1s +11"), watch("+12")]);
    sim.run(secs(4));
    assert_eq!(sim.engine.progress().last_contact, Some(sim.start + secs(1)));
    sim.run(secs(6));
    sim.expect_asked(&["LIST", "WATCH 10", "WATCH 11"]);
    assert_eq!(sim.times()[2], secs(6), "right away");
    assert_eq!(sim.reports()[0].class, ErrorClass::Idle);

    let mut sim = Sim::scripted(paged(), vec![page(10, 1), watch("+11"), watch("+12")]);
    sim.run(secs(359));
    sim.expect_asked(&["LIST", "WATCH 10", "WATCH 11"]);
    assert_eq!(sim.engine.resume_version(), Some("12"));
}

#[test]
fn c17_a_quiet_kind_is_not_lost_sight_of_where_the_idle_limit_is_shorter_than_bookmarks_are_apart() {
    // Servers that end watches when they were asked to, with a last bookmark and without, as kube-apiserver does where
    // there was no time for one; and one that says nothing and ends nothing.
    let end = || vec![Say::Ok, Say::WaitForTheEnd, Say::Wait(secs(2)), Say::End];
    let last_word = || vec![Say::Ok, Say::WaitForTheEnd, Say::Bookmark("10".into()), Say::Wait(secs(2)), Say::End];
    for (name, answer) in [("last word", &last_word as &dyn Fn() -> Vec<Say>), ("end", &end), ("silent", &|| watch(""))]
    {
        for limit in [3, 5, 20, 40] {
            let config = EngineConfig { idle_limit: secs(limit), ..paged() };
            let mut sim = Sim::new(config, |text, _| match text {
                "LIST" | "LIST>=10" | "PROBE" => page(10, 1),
                _ => answer(),
            });
            let tenth = Duration::from_millis(100);
            let (mut at, mut unwatched, mut longest) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
            while at < secs(600) {
                at += tenth;
                sim.run(at);
                unwatched = if sim.engine.is_open() { Duration::ZERO } else { unwatched + tenth };
                longest = longest.max(unwatched);
            }
            if name == "silent" {
                assert!(sim.finished() > 600 / (limit as usize + 60), "{limit} s: lists take over");
                continue;
            }
            assert!(longest <= secs(1), "{name}, {limit} s: not watched for {longest:?}");
            assert_eq!((sim.phase(), sim.finished()), (Phase::Watching, 1), "{name}, {limit} s");
            assert!(sim.reports().len() <= 1, "{name}, {limit} s: {:?}", sim.reports());
            assert!(sim.requests.len() <= 610, "{name}, {limit} s: a request a second at most");
            let probes = sim.asked().iter().filter(|asked| **asked == "PROBE").count();
            assert!(probes <= 10, "{name}, {limit} s: {probes} probes");
            assert_eq!(probes > 0, name == "end", "{name}, {limit} s");
        }
    }
}

#[test]
fn c17_bytes_keep_a_watch_alive() {
    let config = EngineConfig { idle_limit: secs(5), ..paged() };
    let mut says = vec![Say::Ok];
    for _ in 0..10 {
        says.extend([Say::Wait(secs(4)), Say::Bytes]);
    }
    says.push(Say::Event(EventKind::Added, "11".into()));
    let mut sim = Sim::scripted(config, vec![page(10, 1), says]);
    sim.run(secs(44));
    sim.expect_asked(&["LIST", "WATCH 10"]);
    assert_eq!(sim.engine.resume_version(), Some("11"));
}

#[test]
fn c20_an_undecodable_event_stops_nothing_and_moves_on() {
    let script = vec![page(10, 1), watch("BAD@11 BAD +13 RESET"), watch("")];
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(5));
    sim.expect_asked(&["LIST", "WATCH 10", "WATCH 13"]);
    // Also among initial events.
    let mut sim = Sim::scripted(streaming(), vec![watch("+5 BAD@7 BAD +6 END@10 +11")]);
    sim.run(secs(5));
    sim.expect_asked(&["STREAM"]);
    assert_eq!(sim.engine.resume_version(), Some("11"));
}

#[test]
fn c27_versions_that_run_backwards_lead_to_a_list_from_scratch() {
    for (name, script) in
        [("bookmark", "BM@1010"), ("event", "+1010"), ("delete", "-1010"), ("undecodable", "BAD@1010")]
    {
        let answers = vec![page(1_200, 3), watch(script), page(1_010, 2), watch("+1011")];
        let mut sim = Sim::scripted(paged(), answers);
        sim.run(secs(5));
        assert_eq!(sim.asked(), ["LIST", "WATCH 1200", "LIST", "WATCH 1010"], "{name}");
        assert_eq!(sim.count(|a| matches!(a, Action::BeginRelist { from_scratch: true })), 1);
        assert_eq!(sim.reports()[0].class, ErrorClass::Backwards, "{name}");
        assert_eq!(sim.applied(), 3, "two pages and the event after them: {name}");
        assert_eq!(sim.engine.resume_version(), Some("1011"));
    }
}

#[test]
fn c27_a_list_that_shows_objects_as_they_were_before_leads_to_one_from_scratch() {
    let scripts = [
        (paged(), vec![page(2_000, 2), watch("+2001"), page(9_000, 2), watch(""), page(9_000, 2), watch("+9001")]),
        (streaming(), vec![watch("END@2000 +2001"), watch("END@9000"), watch("END@9000 +9001")]),
    ];
    for (config, script) in scripts {
        let mut sim = Sim::scripted(config, script);
        sim.run(secs(5));
        sim.feed(Input::Relist);
        sim.run(secs(10));
        assert_eq!((sim.finished(), sim.engine.resume_version()), (2, Some("9000")));
        sim.feed(Input::SetBack);
        assert_eq!(sim.engine.relist.as_ref().map(|relist| relist.scratch), Some(true));
        sim.run(secs(15));
        assert_eq!(sim.finished(), 3);
        assert_eq!(sim.count(|a| matches!(a, Action::BeginRelist { from_scratch: true })), 1);
        assert_eq!(sim.reports().last().unwrap().class, ErrorClass::Backwards);
        assert_eq!((sim.engine.resume_version(), sim.phase()), (Some("9001"), Phase::Watching));
    }
    // Who is not watching has no list that was just finished.
    let mut sim = Sim::scripted(paged(), vec![part(10, 1, "a"), vec![Say::Ok]]);
    sim.run(secs(1));
    sim.feed(Input::SetBack);
    assert_eq!(sim.reports().len(), 0);
}

#[test]
fn c27_a_restored_server_that_filters_and_stays_silent_is_found_out() {
    // As the real one does: it accepts the version and sends nothing at all.
    let server = |text: &str, _| match text {
        "LIST" => page(1_000, 2),
        "PROBE" => part(1_000, 1, "more"),
        "WATCH 1000" => watch("+1001"),
        _ => watch("290s EOF"),
    };
    let mut first = true;
    let mut sim =
        Sim::new(paged(), |text, at| if std::mem::take(&mut first) { page(1_200, 2) } else { server(text, at) });
    sim.run(secs(601));
    sim.expect_asked(&["LIST", "WATCH 1200", "WATCH 1200", "PROBE", "LIST", "WATCH 1000"]);
    assert_eq!(sim.count(|a| *a == Action::Ignore), 1, "the probe's object");

    // One that says so: too large for longer than a replica lags.
    let server = |text: &str, _| match text {
        "LIST" => page(1_000, 2),
        "WATCH 1000" => watch("+1001"),
        _ => too_large(),
    };
    for script in [page(1_200, 2), watch("END@1200 RESET")] {
        let mut first = Some(script.clone());
        let config = if script.len() == 2 { paged() } else { streaming() };
        let mut sim = Sim::new(EngineConfig { streaming_refused: false, ..config }, |text, at| {
            first.take().unwrap_or_else(|| match text {
                "STREAM" => watch("+999 END@1000 +1001"),
                _ => server(text, at),
            })
        });
        sim.run(secs(90));
        assert_eq!(sim.engine.resume_version(), Some("1001"));
        assert!(sim.requests.len() < 16);
        assert!(sim.reports().iter().any(|report| report.class == ErrorClass::Backwards));
    }
}

#[test]
fn c25_replicas_that_lag_now_and_then_are_not_taken_for_a_restored_server() {
    let lag = || {
        let mut answers = vec![too_large()];
        // As the real one does: it waits before it says so.
        answers.extend(vec![vec![Say::Wait(secs(3)), too_large().remove(0)]; 3]);
        answers
    };
    // Each time it catches up, or something else happens, the patience is new.
    for between in [vec![watch("+11 RESET")], vec![watch("1s ERR410"), page(12, 1)]] {
        let mut script = vec![page(10, 1)];
        script.extend(lag());
        script.extend(between.clone());
        script.extend(lag());
        script.push(watch(""));
        let mut sim = Sim::scripted(paged(), script);
        sim.run(secs(200));
        let backwards = sim.reports().iter().filter(|report| report.class == ErrorClass::Backwards).count();
        assert_eq!(backwards, 0, "{between:?}");
        assert_eq!(sim.phase(), Phase::Watching);
    }
    let mut script = vec![page(10, 1), too_large()];
    script.extend(vec![refuse(500); 6]);
    script.extend([too_large(), watch("")]);
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(200));
    assert!(sim.times()[8] - sim.times()[1] > secs(30));
    assert_eq!(sim.asked().last(), Some(&"WATCH 10"));
    assert!(sim.reports().iter().all(|report| report.class != ErrorClass::Backwards));
}

#[test]
fn a_quiet_server_is_probed_without_consequences() {
    let server = |text: &str, _| match text {
        "LIST" => page(10, 2),
        "PROBE" => part(500, 1, "more"),
        _ => watch("290s EOF"),
    };
    let mut sim = Sim::new(paged(), server);
    sim.run(secs(3_600));
    assert!(sim.asked().contains(&"PROBE"));
    assert_eq!(sim.finished(), 1);
    assert_eq!(sim.applied(), 1);
    assert!(sim.reports().is_empty());

    // Who may not list, is not bothered with it.
    let mut sim = Sim::new(streaming(), |text, _| match text {
        "STREAM" => watch("END@10"),
        "PROBE" => refuse(403),
        _ => watch("290s EOF"),
    });
    sim.run(secs(3_600));
    assert!(sim.asked().contains(&"PROBE"));
    assert!(sim.reports().iter().all(|report| report.class == ErrorClass::Idle));
    assert_eq!((sim.finished(), sim.phase()), (1, Phase::Watching));
}

#[test]
fn an_event_at_the_resume_version_is_let_through_and_confuses_nothing() {
    let script = vec![page(10, 1), watch("~10 -10 +11 ~11 RESET"), watch("~11 +12")];
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(5));
    sim.expect_asked(&["LIST", "WATCH 10", "WATCH 11"]);
    assert_eq!(sim.applied(), 7);
    assert!(sim.reports().iter().all(|report| report.class == ErrorClass::Connection));
}

#[test]
fn opaque_versions_follow_the_order_of_arrival() {
    let script = vec![vec![Say::Ok, Say::Page("x9".into(), None, 1)], watch("+x8 +b ~a RESET"), watch("")];
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(5));
    sim.expect_asked(&["LIST", "WATCH x9", "WATCH a"]);
}

#[test]
fn events_without_a_version_are_applied_and_move_nothing() {
    let nameless = vec![Say::Ok, Say::Event(EventKind::Added, String::new()), Say::End];
    let mut sim = Sim::scripted(paged(), vec![page(10, 1), nameless, watch("")]);
    sim.run(secs(5));
    sim.expect_asked(&["LIST", "WATCH 10", "WATCH 10"]);
    assert_eq!(sim.applied(), 2);
}

#[test]
fn initial_events_come_in_any_order_and_changes_may_precede_the_mark() {
    let mut sim = Sim::scripted(streaming(), vec![watch("+9 +2 +7 ~11 -12 END@12 +13")]);
    sim.run(secs(30));
    sim.expect_asked(&["STREAM"]);
    assert_eq!(sim.applied(), 6);
    assert_eq!(sim.engine.resume_version(), Some("13"));
    assert_eq!(sim.phase(), Phase::Watching);
}

#[test]
fn what_comes_after_a_request_is_over_is_ignored() {
    let mut sim = Sim::scripted(paged(), vec![page(10, 1), watch("+11 RESET")]);
    sim.run(Duration::from_millis(10));
    assert!(matches!(sim.phase(), Phase::BackingOff { attempt: 1, .. }));
    let applied = sim.applied();
    sim.feed(Input::Event { kind: EventKind::Added, resource_version: "5" });
    sim.feed(Input::Bookmark { resource_version: "5", initial_events_end: false });
    sim.feed(Input::Page { resource_version: "5", continue_token: None, items: 1 });
    sim.feed(Input::Error(&failure(410, "")));
    sim.feed(Input::Undecodable { resource_version: Some("5") });
    sim.feed(Input::StreamEnd);
    sim.feed(Input::TransportError { broken: Broken::Malformed, message: "" });
    sim.feed(Input::Response { status: 200, retry_after: None, failure: None });
    sim.feed(Input::Start);
    sim.feed(Input::Tick);
    assert_eq!(sim.applied(), applied);
    assert_eq!(sim.engine.resume_version(), Some("11"));
    assert!(matches!(sim.phase(), Phase::BackingOff { attempt: 1, .. }));
}
