//! A single watcher before a server that repeats itself: a watch that begins before the list's object.

use k8s_fake_apiserver::{FakeApiServer, List, StreamingLists};
use k8s_types::{ListMode, Object, SingleWatcherConfig};
use k8s_watcher::{RunningSingleWatcher, SingleWatcher};
use serde_json::json;

use crate::support::*;

/// What is told of `shop/a`.
fn told(server: &FakeApiServer) -> (RunningSingleWatcher, Story) {
    let story = Story::default();
    let (synced, changed) = (story.clone(), story.clone());
    let text = |object: Option<Object>| object.map_or("gone".into(), |o| o.label("app").unwrap_or("-").to_owned());
    let config = SingleWatcherConfig::new(MAPS, "shop", "a").list_mode(ListMode::Paged);
    let watcher = SingleWatcher::builder(server.client(), config)
        .on_sync_complete_async(move |object| {
            synced.tell(format!("synced {}", text(object)));
            async {}
        })
        .on_change_async(move |object| {
            changed.tell(text(object));
            async {}
        })
        .spawn()
        .unwrap();
    (watcher, story)
}

#[tokio::test(start_paused = true)]
async fn c28_what_was_before_the_listed_object_is_not_told_after_it() {
    let builder = fake().objects([config_map("a", "first")]).streaming_lists(StreamingLists::Refused);
    let server = builder.start().await.unwrap();
    let at = server.revision();
    server.apply(config_map("a", "second")).unwrap();
    server.delete(MAPS, Some("shop"), "a").unwrap();
    server.apply(config_map("a", "third")).unwrap();
    server.delete(MAPS, Some("shop"), "a").unwrap();
    server.apply(config_map("a", "fourth")).unwrap();
    server.apply(config_map("a", "fifth")).unwrap();
    // The watch repeats all that.
    server.faults().on(List::of(MAPS)).nth(1).edit_body(move |page| {
        page["metadata"]["resourceVersion"] = at.to_string().into();
    });
    let (watcher, story) = told(&server);
    watcher.wait_for_sync(LONG).await.unwrap();
    settle(secs(10)).await;
    assert!(watcher.last_event_time().is_some(), "it was repeated");
    assert_eq!(story.all(), ["synced fifth"]);
    server.delete(MAPS, Some("shop"), "a").unwrap();
    settle(secs(1)).await;
    assert_eq!(story.all(), ["synced fifth", "gone"]);
}

#[tokio::test(start_paused = true)]
async fn a_name_with_the_characters_of_selectors_is_asked_for_as_it_is() {
    let role = |name: &str| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": []});
    let name = "team=a,b";
    let server = server([role(name), role("team"), role("team=a")]).await;
    let config = SingleWatcherConfig::cluster_scoped("rbac.authorization.k8s.io/v1/clusterroles", name);
    let watcher = SingleWatcher::builder(server.client(), config).spawn().unwrap();
    let present = watcher.wait_for_sync(secs(30)).await.unwrap();
    assert_eq!(present.as_ref().map(Object::name), Some(name));
}
