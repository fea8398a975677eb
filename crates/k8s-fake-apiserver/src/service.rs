//! The tower service: one request in, one answer out.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};

use crate::body::{ResponseBody, reset};
use crate::core::{Core, View};
use crate::discovery;
use crate::fault::{Replaced, Script, shape};
use crate::journal;
use crate::query::Query;
use crate::represent::Form;
use crate::route::{Route, Target, parse};
use crate::status::Status;
use crate::verb::{self, Answer, Call, Verb, answer, refuse};

/// The largest body that a write may have, as on the real server.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// The server as a [`tower::Service`] over [`http::Request`]: no socket, no thread, no real time.
///
/// Any HTTP body does. The error is a connection that broke, which only scripted faults bring about. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct FakeService {
    core: Arc<Core>,
    view: View,
    agent: Option<HeaderValue>,
}

impl FakeService {
    pub(crate) fn new(core: Arc<Core>, view: View) -> Self {
        Self { core, view, agent: None }
    }

    /// The same service, whose requests carry this `User-Agent` unless they bring one.
    ///
    /// A text that is no header value is ignored.
    #[must_use]
    pub fn with_user_agent(mut self, agent: &str) -> Self {
        self.agent = HeaderValue::from_str(agent).ok();
        self
    }
}

impl<B> tower::Service<Request<B>> for FakeService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ResponseBody>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<ResponseBody>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Some(agent) = &self.agent {
            request.headers_mut().entry(http::header::USER_AGENT).or_insert_with(|| agent.clone());
        }
        let (core, view) = (self.core.clone(), self.view.clone());
        Box::pin(serve(core, view, request))
    }
}

async fn serve<B>(core: Arc<Core>, view: View, request: Request<B>) -> io::Result<Response<ResponseBody>>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = request.into_parts();
    let route = parse(head.uri.path());
    let query = Query::parse(head.uri.query());
    let verb = verb_of(&head.method, &route, &query);
    let entry = entry(&core, &head, &route, &query, verb);
    let script = core.faults.script(&entry.facts());
    let number = core.journal.record(entry);
    let body = match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => {
            let status =
                Status::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {BODY_LIMIT}"));
            core.journal.answered(number, 413);
            return Ok(refuse(&status));
        }
    };
    if !script.delay.is_zero() {
        tokio::time::sleep(script.delay).await;
    }
    for hold in &script.holds {
        hold.pass().await;
    }
    let Script { replaced, plan, edit_body, chunk, mut cut, .. } = script;
    if !matches!(verb, Verb::List | Verb::Watch) {
        cut = cut.or(plan.first_break().map(|how| (0, how)));
    }
    let response = match replaced {
        Some(Replaced::Dropped) => return Err(reset()),
        Some(Replaced::Silence) => std::future::pending().await,
        Some(Replaced::Status(status)) => refuse(&status),
        Some(Replaced::Body(content_type, body)) => answer(StatusCode::OK, content_type, ResponseBody::full(body)),
        None => {
            let answered = match route {
                Route::Resource(target) => resource(&core, view, &head, target, query, verb, body, plan).await,
                other => Ok(discovery::answer(&core, &other)),
            };
            answered.unwrap_or_else(|status| refuse(&status))
        }
    };
    core.journal.answered(number, response.status().as_u16());
    if edit_body.is_empty() && chunk.is_none() && cut.is_none() {
        return Ok(response);
    }
    Ok(response.map(|body| shape(body, edit_body, cut, chunk)))
}

fn entry(core: &Core, head: &http::request::Parts, route: &Route, query: &Query, verb: Verb) -> journal::Request {
    let none = Target::default();
    let target = if let Route::Resource(target) = route { target } else { &none };
    let text = |name| head.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let (agent, accept) = (text(http::header::USER_AGENT), text(http::header::ACCEPT));
    journal::Request {
        verb,
        resource: if verb == Verb::Other { String::new() } else { target.resource() },
        namespace: target.namespace.clone(),
        name: target.name.clone(),
        subresource: target.subresource.clone(),
        query: query.0.clone(),
        path: head.uri.path().to_owned(),
        client: agent.to_owned(),
        accept: accept.to_owned(),
        at: core.clock.elapsed(),
        status: None,
    }
}

