//! Scripted faults: that the server can play the watch cases.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use http::Request;
use http_body_util::BodyExt;
use k8s_fake_apiserver::{Any, Create, FakeApiServer, Get, List, Patch, Status, StreamingLists, Update, Watch};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::Service;

use crate::support::{Next, call, config_map, get, merge_patch, post, server, watch};

const MAPS: &str = "/api/v1/configmaps";

async fn five() -> FakeApiServer {
    FakeApiServer::builder().objects((0..5).map(|i| config_map(&format!("m{i}")))).start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn c01_c04_gone_in_mid_stream_once() {
    let server = five().await;
    let fault = server.faults().on(Watch::of("v1/configmaps")).after(3).gone();
    let mut lines = watch(&server, "/api/v1/configmaps?watch=1").await;
    assert!(lines.shorts(3).await.iter().all(|l| l.starts_with("ADDED")));
    assert_eq!(lines.short().await, "ERROR 410 Expired");
    assert_eq!(lines.next().await, Next::End);
    assert_eq!(fault.hits(), 1);
    let mut again = watch(&server, "/api/v1/configmaps?watch=1").await;
    assert!(again.shorts(5).await.iter().all(|l| l.starts_with("ADDED")));
}

#[tokio::test(start_paused = true)]
async fn a_replayed_watch_begins_before_what_was_asked_for_and_not_before_the_history() {
    let server = five().await;
    let now = server.revision();
    let query = format!("{MAPS}?watch=1&resourceVersion={}", now - 1);
    let replay = |revisions| server.faults().on(Watch::of("v1/configmaps")).replay(revisions);
    replay(2);
    let expected = (2..5).map(|i| format!("ADDED m{i}@{}", now - 4 + i)).collect::<Vec<_>>();
    assert_eq!(watch(&server, &query).await.shorts(3).await, expected);
    server.compact_to(now - 2);
    replay(100);
    assert_eq!(watch(&server, &query).await.shorts(2).await, expected[1..]);
    // Once only, and nothing else is meant.
    assert_eq!(watch(&server, &query).await.short().await, expected[2]);
    let fault = replay(3);
    assert!(watch(&server, &format!("{MAPS}?watch=1")).await.shorts(5).await.iter().all(|l| l.starts_with("ADDED")));
    assert_eq!(fault.hits(), 1);

    // Who asks for the state resumes nothing, also on a server that does not know how to give it.
    let old = FakeApiServer::builder().streaming_lists(StreamingLists::Ignored).object(config_map("a"));
    let old = old.start().await.unwrap();
    old.faults().on(Watch::of("v1/configmaps")).replay(9);
    let query =
        format!("watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion={}", old.revision());
    assert_eq!(watch(&old, &format!("{MAPS}?{query}")).await.short().await, "Silent");
}

#[tokio::test(start_paused = true)]
async fn gone_as_http_for_lists_and_if_wanted_for_watches() {
    let server = five().await;
    let client = server.client();
    server.faults().on(List::of("v1/configmaps")).gone();
    assert_eq!(get(&client, MAPS).await.1["reason"], "Expired");
    server.faults().on(Watch::of("v1/configmaps")).gone_http();
    assert_eq!(get(&client, &format!("{MAPS}?watch=1")).await.0, 410);
}

#[tokio::test(start_paused = true)]
async fn c07_c33_a_status_for_so_many_requests() {
    let server = five().await;
    let client = server.client();
    let fault = server.faults().on(List::of("v1/configmaps")).skip(1).times(2).status(404);
    let mut codes = Vec::new();
    for _ in 0..5 {
        codes.push(get(&client, MAPS).await.0);
    }
    assert_eq!((codes, fault.hits()), (vec![200, 404, 404, 200, 200], 2));
    let fault = server.faults().on(List::of("v1/configmaps")).always().status(503);
    for _ in 0..20 {
        assert_eq!(get(&client, MAPS).await.0, 503);
    }
    fault.clear();
    assert_eq!((get(&client, MAPS).await.0, fault.hits()), (200, 20));
    server.faults().on(List::of("v1/configmaps")).nth(2).status(500);
    assert_eq!((get(&client, MAPS).await.0, get(&client, MAPS).await.0, get(&client, MAPS).await.0), (200, 500, 200));
}

#[tokio::test(start_paused = true)]
async fn c09_too_many_requests_with_retry_after() {
    let server = five().await;
    server.faults().on(Watch::of("v1/configmaps")).times(1).status(Status::too_many_requests(7));
    let request = Request::get(format!("{MAPS}?watch=1")).body(Body::empty()).unwrap();
    let response = server.client().send(request).await.unwrap();
    assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (429, &"7".parse().unwrap()));
    let body: Value = serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
    assert_eq!(body["details"]["retryAfterSeconds"], 7);
    server.faults().on(Watch::of("v1/configmaps")).after(1).error(Status::too_many_requests(7));
    let mut lines = watch(&server, &format!("{MAPS}?watch=1")).await;
    assert!(lines.short().await.starts_with("ADDED"));
    let Next::Line(line) = lines.next().await else { panic!("no line") };
    assert_eq!((&line["type"], &line["object"]["details"]["retryAfterSeconds"]), (&json!("ERROR"), &json!(7)));
}

