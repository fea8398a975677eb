//! Objects that cannot be read just when the server comes from a backup: versions of before tell nothing about them.

use k8s_fake_apiserver::{FakeApiServer, List, StreamingLists};
use k8s_types::{ListMode, Object, SingleWatcherConfig};
use k8s_watcher::SingleWatcher;
use serde_json::{Value, json};

use crate::support::*;

/// A server whose versions are high.
async fn old_server() -> FakeApiServer {
    let objects = [config_map("a", "x"), config_map("b", "x")];
    let builder = fake().revision(90_000).objects(objects).streaming_lists(StreamingLists::Refused);
    builder.start().await.expect("the server starts")
}

/// It comes from a backup; the list that is read then has `b` in a form that cannot be held.
async fn restored_with_b_unreadable(server: &FakeApiServer) {
    let bad = server.faults().on(List::of(MAPS)).always().edit(|object| {
        if object["metadata"]["name"] == "b" {
            object["data"] = (0..200).fold(Value::Null, |inner, _| json!([inner]));
        }
    });
    let mut objects = server.objects(MAPS).expect("a kind");
    objects.iter_mut().for_each(|object| object["metadata"]["labels"]["app"] = "restored".into());
    server.restart_at(1_000, objects).expect("restarts");
    settle(secs(120)).await;
    bad.clear();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_restored_server_shows_unreadable_moves_on_when_it_is_good_again() {
    for relist in [false, true] {
        let server = old_server().await;
        let (watcher, record) = watching(&server, paged()).await;
        restored_with_b_unreadable(&server).await;
        assert!(watcher.status().skipped > 0);
        assert_eq!((label(&watcher, "a"), label(&watcher, "b")), (Some("restored".into()), Some("x".into())));
        if relist {
            watcher.relist();
            settle(secs(5)).await;
            assert_eq!(label(&watcher, "b"), Some("restored".into()));
        }
        server.apply(config_map("b", "y")).unwrap();
        same_as_served(&watcher, &server).await;
        server.apply(config_map("b", "z")).unwrap();
        same_as_served(&watcher, &server).await;
        server.delete(MAPS, Some("shop"), "b").unwrap();
        same_as_served(&watcher, &server).await;
        settle(secs(1)).await;
        assert_eq!(record.totals(), (0, 3 + u64::from(relist), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_restored_server_shows_unreadable_is_gone_when_it_is_deleted() {
    let server = old_server().await;
    let (watcher, record) = watching(&server, paged()).await;
    restored_with_b_unreadable(&server).await;
    server.delete(MAPS, Some("shop"), "b").unwrap();
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!(record.totals(), (0, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_one_object_that_a_restored_server_shows_unreadable_moves_on() {
    let server = old_server().await;
    let story = Story::default();
    let tell = story.clone();
    let config = SingleWatcherConfig::new(MAPS, "shop", "b").list_mode(ListMode::Paged);
    let watcher = SingleWatcher::builder(server.client(), config)
        .on_change_async(move |object: Option<Object>| {
            tell.tell(object.map_or("gone".into(), |o| o.label("app").unwrap_or("-").to_owned()));
            async {}
        })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    restored_with_b_unreadable(&server).await;
    assert!(watcher.status().skipped > 0);
    assert!(story.all().is_empty(), "the last good state stays: {:?}", story.all());
    server.apply(config_map("b", "y")).unwrap();
    settle(secs(1)).await;
    server.delete(MAPS, Some("shop"), "b").unwrap();
    settle(secs(1)).await;
    assert_eq!(story.all(), ["y", "gone"]);
}
