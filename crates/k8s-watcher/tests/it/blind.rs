//! Watches that are blind: however it comes about, the status does not call them healthy, and what can be done is done.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt;
use k8s_fake_apiserver::{Any, FakeApiServer, FaultHandle, FaultRule, List, Status as Refusal, Watch};
use k8s_types::SingleWatcherConfig;
use k8s_watcher::{ErrorClass, Phase, RunningWatcher, SingleWatcher, Status, Watcher};
use tokio::time::Instant;
use tower::Service;

use crate::connections::{Drip, by_hand};
use crate::support::*;

const LIMIT: Duration = Duration::from_secs(300);

fn healthy(status: &Status) -> bool {
    status.is_healthy(Instant::now(), LIMIT)
}

/// Watches are refused from now on, or worse; open ones end.
fn blind(server: &FakeApiServer, how: impl FnOnce(FaultRule) -> FaultHandle) -> FaultHandle {
    let fault = how(server.faults().on(Watch::of(MAPS)).always());
    server.close_watches();
    fault
}

#[tokio::test(start_paused = true)]
async fn healthy_means_synced_running_and_current() {
    let server = server(many(3)).await;
    let watcher = Watcher::builder(server.client(), config()).build().unwrap();
    assert!(!watcher.is_healthy(LIMIT), "not started");
    let watcher = watcher.spawn();
    assert!(!watcher.is_healthy(LIMIT), "not synced");
    watcher.wait_for_sync(LONG).await.unwrap();
    assert!(watcher.is_healthy(LIMIT));
    // Quiet hours: bookmarks are enough.
    for _ in 0..120 {
        settle(secs(61)).await;
        assert!(watcher.status().is_healthy(Instant::now(), secs(65)), "{:?}", watcher.status());
    }
    let handle = watcher.handle().clone();
    watcher.shutdown().await;
    assert!(!handle.is_healthy(LIMIT), "stopped");
}

#[tokio::test(start_paused = true)]
async fn c17_a_connection_that_dies_does_not_show_and_one_that_cannot_be_opened_does() {
    let server = server(many(3)).await;
    let (watcher, _) = watching(&server, config()).await;
    settle(secs(20)).await;
    server.faults().on(Watch::of(MAPS)).nth(1).hang();
    server.close_watches();
    for _ in 0..60 {
        settle(secs(10)).await;
        assert!(watcher.is_healthy(LIMIT), "{:?}", watcher.status());
    }
    // Nothing answers any more, not even with an error: most of the time a request is under way.
    let fault = blind(&server, |watches| watches.no_answer());
    settle(secs(70)).await;
    for _ in 0..100 {
        settle(secs(7)).await;
        assert!(matches!(watcher.status().phase, Phase::BackingOff { .. }), "{:?}", watcher.status());
    }
    assert!(!watcher.is_healthy(LIMIT));
    fault.clear();
    settle(secs(120)).await;
    assert!(watcher.is_healthy(LIMIT));
    assert_eq!(watcher.status().phase, Phase::Watching);
}

