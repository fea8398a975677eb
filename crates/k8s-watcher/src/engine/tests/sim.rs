//! A driver without I/O, and the vocabulary of scripts.

use std::collections::VecDeque;
use std::time::Duration;

use super::super::version::is_before;
use super::super::*;

/// What a server sends, in the order of a script.
#[derive(Clone, Debug)]
pub(super) enum Say {
    /// Nothing for a while.
    Wait(Duration),
    /// Nothing until two seconds before the end that was asked for.
    WaitForTheEnd,
    Ok,
    Refuse(u16, Option<u64>, Option<ApiStatus>),
    Page(String, Option<&'static str>, usize),
    Event(EventKind, String),
    Bookmark(String),
    Mark(String),
    Error(ApiStatus),
    Bad(Option<String>),
    Bytes,
    End,
    Break(Broken),
}

pub(super) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn page(version: u64, items: usize) -> Vec<Say> {
    vec![Say::Ok, Say::Page(version.to_string(), None, items)]
}

pub(super) fn part(version: u64, items: usize, token: &'static str) -> Vec<Say> {
    vec![Say::Ok, Say::Page(version.to_string(), Some(token), items)]
}

pub(super) fn refuse(status: u16) -> Vec<Say> {
    vec![Say::Refuse(status, None, None)]
}

pub(super) fn failure(code: u16, reason: &str) -> ApiStatus {
    ApiStatus { code, reason: reason.into(), message: format!("message of {code}"), ..ApiStatus::default() }
}

pub(super) fn too_large() -> Vec<Say> {
    let failure = ApiStatus {
        causes: vec!["ResourceVersionTooLarge".into()],
        retry_after: Some(secs(1)),
        ..failure(504, "Timeout")
    };
    vec![Say::Refuse(504, Some(1), Some(failure))]
}

/// A watch from the notation of the cases: `+11`, `~12`, `-13`, `BM@20`, `END@20` (the mark),
/// `ERR410`, `EOF`, `RESET`, `CUT`, `BAD`, `BAD@12`, `10s` (silence), and nothing for a hang.
pub(super) fn watch(script: &str) -> Vec<Say> {
    let mut says = vec![Say::Ok];
    for word in script.split_whitespace() {
        let event = |kind, rest: &str| Say::Event(kind, rest.to_owned());
        says.push(if let Some(version) = word.strip_prefix('+') {
            event(EventKind::Added, version)
        } else if let Some(version) = word.strip_prefix('~') {
            event(EventKind::Modified, version)
        } else if let Some(version) = word.strip_prefix('-') {
            event(EventKind::Deleted, version)
        } else if let Some(version) = word.strip_prefix("BM@") {
            Say::Bookmark(version.to_owned())
        } else if let Some(version) = word.strip_prefix("END@") {
            Say::Mark(version.to_owned())
        } else if let Some(version) = word.strip_prefix("BAD@") {
            Say::Bad(Some(version.to_owned()))
        } else if let Some(code) = word.strip_prefix("ERR") {
            Say::Error(failure(code.parse().expect("a code"), ""))
        } else if let Some(seconds) = word.strip_suffix('s') {
            Say::Wait(secs(seconds.parse().expect("seconds")))
        } else {
            match word {
                "EOF" => Say::End,
                "RESET" => Say::Break(Broken::Body),
                "CUT" => Say::Break(Broken::Truncated),
                "BAD" => Say::Bad(None),
                "BYTES" => Say::Bytes,
                _ => panic!("what is {word}?"),
            }
        });
    }
    says
}

/// A request in short: `STREAM`, `STREAM>=10`, `WATCH 10`, `LIST`, `LIST>=10`, `LIST c=t`,
/// `PROBE`; a limit only if it is not 500.
fn short(action: &Action) -> Option<String> {
    match action {
        Action::Watch(WatchQuery::Initial { not_older_than, .. }) => Some(match not_older_than {
            Some(version) => format!("STREAM>={version}"),
            None => "STREAM".to_owned(),
        }),
        Action::Watch(WatchQuery::Resume { resource_version, .. }) => Some(format!("WATCH {resource_version}")),
        Action::List(query) if query.limit == Some(1) => Some("PROBE".to_owned()),
        Action::List(query) => {
            let mut text = "LIST".to_owned();
            if let Some(version) = &query.not_older_than {
                text += &format!(">={version}");
            }
            if let Some(token) = &query.continue_token {
                text += &format!(" c={token}");
            }
            match query.limit {
                Some(500) => {}
                Some(limit) => text += &format!(" limit={limit}"),
                None => text += " unlimited",
            }
            Some(text)
        }
        _ => None,
    }
}

/// For how long a watch was asked to be kept open.
fn lasts(action: &Action) -> Duration {
    match action {
        Action::Watch(WatchQuery::Initial { timeout_seconds, .. } | WatchQuery::Resume { timeout_seconds, .. }) => {
            secs(*timeout_seconds)
        }
        _ => Duration::ZERO,
    }
}

type Server<'a> = Box<dyn FnMut(&str, Duration) -> Vec<Say> + 'a>;

pub(super) struct Sim<'a> {
    pub(super) engine: Engine,
    pub(super) start: Instant,
    pub(super) now: Instant,
    server: Server<'a>,
    /// Whether a request is outstanding, and what will come of it.
    outstanding: bool,
    answers: VecDeque<(Instant, Say)>,
    begun: Option<bool>,
    reported_backwards: bool,
    resume: Option<String>,
    current_at: Option<Instant>,
    pub(super) requests: Vec<(Duration, String)>,
    pub(super) actions: Vec<(Duration, Action)>,
    pub(super) inputs: usize,
}

