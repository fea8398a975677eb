//! What an operator reads in the log: each trouble once, and its end.

use std::cell::RefCell;
use std::fmt::{Debug, Write};
use std::sync::Once;

use k8s_fake_apiserver::{List, Status, Watch};
use k8s_watcher::Watcher;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record as Fields};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::support::*;

thread_local! {
    /// Where the lines of this thread's test go; a paused runtime has one thread.
    static LINES: RefCell<Option<Story>> = const { RefCell::new(None) };
}

/// Hears what this crate logs at INFO and above, as `WARN message field=value …`.
struct Collector;

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0.insert_str(0, &format!("{value:?}"));
        } else {
            let _ = write!(self.0, " {}={value:?}", field.name());
        }
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("k8s_watcher")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Fields<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        LINES.with_borrow(|lines| {
            let Some(lines) = lines else { return };
            let mut line = Line::default();
            event.record(&mut line);
            lines.tell(format!("{} {}", event.metadata().level(), line.0));
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// One subscriber for all tests, before any of them logs: whether a place in the code is heard is decided when it logs
/// for the first time, for the whole process.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| tracing::subscriber::set_global_default(Collector).expect("nobody else listens"));
}

/// Collects what is logged on this thread from now on.
fn collect() -> Story {
    let story = Story::default();
    LINES.set(Some(story.clone()));
    story
}

#[tokio::test(start_paused = true)]
async fn c33_ten_minutes_without_a_kind_are_two_lines() {
    let lines = collect();
    let server = server(many(3)).await;
    for config in [paged(), config(), config().namespaces(["shop", "pay"])] {
        let missing = server.faults().on(k8s_fake_apiserver::Any::request()).always().status(404);
        let watcher = Watcher::builder(server.client(), config).spawn().unwrap();
        settle(LONG).await;
        missing.clear();
        watcher.wait_for_sync(secs(35)).await.unwrap();
        watcher.shutdown().await;
    }
    let all = lines.all();
    let count = |start: &str| all.iter().filter(|line| line.starts_with(start)).count();
    assert!(count("WARN") >= 3 && count("WARN") <= 5, "{all:#?}");
    assert_eq!(count("INFO synced"), 3, "{all:#?}");
    assert_eq!(count("ERROR"), 0);
    assert!(all.iter().any(|line| line.contains("v1/configmaps: kind not served")), "{all:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_trouble_is_told_once_and_its_end_as_well() {
    let server = server(many(3)).await;
    let (watcher, _) = watching(&server, config()).await;
    settle(secs(20)).await;
    let lines = collect();
    for round in 1..=2 {
        let forbidden = server.faults().on(Watch::of(MAPS)).always().status(Status::forbidden("watch", MAPS));
        server.close_watches();
        settle(secs(120)).await;
        forbidden.clear();
        settle(secs(60)).await;
        let all = lines.all();
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
    assert_eq!(lines.all().iter().filter(|line| line.starts_with("WARN")).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn c20_a_bad_object_is_named_once_and_again_when_it_was_good_between() {
    let lines = collect();
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
        let all = lines.all();
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
    let lines = collect();
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
    let all = lines.all().join("\n");
    assert!(all.contains("WARN callback failed") && all.contains("the disk is full"), "{all}");
    assert!(all.contains("ERROR callback panicked"), "{all}");
    assert!(!all.contains("password123"), "{all}");
}

#[tokio::test(start_paused = true)]
async fn errors_of_a_single_watchers_callback_are_logged_without_the_object() {
    let lines = collect();
    let server = server([config_map("a", "password123")]).await;
    let config = k8s_types::SingleWatcherConfig::new(MAPS, "shop", "a");
    let watcher = k8s_watcher::SingleWatcher::builder(server.client(), config)
        .on_change_async(|_| async { Err::<(), _>("the disk is full") })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    server.apply(config_map("a", "password1234")).unwrap();
    settle(secs(1)).await;
    let all = lines.all().join("\n");
    assert!(all.contains("WARN callback failed") && all.contains("the disk is full"), "{all}");
    assert!(!all.contains("password123"), "{all}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_a_key_is_told_once() {
    let lines = collect();
    let server = server([config_map("a", "x")]).await;
    let config = WatcherConfig::new(MAPS).index_by(["metadata.labels"]).debounce(ms(0));
    let watcher = Watcher::builder(server.client(), config).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    for value in ["y", "z"] {
        server.apply(config_map("a", value)).unwrap();
        settle(secs(1)).await;
    }
    let all = lines.all();
    assert_eq!(all.iter().filter(|line| line.contains("where an index wants a key")).count(), 1, "{all:#?}");
    assert_eq!(watcher.status().key_issues.not_scalar, 3);
}
