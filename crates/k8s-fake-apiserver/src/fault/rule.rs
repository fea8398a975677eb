//! A rule in the making, and the handles that it leaves.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::Notify;

use super::Faults;
use super::plan::{Break, Edit, Step};
use crate::matcher::{RequestFacts, RequestMatcher};
use crate::status::Status;

/// One rule as the server keeps it.
pub(crate) struct Rule {
    matcher: RequestMatcher,
    skip: u64,
    times: u64,
    after: u64,
    seen: AtomicU64,
    action: Action,
}

pub(crate) enum Action {
    Status(Status),
    Body(&'static str, Bytes),
    Gone,
    DropConnection,
    NoAnswer,
    Delay(Duration),
    Hold(Hold),
    Step(Step),
    Edit(Edit),
    EditBody(Edit),
    Chunk(usize),
    Cut(u64, Break),
    Replay(u64),
}

impl Rule {
    pub(crate) fn action(&self) -> &Action {
        &self.action
    }

    pub(crate) fn after(&self) -> u64 {
        self.after
    }

    /// Whether the rule hits the request, which counts either way if the matcher fits.
    pub(crate) fn matches(&self, request: &RequestFacts<'_>) -> bool {
        if self.is_spent() || !self.matcher.matches(request) {
            return false;
        }
        self.seen.fetch_add(1, Ordering::SeqCst) >= self.skip
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.seen.load(Ordering::SeqCst) >= self.skip.saturating_add(self.times)
    }

    fn hits(&self) -> u64 {
        self.seen.load(Ordering::SeqCst).saturating_sub(self.skip)
    }

    pub(crate) fn release(&self) {
        if let Action::Hold(hold) = &self.action {
            hold.release();
        }
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("on", &self.matcher).field("hits", &self.hits()).finish_non_exhaustive()
    }
}

/// A rule in the making: narrow it down, then name its action, which makes it stand.
///
/// It hits one request unless told otherwise by [`times`](Self::times) or [`always`](Self::always).
#[derive(Debug)]
#[must_use = "a rule stands only when its action is named"]
pub struct FaultRule {
    faults: Faults,
    matcher: RequestMatcher,
    skip: u64,
    times: Option<u64>,
    after: u64,
}

impl FaultRule {
    pub(crate) fn new(faults: Faults, matcher: RequestMatcher) -> Self {
        Self { faults, matcher, skip: 0, times: None, after: 0 }
    }

    /// Lets the first `requests` that match pass.
    pub fn skip(mut self, requests: u64) -> Self {
        self.skip = requests;
        self
    }

    /// Hits only the `n`th request that matches, counted from 1.
    pub fn nth(mut self, n: u64) -> Self {
        self.skip = n.saturating_sub(1);
        self.times = Some(1);
        self
    }

    /// Hits this many requests.
    pub fn times(mut self, requests: u64) -> Self {
        self.times = Some(requests);
        self
    }

    /// Hits every request until the rule is cleared.
    pub fn always(mut self) -> Self {
        self.times = Some(u64::MAX);
        self
    }

    /// For actions inside a body: lets this many lines of a watch (bookmarks included), or items of a list, pass first.
    pub fn after(mut self, lines: u64) -> Self {
        self.after = lines;
        self
    }

    /// Answers with this status instead of doing what was asked. A bare code gives the usual reason and text.
    pub fn status(self, status: impl Into<Status>) -> FaultHandle {
        let status = status.into();
        self.act(Action::Status(status))
    }

    /// Says that the version is too old: a watch gets an ERROR event of code 410 (after [`after`](Self::after) lines)
    /// and ends, as from the watch cache of a real server; any other request gets HTTP 410.
    pub fn gone(self) -> FaultHandle {
        self.act(Action::Gone)
    }

    /// Answers HTTP 410 to any request, watches too.
    pub fn gone_http(self) -> FaultHandle {
        self.status(Status::expired("The provided resource version is too old."))
    }

    /// Answers 200 with this body, whatever was asked.
    pub fn body(self, content_type: &'static str, body: impl Into<Vec<u8>>) -> FaultHandle {
        let body = body.into().into();
        self.act(Action::Body(content_type, body))
    }

    /// Waits before the request is looked at. Several delays add up.
    pub fn delay(self, time: Duration) -> FaultHandle {
        self.act(Action::Delay(time))
    }

    /// Keeps requests waiting until [`Hold::release`]. What is asked is done only then.
    ///
    /// Unlike other actions it is meant for every request that matches, unless a number was given.
    pub fn hold(mut self) -> Hold {
        let hold = Hold::default();
        self.times = self.times.or(Some(u64::MAX));
        let _ = self.act(Action::Hold(hold.clone()));
        hold
    }

    /// Breaks the connection before any answer.
    pub fn drop_connection(self) -> FaultHandle {
        self.act(Action::DropConnection)
    }

    /// Never answers, not even with headers.
    pub fn no_answer(self) -> FaultHandle {
        self.act(Action::NoAnswer)
    }

    /// Sends headers and [`after`](Self::after) lines, then nothing more, while the connection stays open.
    pub fn hang(self) -> FaultHandle {
        self.act(Action::Step(Step::Break(Break::Hang)))
    }

    /// Ends the body cleanly after [`after`](Self::after) lines.
    pub fn end(self) -> FaultHandle {
        self.act(Action::Step(Step::Break(Break::End)))
    }