#[tokio::test(start_paused = true)]
async fn whatever_lasts_ends_health_and_its_end_brings_it_back() {
    type Fault = fn(&FakeApiServer) -> Vec<FaultHandle>;
    let faults: [(&str, Fault); 8] = [
        ("a missing right", |s| vec![blind(s, |w| w.status(Refusal::forbidden("watch", MAPS)))]),
        ("an error in each watch", |s| {
            vec![blind(s, |w| w.error(500)), s.faults().on(List::of(MAPS)).always().status(500)]
        }),
        ("no server", |s| {
            let fault = s.faults().on(Any::request()).always().drop_connection();
            s.close_watches();
            vec![fault]
        }),
        ("heads without bodies, and no lists", |s| {
            vec![blind(s, |w| w.hang()), s.faults().on(List::of(MAPS)).always().hang()]
        }),
        ("watches that end at once, and no lists", |s| {
            vec![blind(s, |w| w.end()), s.faults().on(List::of(MAPS)).always().status(503)]
        }),
        ("lists whose tokens always expire", |s| {
            let first = s.faults().on(Watch::of(MAPS).with_query("sendInitialEvents", "true")).always().status(422);
            let pages = s.faults().on(List::of(MAPS)).always().edit_body(|page| {
                page["metadata"]["continue"] = "t".into();
            });
            let gone = s.faults().on(List::of(MAPS)).skip(1).always().gone_http();
            let watches = blind(s, |w| w.gone());
            vec![first, pages, gone, watches]
        }),
        ("a login page", |s| {
            let page = "<!DOCTYPE html>\n<html>please log in</html>\n";
            let fault = s.faults().on(Any::request()).always().body("text/html", page);
            s.close_watches();
            vec![fault]
        }),
        ("an object instead of a list", |s| {
            let object = config_map("m0000", "x").to_string();
            let fault = s.faults().on(Any::request()).always().body("application/json", object);
            s.close_watches();
            vec![fault]
        }),
    ];
    for (name, fault) in faults {
        let server = server(many(3)).await;
        let (watcher, record) = watching(&server, config()).await;
        settle(secs(20)).await;
        let faults = fault(&server);
        settle(secs(290)).await;
        let status = watcher.status();
        assert!(healthy(&status), "{name}: too early");
        settle(LONG).await;
        let mut healthy_for = 0;
        for _ in 0..100 {
            settle(secs(3)).await;
            healthy_for += usize::from(healthy(&watcher.status()));
        }
        assert_eq!(healthy_for, 0, "{name}: {:?}", watcher.status());
        assert_eq!((names(&watcher).len(), record.len()), (3, 0), "{name}: what is there stays");
        let error = watcher.last_watch_error().unwrap();
        assert!(error.at.elapsed().unwrap_or_default() < secs(60), "{name}: {error}");
        assert_eq!(error.message.contains("web page"), name == "a login page", "{name}: {error}");
        faults.iter().for_each(FaultHandle::clear);
        server.apply(config_map("new", "x")).unwrap();
        settle(secs(120)).await;
        assert!(healthy(&watcher.status()), "{name}: {:?}", watcher.status());
        same_as_served(&watcher, &server).await;
        assert_eq!(record.totals(), (1, 0, 0), "{name}");
    }
}

