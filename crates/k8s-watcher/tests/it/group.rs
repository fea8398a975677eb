//! Several watchers, one start.

use k8s_fake_apiserver::{FakeApiServer, List, Status as ApiStatus, StreamingLists};
use k8s_types::SingleWatcherConfig;
use k8s_watcher::{Deadline, GroupError, RunningWatcher, SingleWatcher, SyncGroup, Watcher};
use serde_json::{Value, json};

use crate::support::*;

fn object(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"namespace": "shop", "name": name}, "spec": {}})
}

fn named<'a>(api_version: &'a str, kind: &'a str, count: usize) -> impl Iterator<Item = Value> + 'a {
    (0..count).map(move |i| object(api_version, kind, &format!("{}-{i:03}", kind.to_lowercase())))
}

async fn cluster() -> FakeApiServer {
    fake()
        .objects(named("networking.k8s.io/v1", "Ingress", 200))
        .objects(named("v1", "Service", 50))
        .objects(named("v1", "Secret", 20))
        .streaming_lists(StreamingLists::Refused)
        .start()
        .await
        .expect("the server starts")
}

fn member(server: &FakeApiServer, group: &SyncGroup, resource: &str, name: &str) -> (RunningWatcher, Record) {
    let config = WatcherConfig::new(resource).index_by(["metadata.namespace"]).debounce(ms(10));
    let (builder, record) = recorded(server, config);
    (builder.sync_group(group, name).spawn().expect("a sound configuration"), record)
}

#[tokio::test(start_paused = true)]
async fn c43_no_change_is_told_before_all_members_are_synced() {
    let server = cluster().await;
    server.faults().on(List::of("v1/secrets")).times(1).delay(secs(3));
    let group = SyncGroup::new();
    let (ingresses, about_ingresses) = member(&server, &group, "networking.k8s.io/v1/ingresses", "ingresses");
    let (services, about_services) = member(&server, &group, "v1/services", "services");
    let (secrets, about_secrets) = member(&server, &group, "v1/secrets", "secrets");
    let waited = tokio::spawn({
        let group = group.clone();
        async move { group.wait(Deadline::no_progress(secs(20))).await }
    });
    ingresses.wait_for_sync(secs(2)).await.unwrap();
    services.wait_for_sync(secs(2)).await.unwrap();
    // In the gap: changes of those that are synced, and a secret that its list has not shown yet.
    server.apply(object("networking.k8s.io/v1", "Ingress", "late")).unwrap();
    server.apply(object("v1", "Secret", "late")).unwrap();
    server.delete("v1/services", Some("shop"), "service-007").unwrap();
    settle(secs(1)).await;
    assert!(!group.is_complete() && !secrets.is_synced());
    assert_eq!((about_ingresses.len(), about_services.len(), about_secrets.len()), (0, 0, 0));
    assert_eq!(waited.await.unwrap().unwrap(), 271);
    assert!(secrets.store().by_name(Some("shop"), "late").is_some());
    settle(secs(1)).await;
    assert_eq!((about_ingresses.totals(), about_ingresses.len()), ((1, 0, 0), 1));
    assert_eq!((about_services.totals(), about_services.len()), ((0, 0, 1), 1));
    assert_eq!(about_secrets.len(), 0);
    // From now on everything is told as ever, and waiting costs nothing.
    server.apply(object("v1", "Secret", "later")).unwrap();
    settle(secs(1)).await;
    assert_eq!(about_secrets.totals(), (1, 0, 0));
    assert_eq!(group.wait(Deadline::after(ms(0))).await.unwrap(), 271);
}

#[tokio::test(start_paused = true)]
async fn c43_without_a_wait_another_member_might_still_join() {
    let server = server([config_map("a", "x")]).await;
    let group = SyncGroup::new();
    let (watcher, record) = member(&server, &group, MAPS, "maps");
    watcher.wait_for_sync(LONG).await.unwrap();
    server.apply(config_map("a", "y")).unwrap();
    settle(secs(60)).await;
    assert_eq!((record.len(), group.is_complete()), (0, false));
    group.close();
    settle(secs(1)).await;
    assert_eq!((record.totals(), group.is_complete()), ((0, 1, 0), true));
    let late = Watcher::builder(server.client(), config()).sync_group(&group, "late").build().unwrap_err();
    assert_eq!(late.to_string(), "sync_group: late comes too late: the group is waited for already");
}

