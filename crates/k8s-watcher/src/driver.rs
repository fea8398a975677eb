//! The event loop: carries out what the engines decide, feeds them with what arrives.
//!
//! Everything is one future: requests, bodies and timers of all scopes are polled from one place, so there is one
//! owner of the store, nothing to lock, and nothing that outlives the watcher. Whatever is ready is taken in one
//! go and committed once; callbacks and readers of changes are never waited for.

mod discovery;
mod outlived;
mod relisting;
mod report;
mod scope;
mod sink;
mod skipped;

use std::sync::Arc;
use std::task::{Context, Poll};

use k8s_client::Client;
use k8s_types::Object;
use tokio::time::Instant;

pub(crate) use self::outlived::Outlived;
use self::relisting::{Older, Relisting};
use self::scope::{Arrival, Scope, broken_of};
pub(crate) use self::sink::{Later, Origin, Sink};
use self::skipped::Skipped;
use crate::control::Control;
use crate::engine::{Action, Broken, Engine, EngineConfig, EventKind, Input};
use crate::frame::{BadObject, Frame, Items, Page, decode_event};
use crate::plan::{Reading, Requests, Scopes};
use crate::status::{Failures, Phase, WatchError};

/// How many arrivals are taken before what they brought is committed.
const BATCH: usize = 512;

/// Owns the requests of a watcher and what it fills.
pub(crate) struct Driver<K> {
    client: Client,
    requests: Requests,
    engine: EngineConfig,
    wanted: Scopes,
    scopes: Vec<Scope>,
    sink: K,
    skipped: Skipped,
    last_event: Option<Instant>,
    /// Where to look first, so that a busy scope does not starve the others.
    turn: usize,
    actions: Vec<Action>,
    last_error: Option<WatchError>,
    failures: Failures,
    control: Arc<Control>,
}

impl<K: Sink> Driver<K> {
    pub(crate) fn new(client: Client, reading: Reading, sink: K, control: Arc<Control>) -> Self {
        let Reading { requests, engine, scopes } = reading;
        Self {
            client,
            requests,
            engine,
            wanted: scopes,
            scopes: vec![],
            sink,
            skipped: Skipped::default(),
            last_event: None,
            turn: 0,
            actions: vec![],
            last_error: None,
            failures: Failures::default(),
            control,
        }
    }

    /// Lists and watches until somebody wants it to stop.
    pub(crate) async fn run(mut self) {
        let control = self.control.clone();
        control.status.update(|s| {
            s.started = true;
            s.phase = Phase::Starting;
        });
        let Some(namespaces) = control.stop.run_until_cancelled(self.find_scopes()).await else { return };
        for namespace in namespaces {
            let seed = fastrand::u64(..);
            let streaming_refused = !self.client.supports_streaming();
            let engine = Engine::new(EngineConfig { seed, streaming_refused, ..self.engine.clone() });
            self.scopes.push(Scope::new(namespace, engine));
        }
        self.step_all(|| Input::Start);
        self.publish_status();
        loop {
            let commit_at = self.sink.commit_due();
            let taken = tokio::select! {
                biased;
                () = control.stop.cancelled() => break,
                () = control.relist.notified() => {
                    self.step_all(|| Input::Relist);
                    0
                }
                taken = std::future::poll_fn(|cx| self.poll_work(cx)) => taken,
                () = reached(commit_at) => 0,
            };
            if self.sink.commit_due().is_some_and(|due| due <= Instant::now()) {
                self.sink.commit();
            }
            self.publish_status();
            while self.sink.tidy() {
                tokio::task::yield_now().await;
            }
            if taken < BATCH {
                tokio::task::consume_budget().await;
            } else {
                // There is more, perhaps for long. Callbacks are due meanwhile, and they are started by this task.
                tokio::task::yield_now().await;
            }
        }
        self.sink.close();
        self.publish_status();
    }

    fn step_all(&mut self, input: impl Fn() -> Input<'static>) {
        for at in 0..self.scopes.len() {
            self.step(at, input());
        }
    }

