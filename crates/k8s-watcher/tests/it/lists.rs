//! The initial load and full lists later: pages, streams, what they cost and what they report.

use k8s_client::Client;
use k8s_fake_apiserver::{FakeApiServer, List, Status, StreamingLists, Watch};
use k8s_store::Snapshot;
use k8s_types::Object;
use k8s_watcher::{Phase, Watcher};

use crate::support::*;

/// Lists but for those that only look at the server's version.
fn asked_lists(server: &FakeApiServer) -> usize {
    server.journal().count(List::of(MAPS)) - server.journal().count(List::of(MAPS).with_query("limit", "1"))
}

#[tokio::test(start_paused = true)]
async fn c12_ready_only_after_the_last_page() {
    let objects = (0..1_201).map(|i| config_map_in(["a", "b", "c"][i % 3], &format!("m{i:04}"), "x"));
    let server = server(objects).await;
    let watcher = Watcher::builder(server.client(), paged()).spawn().unwrap();
    assert_eq!(watcher.wait_for_sync(LONG).await.unwrap(), 1_201);
    assert_eq!(watcher.store().len(), 1_201);
    assert_eq!(watcher.store().snapshot().get(["b"]).unwrap().len(), 400);
    let pages = asked(&server, List::of(MAPS));
    assert_eq!(pages.len(), 3);
    assert!(pages[1].contains("continue=") && !pages[1].contains("resourceVersion="), "{pages:?}");
}

#[tokio::test(start_paused = true)]
async fn c12_an_empty_page_with_a_token_is_not_the_end() {
    let server = server(many(1_201)).await;
    let journal = server.journal();
    server.faults().on(List::of(MAPS)).nth(2).edit_body(move |page| {
        // The token leads to where this page should have begun.
        let request = journal.matching(List::of(MAPS)).pop().expect("this one");
        page["items"] = serde_json::json!([]);
        page["metadata"]["continue"] = request.query("continue").expect("a token").into();
    });
    let watcher = Watcher::builder(server.client(), paged()).spawn().unwrap();
    assert_eq!(watcher.wait_for_sync(LONG).await.unwrap(), 1_201);
    assert_eq!(server.journal().count(List::of(MAPS)), 4);
}

#[tokio::test(start_paused = true)]
async fn c11_a_token_that_expires_starts_the_list_anew_and_mixes_nothing() {
    let server = server(many(1_200)).await;
    server.faults().on(List::of(MAPS)).nth(3).gone();
    // The request that is told 410 is not counted by this rule.
    let second_try = server.faults().on(List::of(MAPS)).skip(2).hold();
    let synced = Story::default();
    let told = synced.clone();
    let (builder, record) = recorded(&server, paged());
    let watcher = builder
        .on_sync_complete_async(move |_, count| {
            told.tell(count.to_string());
            async {}
        })
        .spawn()
        .unwrap();
    second_try.wait_for(1).await;
    assert!(!watcher.is_synced());
    assert_eq!(watcher.last_watch_error().unwrap().code, Some(410));
    server.delete(MAPS, Some("shop"), "m0007").unwrap();
    second_try.release();
    assert_eq!(watcher.wait_for_sync(LONG).await.unwrap(), 1_199);
    settle(secs(5)).await;
    assert_eq!(synced.all(), ["1199"]);
    assert_eq!(record.len(), 0);
    assert!(watcher.store().by_name(Some("shop"), "m0007").is_none());
    assert_eq!(server.journal().count(List::of(MAPS)), 6);
    same_as_served(&watcher, &server).await;
}

#[tokio::test(start_paused = true)]
async fn c14_a_refused_stream_leads_to_pages_and_is_not_tried_again_on_this_client() {
    for (what, streaming) in
        [("422", StreamingLists::Refused), ("400", StreamingLists::Served), ("ignored", StreamingLists::Ignored)]
    {
        let server = fake().objects(many(3)).streaming_lists(streaming).start().await.unwrap();
        if what == "400" {
            let refuse = Status::bad_request("sendInitialEvents is not known");
            server.faults().on(Watch::request().with_query("sendInitialEvents", "true")).always().status(refuse);
        }
        let client = Client::from(server.client());
        let tries = || server.journal().count(Watch::request().with_query("sendInitialEvents", "true"));
        let first = Watcher::builder(&client, config()).spawn().unwrap();
        assert_eq!(first.wait_for_sync(LONG).await.unwrap(), 3, "{what}");
        assert_eq!(tries(), 1, "{what}");
        assert_eq!(server.journal().count(List::of(MAPS)), 1, "{what}");
        let begin = tokio::time::Instant::now();
        let second = Watcher::builder(&client, config()).spawn().unwrap();
        assert_eq!(second.wait_for_sync(LONG).await.unwrap(), 3, "{what}");
        assert_eq!(begin.elapsed(), ms(0), "{what}");
        assert_eq!(tries(), 1, "{what}");
        server.apply(config_map("late", "x")).unwrap();
        same_as_served(&first, &server).await;
        same_as_served(&second, &server).await;
    }
}

