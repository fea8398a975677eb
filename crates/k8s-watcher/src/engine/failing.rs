//! What follows from a failure: what is asked next, and when.

use std::time::Duration;

use super::*;

/// Watches in a row that open and break, or end at once, at the same version, after which a list may help.
const BROKEN_WATCHES: u32 = 4;
/// Watches in a row refused as invalid, after which the version is suspected.
const REJECTED_WATCHES: u32 = 2;

impl Engine {
    /// The outstanding request has failed, and is over.
    pub(super) fn on_problem(&mut self, problem: Problem, now: Instant, out: &mut Vec<Action>) {
        self.settle(now);
        let Some(request) = self.take_request() else { return };
        if problem.class != ErrorClass::Behind {
            self.behind_since = None;
        }
        match request.kind {
            RequestKind::Probe => self.on_probe_problem(&problem, now, out),
            RequestKind::Watch => self.on_watch_problem(&request, &problem, now, out),
            RequestKind::Stream => self.on_stream_problem(&problem, now, out),
            RequestKind::Page => self.on_page_problem(&problem, now, out),
        }
    }

    /// The outstanding request has been silent for longer than allowed.
    pub(super) fn on_silence(&mut self, now: Instant, out: &mut Vec<Action>) {
        let State::Active(request) = &self.state else { return };
        let opened = request.opened.is_some();
        match request.kind {
            RequestKind::Stream if opened && request.heard => {
                self.refuse_stream("no end of the initial events", true, out);
                self.launch(Next::List, now, out);
            }
            RequestKind::Stream if opened => self.suspect_stream(now, out),
            _ => {
                let message = if opened { "nothing was heard for too long" } else { "no answer came" };
                out.push(Action::CancelRequest);
                let problem = Problem::own(ErrorClass::Idle, Origin::Silence, message);
                self.on_problem(problem, now, out);
            }
        }
    }

    /// History was set back (or is believed to be): the full state, whatever its version.
    pub(super) fn start_over(&mut self, verb: Verb, problem: &Problem, now: Instant, out: &mut Vec<Action>) {
        self.behind_since = None;
        self.need_list(true);
        let at = self.relist_at(now);
        self.report_and_schedule(verb, problem, Next::List, at, now, out);
    }

    fn on_watch_problem(&mut self, request: &Request, problem: &Problem, now: Instant, out: &mut Vec<Action>) {
        match problem.class {
            ErrorClass::Expired => {
                self.need_list(false);
                let at = self.relist_at(now);
                self.report_and_schedule(Verb::Watch, problem, Next::List, at, now, out);
                return;
            }
            ErrorClass::Behind if self.is_behind_for_good(now) => {
                let set_back = Problem { class: ErrorClass::Backwards, ..problem.clone() };
                self.start_over(Verb::Watch, &set_back, now, out);
                return;
            }
            _ => {}
        }
        // An idle watch took its time already, and where the limit is short there may be nothing to hear of: to wait
        // longer each time would be to look away. Everything else waits from the failure on.
        let idle = problem.class == ErrorClass::Idle && request.opened.is_some();
        let at = if idle {
            self.failures = self.failures.saturating_add(1);
            later(request.sent, self.backoff.step(0)).max(now)
        } else {
            self.retry_at(problem, now)
        };
        let mut next = Next::Watch;
        match problem.class {
            ErrorClass::Rejected => {
                self.rejected += 1;
                if self.rejected >= REJECTED_WATCHES {
                    self.rejected = 0;
                    self.need_list(false);
                    if let Some(relist) = &mut self.relist {
                        relist.unversioned = true;
                    }
                    next = Next::List;
                }
            }
            ErrorClass::Server | ErrorClass::Protocol | ErrorClass::Connection
                if problem.origin == Origin::Body && !request.moved && self.broke_again() =>
            {
                self.need_list(false);
                next = Next::List;
            }
            ErrorClass::Idle if idle => {
                let was_to_end = !std::mem::take(&mut self.expects_bookmarks);
                next = self.after_watch(request, now);
                if was_to_end && !request.heard {
                    self.need_list(false);
                    next = Next::List;
                }
            }
            _ => {}
        }
        let at = if next == Next::List { at.max(self.relist_at(now)) } else { at };
        self.report_and_schedule(Verb::Watch, problem, next, at, now, out);
    }

    fn on_stream_problem(&mut self, problem: &Problem, now: Instant, out: &mut Vec<Action>) {
        if problem.class == ErrorClass::Rejected {
            self.refuse_stream(&refusal(problem), false, out);
            self.launch(Next::List, now, out);
            return;
        }
        self.abort_relist(out);
        match problem.class {
            ErrorClass::Behind if self.is_behind_for_good(now) => {
                let set_back = Problem { class: ErrorClass::Backwards, ..problem.clone() };
                self.start_over(Verb::Watch, &set_back, now, out);
                return;
            }
            ErrorClass::Expired => {
                if let Some(relist) = &mut self.relist {
                    relist.unversioned = true;
                }
                self.count_stream_failure();
            }
            // The right to watch may be missing where the right to list is there, and the other
            // way round: the next attempt asks the other way.
            ErrorClass::Forbidden => {
                if let Some(relist) = &mut self.relist {
                    relist.paged_once = true;
                }
            }
            ErrorClass::Server | ErrorClass::Protocol => self.count_stream_failure(),
            ErrorClass::Connection if problem.origin == Origin::Body => self.count_stream_failure(),
            _ => {}
        }
        let at = self.retry_at(problem, now);
        self.report_and_schedule(Verb::Watch, problem, Next::List, at, now, out);
    }

