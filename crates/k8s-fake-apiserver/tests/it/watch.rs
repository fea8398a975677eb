//! watch.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use k8s_fake_apiserver::{FakeApiServer, StreamingLists};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use serde_json::json;

use crate::support::{Next, config_map, get, merge_patch, pod, server, short, watch};

#[tokio::test(start_paused = true)]
async fn a_typed_client_watches() {
    let server = server().await;
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let version = server.revision().to_string();
    let mut events = api.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    server.apply(config_map("a")).unwrap();
    server.apply(config_map("a")).unwrap();
    server.delete("v1/configmaps", Some("default"), "a").unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(match events.try_next().await.unwrap().unwrap() {
            WatchEvent::Added(_) => "added",
            WatchEvent::Modified(_) => "modified",
            WatchEvent::Deleted(_) => "deleted",
            _ => "other",
        });
    }
    assert_eq!(seen, ["added", "modified", "deleted"]);
}

#[tokio::test(start_paused = true)]
async fn resume_replays_and_then_goes_on_live() {
    let server = FakeApiServer::builder().object(config_map("a")).start().await.unwrap();
    let start = server.revision();
    server.apply(config_map("b")).unwrap();
    server.apply(config_map("a")).unwrap();
    let mut lines = watch(&server, &format!("/api/v1/configmaps?watch=1&resourceVersion={start}")).await;
    assert_eq!(lines.shorts(2).await, [format!("ADDED b@{}", start + 1), format!("MODIFIED a@{}", start + 2)]);
    assert_eq!(lines.short().await, "Silent");
    server.delete("v1/configmaps", Some("default"), "b").unwrap();
    assert_eq!(lines.short().await, format!("DELETED b@{}", start + 3));
}