/// What is between passes heads and lists at once, and keeps back what a watch says until the server ends it.
#[tokio::test(start_paused = true)]
async fn c17_a_proxy_that_keeps_events_back_delays_them_and_loses_none() {
    let server = server(many(3)).await;
    let watcher = Watcher::builder(behind_a_buffer(&server), config()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    settle(LONG).await;
    for i in 0..20 {
        server.apply(config_map("late", &i.to_string())).unwrap();
        settle(secs(320)).await;
        assert_eq!(label(&watcher, "late"), Some(i.to_string()), "{:?}", watcher.status());
    }
}

#[tokio::test(start_paused = true)]
async fn c17_watches_that_bring_nothing_are_replaced_by_lists() {
    type Way = fn(FaultRule) -> FaultHandle;
    let ways: [(&str, Way, Duration); 3] = [
        ("silence for ever", |w| w.hang(), secs(330)),
        ("an end at once", |w| w.end(), secs(180)),
        (
            "a list instead of events",
            |w| w.body("application/json", r#"{"kind":"ConfigMapList","items":[]}"#),
            secs(180),
        ),
    ];
    for (name, way, within) in ways {
        let server = server(many(3)).await;
        let (watcher, record) = watching(&server, paged()).await;
        settle(secs(20)).await;
        blind(&server, way);
        for i in 0..10_u64 {
            server.apply(config_map("late", &i.to_string())).unwrap();
            settle(within).await;
            assert_eq!(label(&watcher, "late"), Some(i.to_string()), "{name}: {:?}", watcher.status());
            assert!(healthy(&watcher.status()), "{name}: it is as current as lists can make it");
        }
        assert_eq!(record.totals(), (1, 9, 0), "{name}");
        assert!(watcher.last_watch_error().is_some(), "{name}");
        let lists = server.journal().count(List::of(MAPS));
        assert!(lists as u64 <= 2 + 10 * within.as_secs() / 30, "{name}: {lists}");
    }
}

#[tokio::test(start_paused = true)]
async fn c17_empty_lines_are_no_sign_of_life() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let client = by_hand(move |request| {
        let mut body = Drip::new(secs(30));
        if request.uri().query().is_some_and(|q| q.contains("watch=true")) {
            count.fetch_add(1, Ordering::SeqCst);
            (0..10_000).for_each(|_| body.send(" \r\n"));
        } else {
            body = Drip::new(secs(0));
            body.send(r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"5"},"items":[]}"#);
        }
        http::Response::new(body)
    });
    let watcher = Watcher::builder(client, paged()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    settle(secs(3_600)).await;
    let asked = asked.load(Ordering::SeqCst);
    assert!((20..=26).contains(&asked), "{asked}");
    let status = watcher.status();
    assert_eq!((status.last_watch_error.unwrap().class, status.relists > 18), (ErrorClass::Idle, true));
}

/// Such as those of aggregated servers. Quiet is no trouble: one line in the log, until the first silence is over.
#[tokio::test(start_paused = true)]
async fn c17_a_quiet_kind_of_a_server_without_bookmarks_is_healthy_and_quiet() {
    let server = server(many(3)).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let watcher = Watcher::builder(without_bookmarks(&server, &asked), paged()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    for _ in 0..240 {
        settle(secs(30)).await;
        assert!(healthy(&watcher.status()), "{:?}", watcher.status());
    }
    let status = watcher.status();
    assert_eq!((status.failures.of(ErrorClass::Idle), status.failures.total()), (1, 1));
    assert_eq!((status.relists, status.phase), (0, Phase::Watching));
    let watches = asked.load(Ordering::SeqCst);
    assert!((60..=140).contains(&watches), "{watches}");
}

#[tokio::test(start_paused = true)]
async fn one_namespace_that_is_blind_ends_health_and_so_does_one_object() {
    let server = server([config_map_in("a", "x", "x"), config_map_in("b", "x", "x")]).await;
    let (watcher, _) = watching(&server, config().namespaces(["a", "b"])).await;
    let one = SingleWatcher::builder(server.client(), SingleWatcherConfig::new(MAPS, "b", "x")).spawn().unwrap();
    one.wait_for_sync(LONG).await.unwrap();
    settle(secs(20)).await;
    assert!(watcher.is_healthy(LIMIT) && one.is_healthy(LIMIT));
    server.faults().on(Watch::of(MAPS).namespace("b")).always().status(403);
    server.close_watches();
    settle(LONG).await;
    assert!(!watcher.is_healthy(LIMIT) && !one.is_healthy(LIMIT));
    assert!(watcher.status().staleness(Instant::now()).unwrap() > secs(500));
    server.faults().clear();
    // The next try, and a bookmark.
    settle(secs(30 + 60)).await;
    assert!(watcher.is_healthy(LIMIT) && one.is_healthy(LIMIT));
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_hangs_shows_and_a_read_store_is_healthy_all_the_same() {
    let server = server(many(1)).await;
    let watcher: RunningWatcher =
        Watcher::builder(server.client(), config()).on_change_async(|_| std::future::pending::<()>()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    settle(secs(20)).await;
    assert_eq!(watcher.status().callback_since, None);
    let begun = Instant::now();
    server.apply(config_map("a", "x")).unwrap();
    settle(LONG).await;
    assert_eq!(watcher.status().callback_since, Some(begun));
    assert!(watcher.is_healthy(LIMIT));
    let handle = watcher.handle().clone();
    drop(watcher);
    settle(ms(1)).await;
    assert_eq!(handle.status().callback_since, None);
}

// === what stands between ===

/// The body of an answer that is handed on when all of it is there.
struct KeptBack(Option<Pin<Box<dyn Future<Output = Bytes> + Send>>>);

impl http_body::Body for KeptBack {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(body) = &mut self.0 else { return Poll::Ready(None) };
        let all = ready!(body.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(Some(Ok(Frame::data(all))))
    }
}

/// Hands on heads at once and bodies as a whole.
fn behind_a_buffer(server: &FakeApiServer) -> kube::Client {
    let service = server.service();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let answer = service.clone().call(request);
        async move {
            let whole =
                async |body: k8s_fake_apiserver::ResponseBody| body.collect().await.unwrap_or_default().to_bytes();
            Ok::<_, std::io::Error>(answer.await?.map(|body| KeptBack(Some(Box::pin(whole(body))))))
        }
    });
    kube::Client::new(service, "default")
}

/// Leaves out bookmarks, and counts watches.
fn without_bookmarks(server: &FakeApiServer, watches: &Arc<AtomicUsize>) -> kube::Client {
    let (service, watches) = (server.service(), watches.clone());
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (mut head, body) = request.into_parts();
        let uri = head.uri.to_string();
        watches.fetch_add(usize::from(uri.contains("watch=true")), Ordering::SeqCst);
        let uri = uri.replace("allowWatchBookmarks=true", "allowWatchBookmarks=false");
        head.uri = uri.parse().expect("still a URI");
        service.clone().call(http::Request::from_parts(head, body))
    });
    kube::Client::new(service, "default")
}