    fn on_page_problem(&mut self, problem: &Problem, now: Instant, out: &mut Vec<Action>) {
        let continuing = self.relist.as_ref().is_some_and(Relist::is_continuing);
        match problem.class {
            ErrorClass::Expired if continuing => {
                self.abort_relist(out);
                let mut at = now;
                if let Some(relist) = &mut self.relist {
                    relist.expiries = relist.expiries.saturating_add(1);
                    if relist.expiries > 1 {
                        let attempt = relist.expiries - 2;
                        at = later(now, self.backoff.step(attempt));
                    }
                }
                self.report_and_schedule(Verb::List, problem, Next::List, at, now, out);
                return;
            }
            ErrorClass::Behind if self.is_behind_for_good(now) => {
                self.abort_relist(out);
                let set_back = Problem { class: ErrorClass::Backwards, ..problem.clone() };
                self.start_over(Verb::List, &set_back, now, out);
                return;
            }
            ErrorClass::Expired | ErrorClass::Rejected => {
                self.abort_relist(out);
                if let Some(relist) = &mut self.relist {
                    // The token was refused, or else the version.
                    relist.unversioned |= !continuing;
                }
            }
            ErrorClass::Forbidden => {
                if let Some(relist) = &mut self.relist {
                    relist.paged_once = false;
                }
            }
            ErrorClass::Connection | ErrorClass::Idle | ErrorClass::Server => self.clear_suspicion(),
            _ => {}
        }
        // Who is busy, away or behind says nothing of the token.
        let is_served = problem.origin != Origin::Silence
            && !matches!(problem.class, ErrorClass::Throttled | ErrorClass::Unauthorized | ErrorClass::Behind);
        if let Some(relist) = self.relist.as_mut().filter(|_| is_served)
            && relist.token_failed_for_good()
        {
            self.abort_relist(out);
        }
        let at = self.retry_at(problem, now);
        self.report_and_schedule(Verb::List, problem, Next::List, at, now, out);
    }

    /// A probe is our own precaution: that it fails is nobody's business, and no failure of the watch.
    fn on_probe_problem(&mut self, problem: &Problem, now: Instant, out: &mut Vec<Action>) {
        let asked = problem.retry_after.map_or(Duration::ZERO, |asked| self.backoff.retry_after(asked));
        let step = self.backoff.step(self.failures);
        self.schedule(Next::Watch, later(now, step.max(asked)), now, out);
    }

    fn report_and_schedule(
        &mut self,
        verb: Verb,
        problem: &Problem,
        next: Next,
        at: Instant,
        now: Instant,
        out: &mut Vec<Action>,
    ) {
        self.episode.report(verb, problem, at, out);
        self.schedule(next, at, now, out);
    }

    /// Counts a watch that opened and came to an end without getting on; says whether a list may help.
    pub(super) fn broke_again(&mut self) -> bool {
        self.broken += 1;
        let often = self.broken >= BROKEN_WATCHES;
        if often {
            self.broken = 0;
        }
        often
    }

    // === pace ===

    /// Counts a failure and says when the next attempt is due: after a step, and not before the server wants it.
    fn retry_at(&mut self, problem: &Problem, now: Instant) -> Instant {
        let step = self.backoff.step(self.failures);
        self.failures = self.failures.saturating_add(1);
        let at = later(now, step);
        match problem.retry_after {
            Some(asked) => at.max(later(now, self.backoff.retry_after(asked))),
            None => at,
        }
    }

    /// When a full list that a watch made necessary may start: at once after a healthy watch,
    /// later each time otherwise, also if the lists themselves go well.
    pub(super) fn relist_at(&mut self, now: Instant) -> Instant {
        self.churn = self.churn.saturating_add(1);
        match self.churn {
            0 | 1 => now,
            churn => later(now, self.backoff.step(churn - 2)),
        }
    }

    /// Whether the server has been behind for so long that it will not catch up.
    fn is_behind_for_good(&mut self, now: Instant) -> bool {
        let since = *self.behind_since.get_or_insert(now);
        later(since, self.config.behind_limit) <= now
    }
}

fn refusal(problem: &Problem) -> String {
    match problem.code {
        Some(code) if problem.message.is_empty() => code.to_string(),
        Some(code) => format!("{code}: {}", problem.message),
        None => problem.message.clone(),
    }
}
