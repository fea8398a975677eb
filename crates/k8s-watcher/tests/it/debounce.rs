//! When `on_change` is called: debounce, force, and nothing lost between.

use std::sync::{Arc, Mutex};

use k8s_watcher::Watcher;
use tokio::time::Instant;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn c45_a_steady_stream_of_changes_starves_no_callback() {
    let server = server([]).await;
    let (watcher, record) = watching(&server, config().debounce(ms(200))).await;
    let begin = Instant::now();
    let mut applied = vec![];
    for i in 0..500 {
        server.apply(config_map("a", &i.to_string())).unwrap();
        applied.push(begin.elapsed());
        settle(ms(20)).await;
    }
    settle(secs(1)).await;
    let calls = record.calls();
    assert!((45..=52).contains(&calls.len()), "{}", calls.len());
    assert!(calls[0].0 < ms(1), "the first at once");
    let mut covered = 0;
    for (at, stats, _) in &calls {
        for event in &applied[covered..covered + stats.total() as usize] {
            assert!(*at <= *event + ms(210), "{at:?} for an event of {event:?}");
        }
        covered += stats.total() as usize;
    }
    assert_eq!(covered, 500);
    drop(watcher);
}

#[tokio::test(start_paused = true)]
async fn c46_the_last_event_of_a_burst_is_covered_by_another_callback() {
    let server = server([]).await;
    let record = Record::new();
    let on_change = record.clone();
    let seen = Arc::new(Mutex::new(vec![]));
    let labels = seen.clone();
    let watcher = Watcher::builder(server.client(), config().debounce(ms(100)))
        .on_change_async(move |change| {
            on_change.push(&change);
            let label = change.snapshot.by_name(Some("shop"), "a").and_then(|a| a.label("app").map(str::to_owned));
            labels.lock().unwrap().push(label.unwrap_or_default());
            tokio::time::sleep(ms(500))
        })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    server.apply(config_map("a", "0")).unwrap();
    settle(ms(100)).await;
    server.apply(config_map("a", "100")).unwrap();
    settle(ms(350)).await;
    server.apply(config_map("a", "450")).unwrap();
    settle(secs(5)).await;
    assert_eq!(*seen.lock().unwrap(), ["0", "450"]);
    assert_eq!(record.totals(), (1, 2, 0));
    assert_eq!(record.calls()[1].0, ms(500), "due at once when the first took longer than the interval");
}

#[tokio::test(start_paused = true)]
async fn a_burst_that_keeps_the_reader_busy_does_not_hold_back_the_first_callback() {
    let server = server([]).await;
    let (watcher, record) = watching(&server, config().debounce(ms(100))).await;
    for i in 0..8_000 {
        server.apply(config_map(&format!("m{}", i % 100), &i.to_string())).unwrap();
    }
    settle(secs(1)).await;
    let calls = record.calls();
    assert_eq!(record.totals(), (100, 7_900, 0));
    assert!(calls[0].1.total() <= 1_024, "the first call came only after {} changes", calls[0].1.total());
    drop(watcher);
}

#[tokio::test(start_paused = true)]
async fn zero_debounce_calls_for_each_batch_at_once() {
    let server = server([]).await;
    let (watcher, record) = watching(&server, config()).await;
    for i in 0..10 {
        server.apply(config_map("a", &i.to_string())).unwrap();
        settle(ms(1)).await;
    }
    assert_eq!(record.len(), 10);
    assert_eq!(watcher.status().callback_panics, 0);
}

#[tokio::test(start_paused = true)]
async fn on_sync_complete_begins_no_refractory_period_and_holds_changes_back_while_it_runs() {
    let server = server(many(2)).await;
    let record = Record::new();
    let on_change = record.clone();
    let watcher = Watcher::builder(server.client(), config().debounce(secs(5)))
        .on_change_async(move |change| {
            on_change.push(&change);
            async {}
        })
        .on_sync_complete_async(|_, _| tokio::time::sleep(secs(2)))
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    settle(secs(1)).await;
    server.apply(config_map("a", "x")).unwrap();
    settle(ms(500)).await;
    assert_eq!(record.len(), 0, "on_sync_complete still runs");
    settle(secs(1)).await;
    assert_eq!(record.calls().iter().map(|c| c.0).collect::<Vec<_>>(), [secs(2)]);
}

#[tokio::test(start_paused = true)]
async fn force_sync_calls_now_even_with_nothing_to_tell_and_in_the_refractory_period() {
    let server = server(many(2)).await;
    let (watcher, record) = watching(&server, config().debounce(secs(10))).await;
    watcher.force_sync();
    watcher.force_sync();
    settle(ms(1)).await;
    let calls = record.calls();
    assert_eq!(calls.len(), 1, "several requests before the call are one");
    assert!(calls[0].1.is_empty() && !calls[0].1.is_initial_sync);
    assert_eq!(calls[0].2, 2);
    server.apply(config_map("a", "x")).unwrap();
    settle(secs(1)).await;
    assert_eq!(record.len(), 1, "the interval has not passed");
    watcher.force_sync();
    settle(ms(1)).await;
    assert_eq!(record.len(), 2);
    assert_eq!(record.totals(), (1, 0, 0), "with the statistics so far");
    settle(secs(30)).await;
    assert_eq!(record.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn force_sync_while_a_callback_runs_is_followed_by_another_call() {
    let server = server([]).await;
    let record = Record::new();
    let on_change = record.clone();
    let watcher = Watcher::builder(server.client(), config().debounce(secs(10)))
        .on_change_async(move |change| {
            on_change.push(&change);
            tokio::time::sleep(secs(1))
        })
        .spawn()
        .unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    watcher.force_sync();
    settle(ms(500)).await;
    watcher.force_sync();
    settle(secs(5)).await;
    assert_eq!(record.calls().iter().map(|c| c.0).collect::<Vec<_>>(), [ms(0), secs(1)]);
}

#[tokio::test(start_paused = true)]
async fn force_sync_before_the_sync_does_nothing_neither_then_nor_later() {
    let server = server(many(2)).await;
    let lists = server.faults().on(k8s_fake_apiserver::List::of(MAPS)).hold();
    let (builder, record) = recorded(&server, paged());
    let watcher = builder.build().unwrap();
    watcher.force_sync();
    let watcher = watcher.spawn();
    lists.wait_for(1).await;
    watcher.force_sync();
    settle(secs(1)).await;
    lists.release();
    watcher.wait_for_sync(LONG).await.unwrap();
    settle(secs(1)).await;
    assert_eq!(record.len(), 0, "the initial load is told by on_sync_complete alone");
}

#[tokio::test(start_paused = true)]
async fn force_sync_during_the_load_is_initial_where_callbacks_run_during_the_load() {
    let server = server(many(4)).await;
    let second = server.faults().on(k8s_fake_apiserver::List::of(MAPS)).skip(1).hold();
    let (builder, record) = recorded(&server, paged().page_size(2).call_on_change_during_sync(true).debounce(secs(10)));
    let watcher = builder.spawn().unwrap();
    second.wait_for(1).await;
    settle(ms(100)).await;
    assert_eq!(record.len(), 1);
    watcher.force_sync();
    settle(ms(10)).await;
    let calls = record.calls();
    assert_eq!(calls.len(), 2, "even in the refractory period");
    assert!(calls[1].1.is_empty() && calls[1].1.is_initial_sync, "{calls:?}");
    second.release();
    watcher.wait_for_sync(LONG).await.unwrap();
    settle(secs(30)).await;
    assert_eq!(record.totals(), (4, 0, 0));
    assert!(record.calls().iter().all(|(_, stats, _)| stats.is_initial_sync));
}