fn verb_of(method: &Method, route: &Route, query: &Query) -> Verb {
    let Route::Resource(target) = route else { return Verb::Other };
    let named = target.name.is_some();
    match *method {
        Method::GET if target.watch || query.flag("watch") => Verb::Watch,
        Method::GET if named => Verb::Get,
        Method::GET => Verb::List,
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if named => Verb::Delete,
        Method::DELETE => Verb::DeleteCollection,
        _ => Verb::Other,
    }
}

#[expect(clippy::too_many_arguments, reason = "one call site; a struct for it would be `Call` again")]
async fn resource(
    core: &Arc<Core>,
    view: View,
    head: &http::request::Parts,
    target: Target,
    query: Query,
    verb: Verb,
    body: Bytes,
    plan: crate::fault::StreamPlan,
) -> Answer {
    let found = {
        let log = core.log.lock();
        match log.id(&target.resource()).and_then(|id| Some((id, log.table(id)?.kind.clone()))) {
            Some(found) => Ok(found),
            None => Err(target.group.is_empty() || log.kinds().iter().any(|k| k.group == target.group)),
        }
    };
    let (table, kind) = match found {
        Ok(found) => found,
        Err(true) => return Err(Status::no_such_path()),
        // A group that nobody serves is no API path at all.
        Err(false) => return Ok(discovery::page_not_found()),
    };
    // `/nodes` in a namespace, or one Pod without a namespace, is no path.
    let namespace_fits =
        if kind.namespaced { target.namespace.is_some() || target.name.is_none() } else { target.namespace.is_none() };
    let served = match target.subresource.as_deref() {
        None => true,
        Some("status") => kind.status,
        Some("finalize") => kind.is("v1/namespaces"),
        Some(_) => false,
    };
    if !namespace_fits || !served {
        return Err(Status::no_such_path());
    }
    let form = if verb.is_write() {
        Form::negotiate(&head.headers).unwrap_or(Form::Full)
    } else {
        Form::negotiate(&head.headers)?
    };
    let mut call =
        Call { core: core.clone(), view, kind, table, target, query, headers: head.headers.clone(), body, form, plan };
    if !allowed(&call, verb) {
        return Err(Status::method_not_allowed());
    }
    match verb {
        Verb::Get => verb::get::get(call).await,
        Verb::List => verb::list::list(call).await,
        Verb::Watch => {
            one_object(&mut call);
            verb::watch::watch(call).await
        }
        Verb::Create => verb::create::create(&call),
        Verb::Update => verb::update::update(&call),
        Verb::Patch => verb::patch::patch(&call),
        Verb::Delete => verb::delete::delete(&call),
        Verb::DeleteCollection => verb::delete::delete_collection(call),
        Verb::Other => Err(Status::method_not_allowed()),
    }
}

fn allowed(call: &Call, verb: Verb) -> bool {
    let named = call.target.name.is_some();
    match verb {
        Verb::Create => !named && (!call.kind.namespaced || call.target.namespace.is_some()),
        Verb::Update => named,
        Verb::Patch => named && call.target.subresource.as_deref() != Some("finalize"),
        Verb::Delete => call.target.subresource.is_none(),
        // Namespaces cannot be deleted together, and only one namespace at a time can be emptied.
        Verb::DeleteCollection => {
            !call.kind.is("v1/namespaces") && (!call.kind.namespaced || call.target.namespace.is_some())
        }
        _ => true,
    }
}

/// A watch of one path is a watch with a selector on the name.
fn one_object(call: &mut Call) {
    let Some(name) = call.target.name.take() else { return };
    let selector = format!("metadata.name={name}");
    match call.query.0.iter_mut().find(|(n, _)| n == "fieldSelector") {
        Some((_, fields)) if !fields.is_empty() => *fields = format!("{fields},{selector}"),
        _ => call.query.0.push(("fieldSelector".into(), selector)),
    }
}
