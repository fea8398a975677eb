//! A server of one lease, a network that loses and delays, and some machines: the simplest thing that can go wrong.

use super::*;

/// Something that happens to one of the machines, by its number, or to the clock.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Wait(u64),
    Step(usize),
    /// The server takes one of the machine's requests that it has not seen, also one that was given up long ago.
    Deliver(usize, usize),
    /// The answer, if there is one, reaches the machine.
    Answer(usize),
    /// The machine waits for its answer no longer.
    GiveUp(usize),
    /// The network loses the machine's oldest request.
    Lose(usize),
    Campaign(usize),
    Hold(usize),
    Release(usize),
}

pub(super) fn action() -> impl Strategy<Value = Action> {
    let one = 0..5_usize;
    prop_oneof![
        4 => prop_oneof![Just(0), 1..50_u64, 500..3_000_u64, 5_000..20_000_u64].prop_map(Action::Wait),
        8 => one.clone().prop_map(Action::Step),
        8 => (one.clone(), 0..3_usize).prop_map(|(i, which)| Action::Deliver(i, which)),
        8 => one.clone().prop_map(Action::Answer),
        2 => one.clone().prop_map(Action::GiveUp),
        1 => one.clone().prop_map(Action::Lose),
        1 => one.clone().prop_map(Action::Campaign),
        1 => one.clone().prop_map(Action::Hold),
        1 => one.prop_map(Action::Release),
    ]
}

pub(super) struct World {
    begun: Instant,
    now: Instant,
    /// The lease, its version in it.
    lease: Option<Value>,
    version: u64,
    candidates: Vec<Candidate>,
}

struct Candidate {
    machine: Machine,
    /// Requests that the server has not seen, by their numbers.
    wire: Vec<(u64, Request)>,
    sent: u64,
    /// The number of the request that the machine waits for.
    waiting: Option<u64>,
    answer: Option<Answer>,
}

impl World {
    pub(super) fn new(machines: usize) -> Self {
        let now = Instant::now();
        let candidate = |i: usize| {
            let config = LeaseConfig::new("shop", "cart", format!("candidate-{i}"));
            let machine = Machine::new(&config, i as u64);
            Candidate { machine, wire: Vec::new(), sent: 0, waiting: None, answer: None }
        };
        let candidates = (0..machines).map(candidate).collect();
        Self { begun: now, now, lease: None, version: 0, candidates }
    }

    pub(super) fn act(&mut self, action: &Action) {
        let count = self.candidates.len();
        match *action {
            Action::Wait(millis) => self.now += ms(millis),
            Action::Step(i) => self.step(i % count),
            Action::Deliver(i, which) => self.deliver(i % count, which),
            Action::Answer(i) => self.answer(i % count),
            Action::GiveUp(i) => self.give_up(i % count),
            Action::Lose(i) => {
                let wire = &mut self.candidates[i % count].wire;
                wire.drain(..wire.len().min(1));
            }
            Action::Campaign(i) => {
                // As the driver: only when the last lead is over.
                let machine = &mut self.candidates[i % count].machine;
                if !machine.leads(self.now) {
                    machine.campaign(self.now, Duration::ZERO);
                }
            }
            Action::Hold(i) => {
                let machine = &mut self.candidates[i % count].machine;
                if machine.leads(self.now) {
                    machine.hold();
                }
            }
            Action::Release(i) => self.candidates[i % count].machine.release(),
        }
    }

    fn step(&mut self, i: usize) {
        let (now, wall) = (self.now, SystemTime::UNIX_EPOCH + (self.now - self.begun));
        let candidate = &mut self.candidates[i];
        if candidate.waiting.is_some() {
            return;
        }
        if let Step::Send(request) = candidate.machine.step(now, wall) {
            candidate.sent += 1;
            candidate.waiting = Some(candidate.sent);
            candidate.wire.push((candidate.sent, request));
        }
    }

    fn deliver(&mut self, i: usize, which: usize) {
        let wire = &mut self.candidates[i].wire;
        if wire.is_empty() {
            return;
        }
        let (number, request) = wire.remove(which % wire.len());
        let answer = self.serve(request);
        let candidate = &mut self.candidates[i];
        if candidate.waiting == Some(number) {
            candidate.answer = Some(answer);
        }
    }

    fn serve(&mut self, request: Request) -> Answer {
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        let written = match (request, &self.lease) {
            (Request::Read, Some(lease)) => return found(lease),
            (Request::Read | Request::Replace(_), None) => return Answer::Missing,
            (Request::Create(_), Some(_)) => return Answer::Conflict,
            (Request::Replace(object), Some(lease)) if version(&object) != version(lease) => return Answer::Conflict,
            (Request::Create(object) | Request::Replace(object), _) => object,
        };
        self.version += 1;
        let lease = self.lease.insert(written);
        lease["metadata"]["resourceVersion"] = self.version.to_string().into();
        found(lease)
    }

    fn answer(&mut self, i: usize) {
        let candidate = &mut self.candidates[i];
        if let Some(answer) = candidate.answer.take() {
            candidate.waiting = None;
            candidate.machine.answer(answer, self.now);
        }
    }

    fn give_up(&mut self, i: usize) {
        let candidate = &mut self.candidates[i];
        if candidate.waiting.take().is_some() {
            candidate.answer = None;
            candidate.machine.answer(Answer::Lost, self.now);
        }
    }

    /// The one thing that matters.
    pub(super) fn check(&self) -> Result<(), TestCaseError> {
        let leaders: Vec<_> = self.candidates.iter().filter(|c| c.machine.leads(self.now)).collect();
        prop_assert!(leaders.len() <= 1, "{} leaders after {:?}", leaders.len(), self.now - self.begun);
        if let Some(leader) = leaders.first() {
            let holder = self.lease.as_ref().map(|lease| &lease["spec"]["holderIdentity"]);
            prop_assert_eq!(holder, Some(&json!(&*leader.machine.identity)));
        }
        Ok(())
    }

    /// The first candidate crashes, and from then on nothing goes wrong: when a lease duration and a retry period are
    /// over, one of the others leads.
    pub(super) fn settle(&mut self) -> Result<(), TestCaseError> {
        self.candidates.remove(0);
        let count = self.candidates.len();
        for i in 0..count {
            self.candidates[i].wire.clear();
            self.give_up(i);
            self.act(&Action::Campaign(i));
        }
        let limit = self.now + ms(15_000 + 2_400 + 100);
        while self.now < limit {
            for i in 0..count {
                self.step(i);
                self.deliver(i, 0);
                self.answer(i);
                self.check()?;
            }
            self.now += ms(50);
        }
        prop_assert!(self.candidates.iter().any(|c| c.machine.leads(self.now)), "nobody leads");
        Ok(())
    }
}

fn found(lease: &Value) -> Answer {
    Answer::Found(Record::parse(lease.to_string().as_bytes()).expect("a lease"))
}
