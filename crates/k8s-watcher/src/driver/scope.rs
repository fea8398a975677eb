//! One list/watch: an engine, its outstanding request, its clock. Turns what arrives into inputs for the driver.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header};
use http_body::Body as _;
use k8s_client::{Client, Error as ClientError};
use k8s_types::ApiStatus;
use kube::client::Body;
use tokio::time::{Instant, Sleep};

use super::relisting::Relisting;
use crate::engine::{Broken, Engine, ListQuery, WatchQuery};
use crate::frame::{FrameError, Items, Lines, Page};
use crate::plan::Requests;

/// How much of a refusal's body is read for its Status.
const MAX_REFUSAL: usize = 64 << 10;

/// What is said of it, since that is where to look.
const WEB_PAGE: &str = "the answer is a web page, as of a proxy that wants a login";

type Sending = Pin<Box<dyn Future<Output = Result<Response<Body>, ClientError>> + Send>>;

/// A namespace, or all of them, or a cluster-scoped kind.
pub(super) struct Scope {
    pub(super) namespace: Option<String>,
    pub(super) engine: Engine,
    request: Outstanding,
    timer: Option<Pin<Box<Sleep>>>,
    /// A full list is under way.
    pub(super) relist: Option<Relisting>,
    /// The first full list is complete.
    pub(super) is_loaded: bool,
}

/// The request that is out, as far as its answer has come.
enum Outstanding {
    None,
    Sent {
        sending: Sending,
        is_page: bool,
    },
    Refused {
        status: u16,
        retry_after: Option<Duration>,
        body: Body,
        text: Vec<u8>,
    },
    Page {
        body: Body,
        items: Items,
        page: Page,
    },
    Stream {
        body: Body,
        lines: Lines,
    },
    /// A stream whose end is known and not yet told: its last line had none.
    Ended,
}

/// What came.
pub(super) enum Arrival {
    /// The head of a good answer.
    Opened,
    Refused {
        status: u16,
        retry_after: Option<Duration>,
        failure: Option<ApiStatus>,
    },
    /// Bytes of a page: its items can be taken.
    PageBytes,
    PageEnd(Items, Page),
    Line(Bytes),
    StreamEnd,
    Broken(Broken, String),
    Tick,
}

impl Scope {
    pub(super) fn new(namespace: Option<String>, engine: Engine) -> Self {
        Self { namespace, engine, request: Outstanding::None, timer: None, relist: None, is_loaded: false }
    }

    pub(super) fn list(&mut self, client: &Client, requests: &Requests, query: &ListQuery) {
        let request = requests.list(self.namespace.as_deref(), &query.to_pairs());
        self.send(client, request, true);
    }

    pub(super) fn watch(&mut self, client: &Client, requests: &Requests, query: &WatchQuery) {
        let request = requests.watch(self.namespace.as_deref(), &query.to_pairs());
        self.send(client, request, false);
    }

    fn send(&mut self, client: &Client, request: Request<Vec<u8>>, is_page: bool) {
        let client = client.clone();
        let sending = Box::pin(async move { client.send(request).await });
        self.request = Outstanding::Sent { sending, is_page };
    }

    pub(super) fn cancel(&mut self) {
        self.request = Outstanding::None;
    }

    /// The page that is being read, and what there is of its items.
    pub(super) fn page(&mut self) -> Option<(&mut Page, &mut Items)> {
        if let Outstanding::Page { items, page, .. } = &mut self.request { Some((page, items)) } else { None }
    }

    /// The next thing that comes. Bytes go before the clock: a reader that was busy must not take its own
    /// slowness for the server's silence.
    pub(super) fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<Arrival> {
        if let Poll::Ready(arrival) = self.poll_request(cx) {
            return Poll::Ready(arrival);
        }
        let Some(deadline) = self.engine.deadline() else {
            self.timer = None;
            return Poll::Pending;
        };
        let timer = match &mut self.timer {
            Some(timer) => {
                if timer.deadline() != deadline {
                    timer.as_mut().reset(deadline);
                }
                timer
            }
            none => none.insert(Box::pin(tokio::time::sleep_until(deadline))),
        };
        timer.as_mut().poll(cx).map(|()| self.refusal().unwrap_or(Arrival::Tick))
    }

    /// The refusal that has come, as far as its body has: its status is an answer by itself.
    fn refusal(&mut self) -> Option<Arrival> {
        let Outstanding::Refused { status, retry_after, text, .. } = &self.request else { return None };
        let refused =
            Arrival::Refused { status: *status, retry_after: *retry_after, failure: ApiStatus::from_json(text) };
        self.request = Outstanding::None;
        Some(refused)
    }