#[tokio::test(start_paused = true)]
async fn c14_a_server_that_ignores_the_flag_on_a_quiet_kind_costs_less_than_half_a_minute() {
    let server = fake().objects(many(3)).streaming_lists(StreamingLists::Ignored).start().await.unwrap();
    let watcher = Watcher::builder(server.client(), config()).spawn().unwrap();
    assert_eq!(watcher.wait_for_sync(secs(30)).await.unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn c15_an_ordinary_reconnect_does_not_ask_for_everything_again() {
    let server = server(many(20)).await;
    let (watcher, record) = watching(&server, config()).await;
    let at = watcher.status().resource_version.unwrap();
    for _ in 0..3 {
        settle(secs(30)).await;
        server.close_watches();
    }
    settle(secs(30)).await;
    let asked = asked(&server, Watch::of(MAPS));
    assert_eq!(asked[0], "watch resourceVersionMatch=NotOlderThan sendInitialEvents=true");
    assert_eq!(asked[1..], vec![format!("watch resourceVersion={at}"); 3]);
    // Two silent watches in a row make the engine compare versions by a list of one; it costs nothing else.
    assert_eq!(asked_lists(&server), 0);
    assert_eq!(record.len(), 0);
    assert_eq!((watcher.status().restarts, watcher.status().relists), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn c41_a_relist_of_what_is_known_reports_nothing() {
    for config in [config(), paged()] {
        let server = server(many(1_000)).await;
        let (watcher, record) = watching(&server, config).await;
        let mut changes = watcher.changes();
        assert!(changes.next().await.unwrap().is_initial);
        server.advance(50);
        server.compact();
        server.close_watches();
        settle(secs(60)).await;
        assert_eq!(watcher.status().relists, 1);
        assert_eq!(watcher.status().phase, Phase::Watching);
        assert_eq!(record.len(), 0);
        assert_eq!(changes.backlog(), 0);
        server.apply(config_map("m0001", "y")).unwrap();
        assert_eq!(changes.next().await.unwrap().stats.total(), 1);
        same_as_served(&watcher, &server).await;
    }
}

#[tokio::test(start_paused = true)]
async fn c68_what_a_relist_finds_unchanged_stays_the_stored_object() {
    let server = server(many(500)).await;
    let (watcher, record) = watching(&server, paged().page_size(100)).await;
    let before = watcher.store().snapshot();
    server.faults().on(Watch::of(MAPS)).always().no_answer();
    server.close_watches();
    for i in 0..5 {
        server.apply(config_map(&format!("m{:04}", i * 100), "y")).unwrap();
    }
    server.faults().clear();
    watcher.relist();
    settle(secs(300)).await;
    let after = watcher.store().snapshot();
    let kept = |a: &Snapshot, b: &Snapshot| a.list().iter().zip(b.list()).filter(|(a, b)| Object::ptr_eq(a, b)).count();
    assert_eq!((before.len(), after.len()), (500, 500));
    assert_eq!(kept(&before, &after), 495);
    assert_eq!(record.totals(), (0, 5, 0));
}

#[tokio::test(start_paused = true)]
async fn c38_the_type_is_the_same_by_list_and_by_watch() {
    let server = server([config_map("a", "x"), config_map("b", "x")]).await;
    let (watcher, record) = watching(&server, paged().named_index("kind", ["kind", "apiVersion"])).await;
    let of_kind = || watcher.store().by_index("kind", ["ConfigMap", "v1"]).unwrap().len();
    assert_eq!(of_kind(), 2);
    // Nothing but a dropped field: whether the type stands there or not is no change either.
    let mut touched = config_map("a", "x");
    touched["metadata"]["managedFields"] = serde_json::json!([{"manager": "someone", "operation": "Apply"}]);
    server.apply(touched).unwrap();
    same_as_served(&watcher, &server).await;
    assert_eq!(of_kind(), 2);
    assert_eq!(record.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_in_the_middle_of_a_page_is_read_again() {
    let server = server(many(1_000)).await;
    server.faults().on(List::of(MAPS)).nth(2).reset_at_byte(5_000);
    server.faults().on(List::of(MAPS)).nth(4).end_at_byte(5_000);
    let (watcher, record) = watching(&server, paged().page_size(300)).await;
    assert_eq!(watcher.status().initial_objects, Some(1_000));
    settle(secs(5)).await;
    assert_eq!(record.len(), 0);
    // Only the pages that broke are asked again.
    assert_eq!(server.journal().count(List::of(MAPS)), 6);
    check_index(&watcher.store().snapshot());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_before_its_end_starts_anew_and_loses_nothing() {
    let server = server(many(1_000)).await;
    server.faults().on(Watch::of(MAPS)).nth(1).after(400).reset();
    let second = server.faults().on(Watch::of(MAPS)).skip(1).hold();
    let (builder, record) = recorded(&server, config());
    let watcher = builder.spawn().unwrap();
    second.wait_for(1).await;
    assert_eq!(watcher.store().len(), 400, "what came can be read, though not as complete");
    assert!(!watcher.is_synced());
    server.delete(MAPS, Some("shop"), "m0001").unwrap();
    second.release();
    assert_eq!(watcher.wait_for_sync(LONG).await.unwrap(), 999);
    assert!(watcher.store().by_name(Some("shop"), "m0001").is_none());
    settle(secs(5)).await;
    assert_eq!(record.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn changes_while_pages_are_read_are_neither_lost_nor_reported_as_initial() {
    let server = server(many(900)).await;
    let third = server.faults().on(List::of(MAPS)).skip(2).hold();
    let (builder, record) = recorded(&server, paged().page_size(300));
    let watcher = builder.spawn().unwrap();
    third.wait_for(1).await;
    server.apply(config_map("m0001", "changed")).unwrap();
    server.delete(MAPS, Some("shop"), "m0002").unwrap();
    server.apply(config_map("m0900", "new")).unwrap();
    third.release();
    watcher.wait_for_sync(LONG).await.unwrap();
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!(record.totals(), (1, 1, 1));
    assert!(record.calls().iter().all(|(_, stats, _)| !stats.is_initial_sync));
}

#[tokio::test(start_paused = true)]
async fn a_relist_by_hand_repairs_what_a_lying_watch_left_wrong() {
    let server = server(many(3)).await;
    let (watcher, record) = watching(&server, config()).await;
    // The watch is silent about all that happens.
    server.faults().on(Watch::of(MAPS)).nth(1).hang();
    server.close_watches();
    settle(secs(2)).await;
    server.apply(config_map("m0000", "changed")).unwrap();
    server.delete(MAPS, Some("shop"), "m0001").unwrap();
    settle(secs(2)).await;
    assert_eq!(record.len(), 0);
    watcher.relist();
    watcher.relist();
    same_as_served(&watcher, &server).await;
    settle(secs(2)).await;
    assert_eq!(record.totals(), (0, 1, 1));
    assert_eq!(watcher.status().relists, 1);
}

#[tokio::test(start_paused = true)]
async fn a_relist_asked_for_before_the_start_is_the_initial_load() {
    let server = server(many(3)).await;
    let watcher = Watcher::builder(server.client(), config()).build().unwrap();
    watcher.relist();
    let watcher = watcher.spawn();
    watcher.wait_for_sync(LONG).await.unwrap();
    settle(secs(10)).await;
    assert_eq!(server.journal().count(Watch::of(MAPS)), 1);
    assert_eq!(watcher.status().relists, 0);
}

#[tokio::test(start_paused = true)]
async fn an_empty_collection_syncs_with_zero() {
    for config in [config(), paged()] {
        let server = server([]).await;
        let (watcher, record) = watching(&server, config.call_on_change_during_sync(true)).await;
        assert_eq!(watcher.status().initial_objects, Some(0));
        assert_eq!(record.len(), 0, "there is nothing to tell");
        server.apply(config_map("a", "x")).unwrap();
        eventually(&watcher, "a", |s| s.len() == 1).await;
        settle(secs(1)).await;
        assert_eq!(record.totals(), (1, 0, 0));
        assert!(!record.calls()[0].1.is_initial_sync);
    }
}
