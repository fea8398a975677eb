//! Full lists: pages, streams, refusals.

use std::time::Duration;

use super::super::*;
use super::sim::*;

#[test]
fn c12_ready_only_after_the_last_page_an_empty_one_included() {
    let script = vec![part(10, 500, "a"), part(10, 0, "b"), part(10, 500, "c"), page(10, 201), watch("")];
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(1));
    sim.expect_asked(&["LIST", "LIST c=a", "LIST c=b", "LIST c=c", "WATCH 10"]);
    assert_eq!(sim.applied(), 4);
    let finish = sim.actions.iter().position(|(_, a)| matches!(a, Action::FinishRelist { .. }));
    let last_page = sim.actions.iter().rposition(|(_, a)| *a == Action::Apply);
    assert!(finish > last_page);
}

#[test]
fn progress_counts_pages_and_items() {
    let mut sim = Sim::scripted(paged(), vec![part(10, 500, "a"), part(10, 300, "b"), vec![]]);
    sim.run(secs(1));
    assert_eq!(sim.phase(), Phase::Listing { pages: 2, items: 800 });
    assert!(!sim.engine.progress.synced);
    assert_eq!(sim.engine.resume_version(), None);
}

#[test]
fn c11_an_expired_token_starts_again_at_page_one() {
    let script = vec![
        part(10, 500, "a"),
        part(10, 500, "b"),
        refuse(410),
        part(12, 500, "a2"),
        part(12, 500, "b2"),
        page(12, 199),
        watch(""),
    ];
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(1));
    let expected = ["LIST", "LIST c=a", "LIST c=b", "LIST>=10", "LIST c=a2", "LIST c=b2", "WATCH 12"];
    sim.expect_asked(&expected);
    assert_eq!(sim.finished(), 1);
    assert_eq!(sim.count(|a| *a == Action::AbortRelist), 1);
    assert_eq!(sim.count(|a| matches!(a, Action::BeginRelist { from_scratch: false })), 2);
}

#[test]
fn c11_tokens_that_always_expire_lead_to_bigger_pages_and_longer_waits() {
    let server = |text: &str, _| {
        if text.contains("unlimited") || text.contains("limit=512000") {
            page(10, 5_000)
        } else if text.contains("c=") {
            refuse(410)
        } else if text.starts_with("LIST") {
            part(10, 500, "a")
        } else {
            watch("BM@11")
        }
    };
    let mut sim = Sim::new(paged(), server);
    sim.run(secs(600));
    assert_eq!(sim.finished(), 1);
    assert!(sim.requests.len() < 30, "{:?}", sim.requests);
    assert_eq!(sim.phase(), Phase::Watching);
}

#[test]
fn a_page_that_fails_is_asked_again_not_the_whole_list() {
    let throttled = vec![Say::Refuse(429, Some(5), None)];
    let script = vec![
        part(10, 500, "a"),
        refuse(500),
        vec![Say::Break(Broken::Connect)],
        throttled,
        vec![Say::Ok, Say::Break(Broken::Truncated)],
        page(10, 1),
        watch(""),
    ];
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(60));
    let mut expected = vec!["LIST"];
    expected.extend(["LIST c=a"; 5]);
    expected.push("WATCH 10");
    sim.expect_asked(&expected);
    assert!(sim.times()[4] - sim.times()[3] >= secs(5));
    assert_eq!(sim.finished(), 1);
}

#[test]
fn c11_a_token_that_always_fails_in_whatever_way_is_given_up() {
    let all = [
        (500, ErrorClass::Server),
        (503, ErrorClass::Server),
        (404, ErrorClass::NotFound),
        (403, ErrorClass::Forbidden),
    ];
    for (status, class) in all {
        let server = |text: &str, _| match text {
            "LIST c=a" => refuse(status),
            "LIST c=b" => page(12, 1),
            "LIST" => part(10, 500, "a"),
            "LIST>=10" => part(12, 500, "b"),
            _ => watch(""),
        };
        let mut sim = Sim::new(paged(), server);
        sim.run(secs(180));
        let mut expected = vec!["LIST"];
        expected.extend(["LIST c=a"; 8]);
        expected.extend(["LIST>=10", "LIST c=b", "WATCH 12"]);
        sim.expect_asked(&expected);
        assert!(sim.reports().iter().all(|report| report.class == class), "{status}: {:?}", sim.reports());
        assert_eq!((sim.finished(), sim.count(|a| *a == Action::AbortRelist)), (1, 1), "{status}");
    }
}

