//! Random faults: never hot, never two requests, never back, and well again after good answers.

use std::time::Duration;

use proptest::prelude::*;

use super::super::*;
use super::sim::*;

/// A server with a history that moves on, and one scripted fault a request.
#[derive(Clone, Debug)]
enum Fault {
    Refuse(u16, Option<u64>),
    TooLarge,
    Connect,
    Hang,
    /// Good so far, then a hang in the body.
    Stall,
    /// Good so far, then broken.
    Break(u8),
    Error(u16),
    End,
    Token,
    Backwards,
    Garbage(u64),
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => (
            prop::sample::select(vec![400u16, 401, 403, 404, 405, 408, 410, 422, 429, 500, 501, 503, 504, 302]),
            prop::option::of(0u64..20),
        ).prop_map(|(status, after)| Fault::Refuse(status, after)),
        1 => Just(Fault::TooLarge),
        1 => Just(Fault::Connect),
        1 => Just(Fault::Hang),
        1 => Just(Fault::Stall),
        2 => (0u8..3).prop_map(Fault::Break),
        3 => prop::sample::select(vec![0u16, 400, 403, 410, 429, 500, 504]).prop_map(Fault::Error),
        3 => Just(Fault::End),
        1 => Just(Fault::Token),
        1 => Just(Fault::Backwards),
        2 => (0u64..40).prop_map(Fault::Garbage),
    ]
}

fn answer(text: &str, fault: Option<&Fault>, version: u64, delay: u64) -> Vec<Say> {
    let mut says = vec![Say::Wait(Duration::from_millis(delay))];
    let lists = text.starts_with("LIST") || text == "PROBE";
    let mut good = if lists {
        vec![Say::Ok, Say::Page(version.to_string(), None, 3)]
    } else if text.starts_with("STREAM") {
        watch(&format!("+3 +1 +2 END@{version}"))
    } else {
        vec![Say::Ok, Say::Event(EventKind::Modified, (version + 1).to_string())]
    };
    match fault {
        None => {}
        Some(Fault::Refuse(status, after)) => good = vec![Say::Refuse(*status, *after, None)],
        Some(Fault::TooLarge) => good = too_large(),
        Some(Fault::Connect) => good = vec![Say::Break(Broken::Connect)],
        Some(Fault::Hang) => good = vec![],
        Some(Fault::Stall) => good.truncate(2.min(good.len() - 1)),
        Some(Fault::Break(kind)) => {
            good.truncate(1 + usize::from(*kind));
            good.retain(|say| !matches!(say, Say::Page(..)));
            good.push(Say::Break([Broken::Body, Broken::Truncated, Broken::Malformed][usize::from(*kind)]));
        }
        Some(Fault::Error(code)) if !lists => good.push(Say::Error(failure(*code, ""))),
        Some(Fault::End) if !lists => good.push(Say::End),
        Some(Fault::Token) if lists => good = vec![Say::Ok, Say::Page(version.to_string(), Some("t"), 2)],
        Some(Fault::Backwards) => {
            good = if lists { page(version / 2, 1) } else { vec![Say::Ok, Say::Bookmark((version / 2).to_string())] };
        }
        Some(Fault::Garbage(n)) if !lists => {
            good.push(Say::Bad((n % 2 == 0).then(|| n.to_string())));
            good.push(Say::Event(EventKind::Added, format!("g{n}")));
            good.push(Say::End);
        }
        Some(_) => good = refuse(500),
    }
    says.extend(good);
    says
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn after_any_faults_and_then_good_answers_it_watches(
        faults in prop::collection::vec((prop::option::weighted(0.8, fault()), 0u64..3_000), 0..40),
        streams: bool,
        seed: u64,
    ) {
        let mut script = faults.clone().into_iter();
        let mut version = 100;
        let config = EngineConfig { seed, ..if streams { streaming() } else { paged() } };
        let mut healthy_from = None;
        let mut sim = Sim::new(config, |text, at| {
            version += 7;
            match script.next() {
                Some((fault, delay)) => answer(text, fault.as_ref(), version, delay),
                None => {
                    healthy_from.get_or_insert(at);
                    answer(text, None, version, 10)
                }
            }
        });
        // A fault costs at most the idle limit and the longest wait.
        sim.run(secs(60 + 400 * faults.len() as u64));
        prop_assert_eq!(sim.phase(), Phase::Watching);
        prop_assert!(sim.engine.progress.synced);
        prop_assert!(sim.engine.resume_version().is_some());
        // Each watch brings an event and is silent then.
        let stale = sim.engine.progress().current_at.map(|at| sim.now - at);
        prop_assert!(stale.is_some_and(|stale| stale <= secs(360)), "{stale:?}");
        let served = sim.requests.len() - faults.len().min(sim.requests.len());
        prop_assert!(served > 0 || faults.is_empty() || faults.iter().any(|(fault, _)| fault.is_none()));
        drop(sim);
        if let Some(at) = healthy_from {
            prop_assert!(at <= secs(60 + 400 * faults.len() as u64));
        }
    }

    #[test]
    fn a_server_that_is_faulty_for_ever_is_asked_at_a_bounded_rate(
        faults in prop::collection::vec(prop::option::weighted(0.9, fault()), 1..6),
        streams: bool,
        seed: u64,
    ) {
        let mut script = faults.iter().cycle();
        let mut version = 100;
        let config = EngineConfig { seed, ..if streams { streaming() } else { paged() } };
        let mut sim = Sim::new(config, |text, _| {
            version += 7;
            answer(text, script.next().and_then(Option::as_ref), version, 0)
        });
        sim.run(secs(300));
        // At best every second request is progress, which starts the steps anew; a step is at
        // least 0.6 s, and a list may be two requests, its watch a third.
        prop_assert!(sim.requests.len() <= 3 * 500 + 20, "{} of {faults:?}", sim.requests.len());
    }

    #[test]
    fn no_sequence_of_inputs_breaks_an_invariant(
        steps in prop::collection::vec((0u8..14, 0u64..30, 0u64..20_000), 0..200),
        streams: bool,
    ) {
        let config = if streams { streaming() } else { paged() };
        let mut sim = Sim::new(config, |_, _| vec![Say::Ok]);
        sim.run(Duration::ZERO);
        for (kind, version, wait) in steps {
            let until = sim.now - sim.start + Duration::from_millis(wait);
            sim.run(until);
            sim.raw(kind, version);
        }
    }
}
