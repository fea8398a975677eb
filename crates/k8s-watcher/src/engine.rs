//! The list/watch machine: [`Engine`], pure, one per scope (a namespace, or all).
//!
//! `(state, input, now) → (state, actions)`. It knows HTTP statuses, resource versions, backoff
//! and deadlines, and nothing of objects, sockets or tasks, so that paused time and scripted
//! servers test all of it. It decides what is asked and when, what may reach the store, and what
//! counts as a failure; the driver carries out its [`Action`]s and feeds it with [`Input`]s.
//!
//! # What it does
//!
//! ```text
//!            ┌──────────────── full state needed ────────────────┐
//!            v                                                   │ 410, versions backwards, by hand
//! Start → initial stream ──(refused, ignored)──> pages ──> FinishRelist → watch ─┬─ end, failure ─> watch
//!            └───────────── marked bookmark ──────────────────────^              └─ silent twice ─> probe
//! ```
//!
//! - **Where a watch resumes** is a version that came from the server: a finished list's, an
//!   event's, a bookmark's. It moves forward only; a version *below* it means that history was
//!   set back (a restore from a backup), which is reported and answered by a list from scratch.
//!   So does a list that is not below it and yet shows an object in a state from before the one
//!   that is kept: versions were raised with the restore, as etcd's `--bump-revision` does. The
//!   driver finds that out ([`Input::SetBack`]).
//!   An event *at* the resume version is let through without moving it: applying an object
//!   twice changes nothing, and a server whose deletes carry the object's last version means it.
//! - **A full list** is asked "not older than" anything seen before, so that a lagging replica
//!   cannot take the store back; only a list from scratch forgets what was seen, or one at whose
//!   end it is clear that history was set back. Pages without a version are consistent reads. "From
//!   any cache" (version 0) is never asked.
//! - **Silence** can hide that a server was set back, since a real one filters what lies before
//!   the version asked for. After two watches in a row without event or bookmark, one small list
//!   (a probe; its object is ignored) compares versions, a minute after the last comparison at the
//!   earliest. It can also mean that the server sends no bookmarks, or that something on the way
//!   keeps back what it says: from a watch that went silent on, the server is asked to end watches before that would look like death, which also
//!   brings out what was kept back. One that does not even end is no way to hear of changes: the
//!   full state is read instead.
//!
//! # Pace
//!
//! Failures in a row wait `initial × factor^n`, at most `max`, less up to a quarter of jitter; but a watch that was
//! silent for its whole limit waits no more than the first of these, counted from its beginning.
//! Only a finished list, a version that moves, or a watch that lived for a while begins a new row.
//! Full lists have a second row of their own: the first one after a healthy watch starts at once,
//! further ones wait longer each, also if each of them succeeds. Watches that end soon after
//! they delivered something start at least a first step apart. Retry-After is a minimum.
//!
//! # Contract with the driver
//!
//! - Inputs are given one at a time, and the actions of one are carried out before the next.
//!   Never more than one request is outstanding; [`Action::List`] and [`Action::Watch`] start
//!   one, and only the outstanding one may be fed. It is over after [`Input::Page`], a refusing
//!   [`Input::Response`], [`Input::StreamEnd`], [`Input::TransportError`] or
//!   [`Action::CancelRequest`]; then nothing that is still buffered of it may be fed.
//! - Every arrival of body bytes calls [`Engine::touch`]; [`Engine::deadline`] is asked again
//!   after each input, and [`Input::Tick`] given when it has come. Bytes that are there already
//!   go first, or a slow reader takes its own slowness for silence.
//! - Each page and event, decodable or not, is answered by exactly one [`Action::Apply`] or [`Action::Ignore`].

mod backoff;
mod config;
mod episode;
mod failing;
mod failure;
mod listing;
mod message;
mod request;
pub(crate) mod version;
mod watching;

#[cfg(test)]
mod tests;

use k8s_types::ApiStatus;
use tokio::time::Instant;

pub(crate) use self::backoff::Backoff;
use self::backoff::later;
pub(crate) use self::config::{EngineConfig, ListMode};
use self::episode::Episode;
pub(crate) use self::failure::{Broken, classify};
use self::failure::{Origin, Problem};
use self::listing::Relist;
pub(crate) use self::message::{Action, EventKind, Input, ListQuery, Report, WatchQuery};
use self::request::{Next, Request, RequestKind, State};
use crate::status::{ErrorClass, Phase, Verb};

/// The list/watch machine of one scope. See the [module docs](self).
#[derive(Debug)]
pub(crate) struct Engine {
    config: EngineConfig,
    backoff: Backoff,
    state: State,
    /// From where a watch may resume.
    resume: Option<String>,
    /// The full list that is needed or under way.
    relist: Option<Relist>,
    streaming_refused: bool,
    /// The last list had to give up on streams: the next one tries once.
    distrust_streams: bool,
    /// Failures in a row.
    failures: u32,
    /// Full lists in a row without a healthy watch between them.
    churn: u32,
    /// Watches in a row that opened and broke without moving the version.
    broken: u32,
    /// Watches in a row refused as invalid.
    rejected: u32,
    /// Watches in a row that opened and said nothing.
    silent: u32,
    /// Silence is strange: no watch has gone without a bookmark for too long since the last one that was not a watch's
    /// last word.
    expects_bookmarks: bool,
    /// Since when the server says that it is behind.
    behind_since: Option<Instant>,
    episode: Episode,
    /// When the last full list was begun.
    listed_at: Option<Instant>,
    /// When a list or a probe last told the server's version.
    compared_at: Option<Instant>,
    progress: Counters,
}

