//! Decides what to ask the server next and who leads, from answers and the time. Does no I/O and looks at no clock.
//!
//! The rules that make it safe:
//!
//! - Time is counted from when *this* process saw a claim change. What the lease says about times is never read.
//! - Every write carries the version it was decided on, so that of two decisions on one state one is refused.
//! - A success counts from when the request was sent: whoever saw it counts from then or later, and longer.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tokio::time::Instant;

use crate::config::{JITTER, LeaseConfig};
use crate::record::{Claim, Record};

/// How far in the future a moment lies that is never meant to come.
const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

pub(crate) struct Machine {
    namespace: String,
    name: String,
    identity: Arc<str>,
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
    rng: fastrand::Rng,

    aim: Aim,
    /// The lease by the last answer.
    record: Option<Record>,
    /// Until when somebody else's claim is good, by when it was seen to change. It outlives the lease itself: who
    /// deletes the lease does not end the claim.
    rival_until: Option<Instant>,
    /// The lease must be read before anything is decided.
    is_stale: bool,
    /// A write has been sent whose fate is not known.
    is_uncertain: bool,
    lead_until: Option<Instant>,

    /// The start of the attempt that is going on.
    attempt: Option<Instant>,
    /// A conflict may be looked into at once, but only once in an attempt.
    had_conflict: bool,
    next_at: Option<Instant>,
    sent: Option<Sent>,
}

/// What the requests are for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Aim {
    /// To get the lead, and to keep it.
    Lead,
    /// To keep others away while the work winds down. Never takes the lease from anybody.
    Hold,
    /// To give the lease up, if it is ours.
    Release,
}

/// A request that is under way.
#[derive(Debug)]
struct Sent {
    at: Instant,
    aim: Aim,
    is_write: bool,
}

/// What to do next.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    Send(Request),
    Wait(Instant),
    /// There is nothing to do for this aim any more.
    Done,
}

/// A request to the API server.
#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    Read,
    Create(Value),
    /// Carries the version of what it replaces.
    Replace(Value),
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The lease, read or as it was written.
    Found(Record),
    Missing,
    /// The lease is not what the write was decided on, or is there already.
    Conflict,
    /// The server could not do it, or would not.
    Refused {
        retry_after: Option<Duration>,
    },
    /// Nothing is known, not even whether a write took effect.
    Lost,
}

impl Machine {
    pub(crate) fn new(config: &LeaseConfig, seed: u64) -> Self {
        Self {
            namespace: config.namespace.clone(),
            name: config.name.clone(),
            identity: config.identity.as_str().into(),
            lease_duration: config.lease_duration,
            renew_deadline: config.renew_deadline,
            retry_period: config.retry_period,
            rng: fastrand::Rng::with_seed(seed),
            aim: Aim::Lead,
            record: None,
            rival_until: None,
            is_stale: true,
            is_uncertain: false,
            lead_until: None,
            attempt: None,
            had_conflict: false,
            next_at: None,
            sent: None,
        }
    }

    // === what holds ===

    /// When the lead ends unless it is renewed; none when there is none to lose.
    pub(crate) fn lead_until(&self) -> Option<Instant> {
        self.lead_until
    }

    pub(crate) fn leads(&self, now: Instant) -> bool {
        self.lead_until.is_some_and(|until| now < until)
    }

    /// Who holds the lease, by the last answer.
    pub(crate) fn leader(&self) -> Option<&str> {
        self.record.as_ref()?.holder()
    }

    /// Whether a write is under way, which is better waited for than forgotten.
    pub(crate) fn is_writing(&self) -> bool {
        self.sent.as_ref().is_some_and(|s| s.is_write)
    }

    /// How long to wait for an answer to a request that is sent now.
    pub(crate) fn patience(&self, now: Instant) -> Duration {
        let half = self.renew_deadline / 2;
        match self.lead_until {
            Some(until) if now < until => half.min(until - now),
            _ => half,
        }
    }

    // === aims ===

    /// Begins a campaign, after a pause.
    pub(crate) fn campaign(&mut self, now: Instant, pause: Duration) {
        self.aim(Aim::Lead);
        // What was known before is only good enough to wait by.
        self.is_stale = true;
        self.next_at = Some(later(now, pause));
    }

    /// No longer leads, and renews all the same until told otherwise.
    pub(crate) fn hold(&mut self) {
        let next_at = self.next_at;
        self.aim(Aim::Hold);
        self.next_at = next_at;
    }

    /// No longer leads, and gives the lease up.
    pub(crate) fn release(&mut self) {
        self.aim(Aim::Release);
    }

    fn aim(&mut self, aim: Aim) {
        self.aim = aim;
        self.lead_until = None;
        self.attempt = None;
        self.had_conflict = false;
        self.next_at = None;
    }

    // === step and answer ===

