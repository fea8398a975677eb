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

/// The state of a way of several parts, and for how long it has been as bad for those who use it: what is silent hides
/// everything behind it; otherwise each change of a part may have been an opportunity.
pub(super) fn state_of(lines: &[Line]) -> (State, Duration) {
    let parts: Vec<_> = lines.iter().map(Line::get).collect();
    let worst = parts.iter().map(|(state, _)| *state).max().unwrap_or(State::Open);
    let counts = |state: State| state == worst || worst != State::Silent;
    let since = parts.iter().filter(|(state, _)| counts(*state)).map(|(_, at)| at.elapsed()).min();
    (worst, since.unwrap_or_default())
}