#[tokio::test(start_paused = true)]
async fn a_name_is_given_once() {
    let server = server([]).await;
    let group = SyncGroup::new();
    let _first = member(&server, &group, MAPS, "maps");
    let builder = |name| Watcher::builder(server.client(), config()).sync_group(&group, name);
    assert_eq!(builder("maps").build().unwrap_err().to_string(), "sync_group: maps is the name of another member");
    assert_eq!(builder("").build().unwrap_err().to_string(), "sync_group: a member needs a name");
    assert_eq!(group.progress().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_names_who_is_missing_and_how_far_it_is() {
    let server = cluster().await;
    server.faults().on(List::of("v1/secrets")).always().status(ApiStatus::forbidden("list", "secrets"));
    let group = SyncGroup::new();
    let (_ingresses, _) = member(&server, &group, "networking.k8s.io/v1/ingresses", "ingresses");
    let (secrets, _) = member(&server, &group, "v1/secrets", "secrets");
    let error = group.wait(Deadline::after(secs(5))).await.unwrap_err();
    assert!(matches!(&error, GroupError::Deadline { waited, .. } if *waited == secs(5)), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("not synced after 5s: secrets (0 objects, waiting after "), "{text}");
    assert!(text.contains("403") && !text.contains("ingresses"), "{text}");
    assert_eq!(error.missing().len(), 1);
    let error = group.wait(Deadline::after(secs(600)).or_no_progress(secs(7))).await.unwrap_err();
    assert!(matches!(error, GroupError::NoProgress { standstill, .. } if standstill == secs(7)), "{error}");

    // Somebody gives up on it: the group goes on without.
    assert!(group.dismiss("secrets") && !group.dismiss("nobody"));
    assert_eq!(group.wait(Deadline::after(secs(1))).await.unwrap(), 200);
    assert!(!secrets.is_synced());
}

#[tokio::test(start_paused = true)]
async fn c43_slow_pages_are_progress() {
    let server =
        fake().objects(many(100)).streaming_lists(StreamingLists::Refused).start().await.expect("the server starts");
    server.faults().on(List::of(MAPS)).always().delay(secs(4));
    let group = SyncGroup::new();
    let config = paged().page_size(10);
    let _maps = Watcher::builder(server.client(), config).sync_group(&group, "maps").spawn().unwrap();
    assert_eq!(group.wait(Deadline::no_progress(secs(5))).await.unwrap(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_ends_before_its_sync_is_an_error_and_holds_back_the_others() {
    let server = cluster().await;
    server.faults().on(List::of("v1/secrets")).always().hang();
    let group = SyncGroup::new();
    let (ingresses, record) = member(&server, &group, "networking.k8s.io/v1/ingresses", "ingresses");
    let (secrets, _) = member(&server, &group, "v1/secrets", "secrets");
    ingresses.wait_for_sync(LONG).await.unwrap();
    drop(secrets);
    let error = group.wait(Deadline::never()).await.unwrap_err();
    assert!(matches!(&error, GroupError::Stopped { member, .. } if member == "secrets"), "{error}");
    server.apply(object("networking.k8s.io/v1", "Ingress", "late")).unwrap();
    settle(secs(5)).await;
    assert_eq!(record.len(), 0);
    // Stopping flushes nothing that was held back.
    ingresses.shutdown().await;
    assert_eq!(record.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_single_watcher_is_a_member_like_others() {
    let server = server([config_map("a", "x")]).await;
    server.faults().on(List::of(MAPS)).times(1).delay(secs(3));
    let group = SyncGroup::new();
    let story = Story::default();
    let told = story.clone();
    let single = SingleWatcher::builder(server.client(), SingleWatcherConfig::new(MAPS, "shop", "b"))
        .on_change_async(move |object| {
            told.tell(format!("{:?}", object.map(|o| o.label("app").map(str::to_owned))));
            async {}
        })
        .sync_group(&group, "one")
        .spawn()
        .unwrap();
    let maps = Watcher::builder(server.client(), paged()).sync_group(&group, "maps").spawn().unwrap();
    let waiting = group.wait(Deadline::after(secs(60)));
    tokio::pin!(waiting);
    assert!(tokio::time::timeout(secs(1), &mut waiting).await.is_err());
    assert!(single.is_synced() && !maps.is_synced());
    waiting.await.unwrap();
    server.apply(config_map("b", "y")).unwrap();
    settle(secs(1)).await;
    assert_eq!(story.all(), ["Some(Some(\"y\"))"]);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_nobody_holds_any_more_does_not_mute_its_members() {
    let server = server([config_map("a", "x")]).await;
    let group = SyncGroup::new();
    let (watcher, record) = member(&server, &group, MAPS, "maps");
    watcher.wait_for_sync(LONG).await.unwrap();
    let other = group.clone();
    drop(group);
    server.apply(config_map("a", "y")).unwrap();
    settle(secs(60)).await;
    assert_eq!(record.len(), 0, "another member might still join");
    drop(other);
    settle(secs(1)).await;
    assert_eq!(record.totals(), (0, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_was_never_started_is_told_as_such() {
    let server = server([]).await;
    let group = SyncGroup::new();
    let watcher = Watcher::builder(server.client(), config()).sync_group(&group, "never").build().unwrap();
    let error = group.wait(Deadline::no_progress(secs(20))).await.unwrap_err();
    let text = "not synced, and no progress for 20s: never (0 objects, not started: call run or spawn)";
    assert_eq!(error.to_string(), text);
    drop(watcher);
}
