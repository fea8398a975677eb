//! The machine by itself: tables of steps, then many machines against a model of the server.

use proptest::prelude::*;
use serde_json::json;

use super::*;

mod model;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A lease as the server has it.
fn lease(version: u64, holder: &str, renewal: u64) -> Record {
    let object = json!({
        "metadata": {"resourceVersion": version.to_string()},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewal},
    });
    Record::parse(object.to_string().as_bytes()).unwrap()
}

/// One machine and a clock that the test moves.
struct Bench {
    machine: Machine,
    begun: Instant,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let now = Instant::now();
        Self { machine: Machine::new(&LeaseConfig::new("shop", "cart", "a"), 1), begun: now, now }
    }

    /// Moves the clock to so many milliseconds after the start.
    fn at(&mut self, millis: u64) -> &mut Self {
        self.now = self.begun + ms(millis);
        self
    }

    /// The next step in a few letters: what is asked and with which version and holder, or that there is a wait.
    fn step(&mut self) -> String {
        let text =
            |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("-").to_owned();
        match self.machine.step(self.now, SystemTime::UNIX_EPOCH) {
            Step::Send(Request::Read) => "read".into(),
            Step::Send(Request::Create(object)) => format!("create for {}", text(&object, "/spec/holderIdentity")),
            Step::Send(Request::Replace(object)) => {
                let holder = text(&object, "/spec/holderIdentity");
                format!("replace {} for {holder}", text(&object, "/metadata/resourceVersion"))
            }
            Step::Wait(_) => "wait".into(),
            Step::Done => "done".into(),
        }
    }

    fn waits_between(&mut self, from: u64, to: u64) -> &mut Self {
        let Step::Wait(until) = self.machine.step(self.now, SystemTime::UNIX_EPOCH) else { panic!("no wait") };
        let after = until - self.begun;
        assert!(after >= ms(from) && after <= ms(to), "waits until {after:?}");
        self
    }

    fn sends(&mut self, expected: &str) -> &mut Self {
        assert_eq!(self.step(), expected);
        self
    }

    fn gets(&mut self, answer: Answer) -> &mut Self {
        self.machine.answer(answer, self.now);
        self
    }

    fn finds(&mut self, version: u64, holder: &str, renewal: u64) -> &mut Self {
        self.gets(Answer::Found(lease(version, holder, renewal)))
    }

    fn fails(&mut self) -> &mut Self {
        self.gets(Answer::Lost)
    }

    /// Until how many milliseconds after the start it leads.
    fn leads_until(&mut self, millis: u64) -> &mut Self {
        assert_eq!(self.machine.lead_until().map(|until| until - self.begun), Some(ms(millis)));
        self
    }

    fn leads_not(&mut self) -> &mut Self {
        assert!(!self.machine.leads(self.now));
        self
    }

    /// Leading since zero, under version 1.
    fn leading() -> Self {
        let mut bench = Self::new();
        bench.sends("read").gets(Answer::Missing).sends("create for a").finds(1, "a", 0).leads_until(10_000);
        bench
    }

    /// Waiting for `b`, seen at zero.
    fn following() -> Self {
        let mut bench = Self::new();
        bench.sends("read").finds(7, "b", 0).leads_not();
        bench
    }
}

#[test]
fn the_first_candidate_makes_the_lease_and_renews_it() {
    let mut bench = Bench::leading();
    bench.waits_between(2_000, 2_400).at(2_400).sends("replace 1 for a");
    bench.at(2_900).finds(2, "a", 1).leads_until(12_400).waits_between(4_400, 4_800);
}

#[test]
fn a_success_counts_from_when_the_request_was_sent() {
    let mut bench = Bench::new();
    bench.sends("read").at(300).gets(Answer::Missing).sends("create for a").at(4_300).finds(1, "a", 0);
    bench.leads_until(10_300).sends("replace 1 for a");
    // An answer that is as late as that brings no lead.
    let mut bench = Bench::new();
    bench.sends("read").gets(Answer::Missing).sends("create for a").at(10_000).finds(1, "a", 0).leads_not();
    bench.sends("replace 1 for a").finds(2, "a", 1).leads_until(20_000);
}

#[test]
fn a_released_lease_and_an_own_one_are_taken_at_once() {
    for (holder, version) in [("", 7), ("a", 8)] {
        let mut bench = Bench::new();
        bench.sends("read").finds(version, holder, 0).leads_not();
        bench.sends(&format!("replace {version} for a")).finds(version + 1, "a", 1).leads_until(10_000);
    }
}