    /// Takes what is ready in any scope; ready once there was something, with how much.
    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        let mut taken = usize::from(self.sink.poll_held(cx).is_ready());
        let mut silent = 0;
        while taken < BATCH && silent < self.scopes.len() {
            let at = self.turn % self.scopes.len();
            match self.scopes[at].poll_arrival(cx) {
                Poll::Ready(arrival) => {
                    self.arrived(at, arrival);
                    taken += 1;
                    silent = 0;
                }
                Poll::Pending => {
                    self.turn = self.turn.wrapping_add(1);
                    silent += 1;
                }
            }
        }
        self.turn = self.turn.wrapping_add(1);
        if taken > 0 { Poll::Ready(taken) } else { Poll::Pending }
    }

    fn arrived(&mut self, at: usize, arrival: Arrival) {
        match arrival {
            Arrival::Tick => self.step(at, Input::Tick),
            Arrival::Opened => self.step(at, Input::Response { status: 200, retry_after: None, failure: None }),
            Arrival::Refused { status, retry_after, failure } => {
                // Some servers cannot make metadata of their objects: the encoder leaves the rest out then.
                if status == 406 {
                    self.requests.metadata_only = false;
                }
                self.step(at, Input::Response { status, retry_after, failure: failure.as_ref() });
            }
            Arrival::Broken(broken, message) => self.step(at, Input::TransportError { broken, message: &message }),
            Arrival::StreamEnd => self.step(at, Input::StreamEnd),
            Arrival::Line(line) => self.line(at, &line),
            Arrival::PageBytes => self.page_bytes(at),
            Arrival::PageEnd(items, page) => self.page_end(at, items, page),
        }
    }

    /// An event of a watch.
    fn line(&mut self, at: usize, line: &[u8]) {
        match decode_event(self.sink.encoder(), line) {
            Frame::Object { kind, object } => {
                let content = Content::Event(kind, object.clone());
                let resource_version = object.resource_version().unwrap_or_default();
                self.step_with(at, Input::Event { kind, resource_version }, content);
            }
            Frame::Bookmark { resource_version, initial_events_end } => {
                self.step(at, Input::Bookmark { resource_version: &resource_version, initial_events_end });
            }
            Frame::Error(failure) => self.step(at, Input::Error(&failure)),
            Frame::Bad { kind, bad } => {
                let resource_version = bad.resource_version.clone();
                let input = Input::Undecodable { resource_version: resource_version.as_deref() };
                self.step_with(at, input, Content::Bad(kind, bad));
            }
            // It may have been any event: asking again from the last version is the only way not to miss it.
            Frame::Unreadable(message) => {
                self.scopes[at].cancel();
                self.step(at, Input::TransportError { broken: Broken::Malformed, message: &message });
            }
        }
    }

    /// Decodes the items that are whole. They wait for the end of the page: only then is it known whether the page
    /// is good.
    fn page_bytes(&mut self, at: usize) {
        let scope = &mut self.scopes[at];
        scope.engine.touch(Instant::now());
        if let Some((page, items)) = scope.page() {
            page.take(items, self.sink.encoder());
        }
    }

    fn page_end(&mut self, at: usize, items: Items, page: Page) {
        let envelope = match items.finish() {
            Ok(envelope) => envelope,
            Err(e) => {
                let message = e.to_string();
                return self.step(at, Input::TransportError { broken: broken_of(e), message: &message });
            }
        };
        let input = Input::Page {
            resource_version: &envelope.resource_version,
            continue_token: envelope.continue_token.as_deref(),
            items: page.len(),
        };
        self.step_with(at, input, Content::Page(page));
    }

    fn step(&mut self, at: usize, input: Input<'_>) {
        self.step_with(at, input, Content::None);
    }

    /// Gives an input to an engine and carries out what follows, in order.
    fn step_with(&mut self, at: usize, input: Input<'_>, content: Content) {
        let mut actions = std::mem::take(&mut self.actions);
        self.scopes[at].engine.step(input, Instant::now(), &mut actions);
        let mut content = content;
        let mut is_set_back = false;
        for action in actions.drain(..) {
            is_set_back |= self.carry_out(at, action, &mut content);
        }
        self.actions = actions;
        if is_set_back {
            self.step(at, Input::SetBack);
        }
    }

    /// Carries an action out; says whether it has shown that history was set back.
    fn carry_out(&mut self, at: usize, action: Action, content: &mut Content) -> bool {
        let scope = &mut self.scopes[at];
        match action {
            Action::List(query) => scope.list(&self.client, &self.requests, &query),
            Action::Watch(query) => scope.watch(&self.client, &self.requests, &query),
            Action::CancelRequest => scope.cancel(),
            Action::Apply => self.apply(at, std::mem::replace(content, Content::None)),
            Action::Ignore => *content = Content::None,
            Action::BeginRelist { from_scratch } => {
                scope.relist = Some(Relisting::new(from_scratch));
                self.sink.begin_relist(scope.namespace.as_deref(), from_scratch);
            }
            Action::AbortRelist => {
                scope.relist = None;
                self.sink.abort_relist(scope.namespace.as_deref());
            }
            Action::FinishRelist { resource_version } => {
                let relist = scope.relist.take();
                let is_set_back = relist.is_some_and(|relist| relist.settle(&resource_version, &mut self.sink));
                self.sink.finish_relist(scope.namespace.as_deref());
                tracing::debug!(resource = %self.requests.gvr, namespace = scope.namespace, resource_version, "listed");
                let was_loaded = std::mem::replace(&mut scope.is_loaded, true);
                if !was_loaded && self.scopes.iter().all(|s| s.is_loaded) {
                    self.sink.loaded();
                }
                return is_set_back;
            }
            Action::Report(report) => self.report(at, report),
            Action::Recovered { failures } => {
                tracing::info!(resource = %self.requests.gvr, namespace = scope.namespace, failures, "recovered");
            }
            Action::NoteStreamingRefused { message } => {
                tracing::debug!(resource = %self.requests.gvr, message, "no streaming lists here; reading pages");
                self.client.note_streaming_refused();
                self.scopes.iter_mut().for_each(|s| s.engine.refuse_streaming());
            }
        }
        false
    }

    /// How what comes now in a scope comes.
    fn origin(&self, at: usize) -> Origin {
        let relist = self.scopes[at].relist.as_ref();
        relist.map_or(Origin::Live, |relist| Origin::List { from_scratch: relist.from_scratch })
    }

    fn apply(&mut self, at: usize, content: Content) {
        let origin = self.origin(at);
        match content {
            Content::None => {}
            Content::Event(kind, object) => {
                if origin == Origin::Live {
                    self.last_event = Some(Instant::now());
                }
                match kind {
                    EventKind::Added | EventKind::Modified => self.show(at, object, origin),
                    EventKind::Deleted => self.hide(at, object, origin),
                }
            }
            Content::Bad(kind, bad) => self.skip(at, &bad, kind == EventKind::Deleted, origin),
            Content::Page(page) => {
                page.bad.iter().for_each(|bad| self.skip(at, bad, false, origin));
                page.objects.into_iter().for_each(|object| self.show(at, object, origin));
            }
        }
    }

    fn show(&mut self, at: usize, object: Object, origin: Origin) {
        // A list of this namespace would never find that it is gone, and nobody asked for it.
        if !self.covers(at, object.namespace()) {
            return self.skipped.record(&self.requests.gvr, &BadObject::foreign(&object), false);
        }
        self.skipped.recovered(&object);
        let later = self.sink.show(object.clone(), origin);
        self.note(at, object.namespace(), object.name(), later, || Older::Shown(object.clone()));
    }

    fn hide(&mut self, at: usize, object: Object, origin: Origin) {
        if self.covers(at, object.namespace()) {
            self.skipped.recovered(&object);
            let later = self.sink.hide(object.clone(), origin);
            self.note(at, object.namespace(), object.name(), later, || Older::Gone(object.clone()));
        }
    }

    fn skip(&mut self, at: usize, bad: &BadObject, is_delete: bool, origin: Origin) {
        self.skipped.record(&self.requests.gvr, bad, is_delete);
        if self.covers(at, bad.namespace.as_deref()) {
            let later = self.sink.skip(bad, is_delete, origin);
            if let Some(name) = &bad.name {
                self.note(at, bad.namespace.as_deref(), name, later, || Older::Bad { bad: bad.clone(), is_delete });
            }
        }
    }

    fn note(
        &mut self,
        at: usize,
        namespace: Option<&str>,
        name: &str,
        later: Option<Later>,
        older: impl FnOnce() -> Older,
    ) {
        if let Some(relist) = &mut self.scopes[at].relist {
            relist.note(namespace, name, later.map(|later| (later, older())));
        }
    }

    /// Whether objects of a namespace are what was asked for in a scope. A kind that had none when it was looked at may
    /// come back with namespaces.
    fn covers(&self, at: usize, namespace: Option<&str>) -> bool {
        match (&self.scopes[at].namespace, &self.wanted) {
            (Some(own), _) => namespace == Some(own),
            (None, Scopes::All) => true,
            (None, Scopes::Namespaces(_) | Scopes::ClusterScoped) => namespace.is_none(),
        }
    }
}

/// Waits for a moment, or for ever.
async fn reached(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// What came with an input, until the engine has decided whether it may be applied.
enum Content {
    None,
    Event(EventKind, Object),
    /// An event that cannot be decoded.
    Bad(EventKind, BadObject),
    Page(Page),
}