#[tokio::test(start_paused = true)]
async fn no_version_and_zero_begin_with_what_is_there() {
    let server = FakeApiServer::builder().object(config_map("b")).object(config_map("a")).start().await.unwrap();
    let now = server.revision();
    for path in
        ["/api/v1/configmaps?watch=true", "/api/v1/configmaps?watch=true&resourceVersion=0", "/api/v1/watch/configmaps"]
    {
        let mut lines = watch(&server, path).await;
        assert_eq!(
            lines.shorts(3).await,
            [format!("ADDED a@{now}"), format!("ADDED b@{}", now - 1), "Silent".into()],
            "{path}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_ends_with_its_bookmark() {
    let server = FakeApiServer::builder().object(config_map("a")).start().await.unwrap();
    server.advance(10);
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut lines = watch(&server, &format!("/api/v1/configmaps?{query}")).await;
    let now = server.revision();
    assert_eq!(lines.shorts(2).await, [format!("ADDED a@{}", now - 10), format!("BOOKMARK {now} end")]);
    server.apply(config_map("b")).unwrap();
    assert_eq!(lines.short().await, format!("ADDED b@{}", now + 1));
    let mut empty = watch(&server, &format!("/api/v1/secrets?{query}")).await;
    assert_eq!(empty.short().await, format!("BOOKMARK {} end", now + 1));
}

#[tokio::test(start_paused = true)]
async fn c14_streaming_lists_refused_and_ignored() {
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let path = format!("/api/v1/configmaps?{query}");
    let refusing = FakeApiServer::builder().streaming_lists(false).start().await.unwrap();
    let (code, status) = get(&refusing.client(), &path).await;
    assert_eq!((code, status["reason"].as_str()), (422, Some("Invalid")));
    let text = status["message"].as_str().unwrap();
    assert!(
        text.contains("sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"),
        "{text}"
    );
    let ignoring = FakeApiServer::builder()
        .streaming_lists(StreamingLists::Ignored)
        .object(config_map("a"))
        .start()
        .await
        .unwrap();
    let mut lines = watch(&ignoring, &path).await;
    assert_eq!(lines.shorts(2).await, [format!("ADDED a@{}", ignoring.revision()), "Silent".into()]);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_in_their_interval_and_before_the_end() {
    let server = FakeApiServer::builder().bookmark_interval(Duration::from_secs(10)).start().await.unwrap();
    let start = server.revision();
    let path = format!("/api/v1/configmaps?watch=1&resourceVersion={start}&allowWatchBookmarks=true&timeoutSeconds=25");
    let mut lines = watch(&server, &path).await;
    let began = tokio::time::Instant::now();
    server.advance(5);
    assert_eq!(next_short(&mut lines).await, format!("BOOKMARK {}", start + 5));
    assert_eq!(began.elapsed().as_secs(), 10);
    assert_eq!(next_short(&mut lines).await, format!("BOOKMARK {}", start + 5));
    server.advance(1);
    assert_eq!(next_short(&mut lines).await, format!("BOOKMARK {}", start + 6));
    assert_eq!(lines.next().await, Next::End);
    assert_eq!(began.elapsed().as_secs(), 25);
    // Not asked for: not sent.
    let mut plain =
        watch(&server, &format!("/api/v1/configmaps?watch=1&resourceVersion={start}&timeoutSeconds=25")).await;
    assert_eq!(plain.next().await, Next::End);
}

async fn next_short(lines: &mut crate::support::Lines) -> String {
    match lines.next().await {
        Next::Line(line) => short(&line),
        other => format!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_version_is_an_error_event_and_running_watches_lose_nothing() {
    let server = server().await;
    let start = server.revision();
    let mut running = watch(&server, &format!("/api/v1/configmaps?watch=1&resourceVersion={start}")).await;
    server.apply(config_map("a")).unwrap();
    server.compact();
    let mut late = watch(&server, &format!("/api/v1/configmaps?watch=1&resourceVersion={start}")).await;
    let Next::Line(line) = late.next().await else { panic!("no line") };
    assert_eq!(line["object"]["message"], format!("too old resource version: {start} ({})", start + 1));
    assert_eq!((short(&line).as_str(), late.next().await), ("ERROR 410 Expired", Next::End));
    assert_eq!(running.short().await, format!("ADDED a@{}", start + 1));
    let mut now = watch(&server, &format!("/api/v1/configmaps?watch=1&resourceVersion={}", start + 1)).await;
    assert_eq!(now.short().await, "Silent");
}

#[tokio::test(start_paused = true)]
async fn the_history_is_bounded() {
    let server = FakeApiServer::builder().history(5).start().await.unwrap();
    let start = server.revision();
    for i in 0..10 {
        server.apply(config_map(&format!("m{i}"))).unwrap();
    }
    let mut old = watch(&server, &format!("/api/v1/configmaps?watch=1&resourceVersion={}", start + 4)).await;
    assert_eq!(old.short().await, "ERROR 410 Expired");
    let mut kept = watch(&server, &format!("/api/v1/configmaps?watch=1&resourceVersion={}", start + 5)).await;
    assert_eq!(kept.short().await, format!("ADDED m5@{}", start + 6));
    // Other resources push a quiet one out as well.
    let mut quiet = watch(&server, &format!("/api/v1/secrets?watch=1&resourceVersion={start}")).await;
    assert_eq!(quiet.short().await, "ERROR 410 Expired");
}

#[tokio::test(start_paused = true)]
async fn c23_leaving_a_selector_is_a_delete_and_coming_back_an_add() {
    let server = FakeApiServer::builder().object(pod("n", "a", json!({"app": "x"}))).start().await.unwrap();
    let start = server.revision();
    let mut lines =
        watch(&server, &format!("/api/v1/namespaces/n/pods?watch=1&resourceVersion={start}&labelSelector=app%3Dx"))
            .await;
    let client = server.client();
    let path = "/api/v1/namespaces/n/pods/a";
    for app in [json!("y"), json!("z"), json!("x"), json!("x")] {
        merge_patch(&client, path, &json!({"metadata": {"labels": {"app": app}}})).await;
    }
    merge_patch(&client, path, &json!({"metadata": {"labels": {"other": "1"}}})).await;
    let Next::Line(left) = lines.next().await else { panic!("no line") };
    assert_eq!(short(&left), format!("DELETED a@{}", start + 1));
    // The state that was in the selection, under the version of the change.
    assert_eq!(left["object"]["metadata"]["labels"]["app"], "x");
    assert_eq!(lines.shorts(2).await, [format!("ADDED a@{}", start + 3), format!("MODIFIED a@{}", start + 4)]);
    assert_eq!(lines.short().await, "Silent");
}

#[tokio::test(start_paused = true)]
async fn one_namespace_and_one_object() {
    let server = server().await;
    let start = server.revision();
    let mut namespace = watch(&server, &format!("/api/v1/namespaces/b/pods?watch=1&resourceVersion={start}")).await;
    let mut object =
        watch(&server, &format!("/api/v1/pods?watch=1&resourceVersion={start}&fieldSelector=metadata.name%3Dx")).await;
    let mut path = watch(&server, &format!("/api/v1/namespaces/b/pods/y?watch=1&resourceVersion={start}")).await;
    for (namespace, name) in [("a", "x"), ("b", "x"), ("b", "y")] {
        server.apply(pod(namespace, name, json!({}))).unwrap();
    }
    let now = server.revision();
    assert_eq!(namespace.shorts(2).await, [format!("ADDED x@{}", now - 1), format!("ADDED y@{now}")]);
    assert_eq!(object.shorts(2).await, [format!("ADDED x@{}", now - 3), format!("ADDED x@{}", now - 1)]);
    assert_eq!(path.shorts(2).await, [format!("ADDED y@{now}"), "Silent".into()]);
}

#[tokio::test(start_paused = true)]
async fn watches_end_when_told_so() {
    let server = server().await;
    let mut lines = watch(&server, "/api/v1/configmaps?watch=1").await;
    assert_eq!(lines.short().await, "Silent");
    server.close_watches();
    assert_eq!(lines.next().await, Next::End);
    let mut lines = watch(&server, "/api/v1/configmaps?watch=1").await;
    assert_eq!(lines.short().await, "Silent");
    assert!(server.unregister("v1/configmaps"));
    assert_eq!(lines.next().await, Next::End);
}

#[tokio::test(start_paused = true)]
async fn c52_a_watch_that_nobody_reads_is_closed() {
    let server = FakeApiServer::builder().slow_watchers(10, Duration::from_secs(2)).start().await.unwrap();
    let mut slow = watch(&server, "/api/v1/configmaps?watch=1").await;
    server.apply(config_map("first")).unwrap();
    assert!(slow.short().await.starts_with("ADDED first"));
    for _ in 0..11 {
        server.apply(config_map("a")).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(slow.next().await, Next::End);
    // Behind, but not for long: served.
    let mut quick = watch(&server, "/api/v1/secrets?watch=1").await;
    for i in 0..20 {
        let name = format!("s{i}");
        server.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})).unwrap();
    }
    assert!(quick.shorts(20).await.iter().all(|l| l.starts_with("ADDED")));
}

/// Real threads and real time: nothing is lost or out of order between writers and watches that meet.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_writers_and_many_watches_at_once() {
    let server = FakeApiServer::builder().objects((0..4).map(|i| config_map(&format!("m{i}")))).start().await.unwrap();
    let start = server.revision();
    let mut watches = Vec::new();
    for _ in 0..8 {
        let server = server.clone();
        watches.push(tokio::spawn(async move {
            let mut lines = watch(&server, &format!("/api/v1/configmaps?watch=1&resourceVersion={start}")).await;
            let mut seen = Vec::new();
            while seen.len() < 200 {
                let Next::Line(line) = lines.next().await else { break };
                seen.push(line["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap());
            }
            seen
        }));
    }
    let mut writers = Vec::new();
    for writer in 0..4 {
        let client = server.client();
        writers.push(tokio::spawn(async move {
            for turn in 0..50 {
                let path = format!("/api/v1/namespaces/default/configmaps/m{}", turn % 4);
                let data = json!({"data": {format!("w{writer}"): turn.to_string()}});
                assert_eq!(merge_patch(&client, &path, &data).await.0, 200);
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let expected: Vec<u64> = (start + 1..=start + 200).collect();
    for watch in watches {
        let seen = tokio::time::timeout(Duration::from_secs(30), watch).await.unwrap().unwrap();
        assert_eq!(seen, expected);
    }
}
