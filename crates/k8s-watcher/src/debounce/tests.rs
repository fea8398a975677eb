//! Cases C45 and C46 on a virtual clock, and random schedules against a model.

use proptest::prelude::*;

use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// One run of a callback, as the user saw it.
#[derive(Clone, Debug, PartialEq)]
struct Call {
    start: u64,
    /// Indexes of the events it covered.
    events: Vec<usize>,
}

/// Something that reaches the debouncer from outside.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stimulus {
    Event,
    Force,
}

/// Plays `stimuli` (time in ms, in order) against a debouncer the way a driver does, with
/// callbacks that take `duration(n)` for the n-th, and gives all calls.
fn play(interval: u64, stimuli: &[(u64, Stimulus)], duration: impl Fn(usize) -> u64) -> Vec<Call> {
    let base = Instant::now();
    let mut debouncer = Debouncer::new(ms(interval));
    let mut calls: Vec<Call> = Vec::new();
    let mut collected = Vec::new();
    let mut running_until: Option<u64> = None;
    let mut next = 0;
    let mut now = 0;
    loop {
        while next < stimuli.len() && stimuli[next].0 <= now {
            match stimuli[next].1 {
                Stimulus::Event => {
                    collected.push(next);
                    debouncer.event(base + ms(now));
                }
                Stimulus::Force => debouncer.force(base + ms(now)),
            }
            next += 1;
        }
        if running_until.is_some_and(|until| until <= now) {
            running_until = None;
            debouncer.finished();
        }
        let mut wake = None;
        match debouncer.poll(base + ms(now)) {
            Decision::Fire => {
                assert!(running_until.is_none(), "two callbacks at once at {now} ms");
                debouncer.started(base + ms(now));
                calls.push(Call { start: now, events: std::mem::take(&mut collected) });
                running_until = Some(now + duration(calls.len() - 1));
            }
            Decision::WaitUntil(at) => {
                assert!(at > base + ms(now), "a wait that is already over");
                wake = Some((at - base).as_millis() as u64);
            }
            Decision::Idle => {}
        }
        let times = [stimuli.get(next).map(|s| s.0), running_until, wake];
        match times.into_iter().flatten().min() {
            Some(time) => now = time.max(now),
            None => return calls,
        }
    }
}

fn events(times: impl IntoIterator<Item = u64>) -> Vec<(u64, Stimulus)> {
    times.into_iter().map(|t| (t, Stimulus::Event)).collect()
}

#[test]
fn c45_a_steady_stream_of_events_starves_nothing() {
    let stimuli = events((0..500).map(|n| n * 20));
    let calls = play(200, &stimuli, |_| 0);
    assert_eq!(calls[0].start, 0, "the first comes at once");
    assert!((45..=52).contains(&calls.len()), "{} calls", calls.len());
    let mut covered = 0;
    for call in &calls {
        for &event in &call.events {
            let delay = call.start - stimuli[event].0;
            assert!(delay <= 210, "event {event} waited {delay} ms");
            covered += 1;
        }
    }
    assert_eq!(covered, 500);
}

#[test]
fn c46_an_event_during_a_callback_leads_to_another() {
    let calls = play(100, &events([0, 100, 450]), |n| if n == 0 { 500 } else { 1 });
    let expected = [
        Call { start: 0, events: vec![0] },
        // The callback ran longer than the interval: the next is due the moment it ends.
        Call { start: 500, events: vec![1, 2] },
    ];
    assert_eq!(calls, expected);
}

#[test]
fn schedules() {
    struct Row {
        name: &'static str,
        interval: u64,
        takes: u64,
        stimuli: Vec<(u64, Stimulus)>,
        starts: &'static [u64],
    }
    let rows = [
        Row {
            name: "each event after a quiet time fires at once",
            interval: 100,
            takes: 5,
            stimuli: events([0, 1_000, 2_000]),
            starts: &[0, 1_000, 2_000],
        },
        Row {
            name: "the period is measured from the start of the callback",
            interval: 100,
            takes: 60,
            stimuli: events([0, 10, 20]),
            starts: &[0, 100],
        },
        Row {
            name: "a last event is covered, and nothing after it",
            interval: 100,
            takes: 0,
            stimuli: events([0, 99]),
            starts: &[0, 100],
        },
        Row {
            name: "an event at the end of the period fires at once",
            interval: 100,
            takes: 0,
            stimuli: events([0, 100]),
            starts: &[0, 100],
        },
        Row {
            name: "zero interval: each event at once",
            interval: 0,
            takes: 0,
            stimuli: events([0, 1, 2, 3]),
            starts: &[0, 1, 2, 3],
        },
        Row {
            name: "zero interval: what comes during a callback follows right after",
            interval: 0,
            takes: 10,
            stimuli: events([0, 1, 2, 3]),
            starts: &[0, 10],
        },
        Row {
            name: "forced with nothing to tell",
            interval: 100,
            takes: 0,
            stimuli: vec![(5, Stimulus::Force)],
            starts: &[5],
        },
        Row {
            name: "forced inside the period, which then begins anew",
            interval: 100,
            takes: 0,
            stimuli: vec![(0, Stimulus::Event), (30, Stimulus::Force), (40, Stimulus::Event)],
            starts: &[0, 30, 130],
        },
        Row {
            name: "forced while a callback runs",
            interval: 100,
            takes: 20,
            stimuli: vec![(0, Stimulus::Event), (10, Stimulus::Force), (15, Stimulus::Force)],
            starts: &[0, 20],
        },
    ];
    for row in rows {
        let calls = play(row.interval, &row.stimuli, |_| row.takes);
        let starts: Vec<u64> = calls.iter().map(|call| call.start).collect();
        assert_eq!(starts, row.starts, "{}", row.name);
    }
}

