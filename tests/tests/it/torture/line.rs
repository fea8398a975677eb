//! Whether a watcher can hear the server, as the one knows who disturbs it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

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
