//! The one outstanding request: when it starts, when it counts as open, when it is given up.

use std::time::Duration;

use super::*;

/// What the engine is at.
#[derive(Debug)]
pub(super) enum State {
    /// Not started, or between two states within one step.
    Idle,
    /// No request is outstanding; the next goes out at `until`.
    Waiting {
        until: Instant,
        next: Next,
    },
    Active(Request),
}

/// What to ask next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The next page, or the beginning of the list that is needed.
    List,
    Watch,
    Probe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Page,
    /// A watch that begins with the full state and has not got to its end.
    Stream,
    Watch,
    Probe,
}

/// The outstanding request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) kind: RequestKind,
    pub(super) sent: Instant,
    /// When the server was asked to end it, if it is a watch.
    pub(super) ends_by: Instant,
    /// When its answer began well; for a stream that became a watch, when it did.
    pub(super) opened: Option<Instant>,
    /// When the last byte came.
    pub(super) active: Instant,
    /// It moved the resume version.
    pub(super) moved: bool,
    /// An event or a bookmark came.
    pub(super) heard: bool,
    /// A stream has to come to the end of its initial events until then: sooner if it seems to be past them.
    pub(super) mark_by: Option<Instant>,
}

impl Request {
    pub(super) fn is_open(&self) -> bool {
        self.opened.is_some()
    }

    pub(super) fn is_watch(&self) -> bool {
        self.kind == RequestKind::Watch
    }
}

impl Engine {
    // === requests ===

    pub(super) fn on_start(&mut self, now: Instant, out: &mut Vec<Action>) {
        if let State::Idle = self.state {
            self.need_list(false);
            self.launch(Next::List, now, out);
        }
    }

    pub(super) fn on_head(
        &mut self,
        status: u16,
        retry_after: Option<Duration>,
        failure: Option<&ApiStatus>,
        now: Instant,
        out: &mut Vec<Action>,
    ) {
        let State::Active(request) = &mut self.state else { return };
        if request.opened.is_some() {
            return;
        }
        if !(200..=299).contains(&status) {
            self.on_problem(Problem::from_head(status, retry_after, failure), now, out);
            return;
        }
        request.opened = Some(now);
        let kind = request.kind;
        self.heard(now);
        if kind == RequestKind::Stream {
            self.begin_relist(out);
        }
    }

    pub(super) fn on_tick(&mut self, now: Instant, out: &mut Vec<Action>) {
        match &self.state {
            State::Idle => {}
            State::Waiting { until, next } => {
                if *until <= now {
                    let next = *next;
                    self.launch(next, now, out);
                }
            }
            State::Active(request) => {
                if request.kind == RequestKind::Stream && request.mark_by.is_some_and(|at| at <= now) {
                    self.refuse_stream("no end of the initial events", true, out);
                    self.launch(Next::List, now, out);
                } else if self.silence_deadline(request) <= now {
                    self.on_silence(now, out);
                } else if self.healthy_at(request).is_some_and(|at| at <= now) {
                    self.settle(now);
                    self.episode.recover(out);
                }
            }
        }
    }

    /// Asks for `next` at `at`, or right away if that is not in the future.
    pub(super) fn schedule(&mut self, next: Next, at: Instant, now: Instant, out: &mut Vec<Action>) {
        if at <= now {
            self.launch(next, now, out);
        } else {
            self.state = State::Waiting { until: at, next };
        }
    }

    pub(super) fn launch(&mut self, next: Next, now: Instant, out: &mut Vec<Action>) {
        let (kind, lasts) = match next {
            Next::List => self.ask_list(now, out),
            Next::Watch => self.ask_watch(now, out),
            Next::Probe => self.ask_probe(out),
        };
        let ends_by = later(now, lasts);
        self.state = State::Active(Request {
            kind,
            sent: now,
            ends_by,
            opened: None,
            active: now,
            moved: false,
            heard: false,
            mark_by: (kind == RequestKind::Stream).then(|| later(ends_by, self.config.silence_limit())),
        });
    }

    /// Takes the outstanding request away; some state must follow within the same step.
    pub(super) fn take_request(&mut self) -> Option<Request> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Active(request) => Some(request),
            other => {
                self.state = other;
                None
            }
        }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(&self.state, State::Active(request) if request.opened.is_some())
    }

    // === time ===

    /// A byte of a good answer came.
    pub(super) fn heard(&mut self, now: Instant) {
        if let State::Active(request) = &mut self.state
            && request.opened.is_some()
        {
            request.active = now;
            self.progress.last_contact = Some(now);
        }
    }

    /// Until when the request has to show a sign of life.
    pub(super) fn silence_deadline(&self, request: &Request) -> Instant {
        let limit = match (request.kind, request.opened) {
            (_, None) | (RequestKind::Page | RequestKind::Probe, _) => self.config.response_limit(),
            (RequestKind::Stream, _) => self.config.silence_limit(),
            (RequestKind::Watch, _) => self.config.idle_limit,
        };
        later(request.active, limit)
    }

    /// When the open watch will count as healthy; none if there is nothing to recover from.
    pub(super) fn healthy_at(&self, request: &Request) -> Option<Instant> {
        let troubled = self.episode.is_open() || self.failures > 0 || self.churn > 0;
        self.well_at(request).filter(|_| troubled)
    }

    /// From when on being open proves that the watch is well; never while its silence may mean anything.
    fn well_at(&self, request: &Request) -> Option<Instant> {
        let proves = request.is_watch() && (request.heard || self.expects_bookmarks);
        request.opened.filter(|_| proves).map(|at| later(at, self.config.healthy_after))
    }

    /// If the open watch has lived long enough, former failures are over.
    pub(super) fn settle(&mut self, now: Instant) {
        if let State::Active(request) = &self.state
            && self.well_at(request).is_some_and(|at| at <= now)
        {
            self.settled();
        }
    }

    pub(super) fn settled(&mut self) {
        self.failures = 0;
        self.churn = 0;
        self.broken = 0;
        self.rejected = 0;
        self.behind_since = None;
    }
}
