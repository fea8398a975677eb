//! Answers that no server should give, and some do: what the store shows, what is reported, how often is asked.

use k8s_fake_apiserver::{Any, List, ResourceKind, Status, Watch};
use k8s_watcher::{ErrorClass, Phase, Verb, Watcher};
use serde_json::{Value, json};

use crate::connections::{Drip, by_hand};
use crate::support::*;

fn event(kind: &str, name: &str, version: u64, value: &str) -> String {
    let mut object = config_map(name, value);
    object["metadata"]["uid"] = format!("u-{name}").into();
    object["metadata"]["resourceVersion"] = version.to_string().into();
    json!({"type": kind, "object": object}).to_string()
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_list_does_not_empty_the_store() {
    let version = json!({"resourceVersion": "900"});
    let answers = [
        json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": version, "rows": [], "columnDefinitions": []}),
        json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m0000", "resourceVersion": "900"}}),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": version, "status": "Success"}),
        json!({"metadata": version, "data": {"items": []}}),
        json!({"kind": "ConfigMapList", "metadata": version, "items": {}}),
    ];
    for answer in answers {
        let server = server(many(3)).await;
        let (watcher, record) = watching(&server, paged()).await;
        settle(secs(20)).await;
        let odd = server.faults().on(List::of(MAPS)).always().body("application/json", answer.to_string());
        watcher.relist();
        settle(secs(60)).await;
        assert_eq!((watcher.store().len(), record.len()), (3, 0), "{answer}");
        let error = watcher.last_watch_error().unwrap();
        assert_eq!(
            (error.class, error.verb, &*error.message),
            (ErrorClass::Protocol, Verb::List, "the answer is no list")
        );
        assert!(odd.hits() <= 10, "{}", odd.hits());
        odd.clear();
        settle(secs(40)).await;
        assert_eq!((watcher.status().phase, record.len()), (Phase::Watching, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_namespace_that_was_not_asked_for_are_left_out_and_named() {
    for config in [config(), paged()] {
        let server =
            server([config_map_in("a", "own", "x"), config_map_in("a", "stray", "x"), config_map_in("c", "own", "x")])
                .await;
        let stray = |object: &mut Value| {
            if object["metadata"]["name"] == "stray" {
                object["metadata"]["namespace"] = "c".into();
            }
        };
        server.faults().on(List::of(MAPS).namespace("a")).always().edit(stray);
        server.faults().on(Watch::of(MAPS).namespace("a")).always().edit(stray);
        // The one that it claims to be in is watched as well, and has the name.
        server.apply(config_map_in("c", "stray", "true")).unwrap();
        let (watcher, record) = watching(&server, config.namespaces(["a", "c"])).await;
        let rows =
            || stored(&watcher.store().snapshot()).into_iter().map(|[ns, name, _, app]| format!("{ns}/{name} {app}"));
        let expected = ["a/own x", "c/own x", "c/stray true"];
        assert_eq!(rows().collect::<Vec<_>>(), expected);
        assert_eq!(watcher.status().skipped, 1);
        server.apply(config_map_in("a", "stray", "y")).unwrap();
        server.delete(MAPS, Some("a"), "stray").unwrap();
        settle(secs(1)).await;
        assert_eq!((rows().collect::<Vec<_>>(), record.len()), (expected.map(str::to_owned).to_vec(), 0));
        assert_eq!(watcher.status().last_skipped.unwrap(), "c/stray: not in a namespace that was asked for");
        // A list in which the real one is missing takes it away, whatever another one says of it.
        server.delete(MAPS, Some("c"), "stray").unwrap();
        server.apply(config_map_in("a", "stray", "z")).unwrap();
        watcher.relist();
        settle(secs(30)).await;
        assert_eq!(rows().collect::<Vec<_>>(), expected[..2]);
        assert_eq!(record.totals(), (0, 0, 1));
    }
}

/// As when its CRD is made anew: what was asked for is the kind of before, and not every namespace's objects.
#[tokio::test(start_paused = true)]
async fn a_kind_that_comes_back_with_namespaces_shows_none_that_was_not_asked_for() {
    let widgets = "example.com/v1/widgets";
    let server = server([]).await;
    server.register(ResourceKind::cluster("example.com", "v1", "widgets", "Widget"));
    let widget = |metadata: Value| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata});
    server.apply(widget(json!({"name": "old"}))).unwrap();
    let config = WatcherConfig::new(widgets).index_by(["metadata.name"]).namespaces(["a", "b"]);
    let watcher = Watcher::builder(server.client(), config).spawn().unwrap();
    assert_eq!(watcher.wait_for_sync(LONG).await.unwrap(), 1);
    settle(secs(20)).await;
    server.unregister(widgets);
    settle(secs(20)).await;
    server.register(ResourceKind::namespaced("example.com", "v1", "widgets", "Widget"));
    server.apply(widget(json!({"namespace": "secret", "name": "new"}))).unwrap();
    server.compact();
    settle(secs(60)).await;
    assert_eq!((watcher.store().len(), watcher.status().skipped), (0, 1));
    assert_eq!(watcher.status().last_skipped.unwrap(), "secret/new: not in a namespace that was asked for");
}

#[tokio::test(start_paused = true)]
async fn events_that_do_not_fit_what_is_known_lead_to_what_they_show() {
    let server = server([config_map("a", "x"), config_map("b", "x")]).await;
    let (watcher, record) = watching(&server, config()).await;
    settle(secs(20)).await;
    let at = server.revision();
    server.advance(20);
    let lines = [
        event("DELETED", "unknown", at + 1, "x"),
        event("MODIFIED", "new", at + 2, "1"),
        event("ADDED", "new", at + 3, "2"),
        event("ADDED", "new", at + 3, "2"),
        event("DELETED", "new", at + 4, "2"),
        event("DELETED", "new", at + 4, "2"),
        event("MODIFIED", "new", at + 5, "3"),
    ];
    for line in &lines {
        server.faults().on(Watch::of(MAPS)).nth(1).line(line.as_str());
    }
    server.close_watches();
    settle(secs(3)).await;
    assert_eq!(
        (names(&watcher), label(&watcher, "new").as_deref()),
        (vec!["a".into(), "b".into(), "new".into()], Some("3"))
    );
    assert_eq!(record.totals(), (2, 1, 1));
    assert_eq!((watcher.status().relists, watcher.last_watch_error()), (0, None));
    check_index(&watcher.store().snapshot());
}

#[tokio::test(start_paused = true)]
async fn the_version_zero_means_nothing() {
    let server = server(many(2)).await;
    let (watcher, record) = watching(&server, config()).await;
    settle(secs(20)).await;
    let at = watcher.status().resource_version;
    let bookmark = json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "0"}}}).to_string();
    for line in [bookmark, event("MODIFIED", "m0000", 0, "y"), event("ADDED", "n", 0, "x")] {
        server.faults().on(Watch::of(MAPS)).nth(1).line(line);
    }
    server.close_watches();
    settle(secs(3)).await;
    let status = watcher.status();
    assert_eq!((status.relists, status.last_watch_error, status.resource_version), (0, None, at));
    assert_eq!((label(&watcher, "m0000").as_deref(), watcher.store().len()), (Some("y"), 3));
    assert!(record.len() > 0);
}

