//! Reads that a person recognises, with their times.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use k8s_informer::packed::{Object, Path};
use k8s_informer::store::Snapshot;

use crate::{Watched, table};

/// How often a read is repeated for its time.
const TIMES: u32 = 10_000;

/// The reads of the tour.
pub(crate) fn tour(watched: &[Watched]) -> Result<()> {
    let snapshot = |kind: &str| -> Result<Snapshot> {
        let found = watched.iter().find(|w| w.name == kind).context("the tour watches this kind")?;
        Ok(found.watcher.store().snapshot())
    };
    let (slices, pods, ingresses) = (snapshot("EndpointSlice")?, snapshot("Pod")?, snapshot("Ingress")?);

    let found = slices.get(["shop", "cart"])?;
    line("EndpointSlices of shop/cart (exact key)", &plural(found.len(), "slice"), || {
        slices.get(["shop", "cart"]).map(|f| f.len())
    });
    let addresses: Path = "endpoints[*].addresses[*]".parse()?;
    let all =
        || -> usize { slices.get(["shop", "cart"]).map_or(0, |f| f.iter().map(|s| s.all(&addresses).count()).sum()) };
    line("  their addresses", &plural(all(), "address"), all);
    let in_shop = pods.get(["shop"])?.len();
    line("Pods in namespace shop (key prefix)", &plural(in_shop, "pod"), || pods.get(["shop"]).map(|f| f.len()));
    if let Some(first) = ingresses.list().first() {
        let (namespace, name) = (first.namespace(), first.name());
        let label = format!("Ingress {}/{name} (by name)", namespace.unwrap_or_default());
        line(&label, "1 ingress", || ingresses.by_name(namespace, name).is_some());
        let host: Path = "spec.rules[0].host".parse()?;
        let text = first.get(&host).map(|h| h.to_string()).unwrap_or_default();
        line("  its first host", &text, || first.get(&host).is_some());
    }
    line("All Pods, ordered by namespace and name", &plural(pods.len(), "pod"), || {
        pods.list().iter().map(Object::size).sum::<usize>()
    });
    let store = watched.iter().find(|w| w.name == "Pod").context("the tour watches Pods")?.watcher.store();
    line("A new snapshot of the Pods", "consistent", || store.snapshot());
    Ok(())
}

/// The read that matters most in a store of unknown content: its biggest key, exact and by prefix.
pub(crate) fn busiest(watched: &Watched) -> Result<()> {
    let snapshot = watched.watcher.store().snapshot();
    println!("   {}, by {}", watched.name, watched.index_by.join(", "));
    let mut counts: HashMap<String, usize> = HashMap::new();
    let first: k8s_informer::indexer::Expression = watched.index_by[0].parse()?;
    for object in &snapshot.list() {
        if let Some(key) = first.first(object) {
            *counts.entry(key).or_default() += 1;
        }
    }
    let Some((key, _)) = counts.into_iter().max_by(|a, b| (a.1, &b.0).cmp(&(b.1, &a.0))) else {
        println!("   nothing is there");
        return Ok(());
    };
    let found = snapshot.get([&key])?.len();
    line(&format!("the biggest key of the first expression: {key}"), &plural(found, "object"), || {
        snapshot.get([&key]).map(|f| f.len())
    });
    if let Some(object) = snapshot.list().first() {
        let (namespace, name) = (object.namespace(), object.name());
        line(&format!("{name} (by name)"), "1 object", || snapshot.by_name(namespace, name).is_some());
    }
    Ok(())
}

fn line<T>(what: &str, result: &str, read: impl Fn() -> T) {
    let time = timed(read);
    println!("   {what:46} {result:>26} {:>10}", table::time(time));
}

/// The time of one read: the mean of many, or of as many as fit in a moment.
fn timed<T>(read: impl Fn() -> T) -> Duration {
    let begin = Instant::now();
    let mut times = 0;
    while times < TIMES && begin.elapsed() < Duration::from_millis(300) {
        for _ in 0..10 {
            black_box(read());
        }
        times += 10;
    }
    begin.elapsed() / times
}

fn plural(n: usize, noun: &str) -> String {
    let ending = match (n, noun.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{} {noun}{ending}", table::count(n))
}