impl<'a> Sim<'a> {
    pub(super) fn new(config: EngineConfig, server: impl FnMut(&str, Duration) -> Vec<Say> + 'a) -> Self {
        let start = Instant::now();
        Self {
            engine: Engine::new(config),
            start,
            now: start,
            server: Box::new(server),
            outstanding: false,
            answers: VecDeque::new(),
            begun: None,
            reported_backwards: false,
            resume: None,
            current_at: None,
            requests: Vec::new(),
            actions: Vec::new(),
            inputs: 0,
        }
    }

    /// A server that plays `script`, one answer a request, and then hangs.
    pub(super) fn scripted(config: EngineConfig, script: Vec<Vec<Say>>) -> Self {
        let mut script = VecDeque::from(script);
        Self::new(config, move |_, _| script.pop_front().unwrap_or_default())
    }

    /// Plays from the start, or on, until `end` (since the start).
    pub(super) fn run(&mut self, end: Duration) -> &mut Self {
        if self.inputs == 0 {
            self.feed(Input::Start);
        }
        let end = self.start + end;
        loop {
            let answer = self.answers.front().map(|(at, _)| *at);
            let tick = self.engine.deadline();
            if let Some(at) = answer.filter(|&at| at <= end && tick.is_none_or(|tick| at <= tick)) {
                self.now = self.now.max(at);
                if let Some((_, say)) = self.answers.pop_front() {
                    self.say(say);
                }
            } else if let Some(at) = tick.filter(|&at| at <= end) {
                assert!(self.outstanding || self.answers.is_empty());
                self.now = self.now.max(at);
                self.feed(Input::Tick);
            } else {
                self.now = end;
                return self;
            }
            assert!(self.inputs < 2_000_000, "a hot loop");
        }
    }

    fn say(&mut self, say: Say) {
        match say {
            Say::Wait(_) | Say::WaitForTheEnd => {}
            Say::Ok => self.feed(Input::Response { status: 200, retry_after: None, failure: None }),
            Say::Refuse(status, seconds, failure) => {
                self.over();
                self.feed(Input::Response { status, retry_after: seconds.map(secs), failure: failure.as_ref() });
            }
            Say::Page(version, token, items) => {
                self.over();
                self.feed(Input::Page { resource_version: &version, continue_token: token, items });
            }
            Say::Event(kind, version) => self.feed(Input::Event { kind, resource_version: &version }),
            Say::Bookmark(version) => {
                self.feed(Input::Bookmark { resource_version: &version, initial_events_end: false });
            }
            Say::Mark(version) => {
                self.feed(Input::Bookmark { resource_version: &version, initial_events_end: true });
            }
            Say::Error(failure) => self.feed(Input::Error(&failure)),
            Say::Bad(version) => {
                self.feed(Input::Undecodable { resource_version: version.as_deref() });
            }
            Say::Bytes => self.engine.touch(self.now),
            Say::End => {
                self.over();
                self.feed(Input::StreamEnd);
            }
            Say::Break(broken) => {
                self.over();
                self.feed(Input::TransportError { broken, message: "it broke" });
            }
        }
    }

    /// Any input, in season or not; what ends a request ends it only where there is one.
    pub(super) fn raw(&mut self, kind: u8, version: u64) {
        let version = version.to_string();
        match kind {
            0 => self.say(Say::Event(EventKind::Added, version)),
            1 => self.say(Say::Event(EventKind::Deleted, version)),
            2 => self.say(Say::Bookmark(version)),
            3 => self.say(Say::Mark(version)),
            4 => self.say(Say::Error(failure(410, ""))),
            5 => self.say(Say::Error(failure(500, ""))),
            6 => self.say(Say::Bad(Some(version))),
            7 => self.feed(if version.ends_with('7') { Input::SetBack } else { Input::Relist }),
            8 => self.feed(Input::Start),
            9 => self.feed(Input::Tick),
            _ if !self.outstanding => {}
            10 | 11 if !self.lists() => {}
            10 => self.say(Say::Page(version, None, 1)),
            11 => self.say(Say::Page(version, Some("t"), 1)),
            12 => self.say(Say::End),
            _ => self.say(Say::Break(Broken::Body)),
        }
    }

