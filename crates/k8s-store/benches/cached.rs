//! The cached store: what it takes beside the memory store, how many fetches readers make, and what a hot read costs
//! beside a plain moka cache.
//!
//! `cargo bench -p k8s-store --features cached --bench cached`.
#![allow(clippy::print_stdout)]
use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use divan::Bencher;
use divan::counter::ItemsCount;
use foldhash::quality::RandomState;
use hashbrown::HashMap;
use k8s_packed::{Encoder, Object};
use k8s_store::{CacheConfig, CachedStore, FetchFuture, Invalidator, StorePlan, Writer, cached_store, memory_store};
use k8s_types::ObjectKey;
use serde_json::json;
use tokio::runtime::Runtime;

const SECRETS: usize = 20_000;
const IN_NAMESPACE: usize = 200;

fn main() {
    entries();
    sizes();
    fetches();
    divan::main();
}

fn name(i: usize) -> (String, String) {
    let (namespace, hash) = (i / IN_NAMESPACE, i.wrapping_mul(0x9e37_79b1) % 0x0fff_ffff);
    (format!("team-{namespace:03}"), format!("tls-{hash:07x}"))
}

/// A Secret of `size` bytes that look random, as certificates and keys do.
fn secret(i: usize, size: usize) -> String {
    let (namespace, name) = name(i);
    let mut random = i as u64 + 1;
    let byte = |_| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'A' + (random >> 33) as u8 % 26)
    };
    let key: String = (0..size.saturating_sub(600)).map(byte).collect();
    let (certificate, key) = key.split_at(key.len() / 2);
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {
            "name": name, "namespace": namespace, "uid": format!("6b1f8e0c-27a4-4d55-9d1e-{i:012x}"),
            "resourceVersion": (40_000_000 + i * 7).to_string(), "creationTimestamp": "2026-08-01T10:00:00Z",
            "labels": {"app.kubernetes.io/name": format!("app-{}", i % 500), "app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"cert-manager.io/certificate-name": format!("cert-{i}")},
        },
        "data": {"tls.crt": certificate, "tls.key": key},
    })
    .to_string()
}

fn plan() -> StorePlan {
    StorePlan::index_by(["metadata.namespace", "metadata.name"]).expect("valid")
}

/// A store whose references are those of `count` Secrets of this size, which the fetch makes anew each time.
fn cached(count: usize, size: usize, delay: Duration) -> (Writer, Invalidator, CachedStore, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let fetch = {
        let asked = asked.clone();
        let places: HashMap<(String, String), usize> = (0..count).map(|i| (name(i), i)).collect();
        move |namespace: Option<&str>, name: &str| -> FetchFuture {
            asked.fetch_add(1, Ordering::Relaxed);
            let found = places.get(&(namespace.unwrap_or_default().to_owned(), name.to_owned())).copied();
            Box::pin(async move {
                tokio::time::sleep(delay).await;
                Ok(found.map(|i| Bytes::from(secret(i, size))))
            })
        }
    };
    let stubs = Encoder::new().keep_only([]);
    let config = CacheConfig::default().ttl(Duration::from_secs(3600));
    let (mut writer, invalidator, store) = cached_store(plan(), stubs, Encoder::new(), config, fetch);
    for i in 0..count {
        let stub = writer.encoder().encode(secret(i, size).as_bytes()).expect("an object");
        writer.upsert(stub);
    }
    writer.commit();
    (writer, invalidator, store, asked)
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime")
}

/// In a process that has freed nothing yet, so that what is new shows.
fn entries() {
    let (_writer, _invalidator, store, _) = cached(10_000, 700, Duration::ZERO);
    let runtime = runtime();
    let before = resident();
    let objects: usize = runtime.block_on(store.list()).expect("complete").iter().map(Object::size).sum();
    if let (Some(before), Some(after)) = (before, resident()) {
        let counted = store.bytes().cached;
        println!(
            "An entry of the cache takes {} bytes beside its object as counted, {} by the resident set",
            (counted - objects) / 10_000,
            (after - before).saturating_sub(objects) / 10_000,
        );
    }
}