#[test]
fn c14_any_refusal_of_a_stream_leads_to_pages_and_is_remembered() {
    for status in [400, 405, 406, 415, 422, 501] {
        let mut sim = Sim::scripted(streaming(), vec![refuse(status), page(10, 2), watch("+11")]);
        sim.run(secs(1));
        sim.expect_asked(&["STREAM", "LIST", "WATCH 10"]);
        assert!(sim.refused_streaming(), "{status}");
        assert!(sim.reports().is_empty(), "a refusal that is handled is no failure");
    }
    // In the stream instead of the head.
    for code in [400, 422] {
        let error = vec![Say::Ok, Say::Error(failure(code, "Invalid"))];
        let mut sim = Sim::scripted(streaming(), vec![error, page(10, 2), watch("")]);
        sim.run(secs(1));
        sim.expect_asked(&["STREAM", "LIST", "WATCH 10"]);
        assert!(sim.refused_streaming(), "{code}");
    }
    // The second start on the same client.
    let config = EngineConfig { streaming_refused: true, ..streaming() };
    let mut sim = Sim::scripted(config, vec![page(10, 2), watch("ERR410"), page(12, 2), watch("")]);
    sim.run(secs(1));
    sim.expect_asked(&["LIST", "WATCH 10", "LIST>=10", "WATCH 12"]);
}

#[test]
fn c14_a_server_that_ignores_the_flag_is_found_out() {
    let rows = [
        ("silence", watch(""), "LIST", 21),
        ("objects and then silence", watch("+5 +7"), "LIST>=7", 21),
        ("an ordinary bookmark", watch("+5 +7 BM@10"), "LIST>=7", 1),
        ("changes without a mark", watch("+5 ~11 5s ~12 5s ~13 5s ~14 5s ~15 5s ~16"), "LIST>=15", 21),
        ("a mark without a version", vec![Say::Ok, Say::Mark(String::new())], "LIST", 1),
    ];
    for (name, ignored, list, within) in rows {
        let mut sim = Sim::scripted(streaming(), vec![ignored, page(20, 2), watch("")]);
        sim.run(secs(within));
        assert_eq!(sim.asked(), ["STREAM", list, "WATCH 20"], "{name}");
        assert!(sim.refused_streaming(), "{name}");
        assert_eq!(sim.finished(), 1, "{name}");
    }
    // It ends by itself before the mark, twice.
    let mut sim = Sim::scripted(streaming(), vec![watch("+5 EOF"), watch("+5 EOF"), page(20, 2), watch("")]);
    sim.run(secs(2));
    sim.expect_asked(&["STREAM", "STREAM>=5", "LIST>=5", "WATCH 20"]);
    assert!(sim.refused_streaming());
}

#[test]
fn c14_overload_and_lost_connections_do_not_disable_streaming() {
    for fault in [
        vec![Say::Refuse(429, Some(2), None)],
        refuse(500),
        refuse(503),
        refuse(504),
        refuse(401),
        refuse(404),
        vec![Say::Break(Broken::Connect)],
        watch("+5 RESET"),
        watch("+5 CUT"),
        watch("ERR429"),
        watch("ERR500"),
        watch("+5 EOF"),
    ] {
        let script = vec![fault.clone(), fault.clone(), watch("+5 +7 END@10")];
        let once = vec![fault.clone(), watch("+5 +7 END@10")];
        let script = if matches!(fault.last(), Some(Say::End)) { once } else { script };
        let mut sim = Sim::scripted(streaming(), script);
        sim.run(secs(10));
        assert!(sim.asked().iter().all(|text| text.starts_with("STREAM")), "{fault:?} {:?}", sim.asked());
        assert_eq!(sim.finished(), 1, "{fault:?}");
        assert!(!sim.refused_streaming(), "{fault:?}");
    }
}

#[test]
fn streams_that_fail_for_ever_give_way_to_pages_without_being_called_refused() {
    let server = |text: &str, _| match text {
        "STREAM" => refuse(500),
        "LIST" => page(10, 2),
        _ => watch(""),
    };
    let mut sim = Sim::new(streaming(), server);
    sim.run(secs(60));
    assert_eq!(sim.finished(), 1);
    assert!(!sim.refused_streaming());
    assert_eq!(sim.asked().last(), Some(&"WATCH 10"));
}

#[test]
fn a_silent_stream_on_a_dead_connection_is_no_ignored_flag() {
    let script = vec![watch(""), vec![Say::Break(Broken::Connect)], watch("+5 END@10")];
    let mut sim = Sim::scripted(streaming(), script);
    sim.run(secs(40));
    sim.expect_asked(&["STREAM", "LIST", "STREAM"]);
    assert!(!sim.refused_streaming());
    assert_eq!(sim.phase(), Phase::Watching);
}

