//! Objects that cannot be held, objects of the wrong shape, huge objects.

use k8s_fake_apiserver::{FakeApiServer, List, Watch};
use k8s_watcher::{Phase, Watcher};
use serde_json::{Value, json};

use crate::support::*;

/// JSON text that is nested as deeply.
fn deep(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

fn line(kind: &str, name: &str, version: u64, data: &str) -> String {
    format!(
        r#"{{"type":"{kind}","object":{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"namespace":"shop","name":"{name}","uid":"u-{name}","resourceVersion":"{version}","labels":{{"app":"x"}}}},"data":{data}}}}}"#
    )
}

#[tokio::test(start_paused = true)]
async fn c20_a_wrong_type_is_no_bad_object() {
    let mut odd = config_map("odd", "x");
    odd["data"] = json!([1, {"a": null}]);
    odd["metadata"]["annotations"] = json!(7);
    let server = server([config_map("a", "x"), config_map("b", "x")]).await;
    server.faults().on(List::of(MAPS)).nth(1).edit(|object| {
        if object["metadata"]["name"] == "b" {
            object["data"] = json!([1, {"a": null}]);
            object["metadata"]["annotations"] = json!(7);
        }
    });
    let (watcher, _) = watching(&server, paged()).await;
    assert_eq!((watcher.store().len(), watcher.status().skipped), (2, 0));
    let b = watcher.store().by_name(Some("shop"), "b").unwrap();
    assert_eq!(b.to_value()["data"], json!([1, {"a": null}]));
}

#[tokio::test(start_paused = true)]
async fn c20_bad_objects_in_a_list_are_skipped_and_named_and_the_rest_is_served() {
    let bad = [
        format!(r#"{{"metadata":{{"namespace":"shop","name":"deep"}},"data":{}}}"#, deep(200)),
        r#"{"metadata":{"namespace":"shop","labels":{"app":"x"}}}"#.to_owned(),
        r#"{"metadata":{"namespace":"shop","name":"broken" oops}}"#.to_owned(),
        "7".to_owned(),
    ];
    let good = |name: &str| format!(r#"{{"metadata":{{"namespace":"shop","name":"{name}","resourceVersion":"4"}}}}"#);
    for (i, bad) in bad.iter().enumerate() {
        let server = server([]).await;
        let items = [good("a"), bad.clone(), good("b")].join(",");
        let version = server.revision();
        let body = format!(
            r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":[{items}]}}"#
        );
        server.faults().on(List::of(MAPS)).nth(1).body("application/json", body);
        let watcher = Watcher::builder(server.client(), paged()).spawn().unwrap();
        assert_eq!(watcher.wait_for_sync(LONG).await.unwrap(), 2, "{i}");
        let status = watcher.status();
        assert_eq!((status.skipped, status.relists), (1, 0), "{i}");
        let named = status.last_skipped.unwrap();
        assert_eq!(named.starts_with("shop/deep: nested deeper"), i == 0, "{named}");
        settle(secs(30)).await;
        assert_eq!(watcher.status().phase, Phase::Watching);
    }
}

#[tokio::test(start_paused = true)]
async fn c20_a_good_object_that_turns_bad_stays_as_it_was_until_it_is_good_again_or_deleted() {
    let server = server([config_map("a", "x"), config_map("good", "x")]).await;
    let (watcher, record) = watching(&server, config()).await;
    settle(secs(20)).await;
    let at = server.revision();
    server.advance(10);
    let faults = server.faults();
    let send = |text: String| faults.on(Watch::of(MAPS)).nth(1).line(text);
    send(line("MODIFIED", "good", at + 1, &deep(130)));
    send(line("MODIFIED", "good", at + 2, &deep(130)));
    server.close_watches();
    settle(secs(5)).await;
    assert_eq!(label(&watcher, "good").as_deref(), Some("x"), "the last good state stays");
    assert_eq!((watcher.status().skipped, record.len()), (2, 0));
    assert_eq!(watcher.status().last_skipped.unwrap(), "shop/good: nested deeper than 127 levels");
    assert_eq!(watcher.status().resource_version, Some((at + 2).to_string()), "the version moved on");
    // A relist in which it is bad as well does not take it away.
    server.faults().on(List::of(MAPS)).always().edit(|_| {});
    let raw: Value = server.object(MAPS, Some("shop"), "a").unwrap().unwrap();
    let body = format!(
        r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"{}"}},"items":[{raw},{{"metadata":{{"namespace":"shop","name":"good","resourceVersion":"{}"}},"data":{}}}]}}"#,
        at + 10,
        at + 2,
        deep(130)
    );
    server.faults().on(Watch::of(MAPS).with_query("sendInitialEvents", "true")).nth(1).status(422);
    server.faults().on(List::of(MAPS)).nth(1).body("application/json", body);
    watcher.relist();
    settle(secs(5)).await;
    assert_eq!((names(&watcher), watcher.status().relists), (vec!["a".to_owned(), "good".to_owned()], 1));
    assert_eq!((watcher.status().skipped, record.len()), (3, 0));
    // Good again.
    server.apply(config_map("good", "y")).unwrap();
    eventually(&watcher, "good again", |s| s.by_name(Some("shop"), "good").unwrap().label("app") == Some("y")).await;
    // Bad, and deleted in a state that cannot be read.
    let at = server.revision();
    server.advance(10);
    let faults = server.faults();
    faults.on(Watch::of(MAPS)).nth(1).line(line("DELETED", "good", at + 1, &deep(130)));
    server.close_watches();
    eventually(&watcher, "good is gone", |s| s.by_name(Some("shop"), "good").is_none()).await;
    settle(secs(1)).await;
    assert_eq!(record.totals(), (0, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn c20_a_late_delete_in_a_bad_state_does_not_take_away_what_is_newer() {
    let server = server([config_map("a", "x"), config_map("b", "x")]).await;
    let at = server.revision();
    server.advance(10);
    server.faults().on(Watch::of(MAPS)).nth(1).line(line("DELETED", "b", at + 1, &deep(130)));
    // The first page is old, the second has an object that is newer than the delete of its predecessor.
    server.faults().on(List::of(MAPS)).nth(1).edit_body(move |page| {
        page["metadata"]["resourceVersion"] = at.to_string().into();
        page["items"][1]["metadata"]["resourceVersion"] = (at + 5).to_string().into();
    });
    let (watcher, record) = watching(&server, paged()).await;
    settle(secs(1)).await;
    assert_eq!((watcher.status().skipped, record.len()), (1, 0));
    assert_eq!(names(&watcher), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn c20_a_bad_object_among_initial_events_is_skipped() {
    let server = server(many(3)).await;
    server.faults().on(Watch::of(MAPS)).nth(1).after(1).line(line("ADDED", "bad", 5, &deep(130)));
    server.faults().on(Watch::of(MAPS)).nth(1).after(2).line(r#"{"type":"ADDED","object":{"metadata":{}}}"#);
    let (watcher, _) = watching(&server, config()).await;
    assert_eq!((watcher.store().len(), watcher.status().skipped), (3, 2));
    assert_eq!(watcher.last_watch_error(), None);
}

#[tokio::test(start_paused = true)]
async fn c22_an_object_of_1_4_megabytes_passes_in_small_pieces() {
    let huge = |mark: &str| {
        let mut huge = config_map("huge", mark);
        // Characters of two and three bytes, so that pieces end within some of them.
        huge["data"] = json!({"value": "äß→x".repeat(1_400_000 / 8)});
        huge
    };
    for config in [config(), paged()] {
        let server = server([huge("list"), config_map("small", "x")]).await;
        server.faults().on(List::of(MAPS)).always().chunks(1_000);
        server.faults().on(Watch::of(MAPS)).always().chunks(1_000);
        let (watcher, record) = watching(&server, config).await;
        let same = |object: &k8s_types::Object| {
            let served = server.object(MAPS, Some("shop"), "huge").unwrap().unwrap();
            object.to_value()["data"] == served["data"]
        };
        assert!(same(&watcher.store().by_name(Some("shop"), "huge").unwrap()));
        server.apply(huge("modified")).unwrap();
        same_as_served(&watcher, &server).await;
        server.delete(MAPS, Some("shop"), "huge").unwrap();
        server.apply(huge("added")).unwrap();
        same_as_served(&watcher, &server).await;
        assert!(same(&watcher.store().by_name(Some("shop"), "huge").unwrap()));
        settle(secs(1)).await;
        assert_eq!(record.totals(), (1, 1, 1));
        assert_eq!(watcher.status().relists, 0);
        server.delete(MAPS, Some("shop"), "huge").unwrap();
        same_as_served(&watcher, &server).await;
        assert!(watcher.store().snapshot().bytes().objects < 10_000, "its memory is free");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_no_list_is_an_error_and_is_asked_again() {
    for body in ["", "not json", "{}", "[]", r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"9"},"items":[{"#]
    {
        let server: FakeApiServer = server(many(2)).await;
        server.faults().on(List::of(MAPS)).nth(1).body("application/json", body.to_owned());
        let watcher = Watcher::builder(server.client(), paged()).spawn().unwrap();
        assert_eq!(watcher.wait_for_sync(LONG).await.unwrap(), 2, "{body:?}");
        assert!(watcher.last_watch_error().is_some(), "{body:?}");
        assert_eq!(server.journal().count(List::of(MAPS)), 2, "{body:?}");
    }
}
