//! Following the changes: events and bookmarks, ends of streams, and the probe after silence.

use std::cmp::Ordering;
use std::time::Duration;

use super::version::{compare, is_before, is_ordered, is_usable};
use super::*;

/// Watches in a row that opened and said nothing, after which versions are compared.
const SILENT_WATCHES: u32 = 2;
/// How far apart such comparisons are at least: where watches are asked to last seconds only, two of them in a row are
/// nothing.
const BETWEEN_PROBES: Duration = Duration::from_secs(60);
/// Empty watches in a row after which it is worth a report.
const EMPTY_WATCHES: u32 = 3;

/// How long before the end that it was asked for a server may send a last bookmark: kube-apiserver does two seconds
/// before.
const LAST_WORD: Duration = Duration::from_secs(5);

/// What a version means to the resume version.
enum Move {
    /// It is the new resume version.
    Forward,
    /// It is no version, or the same one.
    Stay,
    /// It lies before.
    Back,
}

impl Engine {
    /// Asks for a watch; says of what kind the request is, and for how long it may last.
    pub(super) fn ask_watch(&mut self, now: Instant, out: &mut Vec<Action>) -> (RequestKind, Duration) {
        let Some(resume) = &self.resume else {
            // Nothing to resume from cannot happen after a list; if it does, a list mends it.
            return self.ask_list(now, out);
        };
        self.progress.restarts += u64::from(self.progress.reopening);
        self.progress.reopening = true;
        let least = if self.expects_bookmarks { self.config.watch_timeout } else { self.config.brief_watch() };
        let timeout_seconds = self.backoff.watch_seconds(least);
        out.push(Action::Watch(WatchQuery::Resume { resource_version: resume.clone(), timeout_seconds }));
        (RequestKind::Watch, Duration::from_secs(timeout_seconds))
    }

    pub(super) fn on_event(&mut self, kind: EventKind, version: &str, now: Instant, out: &mut Vec<Action>) {
        match self.open_kind() {
            Some(RequestKind::Stream) => self.on_initial_event(kind, version, now, out),
            _ => self.on_live_event("an event", version, now, out),
        }
    }

    pub(super) fn on_bookmark(&mut self, version: &str, marked: bool, now: Instant, out: &mut Vec<Action>) {
        match self.open_kind() {
            Some(RequestKind::Stream) => self.on_initial_bookmark(version, marked, now, out),
            Some(RequestKind::Watch) => {
                self.expects_bookmarks |= !self.is_about_to_end(now);
                if let Move::Back = self.advance(version, now, out) {
                    self.on_backwards("a bookmark", version, now, out);
                }
            }
            _ => {}
        }
    }

    pub(super) fn on_undecodable(&mut self, version: &str, now: Instant, out: &mut Vec<Action>) {
        match self.open_kind() {
            Some(RequestKind::Stream) => out.push(Action::Apply),
            _ => self.on_live_event("an undecodable event", version, now, out),
        }
    }

    fn on_live_event(&mut self, what: &str, version: &str, now: Instant, out: &mut Vec<Action>) {
        if self.open_kind() != Some(RequestKind::Watch) {
            out.push(Action::Ignore);
        } else if let Move::Back = self.advance(version, now, out) {
            out.push(Action::Ignore);
            self.on_backwards(what, version, now, out);
        } else {
            out.push(Action::Apply);
        }
    }

    fn kind(&self) -> Option<RequestKind> {
        if let State::Active(request) = &self.state { Some(request.kind) } else { None }
    }

    fn open_kind(&self) -> Option<RequestKind> {
        self.kind().filter(|_| self.is_open())
    }

    /// Whether the watch is as good as over: a bookmark then is the server's last word, and says nothing of how often
    /// a longer one would have one.
    fn is_about_to_end(&self, now: Instant) -> bool {
        matches!(&self.state, State::Active(request) if request.ends_by <= later(now, LAST_WORD))
    }

    /// Takes note of a version that came on the open watch. Moving forward is progress, and ends
    /// what failed before.
    fn advance(&mut self, version: &str, now: Instant, out: &mut Vec<Action>) -> Move {
        let (State::Active(request), Some(resume)) = (&mut self.state, &mut self.resume) else {
            return Move::Stay;
        };
        request.heard = true;
        self.silent = 0;
        let order = if is_usable(version) { compare(version, resume) } else { Some(Ordering::Equal) };
        if order == Some(Ordering::Less) {
            return Move::Back;
        }
        self.progress.current_at = Some(now);
        if order == Some(Ordering::Equal) {
            return Move::Stay;
        }
        // Forward; versions that cannot be compared come in the order of history.
        resume.clear();
        resume.push_str(version);
        request.moved = true;
        self.failures = 0;
        self.broken = 0;
        self.rejected = 0;
        self.behind_since = None;
        if self.churn > 0 {
            self.settle(now);
        }
        if self.episode.is_open() {
            self.episode.recover(out);
        }
        Move::Forward
    }