    /// Breaks the connection after [`after`](Self::after) lines.
    pub fn reset(self) -> FaultHandle {
        self.act(Action::Step(Step::Break(Break::Reset)))
    }

    /// Sends an ERROR event after [`after`](Self::after) lines and ends the watch. The connection of a list breaks.
    pub fn error(self, status: impl Into<Status>) -> FaultHandle {
        let status = status.into();
        self.act(Action::Step(Step::Error(status)))
    }

    /// Sends this text, as it is, after [`after`](Self::after) lines, and goes on. A newline is added when missing.
    pub fn line(self, line: impl Into<Vec<u8>>) -> FaultHandle {
        let mut line: Vec<u8> = line.into();
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        self.act(Action::Step(Step::Line(line.into())))
    }

    /// Pauses for this long after [`after`](Self::after) lines.
    pub fn pause(self, time: Duration) -> FaultHandle {
        self.act(Action::Step(Step::Pause(time)))
    }

    /// Changes every object of a list or a watch on its way out; what is stored stays.
    pub fn edit(self, edit: impl Fn(&mut Value) + Send + Sync + 'static) -> FaultHandle {
        self.act(Action::Edit(Arc::new(edit)))
    }

    /// Changes the whole body of an answer, which is collected for it: not for watches.
    pub fn edit_body(self, edit: impl Fn(&mut Value) + Send + Sync + 'static) -> FaultHandle {
        self.act(Action::EditBody(Arc::new(edit)))
    }

    /// Cuts the body into chunks of this many bytes, wherever that falls in lines and characters.
    pub fn chunks(self, bytes: usize) -> FaultHandle {
        self.act(Action::Chunk(bytes))
    }

    /// Breaks the connection after this many bytes of the body.
    pub fn reset_at_byte(self, bytes: u64) -> FaultHandle {
        self.act(Action::Cut(bytes, Break::Reset))
    }

    /// Ends the body after this many bytes as if it were complete.
    pub fn end_at_byte(self, bytes: u64) -> FaultHandle {
        self.act(Action::Cut(bytes, Break::End))
    }

    /// Falls silent after this many bytes of the body.
    pub fn hang_at_byte(self, bytes: u64) -> FaultHandle {
        self.act(Action::Cut(bytes, Break::Hang))
    }

    /// Lets a watch that resumes begin this many revisions before the one that was asked for, as through a gateway that
    /// follows the server from a place of its own: what the client has seen comes again, in its old order. Not before
    /// the kept history. Other requests are answered as ever.
    pub fn replay(self, revisions: u64) -> FaultHandle {
        self.act(Action::Replay(revisions))
    }

    fn act(self, action: Action) -> FaultHandle {
        let rule = Arc::new(Rule {
            matcher: self.matcher,
            skip: self.skip,
            times: self.times.unwrap_or(1),
            after: self.after,
            seen: AtomicU64::new(0),
            action,
        });
        self.faults.add(rule.clone());
        FaultHandle { faults: self.faults, rule }
    }
}

/// A rule that stands. Dropping the handle leaves it standing.
#[derive(Debug, Clone)]
pub struct FaultHandle {
    faults: Faults,
    rule: Arc<Rule>,
}

impl FaultHandle {
    /// How many requests the rule has hit.
    pub fn hits(&self) -> u64 {
        self.rule.hits()
    }

    /// Takes the rule away.
    pub fn clear(&self) {
        self.faults.remove(&self.rule);
    }
}

/// Requests that wait for a word from the test.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use k8s_fake_apiserver::{FakeApiServer, Get};
/// let server = FakeApiServer::builder().start().await?;
/// let hold = server.faults().on(Get::of("v1/nodes")).hold();
/// let client = server.client();
/// let get = http::Request::get("/api/v1/nodes/n").body(vec![])?;
/// let request = tokio::spawn(async move { client.request_text(get).await });
/// hold.wait_for(1).await;
/// hold.release();
/// assert!(request.await?.is_err());      // not found, but only now
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Hold {
    inner: Arc<HoldInner>,
}

#[derive(Debug, Default)]
struct HoldInner {
    waiting: AtomicUsize,
    released: AtomicBool,
    changed: Notify,
}

impl Hold {
    /// How many requests are waiting.
    pub fn waiting(&self) -> usize {
        self.inner.waiting.load(Ordering::SeqCst)
    }

    /// Waits until at least `requests` are waiting.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn wait_for(&self, requests: usize) {
        self.until(|| self.waiting() >= requests).await;
    }

    /// Lets the waiting requests go on, all at once, and later ones pass.
    pub fn release(&self) {
        self.inner.released.store(true, Ordering::SeqCst);
        self.inner.changed.notify_waiters();
    }

    pub(crate) async fn pass(&self) {
        self.inner.waiting.fetch_add(1, Ordering::SeqCst);
        // A client that gives up is not waiting any more.
        let left = Left(&self.inner);
        self.inner.changed.notify_waiters();
        self.until(|| self.inner.released.load(Ordering::SeqCst)).await;
        drop(left);
    }

    async fn until(&self, done: impl Fn() -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.inner.changed.notified());
            changed.as_mut().enable();
            if done() {
                return;
            }
            changed.await;
        }
    }
}

struct Left<'a>(&'a HoldInner);

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