fn sizes() {
    let (mut writer, memory) = memory_store(plan(), Encoder::new());
    for i in 0..SECRETS {
        let object = writer.encoder().encode(secret(i, 20 << 10).as_bytes()).expect("an object");
        writer.upsert(object);
    }
    writer.commit();
    let whole = memory.snapshot().bytes();
    let (_writer, _invalidator, store, _) = cached(SECRETS, 20 << 10, Duration::ZERO);
    let cold = store.bytes();
    println!("{SECRETS} Secrets of 20 KiB:");
    println!("  memory store          {whole}");
    println!("  cached store, cold    {}, cached {}", cold.references, cold.cached);
    println!("  ratio                 {:.0}", whole.total() as f64 / cold.total() as f64);
    println!("  a reference           {} bytes", cold.total() / SECRETS);
}

/// Bytes of the resident set, where the system tells.
fn resident() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split_whitespace().nth(1)?.parse::<usize>().ok()? * 4096)
}

fn fetches() {
    let (_writer, _invalidator, store, asked) = cached(200, 1000, Duration::from_millis(20));
    let (namespace, name) = name(42);
    runtime().block_on(async {
        let read = |store: CachedStore, namespace: String, name: String| async move {
            store.by_name(Some(&namespace), &name).await
        };
        let readers: Vec<_> =
            (0..200).map(|_| tokio::spawn(read(store.clone(), namespace.clone(), name.clone()))).collect();
        for reader in readers {
            let found = reader.await.expect("no panic").expect("no error");
            assert!(found.is_some());
        }
    });
    println!("200 tasks on one cold key: {} fetch\n", asked.load(Ordering::Relaxed));
}

/// Asks a thousand questions in each turn.
fn ask<T>(bencher: Bencher<'_, '_>, read: impl Fn(&str, &str) -> T) {
    const TURN: usize = 1000;
    let questions: Vec<_> = (0..TURN).map(|i| name(i * 7919 % TURN)).collect();
    let turns = Cell::new(0_usize);
    bencher.counter(ItemsCount::new(TURN)).bench_local(|| {
        turns.set(turns.get() + 1);
        for (namespace, name) in &questions {
            black_box(read(namespace, name));
        }
    });
}

mod hot {
    use super::*;

    #[divan::bench]
    fn a_plain_moka(bencher: Bencher<'_, '_>) {
        let cache = moka::sync::Cache::builder().build_with_hasher(RandomState::default());
        for i in 0..1000 {
            let object = Object::from_slice(secret(i, 1000).as_bytes()).expect("an object");
            cache.insert(ObjectKey::of(&object), object);
        }
        // As whoever has two strings asks it.
        ask(bencher, |namespace, name| cache.get(&ObjectKey::new(Some(namespace), name)).expect("cached"));
    }

    #[divan::bench]
    fn b_by_name(bencher: Bencher<'_, '_>) {
        let (_writer, _invalidator, store, _) = cached(1000, 1000, Duration::ZERO);
        let runtime = runtime();
        runtime.block_on(store.list()).expect("complete");
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let context = std::cell::RefCell::new(&mut context);
        ask(bencher, |namespace, name| {
            let read = std::pin::pin!(store.by_name(Some(namespace), name));
            match read.poll(*context.borrow_mut()) {
                std::task::Poll::Ready(found) => found.expect("no error").expect("cached"),
                std::task::Poll::Pending => unreachable!("it is cached"),
            }
        });
    }

    #[divan::bench]
    fn c_get(bencher: Bencher<'_, '_>) {
        let (_writer, _invalidator, store, _) = cached(1000, 1000, Duration::ZERO);
        let runtime = runtime();
        runtime.block_on(store.list()).expect("complete");
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let context = std::cell::RefCell::new(&mut context);
        ask(bencher, |namespace, name| {
            let read = std::pin::pin!(store.get([namespace, name]));
            match read.poll(*context.borrow_mut()) {
                std::task::Poll::Ready(found) => found.expect("no error").pop().expect("cached"),
                std::task::Poll::Pending => unreachable!("it is cached"),
            }
        });
    }
}
