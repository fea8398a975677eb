//! Whether a watcher can hear the server, as the one knows who disturbs it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use e2e::{Proxy, Target};

/// What happens on the way to the server, or to the server itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// Bytes come through, perhaps few.
    Open,
    /// Connections break and are refused.
    Broken,
    /// Connections stay open, nothing comes.
    Silent,
}

/// A part of the way; clones are the same part.
#[derive(Debug, Clone)]
pub(super) struct Line(Arc<Mutex<(State, Instant)>>);

impl Line {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new((State::Open, Instant::now()))))
    }

    pub(super) fn set(&self, state: State) {
        if let Ok(mut line) = self.0.lock() {
            *line = (state, Instant::now());
        }
    }

    fn get(&self) -> (State, Instant) {
        self.0.lock().map_or((State::Open, Instant::now()), |line| *line)
    }

    pub(super) fn is_open(&self) -> bool {
        self.get().0 == State::Open
    }
}

/// The worst state of all parts of a way, and for how long nothing has changed on it.
pub(super) fn state_of(lines: &[Line]) -> (State, Duration) {
    let states = lines.iter().map(Line::get);
    states.fold((State::Open, Duration::MAX), |(worst, since), (state, at)| (worst.max(state), since.min(at.elapsed())))
}

/// A proxy, and what it does at the moment.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) proxy: Proxy,
    pub(super) line: Line,
}

impl Network {
    pub(super) async fn before(target: &Target) -> Result<Self> {
        Ok(Self { proxy: Proxy::open(target).await?, line: Line::new() })
    }

    pub(super) fn forward(&self) {
        self.line.set(State::Open);
        self.proxy.forward();
    }

    pub(super) fn cut(&self) {
        self.proxy.cut();
        self.line.set(State::Broken);
    }

    pub(super) fn hang(&self) {
        self.proxy.hang();
        self.line.set(State::Silent);
    }
}

/// The first complaint of those who look on.
#[derive(Debug, Clone, Default)]
pub(super) struct Complaints(Arc<Mutex<Option<String>>>);

impl Complaints {
    pub(super) fn add(&self, complaint: impl FnOnce() -> String) {
        if let Ok(mut first) = self.0.lock() {
            first.get_or_insert_with(complaint);
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let first = self.0.lock().map_err(|_| anyhow!("an onlooker panicked"))?;
        first.clone().map_or(Ok(()), |complaint| Err(anyhow!(complaint)))
    }
}