#[tokio::test(start_paused = true)]
async fn c11_the_third_page_has_expired() {
    let server =
        FakeApiServer::builder().objects((0..12).map(|i| config_map(&format!("m{i:02}")))).start().await.unwrap();
    let client = server.client();
    server.faults().on(List::of("v1/configmaps")).nth(3).gone();
    let mut next = String::new();
    let mut codes = Vec::new();
    for _ in 0..3 {
        let (code, page) = get(&client, &format!("{MAPS}?limit=5&continue={next}")).await;
        codes.push(code);
        next = page["metadata"]["continue"].as_str().unwrap_or_default().into();
    }
    assert_eq!(codes, [200, 200, 410]);
}

#[tokio::test(start_paused = true)]
async fn c12_an_empty_page_with_a_continue_token() {
    let server = five().await;
    let client = server.client();
    server.faults().on(List::of("v1/configmaps").with_query("limit", "2")).edit_body(|list| {
        list["items"] = json!([]);
        list["metadata"]["continue"] = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiL2RlZmF1bHQvbTEifQ".into();
    });
    let (_, page) = get(&client, &format!("{MAPS}?limit=2")).await;
    assert_eq!(page["items"], json!([]));
    let token = page["metadata"]["continue"].as_str().unwrap();
    let (_, rest) = get(&client, &format!("{MAPS}?continue={token}")).await;
    assert_eq!(rest["items"].as_array().unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn c17_silence_after_some_lines_and_before_any_header() {
    let server = five().await;
    server.faults().on(Watch::of("v1/configmaps")).after(2).hang();
    let mut lines = watch(&server, &format!("{MAPS}?watch=1&timeoutSeconds=10")).await;
    assert!(lines.shorts(2).await.iter().all(|l| l.starts_with("ADDED")));
    // Not even its own timeout ends it.
    assert_eq!(lines.next().await, Next::Silent);
    server.faults().on(List::of("v1/configmaps")).no_answer();
    let client = server.client();
    assert!(tokio::time::timeout(Duration::from_secs(3600), get(&client, MAPS)).await.is_err());
    server.faults().on(List::of("v1/configmaps")).after(1).hang();
    let api: Api<ConfigMap> = Api::all(client);
    assert!(tokio::time::timeout(Duration::from_secs(3600), api.list(&ListParams::default())).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn c18_c19_bookmarks_of_odd_shape() {
    let server = five().await;
    for shape in [
        json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "900"}, "spec": {"selector": null}}),
        json!({"metadata": {"resourceVersion": "900"}, "unknown": [1, 2]}),
    ] {
        let line = json!({"type": "BOOKMARK", "object": shape}).to_string();
        server.faults().on(Watch::of("v1/configmaps")).after(5).line(line);
        server.faults().on(Watch::of("v1/configmaps")).after(6).end();
        let mut lines = watch(&server, &format!("{MAPS}?watch=1")).await;
        lines.shorts(5).await;
        let Next::Line(line) = lines.next().await else { panic!("no line") };
        assert_eq!((&line["type"], &line["object"]), (&json!("BOOKMARK"), &shape));
        server.apply(config_map("more")).unwrap();
        assert!(lines.short().await.starts_with("ADDED more"));
        assert_eq!(lines.next().await, Next::End);
        server.delete("v1/configmaps", Some("default"), "more").unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn c20_one_bad_object_among_good_ones() {
    let server = five().await;
    server.faults().on(Any::of("v1/configmaps")).times(2).edit(|object| {
        if object["metadata"]["name"] == "m3" {
            object["data"]["k"] = 5.into();
        }
    });
    let api: Api<ConfigMap> = Api::all(server.client());
    assert!(api.list(&ListParams::default()).await.is_err());
    let (_, list) = get(&server.client(), MAPS).await;
    let bad: Vec<bool> = list["items"].as_array().unwrap().iter().map(|i| i["data"]["k"].is_number()).collect();
    assert_eq!(bad, [false, false, false, true, false]);
    // What is stored is as it was.
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 5);
    server.faults().on(Watch::of("v1/configmaps")).after(1).line("this is no JSON");
    let mut lines = watch(&server, &format!("{MAPS}?watch=1")).await;
    assert!(lines.short().await.starts_with("ADDED"));
    assert_eq!(lines.next().await, Next::Line(Value::Null));
}

#[tokio::test(start_paused = true)]
async fn c22_a_big_object_in_small_chunks_that_split_characters() {
    let server = server().await;
    let data = "ä".repeat(700_000);
    let object =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "big", "annotations": {"text": data}}});
    server.apply(object).unwrap();
    server.faults().on(Any::of("v1/secrets")).times(2).chunks(1023);
    let api: Api<Secret> = Api::all(server.client());
    let listed = api.list(&ListParams::default()).await.unwrap().items.remove(0);
    assert_eq!(listed.metadata.annotations.unwrap()["text"], data);
    let mut events = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let Some(WatchEvent::Added(watched)) = events.try_next().await.unwrap() else { panic!("no event") };
    assert_eq!(watched.metadata.annotations.unwrap()["text"], data);
}