#[test]
fn a_live_lease_is_waited_for_from_when_it_was_seen_to_change() {
    let mut bench = Bench::following();
    bench.waits_between(2_000, 2_400).at(2_400).sends("read").at(2_500).finds(8, "b", 1);
    // From now on it does not change, whatever its version does.
    for at in [5_000, 7_500, 10_000, 12_500, 15_000] {
        bench.at(at).sends("read").finds(9 + at, "b", 1).leads_not();
    }
    bench.waits_between(17_000, 17_400).at(17_499).sends("read").finds(99, "b", 1).waits_between(17_500, 17_500);
    bench.at(17_500).sends("replace 99 for a").finds(100, "a", 2).leads_until(27_500);
}

#[test]
fn the_holders_own_duration_is_respected() {
    let found = |seconds: Value| {
        let object = json!({
            "metadata": {"resourceVersion": "7"}, "spec": {"holderIdentity": "b", "leaseDurationSeconds": seconds}
        });
        Answer::Found(Record::parse(object.to_string().as_bytes()).unwrap())
    };
    for (seconds, expires) in [(json!(1), 1_000), (json!(60), 60_000), (json!(null), 15_000), (json!(0), 15_000)] {
        let mut bench = Bench::new();
        bench.sends("read").gets(found(seconds.clone())).at(expires - 1);
        if bench.step() == "read" {
            bench.gets(found(seconds));
        }
        bench.leads_not().at(expires).sends("replace 7 for a");
    }
    // Longer than the clock goes.
    let mut bench = Bench::new();
    bench.sends("read").gets(found(json!(u64::MAX))).at(100_000_000_000).sends("read");
}

#[test]
fn a_conflict_is_looked_into_at_once_and_only_once() {
    let mut bench = Bench::leading();
    bench.at(2_400).sends("replace 1 for a").gets(Answer::Conflict).leads_until(10_000);
    bench.sends("read").finds(5, "a", 0).sends("replace 5 for a").gets(Answer::Conflict).waits_between(4_400, 4_800);
    bench.at(4_800).sends("read").finds(6, "a", 0).sends("replace 6 for a").finds(7, "a", 1).leads_until(14_800);
}

#[test]
fn a_leader_that_sees_another_holder_leads_no_more() {
    for holder in ["b", ""] {
        let mut bench = Bench::leading();
        bench.at(2_400).sends("replace 1 for a").gets(Answer::Conflict).sends("read").finds(5, holder, 1).leads_not();
    }
}

#[test]
fn failures_cost_the_lead_only_when_it_is_over() {
    let mut bench = Bench::leading();
    for at in [2_400, 4_800, 7_200, 9_600] {
        bench.at(at).sends("replace 1 for a").fails().leads_until(10_000);
    }
    assert_eq!(bench.machine.patience(bench.now), ms(400), "no longer than the lead lasts");
    bench.at(9_999);
    assert!(bench.machine.leads(bench.now));
    bench.at(10_000).leads_not();
}

#[test]
fn a_write_that_is_refused_is_followed_by_a_look_and_one_without_answer_is_not() {
    let mut bench = Bench::leading();
    bench.at(2_400).sends("replace 1 for a").gets(Answer::Lost).at(4_800).sends("replace 1 for a");
    bench.gets(Answer::Refused { retry_after: None }).leads_until(10_000).at(7_200).sends("read");
    bench.finds(1, "a", 0).sends("replace 1 for a").finds(2, "a", 1).leads_until(17_200);
}

#[test]
fn a_request_that_took_longer_than_the_period_is_followed_at_once() {
    let mut bench = Bench::leading();
    bench.at(2_400).sends("replace 1 for a").at(7_400).fails().sends("replace 1 for a");
}

#[test]
fn retry_after_is_obeyed_up_to_a_lease_duration() {
    for (asked, from, to) in [(0, 2_000, 2_400), (7, 7_000, 8_400), (86_400, 15_000, 18_000)] {
        let mut bench = Bench::new();
        bench.sends("read").gets(Answer::Refused { retry_after: Some(secs(asked)) }).waits_between(from, to);
    }
}

#[test]
fn a_deleted_lease_is_made_anew_by_its_holder_and_not_by_those_who_saw_it_live() {
    let mut bench = Bench::leading();
    bench.at(2_400).sends("replace 1 for a").gets(Answer::Missing).leads_until(10_000);
    bench.sends("create for a").finds(9, "a", 1).leads_until(12_400);
    let mut bench = Bench::following();
    for at in [2_400, 4_800, 7_200, 9_600, 12_000, 14_400] {
        bench.at(at).sends("read").gets(Answer::Missing).leads_not();
    }
    bench.waits_between(15_000, 15_000).at(15_000).sends("create for a").finds(9, "a", 1).leads_until(25_000);
}

