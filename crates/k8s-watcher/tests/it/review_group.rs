//! A group whose members move while others stand still.

use k8s_fake_apiserver::{FakeApiServer, List, Status as ApiStatus, StreamingLists};
use k8s_watcher::{Deadline, GroupError, RunningWatcher, SyncGroup, Watcher};
use serde_json::{Value, json};

use crate::support::*;

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "shop", "name": name}})
}

async fn cluster(secrets: usize) -> FakeApiServer {
    let secrets = (0..secrets).map(|i| secret(&format!("s{i:03}")));
    let builder = fake().objects(many(50)).objects(secrets).streaming_lists(StreamingLists::Refused);
    builder.start().await.expect("the server starts")
}

fn member(server: &FakeApiServer, group: &SyncGroup, resource: &str, name: &str) -> RunningWatcher {
    let config = WatcherConfig::new(resource).index_by(["metadata.namespace"]).page_size(5);
    Watcher::builder(server.client(), config).sync_group(group, name).spawn().expect("a sound configuration")
}

#[tokio::test(start_paused = true)]
async fn what_a_synced_member_goes_on_to_read_is_no_progress_of_the_group() {
    let server = cluster(0).await;
    server.faults().on(List::of("v1/secrets")).always().status(ApiStatus::forbidden("list", "secrets"));
    let group = SyncGroup::new();
    let maps = member(&server, &group, MAPS, "maps");
    let _secrets = member(&server, &group, "v1/secrets", "secrets");
    maps.wait_for_sync(LONG).await.unwrap();
    let busy = async {
        for n in 0..60 {
            settle(secs(1)).await;
            server.apply(config_map(&format!("new-{n}"), "x")).unwrap();
        }
    };
    let waiting = tokio::time::timeout(secs(50), group.wait(Deadline::no_progress(secs(20))));
    let (waited, ()) = tokio::join!(waiting, busy);
    let error = waited.expect("it gives up").unwrap_err();
    assert!(matches!(error, GroupError::NoProgress { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_a_member_loses_or_is_dismissed_with_does_not_hide_the_progress_of_others() {
    for dismissed in [false, true] {
        let server = cluster(40).await;
        server.faults().on(List::of("v1/secrets")).always().delay(secs(4));
        let group = SyncGroup::new();
        let maps = member(&server, &group, MAPS, "maps");
        let _secrets = member(&server, &group, "v1/secrets", "secrets");
        maps.wait_for_sync(secs(2)).await.unwrap();
        let waiting = group.wait(Deadline::no_progress(secs(6)));
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(secs(5), &mut waiting).await.is_err());
        if dismissed {
            group.dismiss("maps");
        } else {
            for n in 0..50 {
                server.delete(MAPS, Some("shop"), &format!("m{n:04}")).unwrap();
            }
        }
        let waited = tokio::time::timeout(secs(120), waiting).await.expect("eight pages");
        assert!(waited.is_ok(), "dismissed: {dismissed}, {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_forced_call_waits_for_the_group_too() {
    let server = cluster(1).await;
    server.faults().on(List::of("v1/secrets")).always().delay(secs(60));
    server.faults().on(List::of(MAPS)).always().delay(secs(3));
    let group = SyncGroup::new();
    let story = Story::default();
    let tell = story.clone();
    // Two pages; the second has nothing to tell.
    let config = WatcherConfig::new(MAPS)
        .index_by(["metadata.namespace"])
        .field_selector("metadata.name=m0001")
        .page_size(25)
        .call_on_change_during_sync(true);
    let maps = Watcher::builder(server.client(), config)
        .on_change_async(move |change| {
            tell.tell(format!("load: {}", change.stats.is_initial_sync));
            tokio::time::sleep(secs(5))
        })
        .sync_group(&group, "maps")
        .spawn()
        .unwrap();
    let _secrets = member(&server, &group, "v1/secrets", "secrets");
    group.close();
    // The call about the first page runs still when the load is complete.
    settle(secs(7)).await;
    assert_eq!((story.all(), maps.is_synced()), (vec!["load: true".to_owned()], false));
    maps.force_sync();
    settle(secs(20)).await;
    assert!(maps.is_synced());
    maps.force_sync();
    settle(secs(20)).await;
    assert_eq!(story.all(), ["load: true"]);
    settle(secs(120)).await;
    assert!(group.is_complete());
    assert_eq!(story.all(), ["load: true", "load: false"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_forced_while_others_load_comes_when_they_have() {
    let server = cluster(1).await;
    server.faults().on(List::of("v1/secrets")).always().delay(secs(60));
    let group = SyncGroup::new();
    let (builder, record) = recorded(&server, config());
    let maps = builder.sync_group(&group, "maps").spawn().unwrap();
    let _secrets = member(&server, &group, "v1/secrets", "secrets");
    group.close();
    maps.wait_for_sync(secs(5)).await.unwrap();
    settle(secs(1)).await;
    maps.force_sync();
    settle(secs(10)).await;
    assert_eq!((record.len(), group.is_complete()), (0, false));
    settle(secs(120)).await;
    assert_eq!((record.len(), record.totals()), (1, (0, 0, 0)));
}
