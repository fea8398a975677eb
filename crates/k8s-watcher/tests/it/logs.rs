//! What an operator reads in the log: each trouble once, and its end.

use k8s_fake_apiserver::{List, Status, Watch};
use k8s_watcher::Watcher;
use test_support::collect_log;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn c33_ten_minutes_without_a_kind_are_two_lines() {
    for (config, scopes) in [(paged(), 1), (config(), 1), (config().namespaces(["shop", "pay"]), 2)] {
        let lines = collect_log();
        let server = server(many(3)).await;
        let missing = server.faults().on(k8s_fake_apiserver::Any::request()).always().status(404);
        let watcher = Watcher::builder(server.client(), config).spawn().unwrap();
        settle(LONG).await;
        missing.clear();
        watcher.wait_for_sync(secs(35)).await.unwrap();
        watcher.shutdown().await;
        let all = lines.of_interest();
        let count = |start: &str| all.iter().filter(|line| line.starts_with(start)).count();
        assert!((1..=scopes).contains(&count("WARN")), "one for each namespace at most: {all:#?}");
        assert_eq!((count("INFO synced"), count("ERROR")), (1, 0), "{all:#?}");
        assert!(all.iter().any(|line| line.contains("v1/configmaps: kind not served")), "{all:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_trouble_is_told_once_and_its_end_as_well() {
    let server = server(many(3)).await;
    let (watcher, _) = watching(&server, config()).await;
    settle(secs(20)).await;
    let lines = collect_log();
    for round in 1..=2 {
        let forbidden = server.faults().on(Watch::of(MAPS)).always().status(Status::forbidden("watch", MAPS));
        server.close_watches();
        settle(secs(120)).await;
        forbidden.clear();
        settle(secs(60)).await;
        let all = lines.of_interest();
        let warnings = all.iter().filter(|line| line.starts_with("WARN")).count();
        let ends = all.iter().filter(|line| line.starts_with("INFO recovered")).count();
        assert_eq!((warnings, ends), (round, round), "{all:#?}");
    }
    // What happens every day is no news: a watch that ends, a version that expires.
    server.close_watches();
    server.advance(10);
    settle(secs(20)).await;
    server.faults().on(Watch::of(MAPS)).nth(1).gone();
    server.close_watches();
    settle(secs(60)).await;
    assert_eq!(watcher.status().relists, 1);
    assert_eq!(lines.of_interest().iter().filter(|line| line.starts_with("WARN")).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn c20_a_bad_object_is_named_once_and_again_when_it_was_good_between() {
    let lines = collect_log();
    let server = server([config_map("a", "x")]).await;
    let (watcher, _) = watching(&server, config()).await;
    settle(secs(20)).await;
    let deep = format!("{}{}", "[".repeat(130), "]".repeat(130));
    for part in 1..=2 {
        for _ in 0..3 {
            server.advance(1);
            let line = format!(
                r#"{{"type":"MODIFIED","object":{{"metadata":{{"namespace":"shop","name":"a","resourceVersion":"{}"}},"data":{deep}}}}}"#,
                server.revision()
            );
            server.faults().on(Watch::of(MAPS)).nth(1).line(line);
            server.close_watches();
            settle(secs(20)).await;
        }
        let all = lines.of_interest();
        let named: Vec<_> = all.iter().filter(|line| line.starts_with("WARN object cannot be decoded")).collect();
        assert_eq!(named.len(), part, "{all:#?}");
        assert!(named[0].contains(r#"namespace="shop" name="a" reason="nested deeper"#), "{named:?}");
        server.apply(config_map("a", &part.to_string())).unwrap();
        settle(secs(1)).await;
    }
    assert_eq!(watcher.status().skipped, 6);
}

#[tokio::test(start_paused = true)]
async fn c51_errors_and_panics_of_callbacks_are_logged_and_what_lists_hold_is_not() {
    let lines = collect_log();
    let server = server([config_map("a", "password123")]).await;
    server.faults().on(List::of(MAPS)).nth(1).end_at_byte(300);
    let watcher = Watcher::builder(server.client(), paged())
        .on_sync_complete_async(|_, _| async { Err::<(), _>("the disk is full") })
        .on_change_async(|change| async move { assert!(change.stats.is_empty(), "a panic") })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    server.apply(config_map("b", "password123")).unwrap();
    settle(secs(1)).await;
    let all = lines.of_interest().join("\n");
    assert!(all.contains("WARN callback failed") && all.contains("the disk is full"), "{all}");
    assert!(all.contains("ERROR callback panicked"), "{all}");
    assert!(!lines.all().join("\n").contains("password123"), "{:#?}", lines.all());
}

#[tokio::test(start_paused = true)]
async fn errors_of_a_single_watchers_callback_are_logged_without_the_object() {
    let lines = collect_log();
    let server = server([config_map("a", "password123")]).await;
    let config = k8s_types::SingleWatcherConfig::new(MAPS, "shop", "a");
    let watcher = k8s_watcher::SingleWatcher::builder(server.client(), config)
        .on_change_async(|_| async { Err::<(), _>("the disk is full") })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    server.apply(config_map("a", "password1234")).unwrap();
    settle(secs(1)).await;
    let all = lines.of_interest().join("\n");
    assert!(all.contains("WARN callback failed") && all.contains("the disk is full"), "{all}");
    assert!(!lines.all().join("\n").contains("password123"), "{:#?}", lines.all());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_a_key_is_told_once() {
    let lines = collect_log();
    let server = server([config_map("a", "x")]).await;
    let config = WatcherConfig::new(MAPS).index_by(["metadata.labels"]).debounce(ms(0));
    let watcher = Watcher::builder(server.client(), config).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    for value in ["y", "z"] {
        server.apply(config_map("a", value)).unwrap();
        settle(secs(1)).await;
    }
    let all = lines.of_interest();
    assert_eq!(all.iter().filter(|line| line.contains("where an index wants a key")).count(), 1, "{all:#?}");
    assert_eq!(watcher.status().key_issues.not_scalar, 3);
}
