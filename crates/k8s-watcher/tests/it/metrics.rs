//! What a scrape shows.

use k8s_fake_apiserver::Watch;
use k8s_types::SingleWatcherConfig;
use k8s_watcher::{Metrics, SingleWatcher};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::support::*;

fn scrape(registry: &Registry) -> String {
    let mut text = String::new();
    encode(&mut text, registry).unwrap();
    text
}

/// The value of a series.
fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[tokio::test(start_paused = true)]
async fn a_scrape_has_the_state_of_each_watcher() {
    let server = server([config_map("a", "x"), config_map("b", "x")]).await;
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    server.faults().on(Watch::of(MAPS)).times(2).status(403);
    let (builder, _) = recorded(&server, config());
    let watcher = builder.build().unwrap();
    metrics.add("maps", watcher.handle());
    let text = scrape(&registry);
    let maps = |name: &str| format!(r#"watcher_{name}{{watcher="maps",resource="v1/configmaps"}}"#);
    assert_eq!(value(&text, &maps("synced")), Some(0.0));
    for none in ["last_contact_seconds", "stale_seconds", "running_callback_seconds"] {
        assert_eq!(value(&text, &maps(none)), None, "{text}");
    }

    let watcher = watcher.spawn();
    watcher.wait_for_sync(LONG).await.unwrap();
    let one = SingleWatcher::builder(server.client(), SingleWatcherConfig::new(MAPS, "shop", "a")).spawn().unwrap();
    one.wait_for_sync(LONG).await.unwrap();
    metrics.add_single("one", &one);
    assert_eq!(value(&text, &maps("unread_objects")), None, "there is no stream");
    let mut changes = watcher.changes();
    changes.next().await.unwrap();
    server.apply(config_map("a", "y")).unwrap();
    server.delete(MAPS, Some("shop"), "b").unwrap();
    same_as_served(&watcher, &server).await;
    settle(secs(5)).await;
    let text = scrape(&registry);
    assert_eq!(value(&text, &maps("synced")), Some(1.0));
    assert_eq!(value(&text, &maps("objects")), Some(1.0));
    assert_eq!((value(&text, &maps("untold_changes")), value(&text, &maps("unread_objects"))), (Some(0.0), Some(2.0)));
    assert_eq!(value(&text, &maps("store_bytes")), Some(watcher.store().snapshot().bytes().total() as f64));
    let changes = |watcher: &str, op: &str| {
        let series = format!(r#"watcher_changes_total{{watcher="{watcher}",resource="v1/configmaps",op="{op}"}}"#);
        value(&text, &series)
    };
    let of = |watcher: &str| ["created", "modified", "deleted"].map(|op| changes(watcher, op).unwrap());
    assert_eq!((of("maps"), of("one")), ([2.0, 1.0, 1.0], [1.0, 1.0, 0.0]));
    let forbidden = r#"watcher_failures_total{watcher="maps",resource="v1/configmaps",reason="forbidden"}"#;
    assert_eq!(value(&text, forbidden), Some(2.0));
    assert_eq!(value(&text, &maps("last_event_seconds")), Some(5.0), "{text}");
    assert_eq!(value(&text, &maps("stale_seconds")), Some(5.0), "{text}");
    assert_eq!(watcher.status().failures.total(), 2);
    // Nothing of an object is in a label.
    assert!(!text.contains("shop"), "{text}");

    // What has ended is not shown once nobody holds it, and a name is there once.
    metrics.add("maps", watcher.handle());
    assert_eq!(scrape(&registry).matches("watcher_synced{").count(), 2);
    one.shutdown().await;
    let text = scrape(&registry);
    assert!(!text.contains(r#"watcher="one""#) && text.contains(r#"watcher="maps""#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_hangs_is_seen_in_a_scrape() {
    let server = server([]).await;
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let builder = k8s_watcher::Watcher::builder(server.client(), config());
    let watcher = builder.on_change_async(|_| std::future::pending::<()>()).spawn().unwrap();
    metrics.add("maps", &watcher);
    watcher.wait_for_sync(LONG).await.unwrap();
    server.apply(config_map("a", "x")).unwrap();
    settle(secs(300)).await;
    let series = r#"watcher_running_callback_seconds{watcher="maps",resource="v1/configmaps"}"#;
    assert_eq!(value(&scrape(&registry), series), Some(300.0));
}

#[cfg(feature = "cached")]
#[tokio::test(start_paused = true)]
async fn a_scrape_of_a_cached_store_tells_of_its_cache() {
    let server = server([config_map("a", "x")]).await;
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let builder = k8s_watcher::Watcher::builder(server.client(), config());
    let watcher = builder.cached(k8s_store::CacheConfig::default()).spawn().unwrap();
    metrics.add_cached("maps", &watcher);
    watcher.wait_for_sync(LONG).await.unwrap();
    for _ in 0..3 {
        watcher.store().list().await.unwrap();
    }
    let text = scrape(&registry);
    let maps = |name: &str| format!(r#"watcher_{name}{{watcher="maps",resource="v1/configmaps"}}"#);
    let counts = ["cache_hits_total", "cache_misses_total", "cache_fetches_total", "cache_fetch_errors_total"];
    assert_eq!(counts.map(|name| value(&text, &maps(name))), [Some(2.0), Some(1.0), Some(1.0), Some(0.0)], "{text}");
    assert!(value(&text, &maps("cache_bytes")).unwrap() > 0.0);
}