    fn on_backwards(&mut self, what: &str, version: &str, now: Instant, out: &mut Vec<Action>) {
        let message = format!(
            "{what} has version {version}, but the watch was at {}",
            self.resume.as_deref().unwrap_or_default()
        );
        self.break_with_history(Verb::Watch, &message, now, out);
    }

    pub(super) fn on_set_back(&mut self, now: Instant, out: &mut Vec<Action>) {
        if let Some(RequestKind::Watch) = self.kind() {
            let message = "the list shows objects as they were before what had been seen of them";
            self.break_with_history(Verb::List, message, now, out);
        }
    }

    /// Gives the watch up, and all that is known with it.
    fn break_with_history(&mut self, verb: Verb, message: &str, now: Instant, out: &mut Vec<Action>) {
        self.settle(now);
        self.state = State::Idle;
        out.push(Action::CancelRequest);
        let problem = Problem::own(ErrorClass::Backwards, Origin::Body, message);
        self.start_over(verb, &problem, now, out);
    }

    // === ends ===

    pub(super) fn on_stream_end(&mut self, now: Instant, out: &mut Vec<Action>) {
        match self.open_kind() {
            Some(RequestKind::Watch) => self.on_watch_end(now, out),
            Some(RequestKind::Stream) => {
                if self.ended_early() {
                    self.refuse_stream("the stream ends before the end of the initial events", false, out);
                    self.launch(Next::List, now, out);
                } else {
                    let message = "the stream ended before the end of the initial events";
                    let problem = Problem::own(ErrorClass::Protocol, Origin::Body, message);
                    self.on_problem(problem, now, out);
                }
            }
            Some(RequestKind::Page | RequestKind::Probe) | None => {
                let message = "the connection was closed before the answer was complete";
                let problem = Problem::own(ErrorClass::Connection, Origin::Silence, message);
                self.on_problem(problem, now, out);
            }
        }
    }

    /// A clean end is no failure: the next watch starts one step after this one started, which is
    /// at once unless it was short. Ends without anything delivered wait longer each time.
    fn on_watch_end(&mut self, now: Instant, out: &mut Vec<Action>) {
        self.settle(now);
        let Some(request) = self.take_request() else { return };
        let lived = request.opened.is_some_and(|at| later(at, self.config.healthy_after) <= now);
        if lived || request.ends_by <= now {
            // The server says that this was all.
            self.progress.current_at = Some(now);
            self.settled();
            self.episode.recover(out);
        } else if !request.moved {
            return self.on_empty_watch(&request, now, out);
        }
        let at = self.after_end(&request, now);
        let next = self.after_watch(&request, now);
        self.schedule(next, at, now, out);
    }

    /// It ended at once and brought nothing, which is odd when it happens again and again.
    fn on_empty_watch(&mut self, request: &Request, now: Instant, out: &mut Vec<Action>) {
        self.failures = self.failures.saturating_add(1);
        let mut at = self.after_end(request, now);
        let mut next = self.after_watch(request, now);
        if self.broke_again() {
            self.need_list(false);
            next = Next::List;
            at = at.max(self.relist_at(now));
        }
        if self.failures >= EMPTY_WATCHES {
            let message = "watches end at once, without an event";
            let problem = Problem::own(ErrorClass::Protocol, Origin::Body, message);
            self.episode.report(Verb::Watch, &problem, at, out);
        }
        self.schedule(next, at, now, out);
    }

    fn after_end(&mut self, request: &Request, now: Instant) -> Instant {
        let step = self.backoff.step(self.failures.saturating_sub(1));
        later(request.sent, step).max(now)
    }

    /// What follows a watch that ended without a failure: another, or a look at the versions.
    pub(super) fn after_watch(&mut self, request: &Request, now: Instant) -> Next {
        if request.heard {
            self.silent = 0;
            return Next::Watch;
        }
        self.silent = self.silent.saturating_add(1);
        let is_due = self.compared_at.is_none_or(|at| later(at, BETWEEN_PROBES) <= now);
        if self.silent >= SILENT_WATCHES && is_due && self.resume.as_deref().is_some_and(is_ordered) {
            self.silent = 0;
            self.compared_at = Some(now);
            return Next::Probe;
        }
        Next::Watch
    }

    // === the probe ===

    pub(super) fn ask_probe(&self, out: &mut Vec<Action>) -> (RequestKind, Duration) {
        out.push(Action::List(ListQuery { limit: Some(1), ..ListQuery::default() }));
        (RequestKind::Probe, Duration::ZERO)
    }

    pub(super) fn on_probe(&mut self, version: &str, now: Instant, out: &mut Vec<Action>) {
        self.state = State::Idle;
        let behind = self.resume.as_deref().is_some_and(|resume| is_before(version, resume));
        if behind {
            let message = format!(
                "the server is at version {version}, but the watch was at {}",
                self.resume.as_deref().unwrap_or_default()
            );
            let problem = Problem::own(ErrorClass::Backwards, Origin::Body, &message);
            self.start_over(Verb::List, &problem, now, out);
        } else {
            self.launch(Next::Watch, now, out);
        }
    }
}
