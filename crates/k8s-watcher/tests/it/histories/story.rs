//! What happened in a history, in words and in order, for those who ask.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A story that is written down only if somebody will read it: words cost more than what they tell of.
#[derive(Clone, Default)]
pub(crate) struct Story {
    lines: Option<Arc<Mutex<Vec<String>>>>,
    tally: Arc<Mutex<BTreeMap<&'static str, u64>>>,
}

impl Story {
    /// One that is kept.
    pub(crate) fn kept() -> Self {
        Self { lines: Some(Arc::default()), ..Self::default() }
    }

    pub(crate) fn tell(&self, what: impl FnOnce() -> String) {
        if let Some(lines) = &self.lines {
            lines.lock().expect("no panic under the lock").push(what());
        }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.lines.is_some()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.as_ref().map(|lines| lines.lock().expect("no panic under the lock").clone()).unwrap_or_default()
    }

    /// So often did something of this kind happen.
    pub(crate) fn count(&self, what: &'static str, times: u64) {
        *self.tally.lock().expect("no panic under the lock").entry(what).or_default() += times;
    }

    pub(crate) fn tally(&self) -> BTreeMap<&'static str, u64> {
        self.tally.lock().expect("no panic under the lock").clone()
    }
}