/// Counters for the status, besides what the state itself says.
#[derive(Clone, Debug, Default, PartialEq)]
struct Counters {
    synced: bool,
    last_contact: Option<Instant>,
    current_at: Option<Instant>,
    relists: u64,
    restarts: u64,
    /// The next watch continues a former one.
    reopening: bool,
}

/// How far the engine is: its share of [`Status`](crate::status::Status).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Progress {
    pub(crate) phase: Phase,
    /// When the server was last heard.
    pub(crate) last_contact: Option<Instant>,
    /// When the store was last known to be the server's state: a full list was complete, an open watch said something,
    /// or a healthy one ended in good order.
    pub(crate) current_at: Option<Instant>,
    /// Full lists after the initial one.
    pub(crate) relists: u64,
    /// Watches that continued a former one.
    pub(crate) restarts: u64,
}

impl Engine {
    pub(crate) fn new(config: EngineConfig) -> Self {
        let backoff = Backoff::new(config.backoff_initial, config.backoff_max, config.backoff_factor, config.seed);
        Self {
            backoff,
            state: State::Idle,
            resume: None,
            relist: None,
            streaming_refused: config.streaming_refused,
            distrust_streams: false,
            failures: 0,
            churn: 0,
            broken: 0,
            rejected: 0,
            silent: 0,
            expects_bookmarks: true,
            behind_since: None,
            episode: Episode::default(),
            listed_at: None,
            compared_at: None,
            progress: Counters::default(),
            config,
        }
    }

    /// Takes one input and appends what follows from it to `out`, which the caller carries out in
    /// order. Inputs that make no sense in the present state are ignored. O(1).
    pub(crate) fn step(&mut self, input: Input<'_>, now: Instant, out: &mut Vec<Action>) {
        match input {
            Input::Start => self.on_start(now, out),
            Input::Relist => self.on_relist(now, out),
            Input::Response { status, retry_after, failure } => {
                self.on_head(status, retry_after, failure, now, out);
            }
            Input::Page { resource_version, continue_token, items } => {
                self.heard(now);
                self.on_page(resource_version, continue_token, items, now, out);
            }
            Input::Event { kind, resource_version } => {
                self.heard(now);
                self.on_event(kind, resource_version, now, out);
            }
            Input::Bookmark { resource_version, initial_events_end } => {
                self.heard(now);
                self.on_bookmark(resource_version, initial_events_end, now, out);
            }
            Input::Error(failure) => {
                self.heard(now);
                if self.is_open() {
                    out.push(Action::CancelRequest);
                    self.on_problem(Problem::from_event(failure), now, out);
                }
            }
            Input::Undecodable { resource_version } => {
                self.heard(now);
                self.on_undecodable(resource_version.unwrap_or_default(), now, out);
            }
            Input::SetBack => self.on_set_back(now, out),
            Input::StreamEnd => self.on_stream_end(now, out),
            Input::TransportError { broken, message } => {
                self.on_problem(Problem::from_transport(broken, message), now, out);
            }
            Input::Tick => self.on_tick(now, out),
        }
    }

    /// Bytes of the outstanding request's body have come.
    pub(crate) fn touch(&mut self, now: Instant) {
        self.heard(now);
    }

    /// When [`Input::Tick`] is due, unless something else comes first. Ask again after each input
    /// and each [`touch`](Self::touch).
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Idle => None,
            State::Waiting { until, .. } => Some(*until),
            State::Active(request) => {
                let limit = self.silence_deadline(request);
                let other = match request.kind {
                    RequestKind::Stream => request.mark_by,
                    RequestKind::Watch => self.healthy_at(request),
                    RequestKind::Page | RequestKind::Probe => None,
                };
                Some(other.map_or(limit, |at| at.min(limit)))
            }
        }
    }

    /// The version up to which the store is current once all actions so far are carried out;
    /// none before the first list is complete.
    pub(crate) fn resume_version(&self) -> Option<&str> {
        self.resume.as_deref()
    }

    /// Another engine of the same client has learned that the server has no streaming lists.
    pub(crate) fn refuse_streaming(&mut self) {
        self.streaming_refused = true;
    }

    /// What the engine is at, for the status.
    pub(crate) fn progress(&self) -> Progress {
        Progress {
            phase: self.phase(),
            last_contact: self.progress.last_contact,
            current_at: self.progress.current_at,
            relists: self.progress.relists,
            restarts: self.progress.restarts,
        }
    }

    fn phase(&self) -> Phase {
        let attempt = self.failures.max(self.churn.saturating_sub(1));
        match &self.state {
            State::Idle => return Phase::Starting,
            State::Waiting { until, .. } if attempt > 0 => return Phase::BackingOff { until: *until, attempt },
            // Asked again, which does not mean that it works again.
            State::Active(request) if attempt > 0 && !request.is_open() || self.failures > 0 && request.is_watch() => {
                return Phase::BackingOff { until: request.sent, attempt };
            }
            State::Waiting { .. } | State::Active(_) => {}
        }
        match &self.relist {
            Some(relist) => relist.phase(),
            None => Phase::Watching,
        }
    }
}
