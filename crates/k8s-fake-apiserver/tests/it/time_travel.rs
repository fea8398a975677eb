//! Restored backups, replicas that lag, kinds that come and go.

use std::time::Duration;

use k8s_fake_apiserver::{FakeApiServer, ResourceKind};
use serde_json::json;

use crate::support::{Next, config_map, get, post, server, watch, watch_on};

#[tokio::test(start_paused = true)]
async fn c27_a_restored_backup_runs_backwards() {
    let server = FakeApiServer::builder()
        .revision(1190)
        .bookmark_interval(Duration::from_secs(10))
        .object(config_map("a"))
        .start()
        .await
        .unwrap();
    let high = server.revision();
    assert!(high > 1190);
    let mut running = watch(&server, &format!("/api/v1/configmaps?watch=1&resourceVersion={high}")).await;
    assert_eq!(running.short().await, "Silent");
    let mut old = config_map("old");
    old["metadata"]["resourceVersion"] = "900".into();
    server.restart_at(1000, [old, config_map("b")]).unwrap();
    assert_eq!((running.next().await, server.revision()), (Next::End, 1000));
    let (_, list) = get(&server.client(), "/api/v1/configmaps").await;
    let versions: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|i| i["metadata"]["resourceVersion"].clone()).collect();
    assert_eq!(versions, ["1000", "900"]);
    assert!(server.object("v1/namespaces", None, "default").unwrap().is_some());
    // The old version is in the future now: accepted, and silent but for bookmarks below it.
    let mut resumed =
        watch(&server, &format!("/api/v1/configmaps?watch=1&resourceVersion={high}&allowWatchBookmarks=true")).await;
    server.apply(config_map("c")).unwrap();
    assert_eq!(resumed.short().await, "Silent");
    let Next::Line(line) = resumed.next().await else { panic!("no line") };
    assert_eq!((&line["type"], &line["object"]["metadata"]["resourceVersion"]), (&json!("BOOKMARK"), &json!("1001")));
    // And before the backup there is nothing.
    let mut older = watch(&server, "/api/v1/configmaps?watch=1&resourceVersion=950").await;
    assert_eq!(older.short().await, "ERROR 410 Expired");
}

#[tokio::test(start_paused = true)]
async fn c25_a_replica_that_lags() {
    let server = FakeApiServer::builder().object(config_map("a")).start().await.unwrap();
    let behind = server.replica();
    for i in 0..20 {
        server.apply(config_map(&format!("m{i}"))).unwrap();
    }
    behind.set_lag(20);
    let (client, now) = (behind.client(), server.revision());
    assert_eq!(behind.revision(), now - 20);
    let count = async |query: &str| {
        get(&client, &format!("/api/v1/configmaps?{query}")).await.1["items"].as_array().map(Vec::len)
    };
    assert_eq!(count("resourceVersion=0").await, Some(1));
    assert_eq!(count("").await, Some(21));
    // Not older than what was seen elsewhere: waits, and gives up after three seconds.
    assert_eq!(count(&format!("resourceVersion={now}&resourceVersionMatch=NotOlderThan")).await, None);
    let mut lines =
        watch_on(behind.service(), &format!("/api/v1/configmaps?watch=1&resourceVersion={}", now - 20)).await;
    assert_eq!(lines.short().await, "Silent");
    behind.set_lag(19);
    assert_eq!(lines.shorts(2).await, [format!("ADDED m0@{}", now - 19), "Silent".into()]);
    let query = format!("resourceVersion={now}&resourceVersionMatch=NotOlderThan");
    let caught_up = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        behind.set_lag(0);
    };
    assert_eq!(tokio::join!(count(&query), caught_up).0, Some(21));
    assert_eq!(lines.shorts(19).await[18], format!("ADDED m19@{now}"));
}

#[tokio::test(start_paused = true)]
async fn c25_a_replica_that_lags_sends_no_bookmark_from_before_and_streams_what_the_storage_has() {
    let server = FakeApiServer::builder().bookmark_interval(Duration::from_secs(10)).start().await.unwrap();
    let behind = server.replica();
    for i in 0..3 {
        server.apply(config_map(&format!("m{i}"))).unwrap();
    }
    let now = server.revision();
    behind.set_lag(2);
    let query = format!("watch=1&allowWatchBookmarks=true&resourceVersion={now}");
    let mut lines = watch_on(behind.service(), &format!("/api/v1/configmaps?{query}")).await;
    assert_eq!(lines.within(Duration::from_secs(60)).await, Next::Silent);
    let query = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut stream = watch_on(behind.service(), &format!("/api/v1/configmaps?{query}")).await;
    assert_eq!(stream.shorts(4).await[2..], [format!("ADDED m2@{now}"), format!("BOOKMARK {now} end")]);
    assert_eq!(stream.within(Duration::from_secs(60)).await, Next::Silent);
    server.apply(config_map("m3")).unwrap();
    behind.set_lag(0);
    assert_eq!(lines.short().await, format!("ADDED m3@{}", now + 1));
    assert_eq!(stream.short().await, format!("ADDED m3@{}", now + 1));
    let Next::Line(line) = stream.next().await else { panic!("no line") };
    assert_eq!(line["object"]["metadata"]["resourceVersion"], (now + 1).to_string());
}

#[tokio::test(start_paused = true)]
async fn c33_a_kind_that_is_not_there_yet() {
    let server = server().await;
    let client = server.client();
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    assert_eq!(get(&client, path).await.0, 404);
    server.register(ResourceKind::namespaced("example.com", "v1", "widgets", "Widget").with_status());
    assert_eq!(
        post(&client, path, &json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}))
            .await
            .0,
        201
    );
    assert_eq!(get(&client, &format!("{path}/w")).await.1["kind"], "Widget");
    let mut lines = watch(&server, "/apis/example.com/v1/widgets?watch=1").await;
    assert!(lines.short().await.starts_with("ADDED w"));
    assert!(server.unregister("example.com/v1/widgets") && !server.unregister("example.com/v1/widgets"));
    assert_eq!(lines.next().await, Next::End);
    assert_eq!(get(&client, path).await.0, 404);
    // Served again, it is empty.
    server.register(ResourceKind::namespaced("example.com", "v1", "widgets", "Widget"));
    assert_eq!(get(&client, path).await.1["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn selectable_fields_of_custom_resources() {
    let widget = |name: &str, color: &str| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"color": color}});
    let server = FakeApiServer::builder()
        .resource(ResourceKind::cluster("example.com", "v1", "widgets", "Widget").with_selectable_field(".spec.color"))
        .objects([widget("a", "red"), widget("b", "blue")])
        .start()
        .await
        .unwrap();
    let client = server.client();
    let (_, list) = get(&client, "/apis/example.com/v1/widgets?fieldSelector=spec.color%3Dblue").await;
    assert_eq!(list["items"][0]["metadata"]["name"], "b");
    assert_eq!(get(&client, "/apis/example.com/v1/widgets?fieldSelector=spec.size%3D1").await.0, 400);
}
