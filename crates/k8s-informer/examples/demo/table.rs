//! Numbers with units, aligned.

use std::time::Duration;

use k8s_informer::watcher::WatcherHandle;

use crate::Watched;

/// What the stores take, beside the JSON of the same objects.
pub(crate) fn memory(watched: &[Watched], json: &[usize]) {
    println!("   {:24} {:>8} {:>12} {:>12} {:>8} {:>13}", "", "objects", "JSON", "store", "ratio", "bytes/object");
    let (mut objects, mut all_json, mut all_bytes) = (0, 0, 0);
    for (w, &json) in watched.iter().zip(json) {
        let snapshot = w.watcher.store().snapshot();
        let total = snapshot.bytes().total();
        row(&w.name, snapshot.len(), json, total);
        objects += snapshot.len();
        all_json += json;
        all_bytes += total;
    }
    if watched.len() > 1 {
        row("all", objects, all_json, all_bytes);
    }
}

fn row(name: &str, objects: usize, json: usize, store: usize) {
    let (ratio, each) = match (store, objects) {
        (0, _) | (_, 0) => ("-".into(), "-".into()),
        _ => (format!("1/{:.0}", json as f64 / store as f64), count(store / objects)),
    };
    println!("   {name:24} {:>8} {:>12} {:>12} {ratio:>8} {each:>13}", count(objects), bytes(json), bytes(store));
}

/// Bytes of the cached objects as JSON.
pub(crate) fn json_bytes(watcher: &WatcherHandle) -> usize {
    let size = |o| serde_json::to_vec(o).map_or(0, |json| json.len());
    watcher.store().snapshot().list().iter().map(size).sum()
}

/// A number with separators.
pub(crate) fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(crate) fn bytes(n: usize) -> String {
    match n {
        0..1_024 => format!("{n} B"),
        1_024..1_048_576 => format!("{:.1} KiB", n as f64 / 1024.0),
        _ => format!("{:.1} MiB", n as f64 / 1_048_576.0),
    }
}

pub(crate) fn time(d: Duration) -> String {
    match d.as_secs_f64() {
        s if s < 1e-6 => format!("{:.0} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.1} s"),
    }
}