    fn poll_request(&mut self, cx: &mut Context<'_>) -> Poll<Arrival> {
        loop {
            match &mut self.request {
                Outstanding::None => return Poll::Pending,
                Outstanding::Ended => {
                    self.request = Outstanding::None;
                    return Poll::Ready(Arrival::StreamEnd);
                }
                Outstanding::Sent { sending, is_page } => {
                    let answer = ready!(sending.as_mut().poll(cx));
                    let is_page = *is_page;
                    match answer {
                        Err(e) => return self.broken(Broken::Connect, chain(&e)),
                        Ok(answer) if answer.status().is_success() && is_web_page(answer.headers()) => {
                            return self.broken(Broken::Malformed, WEB_PAGE.into());
                        }
                        Ok(answer) if answer.status().is_success() => {
                            let body = answer.into_body();
                            self.request = if is_page {
                                Outstanding::Page { body, items: Items::default(), page: Page::default() }
                            } else {
                                Outstanding::Stream { body, lines: Lines::default() }
                            };
                            return Poll::Ready(Arrival::Opened);
                        }
                        Ok(answer) => {
                            let status = answer.status().as_u16();
                            let retry_after = retry_after(answer.headers());
                            let body = answer.into_body();
                            self.request = Outstanding::Refused { status, retry_after, body, text: vec![] };
                        }
                    }
                }
                Outstanding::Refused { body, text, .. } => {
                    if let Some(Ok(bytes)) = ready!(poll_bytes(body, cx))
                        && text.len() + bytes.len() <= MAX_REFUSAL
                    {
                        text.extend_from_slice(&bytes);
                        continue;
                    }
                    return self.refusal().map_or(Poll::Pending, Poll::Ready);
                }
                Outstanding::Page { body, items, page } => match ready!(poll_bytes(body, cx)) {
                    Some(Ok(bytes)) => {
                        if let Err(e) = items.push(&bytes) {
                            return self.broken(Broken::Malformed, e.to_string());
                        }
                        return Poll::Ready(Arrival::PageBytes);
                    }
                    Some(Err(e)) => return self.broken(Broken::Body, e),
                    None => {
                        let (items, page) = (std::mem::take(items), std::mem::take(page));
                        self.request = Outstanding::None;
                        return Poll::Ready(Arrival::PageEnd(items, page));
                    }
                },
                Outstanding::Stream { body, lines } => {
                    if let Some(line) = lines.next() {
                        return Poll::Ready(Arrival::Line(line));
                    }
                    match ready!(poll_bytes(body, cx)) {
                        Some(Ok(bytes)) => {
                            // Empty lines are what somebody in between keeps a connection open with.
                            if !bytes.trim_ascii().is_empty() {
                                self.engine.touch(Instant::now());
                            }
                            if let Err(e) = lines.push(bytes) {
                                return self.broken(Broken::Malformed, e.to_string());
                            }
                        }
                        Some(Err(e)) => return self.broken(Broken::Body, e),
                        None => match lines.rest() {
                            // A last line without its end is whole or not: only its content can tell.
                            Some(line) if serde_json::from_slice::<serde::de::IgnoredAny>(&line).is_ok() => {
                                self.request = Outstanding::Ended;
                                return Poll::Ready(Arrival::Line(line));
                            }
                            Some(_) => {
                                return self.broken(Broken::Truncated, "the watch broke off within an event".into());
                            }
                            None => self.request = Outstanding::Ended,
                        },
                    }
                }
            }
        }
    }

    fn broken(&mut self, broken: Broken, message: String) -> Poll<Arrival> {
        self.request = Outstanding::None;
        Poll::Ready(Arrival::Broken(broken, message))
    }
}

/// How a list that does not fit together is told to the engine.
pub(super) fn broken_of(e: FrameError) -> Broken {
    match e {
        FrameError::Truncated => Broken::Truncated,
        FrameError::TooLong | FrameError::Malformed | FrameError::NoList => Broken::Malformed,
    }
}

/// The next bytes of a body; trailers are none.
fn poll_bytes(body: &mut Body, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, String>>> {
    loop {
        match ready!(Pin::new(&mut *body).poll_frame(cx)) {
            None => return Poll::Ready(None),
            Some(Err(e)) => return Poll::Ready(Some(Err(chain(&e)))),
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Poll::Ready(Some(Ok(bytes)));
                }
            }
        }
    }
}

/// An error with its causes. Transport errors name addresses and reasons, never bodies or credentials.
pub(super) fn chain(e: &dyn std::error::Error) -> String {
    let mut text = e.to_string();
    let mut source = e.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some layers repeat their cause in their own text.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

fn is_web_page(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
