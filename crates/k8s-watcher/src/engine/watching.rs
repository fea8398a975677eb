//! Following the changes: events and bookmarks, ends of streams, and the probe after silence.

use std::cmp::Ordering;

use super::version::{compare, is_before, is_ordered};
use super::*;

/// Watches in a row that opened and said nothing, after which versions are compared.
const SILENT_WATCHES: u32 = 2;
/// Empty watches in a row after which it is worth a report.
const EMPTY_WATCHES: u32 = 3;

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
    pub(super) fn ask_watch(&mut self, now: Instant, out: &mut Vec<Action>) -> RequestKind {
        let Some(resume) = &self.resume else {
            // Nothing to resume from cannot happen after a list; if it does, a list mends it.
            return self.ask_list(now, out);
        };
        self.progress.restarts += u64::from(self.progress.reopening);
        self.progress.reopening = true;
        out.push(Action::Watch(WatchQuery::Resume {
            resource_version: resume.clone(),
            timeout_seconds: self.backoff.watch_seconds(self.config.watch_timeout),
        }));
        RequestKind::Watch
    }

    pub(super) fn on_event(&mut self, kind: EventKind, version: &str, now: Instant, out: &mut Vec<Action>) {
        match self.open_kind() {
            Some(RequestKind::Stream) => self.on_initial_event(kind, version, now, out),
            Some(RequestKind::Watch) => match self.advance(version, now, out) {
                Move::Forward | Move::Stay => out.push(Action::Apply),
                Move::Back => {
                    out.push(Action::Ignore);
                    self.on_backwards("an event", version, now, out);
                }
            },
            _ => out.push(Action::Ignore),
        }
    }

    pub(super) fn on_bookmark(&mut self, version: &str, marked: bool, now: Instant, out: &mut Vec<Action>) {
        match self.open_kind() {
            Some(RequestKind::Stream) => self.on_initial_bookmark(version, marked, now, out),
            Some(RequestKind::Watch) => {
                if let Move::Back = self.advance(version, now, out) {
                    self.on_backwards("a bookmark", version, now, out);
                }
            }
            _ => {}
        }
    }

    pub(super) fn on_undecodable(&mut self, version: &str, now: Instant, out: &mut Vec<Action>) {
        if let Some(RequestKind::Watch) = self.open_kind()
            && let Move::Back = self.advance(version, now, out)
        {
            self.on_backwards("an undecodable event", version, now, out);
        }
    }

    fn open_kind(&self) -> Option<RequestKind> {
        match &self.state {
            State::Active(request) if request.opened.is_some() => Some(request.kind),
            _ => None,
        }
    }

    /// Takes note of a version that came on the open watch. Moving forward is progress, and ends
    /// what failed before.
    fn advance(&mut self, version: &str, now: Instant, out: &mut Vec<Action>) -> Move {
        let (State::Active(request), Some(resume)) = (&mut self.state, &mut self.resume) else {
            return Move::Stay;
        };
        request.heard = true;
        self.silent = 0;
        if version.is_empty() {
            return Move::Stay;
        }
        match compare(version, resume) {
            Some(Ordering::Equal) => return Move::Stay,
            Some(Ordering::Less) => return Move::Back,
            // Versions that cannot be compared come in the order of history.
            Some(Ordering::Greater) | None => {}
        }
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
        self.settle(now);
        self.state = State::Idle;
        out.push(Action::CancelRequest);
        let problem = Problem::own(ErrorClass::Backwards, Origin::Body, &message);
        self.start_over(Verb::Watch, &problem, now, out);
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
        let healthy = request.opened.is_some_and(|at| later(at, self.config.healthy_after) <= now);
        if !request.moved && !healthy {
            self.failures = self.failures.saturating_add(1);
        }
        let step = self.backoff.step(self.failures.saturating_sub(1));
        let at = later(request.sent, step).max(now);
        if self.failures >= EMPTY_WATCHES && !request.moved && !healthy {
            let message = "watches end at once, without an event";
            let problem = Problem::own(ErrorClass::Protocol, Origin::Body, message);
            self.episode.report(Verb::Watch, &problem, at, out);
        }
        let next = self.after_watch(&request);
        self.schedule(next, at, now, out);
    }

    /// What follows a watch that ended without a failure: another, or a look at the versions.
    pub(super) fn after_watch(&mut self, request: &Request) -> Next {
        if request.heard {
            self.silent = 0;
            return Next::Watch;
        }
        self.silent += 1;
        if self.silent >= SILENT_WATCHES && self.resume.as_deref().is_some_and(is_ordered) {
            self.silent = 0;
            return Next::Probe;
        }
        Next::Watch
    }

    // === the probe ===

    pub(super) fn ask_probe(&self, out: &mut Vec<Action>) -> RequestKind {
        out.push(Action::List(ListQuery { limit: Some(1), ..ListQuery::default() }));
        RequestKind::Probe
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