#[test]
fn on_sync_complete_starts_no_refractory_period() {
    let base = Instant::now();
    let mut debouncer = Debouncer::new(ms(100));
    debouncer.hold();
    debouncer.event(base + ms(10));
    assert_eq!(debouncer.poll(base + ms(10)), Decision::Idle, "never two at once");
    assert_eq!(debouncer.pending_since(), Some(base + ms(10)));
    debouncer.finished();
    assert_eq!(debouncer.poll(base + ms(30)), Decision::Fire);

    // Nor does it shorten a period that has begun.
    debouncer.started(base + ms(30));
    debouncer.finished();
    debouncer.hold();
    debouncer.finished();
    debouncer.event(base + ms(50));
    assert_eq!(debouncer.poll(base + ms(50)), Decision::WaitUntil(base + ms(130)));
}

#[test]
fn cleared_events_fire_nothing_later_ones_do() {
    let base = Instant::now();
    let mut debouncer = Debouncer::new(ms(100));
    debouncer.event(base);
    debouncer.force(base);
    debouncer.clear();
    assert_eq!(debouncer.poll(base), Decision::Idle);
    debouncer.event(base + ms(1));
    assert_eq!(debouncer.poll(base + ms(1)), Decision::Fire);
}

#[test]
fn an_interval_beyond_the_clock_is_no_panic() {
    let base = Instant::now();
    let mut debouncer = Debouncer::new(Duration::MAX);
    debouncer.event(base);
    assert_eq!(debouncer.poll(base), Decision::Fire);
    debouncer.started(base);
    debouncer.finished();
    debouncer.event(base);
    assert!(matches!(debouncer.poll(base), Decision::WaitUntil(at) if at > base));
    debouncer.force(base);
    assert_eq!(debouncer.poll(base), Decision::Fire);
}

/// When callbacks start, computed without a machine: the next start is the earliest moment at
/// which something is uncovered, nothing runs, and the interval has passed or somebody insists.
fn model(interval: u64, stimuli: &[(u64, Stimulus)], duration: impl Fn(usize) -> u64) -> Vec<u64> {
    let mut starts: Vec<u64> = Vec::new();
    let mut covered = 0;
    while covered < stimuli.len() {
        let start = match starts.last() {
            None => stimuli[covered].0,
            Some(&last) => {
                let free = last + duration(starts.len() - 1);
                let regular = stimuli[covered].0.max(last + interval);
                let forced = stimuli[covered..].iter().filter(|s| s.1 == Stimulus::Force).map(|s| s.0).min();
                free.max(forced.map_or(regular, |at| at.min(regular)))
            }
        };
        starts.push(start);
        covered = stimuli.partition_point(|s| s.0 <= start);
    }
    starts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_schedule_behaves_like_the_model(
        interval in prop_oneof![Just(0u64), 1u64..300],
        // Callbacks that end in the very millisecond they start in would make "during" ambiguous.
        durations in prop::collection::vec(1u64..500, 1..8),
        gaps in prop::collection::vec((0u64..250, prop::bool::weighted(0.1)), 0..60),
    ) {
        let mut time = 0;
        let stimuli: Vec<(u64, Stimulus)> = gaps
            .iter()
            .map(|&(gap, force)| {
                time += gap;
                (time, if force { Stimulus::Force } else { Stimulus::Event })
            })
            .collect();
        let duration = |n: usize| durations[n % durations.len()];
        let calls = play(interval, &stimuli, duration);

        let starts: Vec<u64> = calls.iter().map(|call| call.start).collect();
        prop_assert_eq!(&starts, &model(interval, &stimuli, duration));

        // Each event is covered once, in order.
        let covered: Vec<usize> = calls.iter().flat_map(|call| call.events.clone()).collect();
        let all: Vec<usize> = (0..stimuli.len()).filter(|&n| stimuli[n].1 == Stimulus::Event).collect();
        prop_assert_eq!(covered, all);

        // Bounded latency: an interval, or the rest of the callback that runs.
        for (n, call) in calls.iter().enumerate() {
            let busy = if n == 0 { 0 } else { calls[n - 1].start + duration(n - 1) };
            for &event in &call.events {
                prop_assert!(call.start <= (stimuli[event].0 + interval).max(busy));
            }
        }
    }
}
