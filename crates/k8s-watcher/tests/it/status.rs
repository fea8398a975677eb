//! What the status says, and when.

use k8s_fake_apiserver::{List, Watch};
use k8s_watcher::{ErrorClass, Phase, Watcher};
use tokio::time::Instant;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn phases_from_start_to_end() {
    let server = server(many(300)).await;
    server.faults().on(List::of(MAPS)).always().delay(ms(10));
    let first = server.faults().on(List::of(MAPS)).nth(1).hold();
    let watcher = Watcher::builder(server.client(), paged().page_size(100)).build().unwrap();
    assert_eq!(watcher.status().phase, Phase::NotStarted);
    let watcher = watcher.spawn();
    first.wait_for(1).await;
    let status = watcher.status();
    assert_eq!(status.phase, Phase::Listing { pages: 0, items: 0 });
    assert_eq!((status.objects, status.synced, status.initial_objects), (0, false, None));
    first.release();
    let mut seen = watcher.status_changes();
    let seen = seen.wait_for(|s| matches!(s.phase, Phase::Listing { pages: 2, .. }));
    let status = tokio::time::timeout(LONG, seen).await.unwrap().unwrap().clone();
    assert_eq!((status.phase, status.objects), (Phase::Listing { pages: 2, items: 200 }, 200));
    watcher.wait_for_sync(LONG).await.unwrap();
    settle(ms(1)).await;
    let status = watcher.status();
    assert_eq!(status.phase, Phase::Watching);
    assert_eq!((status.objects, status.synced, status.initial_objects), (300, true, Some(300)));
    assert_eq!(status.resource_version, Some(server.revision().to_string()));
    assert!(status.synced_at.is_some() && status.last_contact.is_some());
    assert_eq!((status.last_event, status.last_watch_error), (None, None));
    let handle = watcher.handle().clone();
    watcher.shutdown().await;
    let status = handle.status();
    assert_eq!((status.phase, status.synced, status.objects), (Phase::Stopped, true, 300));
}

#[tokio::test(start_paused = true)]
async fn events_contact_and_versions_are_kept_up_to_date() {
    let server = server(many(2)).await;
    let (watcher, _) = watching(&server, config()).await;
    settle(secs(5)).await;
    let applied = Instant::now();
    server.apply(config_map("a", "x")).unwrap();
    settle(ms(1)).await;
    let status = watcher.status();
    assert_eq!((status.last_event, status.last_contact), (Some(applied), Some(applied)));
    assert_eq!((status.objects, status.initial_objects), (3, Some(2)));
    assert_eq!(status.resource_version, Some(server.revision().to_string()));
    assert_eq!(status.contact_age(applied + secs(7)), Some(secs(7)));
    settle(secs(120)).await;
    let status = watcher.status();
    assert_eq!(status.last_event, Some(applied));
    assert!(status.contact_age(Instant::now()).unwrap() <= secs(60), "bookmarks are signs of life");
}

#[tokio::test(start_paused = true)]
async fn relists_restarts_and_the_last_error_are_kept_after_recovery() {
    let server = server(many(2)).await;
    let (watcher, _) = watching(&server, config()).await;
    settle(secs(20)).await;
    server.close_watches();
    settle(secs(20)).await;
    assert_eq!((watcher.status().restarts, watcher.status().relists), (1, 0));
    assert_eq!(watcher.last_watch_error(), None, "an end in good order is no failure");
    server.faults().on(Watch::of(MAPS)).nth(1).status(503);
    server.close_watches();
    settle(secs(20)).await;
    let error = watcher.last_watch_error().unwrap();
    assert_eq!((error.class, error.code), (ErrorClass::Server, Some(503)));
    assert_eq!(error.at.elapsed().unwrap_or_default().as_secs(), 0);
    server.faults().on(Watch::of(MAPS)).nth(1).gone();
    server.close_watches();
    settle(secs(20)).await;
    let status = watcher.status();
    assert_eq!((status.relists, status.phase), (1, Phase::Watching));
    assert_eq!(status.last_watch_error.unwrap().class, ErrorClass::Expired);
    settle(LONG).await;
    assert_eq!(watcher.last_watch_error().unwrap().class, ErrorClass::Expired);
}

#[tokio::test(start_paused = true)]
async fn backing_off_says_since_how_many_attempts_and_until_when() {
    let server = server(many(2)).await;
    server.faults().on(List::of(MAPS)).times(3).status(500);
    let watcher = Watcher::builder(server.client(), paged()).spawn().unwrap();
    let mut status = watcher.status_changes();
    for wanted in 1..=3 {
        let seen = status.wait_for(|s| matches!(s.phase, Phase::BackingOff { attempt, .. } if attempt == wanted));
        let Phase::BackingOff { until, .. } = seen.await.unwrap().phase else { unreachable!() };
        assert!(until > Instant::now());
    }
    watcher.wait_for_sync(LONG).await.unwrap();
    assert_eq!(watcher.last_watch_error().unwrap().code, Some(500));
}

#[tokio::test(start_paused = true)]
async fn progress_of_several_namespaces_is_added_up() {
    let objects = (0..40).map(|i| config_map_in(["a", "b"][i % 2], &format!("m{i:04}"), "x"));
    let server = server(objects).await;
    let second = server.faults().on(List::of(MAPS)).skip(2).hold();
    let watcher = Watcher::builder(server.client(), paged().page_size(10).namespaces(["a", "b"])).spawn().unwrap();
    second.wait_for(2).await;
    settle(ms(1)).await;
    assert_eq!(watcher.status().phase, Phase::Listing { pages: 2, items: 20 });
    second.release();
    watcher.wait_for_sync(LONG).await.unwrap();
}