#[test]
fn c15_a_stream_is_asked_only_without_a_version_to_resume_from() {
    let script = vec![watch("+5 +7 END@20 EOF"), watch("+21 300s EOF"), watch("22s RESET"), watch("")];
    let mut sim = Sim::scripted(streaming(), script);
    sim.run(secs(400));
    sim.expect_asked(&["STREAM", "WATCH 20", "WATCH 21", "WATCH 21"]);
    assert_eq!(sim.finished(), 1);
}

#[test]
fn c25_a_full_list_asks_for_nothing_older_than_what_was_seen() {
    let script = vec![
        watch("+5 END@10"),
        // In pages next.
        watch("END@120"),
    ];
    let mut sim = Sim::scripted(streaming(), script);
    sim.run(secs(1));
    sim.feed(Input::Event { kind: EventKind::Added, resource_version: "100" });
    sim.feed(Input::Error(&failure(410, "Expired")));
    sim.run(secs(2));
    sim.expect_asked(&["STREAM", "STREAM>=100"]);

    // A replica that lags behind is waited for.
    let script = vec![page(10, 2), watch("+100 ERR410"), too_large(), too_large(), page(101, 2), watch("")];
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(10));
    sim.expect_asked(&["LIST", "WATCH 10", "LIST>=100", "LIST>=100", "LIST>=100", "WATCH 101"]);
    assert!(sim.times()[3] - sim.times()[2] >= secs(1));
    assert!(sim.reports().iter().all(|report| report.class != ErrorClass::Backwards));
}

#[test]
fn a_version_the_server_will_not_have_is_left_out() {
    for fault in [refuse(400), refuse(410)] {
        let script = vec![page(10, 2), watch("+11 ERR410"), fault, page(30, 2), watch("")];
        let mut sim = Sim::scripted(paged(), script);
        sim.run(secs(10));
        sim.expect_asked(&["LIST", "WATCH 10", "LIST>=11", "LIST", "WATCH 30"]);
        assert_eq!(sim.count(|a| matches!(a, Action::BeginRelist { from_scratch: true })), 0);
    }
}

#[test]
fn c27_a_list_below_the_version_seen_is_read_again_from_scratch() {
    let script = vec![
        page(1_200, 2),
        watch("ERR410"),
        // A server that ignores "not older than".
        page(1_000, 3),
        page(1_001, 3),
        watch(""),
    ];
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(10));
    sim.expect_asked(&["LIST", "WATCH 1200", "LIST>=1200", "LIST", "WATCH 1001"]);
    assert_eq!(sim.applied(), 2, "the old page reaches no store");
    assert!(sim.reports().iter().any(|report| report.class == ErrorClass::Backwards));

    let script = vec![watch("END@1200"), watch("")];
    let mut sim = Sim::scripted(streaming(), script);
    sim.run(secs(1));
    sim.feed(Input::Error(&failure(410, "")));
    sim.run(secs(2));
    sim.feed(Input::Bookmark { resource_version: "1000", initial_events_end: true });
    sim.run(secs(10));
    sim.expect_asked(&["STREAM", "STREAM>=1200", "STREAM"]);
}

#[test]
fn lists_that_make_no_sense_are_reported_and_paced() {
    let unversioned = vec![Say::Ok, Say::Page(String::new(), None, 2)];
    let zero = vec![Say::Ok, Say::Page("0".into(), None, 2)];
    for answer in [unversioned, zero] {
        let mut sim = Sim::new(paged(), |_, _| answer.clone());
        sim.run(secs(600));
        assert!(sim.requests.len() < 40);
        assert_eq!(sim.applied(), 0);
        assert_eq!(sim.reports()[0].class, ErrorClass::Protocol);
    }
    // A page that leads to itself for ever.
    let server = |text: &str, _| if text == "LIST" { part(10, 1, "a") } else { part(10, 0, "a") };
    let mut sim = Sim::new(paged(), server);
    sim.run(secs(600));
    assert!(sim.requests.len() < 40 * 12, "{}", sim.requests.len());
    assert_eq!(sim.finished(), 0);
    // A page of an older snapshot.
    let script = vec![part(10, 1, "a"), page(9, 1), page(10, 2), watch("")];
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(10));
    sim.expect_asked(&["LIST", "LIST c=a", "LIST>=10", "WATCH 10"]);
}