#[tokio::test(start_paused = true)]
async fn c09_an_absurd_retry_after_is_no_reason_to_wait_for_years() {
    for value in ["315360000", "-5", "Wed, 21 Oct 2099 07:28:00 GMT", "99999999999999999999999", "1.5", "", "soon"] {
        let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = asked.clone();
        let client = by_hand(move |_| {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let mut response = http::Response::new(Drip::new(secs(0)));
            *response.status_mut() = http::StatusCode::TOO_MANY_REQUESTS;
            response.headers_mut().insert("retry-after", value.parse().unwrap());
            response
        });
        let _watcher = Watcher::builder(client, paged()).spawn().unwrap();
        settle(secs(700)).await;
        let asked = asked.load(std::sync::atomic::Ordering::SeqCst);
        assert!((2..=40).contains(&asked), "{value:?}: {asked}");
    }
}

#[tokio::test(start_paused = true)]
async fn redirections_and_answers_without_a_body_are_failures_and_no_hot_loop() {
    for status in [204, 205, 300, 301, 302, 304, 307, 308, 418, 451, 511, 599] {
        let server = server(many(2)).await;
        let odd = server.faults().on(Any::of(MAPS)).always().status(status);
        let watcher = Watcher::builder(server.client(), config()).spawn().unwrap();
        let error = watcher.wait_for_sync(secs(60)).await.unwrap_err();
        assert!(odd.hits() <= 14, "{status}: {}", odd.hits());
        let last = error.last_watch_error().unwrap();
        assert!(last.code.is_none_or(|code| code == status), "{status}: {last}");
        odd.clear();
        assert_eq!(watcher.wait_for_sync(secs(35)).await.unwrap(), 2, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn c04_a_compacted_version_is_known_by_the_words_of_the_store_as_well() {
    let compacted = || Status::new(500, "InternalError", "etcdserver: mvcc: required revision has been compacted");
    for form in ["head", "event"] {
        let server = server(many(2)).await;
        let (watcher, record) = watching(&server, config()).await;
        settle(secs(20)).await;
        let rule = server.faults().on(Watch::of(MAPS).without_query("sendInitialEvents")).always();
        let handle = if form == "head" { rule.status(compacted()) } else { rule.error(compacted()) };
        server.close_watches();
        settle(ms(800)).await;
        server.apply(config_map("new", "x")).unwrap();
        settle(ms(800)).await;
        assert_eq!((handle.hits(), watcher.status().relists), (1, 1), "{form}");
        assert_eq!(watcher.last_watch_error().unwrap().class, ErrorClass::Expired, "{form}");
        same_as_served(&watcher, &server).await;
        settle(ms(1)).await;
        assert_eq!(record.totals(), (1, 0, 0), "{form}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_event_that_is_odd_never_stops_the_watch_for_good() {
    let errors = [
        r#"{"kind":"Status","code":-1}"#,
        r#"{"kind":"Status","code":"410","reason":"Expired"}"#,
        r#"{"kind":"Status","code":429,"details":{"retryAfterSeconds":-7}}"#,
        r#"{"kind":"Status","code":429,"details":{"retryAfterSeconds":99999999999}}"#,
        r#"{"kind":"Status","code":200,"status":"Success"}"#,
        r#"{"kind":"Pod","metadata":{"name":"x"}}"#,
        "null",
        "7",
        "[]",
    ];
    for error in errors {
        let server = server(many(2)).await;
        let (watcher, record) = watching(&server, config()).await;
        settle(secs(20)).await;
        let rule = server.faults().on(Watch::of(MAPS)).times(3);
        rule.line(format!(r#"{{"type":"ERROR","object":{error}}}"#));
        server.close_watches();
        settle(ms(100)).await;
        server.apply(config_map("new", "x")).unwrap();
        settle(secs(2_100)).await;
        same_as_served(&watcher, &server).await;
        assert_eq!(record.totals(), (1, 0, 0), "{error}");
        assert_eq!(watcher.status().phase, Phase::Watching, "{error}");
        assert!(server.journal().count(Any::of(MAPS)) < 30, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn c35_a_refusal_whose_body_never_ends_is_a_refusal() {
    for pieces in [&[][..], &[r#"{"kind":"Status","code":403,"#]] {
        let client = by_hand(move |_| {
            let mut body = Drip::new(secs(1));
            pieces.iter().for_each(|piece| body.send(*piece));
            let mut response = http::Response::new(body);
            *response.status_mut() = http::StatusCode::FORBIDDEN;
            response
        });
        let watcher = Watcher::builder(client, paged()).spawn().unwrap();
        let error = watcher.wait_for_sync(secs(70)).await.unwrap_err();
        let last = error.last_watch_error().unwrap();
        assert_eq!((last.class, last.code), (ErrorClass::Forbidden, Some(403)), "{last}");
    }
}

#[tokio::test(start_paused = true)]
async fn c14_a_stream_that_goes_on_for_ever_without_its_mark_gives_way_to_pages() {
    let client = by_hand(|request| {
        let mut body = Drip::new(secs(10));
        if request.uri().query().is_some_and(|q| q.contains("watch=true")) {
            for version in 1..1_000 {
                body.send(event("ADDED", &format!("e{version:04}"), version, "x") + "\n");
            }
        } else {
            let mut item = config_map("whole", "x");
            item["metadata"]["resourceVersion"] = "2000".into();
            let list = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "2000"}, "items": [item]});
            body = Drip::new(secs(0));
            body.send(list.to_string());
        }
        http::Response::new(body)
    });
    let watcher = Watcher::builder(client, config()).spawn().unwrap();
    assert_eq!(watcher.wait_for_sync(secs(601)).await.unwrap(), 1);
    assert_eq!(names(&watcher), ["whole"], "what the stream brought is not there any more");
}

#[cfg(feature = "cached")]
#[tokio::test(start_paused = true)]
async fn c63_what_somebody_else_answers_is_no_absence() {
    use k8s_fake_apiserver::Get;
    for selected in [false, true] {
        let server = server([config_map("a", "x")]).await;
        let config = if selected { config().label_selector("app=x") } else { config() };
        let builder = Watcher::builder(server.client(), config).cached(k8s_store::CacheConfig::default());
        let watcher = builder.spawn().unwrap();
        watcher.wait_for_sync(LONG).await.unwrap();
        for (body, status) in [
            ("{}", 200),
            (r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":404}"#, 200),
            (r#"{"kind":"Table","metadata":{"resourceVersion":"9"},"rows":[]}"#, 200),
            ("<html>log in</html>", 200),
            ("", 200),
            ("", 302),
            ("", 502),
        ] {
            let rule = server.faults().on(if selected { List::of(MAPS) } else { Get::of(MAPS) }).times(1);
            if status == 200 {
                rule.body("text/html", body)
            } else {
                rule.status(status)
            };
            let error = watcher.store().by_name(Some("shop"), "a").await.unwrap_err();
            assert!(error.to_string().contains("shop/a"), "{selected} {status} {body}: {error}");
        }
        assert!(watcher.store().by_name(Some("shop"), "a").await.unwrap().is_some());
    }
    // A proxy's 404 in JSON, as if there were no such object.
    let server = server([config_map("a", "x")]).await;
    let mut service = server.service();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let is_get = request.uri().path().ends_with("/a");
        let answer = tower::Service::call(&mut service, request);
        async move {
            if !is_get {
                return Ok::<_, std::io::Error>(answer.await?.map(http_body_util::Either::Left));
            }
            let body = http_body_util::Full::new(bytes::Bytes::from(r#"{"message":"no route"}"#));
            let mut answer = http::Response::new(http_body_util::Either::Right(body));
            *answer.status_mut() = http::StatusCode::NOT_FOUND;
            Ok(answer)
        }
    });
    let builder = Watcher::builder(kube::Client::new(service, "default"), config());
    let watcher = builder.cached(k8s_store::CacheConfig::default()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    let error = watcher.store().by_name(Some("shop"), "a").await.unwrap_err();
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    assert_eq!(cause.as_deref(), Some("the server answered 404"), "{error:?}");
}