    /// What to do at this moment. A request that it hands out is under way until [`answer`](Self::answer); one that
    /// was dropped counts as failed.
    pub(crate) fn step(&mut self, now: Instant, wall: SystemTime) -> Step {
        if let Some(sent) = self.sent.take() {
            self.is_uncertain |= sent.is_write;
        }
        if let Some(at) = self.next_at
            && now < at
        {
            return Step::Wait(at);
        }
        self.next_at = None;
        let Some(request) = self.request(now, wall) else { return Step::Done };
        self.attempt.get_or_insert(now);
        self.sent = Some(Sent { at: now, aim: self.aim, is_write: request != Request::Read });
        Step::Send(request)
    }

    fn request(&self, now: Instant, wall: SystemTime) -> Option<Request> {
        let claim = Claim { identity: &self.identity, seconds: self.lease_duration.as_secs(), now: wall };
        let is_mine = self.is_mine();
        if self.aim == Aim::Release && !is_mine && !self.is_uncertain {
            return None;
        }
        if self.is_stale || (self.aim == Aim::Release && !is_mine) {
            return Some(Request::Read);
        }
        let is_open = !self.has_rival(now);
        match (self.aim, &self.record) {
            (Aim::Release, Some(record)) => Some(Request::Replace(record.released(wall))),
            (Aim::Hold, Some(record)) => is_mine.then(|| Request::Replace(record.claimed(claim))),
            (Aim::Lead, Some(record)) if is_open => Some(Request::Replace(record.claimed(claim))),
            (Aim::Lead | Aim::Hold, None) if is_open => {
                Some(Request::Create(Record::first(&self.namespace, &self.name, claim)))
            }
            (Aim::Lead, _) => Some(Request::Read),
            (Aim::Hold | Aim::Release, None) => None,
        }
    }

    /// Takes in what became of the request that the last step handed out.
    pub(crate) fn answer(&mut self, answer: Answer, now: Instant) {
        let Some(sent) = self.sent.take() else { return };
        match answer {
            Answer::Found(record) => self.found(record, &sent, now),
            Answer::Missing => {
                self.record = None;
                self.is_stale = false;
                self.is_uncertain = false;
                // The holder makes the lease anew; the others wait for as long as they would with it.
                if self.aim == Aim::Lead && self.has_rival(now) {
                    self.pause(&sent, now);
                }
            }
            Answer::Conflict => {
                self.is_stale = true;
                if self.had_conflict {
                    self.pause(&sent, now);
                }
                self.had_conflict = true;
            }
            Answer::Lost => {
                self.is_uncertain |= sent.is_write;
                self.pause(&sent, now);
            }
            Answer::Refused { retry_after } => {
                // It may be about what was written, or have taken effect in spite of it. Looking is cheap: it answers.
                self.is_stale |= sent.is_write;
                self.is_uncertain |= sent.is_write;
                self.pause(&sent, now);
                if let Some(asked) = retry_after {
                    // A mistyped one must not take the candidate out for a day.
                    let asked = asked.min(self.lease_duration).mul_f64(1.0 + JITTER * self.rng.f64());
                    self.next_at = self.next_at.max(Some(later(now, asked)));
                }
            }
        }
    }

    fn found(&mut self, record: Record, sent: &Sent, now: Instant) {
        let is_news = self.record.as_ref().is_none_or(|known| !known.says_the_same_as(&record));
        let is_mine = record.holder() == Some(&*self.identity);
        if is_mine || record.holder().is_none() {
            self.rival_until = None;
        } else if is_news {
            self.rival_until = Some(later(now, record.duration().unwrap_or(self.lease_duration)));
        }
        self.record = Some(record);
        self.is_stale = false;
        self.is_uncertain = false;
        if !is_mine {
            self.lead_until = None;
        }
        let has_written = sent.is_write && sent.aim == self.aim;
        if has_written && is_mine && self.aim == Aim::Lead {
            let until = later(sent.at, self.renew_deadline);
            self.lead_until = (now < until).then_some(until);
        }
        let is_done = self.aim != Aim::Lead && !is_mine;
        if !is_done && (has_written || self.has_rival(now)) {
            self.pause(sent, now);
        }
    }

    /// Whether somebody else's claim is good at this moment.
    fn has_rival(&self, now: Instant) -> bool {
        self.rival_until.is_some_and(|until| now < until)
    }

    fn is_mine(&self) -> bool {
        self.leader() == Some(&*self.identity)
    }

    /// Ends the attempt. The next one begins a retry period after this one did, or when the rival's time is up.
    fn pause(&mut self, sent: &Sent, now: Instant) {
        let period = self.retry_period.mul_f64(1.0 + JITTER * self.rng.f64());
        let begun = self.attempt.take().unwrap_or(sent.at);
        self.had_conflict = false;
        let mut next = later(begun, period);
        if let Some(until) = self.rival_until
            && now < until
        {
            next = next.min(until);
        }
        self.next_at = Some(next.max(now));
    }
}

/// `from + wait`, or a moment that never comes where the clock ends.
fn later(from: Instant, wait: Duration) -> Instant {
    from.checked_add(wait).unwrap_or_else(|| from + NEVER)
}

#[cfg(test)]
mod tests;