#[test]
fn a_list_that_goes_round_in_circles_or_has_nothing_to_show_is_no_hot_loop() {
    const TOKENS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
    for (before, around) in [(0, 1), (0, 2), (0, 3), (2, 2), (5, 2), (3, 4), (0, 7)] {
        let mut page = 0;
        let mut sim = Sim::new(paged(), |text, _| {
            page = if text.contains("c=") { page + 1 } else { 0 };
            let at = if page < before { page } else { before + (page - before) % around };
            part(10, 500, TOKENS[at])
        });
        sim.run(secs(600));
        assert!(sim.requests.len() < 40 * 100, "{before} {around}: {}", sim.requests.len());
        let reports = sim.reports();
        assert!(!reports.is_empty() && reports.iter().all(|r| r.class == ErrorClass::Protocol), "{before} {around}");
        assert_eq!((sim.finished(), lines_of(&sim)), (0, 1));
    }
    // As many pages as there may be, none of them twice.
    let tokens: Vec<&'static str> = (0..3_000).map(|n| &*n.to_string().leak()).collect();
    let mut page_number = 0;
    let mut sim = Sim::new(paged(), |text, _| match text {
        _ if text.starts_with("WATCH") => watch(""),
        _ if page_number == 2_999 => page(10, 1),
        _ => {
            page_number += 1;
            part(10, 500, tokens[page_number])
        }
    });
    sim.run(secs(1));
    assert_eq!((sim.finished(), sim.reports().len()), (1, 0));
    // Pages of nothing, each with a new token.
    let mut sim = Sim::new(paged(), |_, at| part(10, 0, tokens[usize::try_from(at.as_secs()).unwrap()]));
    sim.run(secs(600));
    assert!(sim.requests.len() < 1_100, "{}", sim.requests.len());
    assert!(matches!(sim.phase(), Phase::Listing { items: 0, .. }));
}

fn lines_of(sim: &Sim<'_>) -> usize {
    sim.reports().iter().filter(|report| report.first).count()
}

#[test]
fn pages_of_different_versions_resume_from_the_first() {
    let script = vec![part(10, 1, "a"), page(15, 1), watch("")];
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(1));
    sim.expect_asked(&["LIST", "LIST c=a", "WATCH 10"]);
}

#[test]
fn a_list_asked_for_by_the_owner() {
    let script = vec![page(10, 2), watch("+11"), page(12, 2), watch("")];
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(60));
    sim.feed(Input::Relist);
    sim.feed(Input::Relist);
    sim.run(secs(61));
    sim.expect_asked(&["LIST", "WATCH 10", "LIST>=11", "WATCH 12"]);
    assert_eq!(sim.engine.progress().relists, 1);
    assert!(sim.reports().is_empty());
}

#[test]
fn by_hand_lists_cannot_be_hot_nor_break_a_promise_to_wait() {
    let mut sim = Sim::new(paged(), |text, _| if text.starts_with("LIST") { page(10, 2) } else { watch("") });
    for tenth in 0..100 {
        sim.run(Duration::from_millis(100 * tenth));
        sim.feed(Input::Relist);
    }
    assert!(sim.finished() <= 18, "{}", sim.finished());

    let script = vec![page(10, 1), vec![Say::Refuse(429, Some(30), None)], page(10, 1), watch("")];
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(1));
    sim.feed(Input::Relist);
    sim.run(secs(60));
    sim.expect_asked(&["LIST", "WATCH 10", "LIST>=10", "WATCH 10"]);
    assert!(sim.times()[2] >= secs(30));
}

#[test]
fn an_answer_that_does_not_come_is_given_up() {
    let script = vec![vec![], vec![Say::Ok], page(10, 1), watch("")];
    let mut sim = Sim::scripted(paged(), script);
    sim.run(secs(140));
    sim.expect_asked(&["LIST", "LIST", "LIST", "WATCH 10"]);
    assert_eq!(sim.reports()[0].class, ErrorClass::Idle);
    // As long as bytes come, a big page may take its time.
    let mut slow = vec![Say::Ok];
    for _ in 0..20 {
        slow.extend([Say::Wait(secs(30)), Say::Bytes]);
    }
    slow.push(Say::Page("10".into(), None, 500));
    let mut sim = Sim::scripted(paged(), vec![slow, watch("")]);
    sim.run(secs(601));
    sim.expect_asked(&["LIST", "WATCH 10"]);
}

#[test]
fn c27_a_stream_that_broke_binds_the_next_list_by_what_it_brought() {
    // The store has objects of version 90 when the cluster is set back: a list at 50 is not simply taken.
    let script = vec![watch("+90 +40 RESET"), watch("END@50"), watch("+30 END@50")];
    let mut sim = Sim::scripted(streaming(), script);
    sim.run(secs(60));
    sim.expect_asked(&["STREAM", "STREAM>=90", "STREAM"]);
    let begun: Vec<bool> = sim
        .actions
        .iter()
        .filter_map(|(_, a)| if let Action::BeginRelist { from_scratch } = a { Some(*from_scratch) } else { None })
        .collect();
    assert_eq!(begun, [false, false, true]);
}