#[test]
fn a_write_of_unknown_fate_is_found_out_about() {
    // A take-over whose answer was lost.
    let mut bench = Bench::new();
    bench.sends("read").finds(7, "", 0).sends("replace 7 for a").fails().leads_not().at(2_400);
    bench.sends("replace 7 for a").gets(Answer::Conflict).sends("read").finds(8, "a", 1).sends("replace 8 for a");
    bench.finds(9, "a", 2).leads_until(12_400);
    // The same, and then it is to stop: the lease may be ours.
    let mut bench = Bench::new();
    bench.sends("read").finds(7, "", 0).sends("replace 7 for a").fails();
    bench.machine.release();
    bench.sends("read").finds(8, "a", 1).sends("replace 8 for ");
}

#[test]
fn a_request_that_was_dropped_may_have_taken_effect() {
    let mut bench = Bench::new();
    bench.sends("read").finds(7, "", 0).sends("replace 7 for a");
    bench.machine.release();
    bench.sends("read").finds(7, "", 0).sends("done");
    // A dropped read is nothing.
    let mut bench = Bench::new();
    bench.sends("read");
    bench.machine.campaign(bench.now, Duration::ZERO);
    bench.sends("read");
}

#[test]
fn a_release_gives_up_what_is_ours_and_nothing_else() {
    let mut bench = Bench::leading();
    bench.machine.release();
    bench.leads_not().sends("replace 1 for ").finds(2, "", 1).sends("done");
    // Somebody took it meanwhile.
    let mut bench = Bench::leading();
    bench.machine.release();
    bench.sends("replace 1 for ").gets(Answer::Conflict).sends("read").finds(5, "b", 1).sends("done");
    // It is gone.
    let mut bench = Bench::leading();
    bench.machine.release();
    bench.sends("replace 1 for ").gets(Answer::Missing).sends("done");
    // A follower, and one who has seen nothing yet but was about to.
    let mut bench = Bench::following();
    bench.machine.release();
    bench.sends("done");
    let mut bench = Bench::new();
    bench.sends("read");
    bench.machine.release();
    bench.sends("done");
    // Failures are tried again.
    let mut bench = Bench::leading();
    bench.machine.release();
    bench.sends("replace 1 for ").fails().waits_between(2_000, 2_400).at(2_400).sends("replace 1 for ");
}

#[test]
fn a_renewal_that_was_under_way_does_not_delay_the_release() {
    let mut bench = Bench::leading();
    bench.at(2_400).sends("replace 1 for a");
    bench.machine.release();
    bench.finds(2, "a", 1).leads_not().sends("replace 2 for ");
}

#[test]
fn holding_renews_without_leading_and_takes_nothing_back() {
    let mut bench = Bench::leading();
    bench.machine.hold();
    bench.leads_not().waits_between(2_000, 2_400).at(2_400).sends("replace 1 for a").finds(2, "a", 1).leads_not();
    bench.at(4_800).sends("replace 2 for a").gets(Answer::Conflict).sends("read").finds(5, "", 1).sends("done");
}

#[test]
fn a_new_campaign_reads_first_and_keeps_what_it_saw() {
    let mut bench = Bench::following();
    bench.machine.campaign(bench.now, secs(3));
    bench.waits_between(3_000, 3_000).at(3_000).sends("read").finds(7, "b", 0).at(15_000).sends("replace 7 for a");
}

#[test]
fn a_server_that_changes_what_is_written_makes_no_hot_loop() {
    for holder in ["", "b"] {
        let mut bench = Bench::new();
        bench.sends("read").finds(7, "", 0).sends("replace 7 for a").finds(8, holder, 1).leads_not();
        bench.waits_between(2_000, 2_400);
    }
    // Nor one that cannot make up its mind whether the lease is there.
    let mut bench = Bench::new();
    bench.sends("read").gets(Answer::Missing).sends("create for a").gets(Answer::Conflict);
    bench.sends("read").gets(Answer::Missing).sends("create for a").gets(Answer::Conflict).waits_between(2_000, 2_400);
    // Nor one that keeps what was released.
    let mut bench = Bench::leading();
    bench.machine.release();
    bench.sends("replace 1 for ").finds(2, "a", 1).waits_between(2_000, 2_400);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// Whatever is delivered, lost or late: never two leaders, and a leader's name is in the lease.
    #[test]
    fn never_two_leaders_and_always_one_in_the_end(
        machines in 2..5_usize,
        actions in prop::collection::vec(model::action(), 0..400),
    ) {
        let mut world = model::World::new(machines);
        for action in &actions {
            world.act(action);
            world.check()?;
        }
        world.settle()?;
    }
}