    fn lists(&self) -> bool {
        let last = self.requests.last().map(|(_, text)| text.as_str());
        last.is_some_and(|text| text.starts_with("LIST") || text == "PROBE")
    }

    fn over(&mut self) {
        self.outstanding = false;
        self.answers.clear();
    }

    pub(super) fn feed(&mut self, input: Input<'_>) {
        self.inputs += 1;
        let asks = matches!(input, Input::Page { .. } | Input::Event { .. } | Input::Undecodable { .. });
        let mut out = Vec::new();
        self.engine.step(input, self.now, &mut out);
        let verdicts = out.iter().filter(|a| matches!(a, Action::Apply | Action::Ignore)).count();
        assert_eq!(verdicts, usize::from(asks), "verdicts in {out:?}");
        for action in out {
            self.act(action);
        }
        if self.inputs > 0 {
            assert!(self.outstanding || self.engine.deadline().is_some(), "the engine is stuck");
        }
        self.check_version();
    }

    fn act(&mut self, action: Action) {
        let since = self.now - self.start;
        match &action {
            Action::List(_) | Action::Watch(_) => {
                assert!(!self.outstanding, "two requests at once");
                self.outstanding = true;
                let text = short(&action).expect("a request");
                let mut at = self.now;
                let says = (self.server)(&text, since);
                self.requests.push((since, text));
                for say in says {
                    match say {
                        Say::Wait(wait) => at += wait,
                        Say::WaitForTheEnd => at += lasts(&action).saturating_sub(secs(2)),
                        _ => {}
                    }
                    self.answers.push_back((at, say));
                }
            }
            Action::CancelRequest => {
                assert!(self.outstanding, "nothing to cancel");
                self.over();
            }
            Action::BeginRelist { from_scratch } => {
                assert_eq!(self.begun, None, "a list began in a list");
                self.begun = Some(*from_scratch);
            }
            Action::AbortRelist => assert!(self.begun.take().is_some(), "nothing to abort"),
            Action::FinishRelist { resource_version } => {
                let from_scratch = self.begun.take().expect("a list that began");
                assert_eq!(self.engine.resume_version(), Some(resource_version.as_str()));
                if from_scratch {
                    assert!(self.reported_backwards, "from scratch without a word");
                    self.reported_backwards = false;
                    self.resume = None;
                }
            }
            Action::Report(report) => {
                self.reported_backwards |= report.class == ErrorClass::Backwards;
            }
            Action::Apply | Action::Ignore | Action::Recovered { .. } | Action::NoteStreamingRefused { .. } => {}
        }
        self.actions.push((since, action));
    }

    fn check_version(&mut self) {
        let resume = self.engine.resume_version().map(str::to_owned);
        if let (Some(before), Some(after)) = (&self.resume, &resume) {
            assert!(!is_before(after, before), "the version went back from {before} to {after}");
        }
        self.resume = resume;
        let progress = self.engine.progress();
        assert!(self.current_at <= progress.current_at && progress.current_at <= Some(self.now));
        assert_eq!(progress.current_at.is_some(), self.resume.is_some(), "current from the first list on");
        self.current_at = progress.current_at;
    }

    // === what came of it ===

    pub(super) fn asked(&self) -> Vec<&str> {
        self.requests.iter().map(|(_, text)| text.as_str()).collect()
    }

    pub(super) fn times(&self) -> Vec<Duration> {
        self.requests.iter().map(|(at, _)| *at).collect()
    }

    pub(super) fn count(&self, wanted: impl Fn(&Action) -> bool) -> usize {
        self.actions.iter().filter(|(_, action)| wanted(action)).count()
    }

    pub(super) fn applied(&self) -> usize {
        self.count(|action| *action == Action::Apply)
    }

    pub(super) fn finished(&self) -> usize {
        self.count(|action| matches!(action, Action::FinishRelist { .. }))
    }

    pub(super) fn refused_streaming(&self) -> bool {
        self.count(|action| matches!(action, Action::NoteStreamingRefused { .. })) > 0
    }

    pub(super) fn reports(&self) -> Vec<&Report> {
        let report = |action| match action {
            &(_, Action::Report(ref report)) => Some(report),
            _ => None,
        };
        self.actions.iter().filter_map(report).collect()
    }

    pub(super) fn phase(&self) -> Phase {
        self.engine.progress().phase
    }

    #[track_caller]
    pub(super) fn expect_asked(&self, expected: &[&str]) {
        assert_eq!(self.asked(), expected, "\n{:#?}", self.actions);
    }
}

pub(super) fn paged() -> EngineConfig {
    EngineConfig { list_mode: ListMode::Paged, ..EngineConfig::default() }
}

pub(super) fn streaming() -> EngineConfig {
    EngineConfig::default()
}