#[tokio::test(start_paused = true)]
async fn bodies_cut_at_a_byte() {
    let server = five().await;
    let body = async || {
        let request = Request::get(MAPS).body(Body::empty()).unwrap();
        let body = server.service().call(request).await.unwrap().into_body();
        tokio::time::timeout(Duration::from_secs(60), body.collect()).await.map(|r| r.map(|b| b.to_bytes().len()))
    };
    let whole = body().await.unwrap().unwrap();
    server.faults().on(List::of("v1/configmaps")).end_at_byte(100);
    assert_eq!(body().await.unwrap().unwrap(), 100);
    server.faults().on(List::of("v1/configmaps")).reset_at_byte(100);
    assert!(body().await.unwrap().is_err());
    server.faults().on(List::of("v1/configmaps")).hang_at_byte(100);
    assert!(body().await.is_err());
    server.faults().on(List::of("v1/configmaps")).after(2).reset();
    assert!(body().await.unwrap().is_err());
    server.faults().on(List::of("v1/configmaps")).after(2).end();
    let cut = body().await.unwrap().unwrap();
    assert!(cut < whole && cut > 100);
    assert_eq!(body().await.unwrap().unwrap(), whole);
}

#[tokio::test(start_paused = true)]
async fn c08_connections_that_break() {
    let server = five().await;
    server.faults().on(Watch::of("v1/configmaps")).after(1).reset();
    let mut lines = watch(&server, &format!("{MAPS}?watch=1")).await;
    assert!(lines.short().await.starts_with("ADDED"));
    assert_eq!(lines.next().await, Next::Broken);
    server.faults().on(List::of("v1/configmaps")).drop_connection();
    let api: Api<ConfigMap> = Api::all(server.client());
    assert!(matches!(api.list(&ListParams::default()).await, Err(kube::Error::Service(_))));
    // Answers without lines break too.
    server.faults().on(Get::of("v1/configmaps")).reset();
    let one: Api<ConfigMap> = Api::default_namespaced(server.client());
    assert!(one.get("m0").await.is_err());
    assert!(one.get("m0").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn delays_add_up_and_come_before_the_work() {
    let server = five().await;
    let client = server.client();
    server.faults().on(Patch::of("v1/configmaps")).delay(Duration::from_secs(3));
    server.faults().on(Patch::of("v1/configmaps")).delay(Duration::from_secs(4));
    server.faults().on(Patch::of("v1/configmaps")).status(500);
    let (started, before) = (Instant::now(), server.revision());
    let (code, _) =
        merge_patch(&client, "/api/v1/namespaces/default/configmaps/m0", &json!({"data": {"k": "w"}})).await;
    assert_eq!((code, started.elapsed().as_secs(), server.revision()), (500, 7, before));
    server.faults().on(Watch::of("v1/configmaps")).after(1).pause(Duration::from_secs(9));
    let mut lines = watch(&server, &format!("{MAPS}?watch=1")).await;
    assert!(lines.short().await.starts_with("ADDED"));
    let started = Instant::now();
    assert!(matches!(lines.next().await, Next::Line(_)));
    assert_eq!(started.elapsed().as_secs(), 9);
}

#[tokio::test(start_paused = true)]
async fn c90_two_writers_that_have_both_read() {
    let server = five().await;
    let path = "/api/v1/namespaces/default/configmaps/m0";
    let (_, map) = get(&server.client(), path).await;
    let hold = server.faults().on(Update::of("v1/configmaps")).hold();
    let writers: Vec<_> = ["a", "b"]
        .map(|name| {
            let (client, mut map) = (server.client(), map.clone());
            map["data"]["k"] = name.into();
            tokio::spawn(async move { call(&client, "PUT", path, "application/json", &map).await.0 })
        })
        .into();
    hold.wait_for(2).await;
    assert_eq!(hold.waiting(), 2);
    hold.release();
    let mut codes = Vec::new();
    for writer in writers {
        codes.push(writer.await.unwrap());
    }
    codes.sort_unstable();
    assert_eq!((codes, hold.waiting()), (vec![200, 409], 0));
    // One of several.
    let hold = server.faults().on(Get::of("v1/configmaps")).nth(2).hold();
    assert_eq!(get(&server.client(), path).await.0, 200);
    let client = server.client();
    let held = tokio::spawn(async move { get(&client, path).await.0 });
    hold.wait_for(1).await;
    assert_eq!(get(&server.client(), path).await.0, 200);
    hold.release();
    assert_eq!(held.await.unwrap(), 200);
    // The same for creates.
    let hold = server.faults().on(Create::of("v1/configmaps")).hold();
    let maker = || {
        let client = server.client();
        tokio::spawn(async move { post(&client, "/api/v1/namespaces/default/configmaps", &config_map("new")).await.0 })
    };
    let (one, two) = (maker(), maker());
    hold.wait_for(2).await;
    // Clearing the faults lets them go as well.
    server.faults().clear();
    let mut codes = [one.await.unwrap(), two.await.unwrap()];
    codes.sort_unstable();
    assert_eq!(codes, [201, 409]);
}

#[tokio::test(start_paused = true)]
async fn c35_c85_faults_for_some_clients_namespaces_and_names() {
    let server = five().await;
    server.faults().on(Any::request().client("a")).always().status(500);
    server
        .faults()
        .on(List::of("v1/configmaps").namespace("kube-system"))
        .always()
        .status(Status::forbidden("list", "v1/configmaps"));
    server.faults().on(Get::of("v1/configmaps").name("m1")).always().status(504);
    let (a, b) = (server.client_as("a"), server.client_as("b"));
    assert_eq!((get(&a, MAPS).await.0, get(&b, MAPS).await.0), (500, 200));
    let (code, status) = get(&b, "/api/v1/namespaces/kube-system/configmaps").await;
    assert_eq!((code, status["reason"].as_str()), (403, Some("Forbidden")));
    assert_eq!(get(&b, "/api/v1/namespaces/default/configmaps").await.0, 200);
    assert_eq!(get(&b, "/api/v1/namespaces/default/configmaps/m1").await.0, 504);
    assert_eq!(get(&b, "/api/v1/namespaces/default/configmaps/m2").await.0, 200);
    server.faults().clear();
    assert_eq!(get(&a, MAPS).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn bodies_of_ones_own() {
    let server = five().await;
    server.faults().on(List::request()).body("text/html", "<html>bad gateway</html>");
    let request = Request::get(MAPS).body(Body::empty()).unwrap();
    let response = server.client().send(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/html");
    assert_eq!(&response.into_body().collect().await.unwrap().to_bytes()[..6], b"<html>");
}
