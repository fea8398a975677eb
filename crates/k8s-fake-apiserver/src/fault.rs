//! Scripted faults: which requests they hit, and what happens to these.

mod plan;
mod rule;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

pub(crate) use plan::{Break, Interrupt, StreamPlan, shape};
pub(crate) use rule::{Action, Rule};
pub use rule::{FaultHandle, FaultRule, Hold};

use crate::matcher::{RequestFacts, RequestMatcher};
use crate::status::Status;
use crate::verb::Verb;

/// The scripted faults of a server; a cheap handle.
///
/// A rule is begun by [`on`](Faults::on) and stands from the moment its action is named. A request is compared with all
/// rules in the order in which they were made: rules that delay or change an answer add up, and the first one that
/// replaces the answer ends the search (later rules then do not count the request).
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use k8s_fake_apiserver::{FakeApiServer, List, Status, Watch};
/// let server = FakeApiServer::builder().start().await?;
/// server.faults().on(Watch::of("v1/pods")).after(3).gone();          // 410 in mid-stream, once
/// server.faults().on(List::of("v1/pods")).skip(1).times(2).status(Status::too_many_requests(7));
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct Faults {
    rules: Arc<Mutex<Vec<Arc<Rule>>>>,
}

impl Faults {
    /// Begins a rule for these requests. It has no effect until its action is named.
    #[must_use = "a rule stands only when its action is named"]
    pub fn on(&self, requests: impl Into<RequestMatcher>) -> FaultRule {
        FaultRule::new(self.clone(), requests.into())
    }

    /// Takes all rules away. Requests that they hold or delay already stay as they are, but held ones are let go.
    pub fn clear(&self) {
        for rule in self.rules.lock().drain(..) {
            rule.release();
        }
    }

    pub(crate) fn add(&self, rule: Arc<Rule>) {
        self.rules.lock().push(rule);
    }

    pub(crate) fn remove(&self, rule: &Arc<Rule>) {
        self.rules.lock().retain(|r| !Arc::ptr_eq(r, rule));
    }

    /// What is scripted for this request. Counts it.
    pub(crate) fn script(&self, request: &RequestFacts<'_>) -> Script {
        let mut script = Script::default();
        let mut rules = self.rules.lock();
        for rule in rules.iter() {
            if !rule.matches(request) {
                continue;
            }
            script.add(rule, request.verb);
            if script.replaced.is_some() {
                break;
            }
        }
        rules.retain(|r| !r.is_spent());
        script
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rules.lock().iter()).finish()
    }
}

/// Everything that is to happen to one request.
#[derive(Default)]
pub(crate) struct Script {
    pub(crate) delay: Duration,
    pub(crate) holds: Vec<Hold>,
    pub(crate) replaced: Option<Replaced>,
    pub(crate) plan: StreamPlan,
    pub(crate) edit_body: Vec<plan::Edit>,
    pub(crate) chunk: Option<usize>,
    pub(crate) cut: Option<(u64, Break)>,
}

/// What stands in for the answer.
pub(crate) enum Replaced {
    Status(Status),
    Body(&'static str, Bytes),
    Dropped,
    Silence,
}

impl Script {
    fn add(&mut self, rule: &Arc<Rule>, verb: Verb) {
        match rule.action() {
            Action::Status(status) => self.replaced = Some(Replaced::Status(status.clone())),
            Action::Body(content_type, body) => self.replaced = Some(Replaced::Body(content_type, body.clone())),
            Action::DropConnection => self.replaced = Some(Replaced::Dropped),
            Action::NoAnswer => self.replaced = Some(Replaced::Silence),
            Action::Gone if verb != Verb::Watch => {
                self.replaced =
                    Some(Replaced::Status(Status::expired("The resourceVersion for the provided list is too old.")));
            }
            Action::Gone => {
                self.plan.add(rule.after(), plan::Step::Error(Status::expired("too old resource version: 1 (2)")))
            }
            Action::Delay(delay) => self.delay += *delay,
            Action::Hold(hold) => self.holds.push(hold.clone()),
            Action::Step(step) => self.plan.add(rule.after(), step.clone()),
            Action::Edit(edit) => self.plan.add_edit(edit.clone()),
            Action::EditBody(edit) => self.edit_body.push(edit.clone()),
            Action::Chunk(size) => self.chunk = Some(*size),
            Action::Cut(at, how) => self.cut = Some((*at, *how)),
            Action::Replay(revisions) => self.plan.replay(*revisions),
        }
    }
}
