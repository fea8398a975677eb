//! From the first failure until things work again: what is said once, and how often it recurred.

use tokio::time::Instant;

use super::failure::Problem;
use super::message::{Action, Report};
use crate::status::{ErrorClass, Verb};

/// Kinds of failures remembered as said; more in one episode are said again.
const REMEMBERED: usize = 16;

/// The failures since things last worked.
#[derive(Debug, Default)]
pub(super) struct Episode {
    said: Vec<(Verb, ErrorClass, Option<u16>)>,
    failures: u64,
}

impl Episode {
    pub(super) fn is_open(&self) -> bool {
        self.failures > 0
    }

    pub(super) fn report(&mut self, verb: Verb, problem: &Problem, retry_at: Instant, out: &mut Vec<Action>) {
        let kind = (verb, problem.class, problem.code);
        let first = !self.said.contains(&kind);
        if first && self.said.len() < REMEMBERED {
            self.said.push(kind);
        }
        self.failures += 1;
        out.push(Action::Report(Report {
            verb,
            class: problem.class,
            code: problem.code,
            reason: problem.reason.clone(),
            message: problem.message.clone(),
            first,
            failures: self.failures,
            retry_at,
        }));
    }

    pub(super) fn recover(&mut self, out: &mut Vec<Action>) {
        if self.failures > 0 {
            out.push(Action::Recovered { failures: self.failures });
            self.failures = 0;
            self.said.clear();
        }
    }
}
