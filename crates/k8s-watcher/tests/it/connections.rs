//! Connections that break, fall silent or lie; servers that refuse: how often is asked, and what the user sees.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use k8s_fake_apiserver::{Any, FakeApiServer, List, Status, Watch};
use k8s_watcher::{ErrorClass, Phase, SyncError, Verb, Watcher};

use serde_json::json;
use tokio::time::Sleep;

use crate::support::*;

/// A body that comes in pieces, with a pause before each but the first.
pub(crate) struct Drip {
    pieces: VecDeque<Bytes>,
    pause: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl Drip {
    pub(crate) fn new(pause: Duration) -> Self {
        Self { pieces: VecDeque::new(), pause, sleep: Box::pin(tokio::time::sleep(Duration::ZERO)) }
    }

    pub(crate) fn send(&mut self, piece: impl Into<Bytes>) {
        self.pieces.push_back(piece.into());
    }
}

impl http_body::Body for Drip {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.pieces.is_empty() && !self.pause.is_zero() {
            return Poll::Pending;
        }
        ready!(self.sleep.as_mut().poll(cx));
        let next = tokio::time::Instant::now() + self.pause;
        self.sleep.as_mut().reset(next);
        Poll::Ready(self.pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
    }
}

/// A client of a server that is no more than this function.
pub(crate) fn by_hand(
    answer: impl Fn(http::Request<kube::client::Body>) -> http::Response<Drip> + Send + Clone + 'static,
) -> kube::Client {
    test_support::listen_to("k8s_watcher");
    let service = tower::service_fn(move |request| std::future::ready(Ok::<_, std::io::Error>(answer(request))));
    kube::Client::new(service, "default")
}

/// When requests came, since the server's start.
fn times(server: &FakeApiServer, requests: impl Into<k8s_fake_apiserver::RequestMatcher>) -> Vec<Duration> {
    server.journal().matching(requests).iter().map(|r| r.at).collect()
}

fn gaps(times: &[Duration]) -> Vec<Duration> {
    times.windows(2).map(|t| t[1] - t[0]).collect()
}

#[tokio::test(start_paused = true)]
async fn c07_a_list_that_fails_for_ten_minutes_is_asked_ever_more_rarely() {
    let server = server(many(3)).await;
    let missing = server.faults().on(List::of(MAPS)).always().status(404);
    let watcher = Watcher::builder(server.client(), paged()).spawn().unwrap();
    settle(LONG).await;
    let times = times(&server, List::of(MAPS));
    assert!((20..=40).contains(&times.len()), "{}", times.len());
    assert!(gaps(&times).iter().rev().take(5).all(|gap| *gap >= secs(20)), "{:?}", gaps(&times));
    assert!(!watcher.is_synced());
    assert!(matches!(watcher.status().phase, Phase::BackingOff { .. }));
    missing.clear();
    assert_eq!(watcher.wait_for_sync(secs(35)).await.unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn c08_after_a_healthy_watch_a_disconnect_costs_two_seconds_at_most() {
    let server = server(many(3)).await;
    let (watcher, _) = watching(&server, config().watch_timeout(secs(3_600))).await;
    settle(secs(20)).await;
    // A watch is healthy for five bookmarks, which are five minutes, and breaks.
    let reset = server.faults().on(Watch::of(MAPS)).always().after(5).reset();
    server.close_watches();
    settle(secs(5 * 302)).await;
    assert!(reset.hits() >= 5);
    let times = times(&server, Watch::of(MAPS));
    let between = gaps(&times[2..]);
    assert!(between.len() >= 4 && between.iter().all(|g| *g >= secs(300) && *g <= secs(302)), "{between:?}");
    settle(secs(12)).await;
    assert_eq!((watcher.status().relists, watcher.status().phase), (0, Phase::Watching));
}

#[tokio::test(start_paused = true)]
async fn c09_retry_after_is_waited_for_and_the_same_request_repeated() {
    for form in ["head", "event"] {
        let server = server(many(1)).await;
        let (watcher, record) = watching(&server, config()).await;
        settle(secs(20)).await;
        let rule = server.faults().on(Watch::of(MAPS)).times(2);
        let busy = Status::too_many_requests(7);
        if form == "head" {
            rule.status(busy)
        } else {
            rule.error(busy)
        };
        let before = times(&server, Watch::of(MAPS)).len();
        server.close_watches();
        settle(ms(10)).await;
        server.apply(config_map("b", "x")).unwrap();
        settle(secs(60)).await;
        let all = times(&server, Watch::of(MAPS));
        assert_eq!(all.len(), before + 3, "{form}");
        assert!(gaps(&all[before..]).iter().all(|gap| *gap >= secs(7) && *gap < secs(10)), "{form}: {all:?}");
        assert_eq!(server.journal().count(List::of(MAPS)), 0, "{form}");
        assert_eq!(record.totals(), (1, 0, 0), "{form}");
        assert_eq!(watcher.last_watch_error().unwrap().class, ErrorClass::Throttled, "{form}");
    }
}

#[tokio::test(start_paused = true)]
async fn c17_after_ten_quiet_minutes_a_change_is_still_heard_of_within_a_short_idle_limit() {
    let server = server(many(1)).await;
    let (watcher, _) = watching(&server, config().idle_limit(secs(5))).await;
    for minute in 0..10 {
        settle(secs(60)).await;
        assert!(watcher.is_healthy(secs(12)), "after {minute} minutes: {:?}", watcher.status());
    }
    let begin = tokio::time::Instant::now();
    server.apply(config_map("b", "x")).unwrap();
    eventually(&watcher, "b", |s| s.len() == 2).await;
    assert!(begin.elapsed() <= secs(6), "{:?}", begin.elapsed());
    assert_eq!(watcher.status().relists, 0);
}

#[tokio::test(start_paused = true)]
async fn c17_a_connection_that_dies_without_a_word_is_opened_again_within_the_idle_limit() {
    for (limit, within) in [(Some(secs(5)), secs(6)), (None, secs(360))] {
        let server = server(many(1)).await;
        server.faults().on(Watch::of(MAPS)).nth(1).after(3).hang();
        let config = match limit {
            Some(limit) => config().idle_limit(limit),
            None => config(),
        };
        let (watcher, _) = watching(&server, config).await;
        server.apply(config_map("a", "x")).unwrap();
        eventually(&watcher, "a", |s| s.len() == 2).await;
        let last = watcher.status().last_contact.unwrap();
        server.apply(config_map("b", "x")).unwrap();
        settle(secs(4)).await;
        assert_eq!(watcher.store().len(), 2, "nothing was heard of b");
        assert_eq!(watcher.status().last_contact, Some(last));
        assert!(watcher.status().contact_age(tokio::time::Instant::now()).unwrap() >= secs(4));
        let begin = tokio::time::Instant::now();
        eventually(&watcher, "b", |s| s.len() == 3).await;
        assert!(begin.elapsed() + secs(4) <= within, "{:?}", begin.elapsed());
        assert_eq!(watcher.last_watch_error().unwrap().class, ErrorClass::Idle);
        assert_eq!((watcher.status().relists, watcher.status().restarts), (0, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_cut_off_by_the_end_of_the_connection_is_asked_for_again() {
    let server = server(many(1)).await;
    let (watcher, record) = watching(&server, config()).await;
    settle(secs(20)).await;
    server.apply(config_map("a", "x")).unwrap();
    eventually(&watcher, "a", |s| s.len() == 2).await;
    // The next watch brings a first event and the beginning of a second.
    let event_size = 200;
    server.faults().on(Watch::of(MAPS)).nth(1).end_at_byte(event_size + 400);
    server.close_watches();
    settle(secs(2)).await;
    for i in 0..5 {
        server.apply(config_map("b", &i.to_string())).unwrap();
    }
    same_as_served(&watcher, &server).await;
    settle(secs(60)).await;
    assert_eq!(record.totals(), (2, 4, 0), "each event once");
    assert_eq!(watcher.status().relists, 0);
}

#[tokio::test(start_paused = true)]
async fn a_last_event_without_a_line_end_counts_and_the_watch_goes_on() {
    let server = server(many(1)).await;
    let (watcher, record) = watching(&server, config()).await;
    settle(secs(20)).await;
    let mut a = config_map("a", "x");
    a["metadata"]["uid"] = "u".into();
    server.advance(1);
    a["metadata"]["resourceVersion"] = server.revision().to_string().into();
    let event = serde_json::json!({"type": "ADDED", "object": a}).to_string();
    server.faults().on(Watch::of(MAPS)).nth(1).body("application/json", event);
    server.close_watches();
    settle(secs(20)).await;
    assert_eq!(record.totals(), (1, 0, 0));
    assert_eq!(watcher.status().phase, Phase::Watching);
    assert_eq!(watcher.last_watch_error(), None, "that was a clean end");
    server.apply(config_map("b", "x")).unwrap();
    settle(secs(1)).await;
    assert_eq!(watcher.store().len(), 3, "the next watch was opened at once");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_comes_slowly_is_waited_for_as_long_as_it_comes() {
    let server = server(many(10)).await;
    for item in 1..6 {
        server.faults().on(List::of(MAPS)).nth(1).after(item).pause(secs(40));
    }
    let watcher = Watcher::builder(server.client(), paged()).spawn().unwrap();
    assert_eq!(watcher.wait_for_sync(secs(201)).await.unwrap(), 10);
    assert_eq!(server.journal().count(List::of(MAPS)), 1);
    assert_eq!(watcher.last_watch_error(), None);
}

#[tokio::test(start_paused = true)]
async fn c17_a_line_that_comes_piece_by_piece_is_a_sign_of_life() {
    let mark = json!({"type": "BOOKMARK", "object": {"metadata": {
        "resourceVersion": "5", "annotations": {"k8s.io/initial-events-end": "true"}
    }}});
    let mut object = config_map("a", "x");
    object["metadata"]["resourceVersion"] = "6".into();
    let event = json!({"type": "ADDED", "object": object}).to_string() + "\n";
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let client = by_hand(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        let mut body = Drip::new(secs(100));
        body.send(format!("{mark}\n"));
        event.as_bytes().chunks(event.len() / 9).for_each(|piece| body.send(piece.to_vec()));
        http::Response::new(body)
    });
    let watcher = Watcher::builder(client, config()).spawn().unwrap();
    assert_eq!(watcher.wait_for_sync(LONG).await.unwrap(), 0);
    settle(secs(1_100)).await;
    assert_eq!(names(&watcher), ["a"]);
    assert_eq!((asked.load(Ordering::SeqCst), watcher.last_watch_error()), (1, None));
}

#[tokio::test(start_paused = true)]
async fn c09_retry_after_counts_also_without_a_status_that_repeats_it() {
    let times = Arc::new(Mutex::new(vec![]));
    let all = times.clone();
    let client = by_hand(move |_| {
        all.lock().unwrap().push(tokio::time::Instant::now());
        let mut response = http::Response::new(Drip::new(secs(0)));
        *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
        response.headers_mut().insert("retry-after", http::HeaderValue::from_static("25"));
        response
    });
    let watcher = Watcher::builder(client, paged()).spawn().unwrap();
    settle(secs(100)).await;
    let times = times.lock().unwrap().clone();
    assert!((3..=4).contains(&times.len()), "{}", times.len());
    assert!(times.windows(2).all(|t| t[1] - t[0] >= secs(25)));
    assert_eq!(watcher.last_watch_error().unwrap().code, Some(503));
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_no_event_costs_a_reconnect_and_loses_nothing() {
    let lines =
        ["garbage", "{\"type\":\"ADDED\"", "[]", "{\"type\":\"WHAT\",\"object\":{}}", "{\"object\":{}}", "\u{0}"];
    for line in lines {
        let server = server(many(1)).await;
        let (watcher, record) = watching(&server, config()).await;
        settle(secs(20)).await;
        server.faults().on(Watch::of(MAPS)).nth(1).after(1).line(line);
        server.close_watches();
        settle(secs(1)).await;
        for i in 0..3 {
            server.apply(config_map("a", &i.to_string())).unwrap();
            settle(ms(10)).await;
        }
        same_as_served(&watcher, &server).await;
        settle(secs(60)).await;
        assert_eq!(record.totals(), (1, 2, 0), "{line:?}");
        let error = watcher.last_watch_error().unwrap();
        assert_eq!((error.class, error.verb), (ErrorClass::Protocol, Verb::Watch), "{line:?}");
        assert_eq!(watcher.status().relists, 0, "{line:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_for_a_while_is_found_again() {
    let server = server(many(3)).await;
    let (watcher, record) = watching(&server, config()).await;
    settle(secs(20)).await;
    let gone = server.faults().on(Any::request()).always().drop_connection();
    server.close_watches();
    settle(secs(1)).await;
    server.apply(config_map("a", "x")).unwrap();
    settle(secs(300)).await;
    let error = watcher.last_watch_error().unwrap();
    assert_eq!(error.class, ErrorClass::Connection);
    assert!(error.message.contains("connection reset"), "{error}");
    assert!(matches!(watcher.status().phase, Phase::BackingOff { attempt: 8.., .. }), "{:?}", watcher.status().phase);
    assert_eq!(watcher.store().len(), 3, "reads go on");
    gone.clear();
    settle(secs(31)).await;
    assert_eq!(watcher.store().len(), 4);
    assert_eq!(record.totals(), (1, 0, 0));
    assert_eq!(watcher.status().phase, Phase::Watching);
    assert_eq!(watcher.last_watch_error(), Some(error), "kept after recovery");
    assert!(gone.hits() < 30, "{}", gone.hits());
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_never_answered_are_given_up() {
    for config in [config(), paged(), config().namespaces(["shop", "pay"])] {
        let server = server(many(3)).await;
        let what = format!("{:?}", config.spec().namespaces);
        server.faults().on(Any::request()).nth(1).no_answer();
        let watcher = Watcher::builder(server.client(), config).spawn().unwrap();
        let error = watcher.wait_for_sync(secs(10)).await.unwrap_err();
        assert!(matches!(error, SyncError::Deadline { .. }), "{what}");
        assert_eq!(watcher.wait_for_sync(secs(120)).await.unwrap(), 3, "{what}");
        let error = watcher.last_watch_error().unwrap();
        assert_eq!(error.class, ErrorClass::Idle, "{what}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn c33_a_kind_that_is_served_later_is_found_by_itself() {
    let server = server([config_map("a", "x")]).await;
    let widgets = "example.com/v1/widgets";
    let config = |resource: &str| WatcherConfig::new(resource).index_by(["metadata.namespace"]);
    for namespaces in [false, true] {
        let widget_config = if namespaces { config(widgets).namespaces(["shop", "pay"]) } else { config(widgets) };
        let widgets_watcher = Watcher::builder(server.client_as("widgets"), widget_config).spawn().unwrap();
        let maps = Watcher::builder(server.client(), config(MAPS)).spawn().unwrap();
        assert_eq!(maps.wait_for_sync(secs(1)).await.unwrap(), 1, "others are not held up");
        let error = widgets_watcher.wait_for_sync(secs(180)).await.unwrap_err();
        let last = error.last_watch_error().unwrap();
        assert_eq!((last.class, last.resource.as_str()), (ErrorClass::NotFound, widgets), "{namespaces}");
        assert!(last.to_string().contains("kind not served"), "{last}");
        assert!(matches!(widgets_watcher.status().phase, Phase::BackingOff { attempt: 5.., .. }), "{namespaces}");
        let asked = server.journal().count(Any::request().client("widgets"));
        assert!(asked < 25, "{namespaces}: {asked}");
        server.register(k8s_fake_apiserver::ResourceKind::namespaced("example.com", "v1", "widgets", "Widget"));
        let widget = serde_json::json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"namespace": "shop", "name": "w"}
        });
        server.apply(widget).unwrap();
        assert_eq!(widgets_watcher.wait_for_sync(secs(35)).await.unwrap(), 1, "{namespaces}");
        assert!(server.unregister(widgets));
        server.journal().clear();
    }
}

#[tokio::test(start_paused = true)]
async fn c33_a_kind_that_is_removed_and_served_again_is_followed() {
    let widgets = "example.com/v1/widgets";
    let kind = || k8s_fake_apiserver::ResourceKind::namespaced("example.com", "v1", "widgets", "Widget");
    let widget = |name: &str| {
        serde_json::json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"namespace": "shop", "name": name}
        })
    };
    let server = fake().resource(kind()).object(widget("old")).start().await.unwrap();
    let config = WatcherConfig::new(widgets).index_by(["metadata.namespace"]);
    let watcher = Watcher::builder(server.client(), config).spawn().unwrap();
    assert_eq!(watcher.wait_for_sync(LONG).await.unwrap(), 1);
    settle(secs(20)).await;
    server.unregister(widgets);
    settle(secs(60)).await;
    assert_eq!(watcher.last_watch_error().unwrap().class, ErrorClass::NotFound);
    server.register(kind());
    server.apply(widget("new")).unwrap();
    server.compact();
    settle(secs(40)).await;
    assert_eq!(names(&watcher), ["new"]);
}
