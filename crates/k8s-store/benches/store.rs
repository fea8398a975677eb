//! Reads and updates of a store, beside a bare hash map that can do nothing but exact reads.
//!
//! `cargo bench -p k8s-store`. The objects have the size of a packed Pod; keys are read in random order, so a part of
//! what is measured is the memory of the machine.
use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;

use divan::counter::ItemsCount;
use divan::{AllocProfiler, Bencher};
use hashbrown::{Equivalent, HashMap};
use k8s_indexer::Indexer;
use k8s_packed::{Encoder, Object};
use k8s_store::{MemoryStore, StorePlan, Writer, memory_store};
use serde_json::json;

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

const SIZES: [usize; 3] = [1_000, 20_000, 100_000];
const IN_NAMESPACE: usize = 200;

fn main() {
    divan::main();
}

fn name(i: usize) -> (String, String) {
    let (namespace, hash) = (i / IN_NAMESPACE, i.wrapping_mul(0x9e37_79b1) % 0x0fff_ffff);
    (format!("team-{namespace:03}"), format!("web-{hash:07x}-{:05x}", i * 7919 % 0x0f_ffff))
}

/// An object of about 1.7 KB.
fn pod(i: usize, version: usize) -> Object {
    let (namespace, name) = name(i);
    let filler: Vec<String> = (0..20).map(|n| format!("{:064x}", i * 20 + n)).collect();
    let value = json!({
        "metadata": {
            "namespace": namespace, "name": name, "uid": format!("uid-{i:08}"),
            "resourceVersion": version.to_string(), "labels": {"app": format!("app-{}", i % 500)},
        },
        "spec": {"nodeName": format!("node-{}", i % 100), "filler": filler},
    });
    Object::from_value(&value).expect("an object")
}

fn plan() -> StorePlan {
    let by_node = Indexer::new(["spec.nodeName"]).expect("valid");
    let by_app = Indexer::new(["metadata.namespace", "metadata.labels.app"]).expect("valid");
    let by_uid = Indexer::new(["metadata.uid"]).expect("valid");
    StorePlan::index_by(["metadata.namespace", "metadata.name"])
        .expect("valid")
        .named("by-node", by_node)
        .and_then(|plan| plan.named("by-app", by_app))
        .and_then(|plan| plan.named("by-uid", by_uid))
        .expect("new names")
}

fn filled(plan: StorePlan, count: usize) -> (Writer, MemoryStore) {
    let (mut writer, store) = memory_store(plan, Encoder::new());
    for i in 0..count {
        writer.upsert(pod(i, 0));
    }
    writer.commit();
    (writer, store)
}

/// Texts to ask for, in random order, in memory of their own.
fn questions(count: usize) -> Vec<(String, String)> {
    let mut questions: Vec<_> = (0..count).map(name).collect();
    let mut random = 1_u64;
    for i in (1..count).rev() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        questions.swap(i, (random >> 33) as usize % (i + 1));
    }
    questions
}

/// Asks a thousand questions in each turn, so that caches are as warm as the store's size lets them be.
fn ask<T>(bencher: Bencher<'_, '_>, questions: &[(String, String)], read: impl Fn(&str, &str) -> T) {
    const TURN: usize = 1000;
    let next = Cell::new(0);
    bencher.counter(ItemsCount::new(TURN)).bench_local(|| {
        let start = next.get();
        next.set(if start + TURN < questions.len() { start + TURN } else { 0 });
        for (namespace, name) in &questions[start..start + TURN] {
            black_box(read(namespace, name));
        }
    });
}

mod exact {
    use super::*;

    #[derive(Hash)]
    struct Key<'a>(&'a str, &'a str);

    impl Equivalent<(Arc<str>, Arc<str>)> for Key<'_> {
        fn equivalent(&self, key: &(Arc<str>, Arc<str>)) -> bool {
            *self.0 == *key.0 && *self.1 == *key.1
        }
    }

    #[divan::bench(args = SIZES)]
    fn a_bare_hash_map(bencher: Bencher<'_, '_>, count: usize) {
        let mut map = HashMap::with_hasher(foldhash::fast::RandomState::default());
        let mut last = Arc::<str>::from("");
        for i in 0..count {
            let (namespace, name) = name(i);
            if *last != *namespace {
                last = namespace.into();
            }
            map.insert((last.clone(), Arc::<str>::from(name)), pod(i, 0));
        }
        let questions = questions(count);
        ask(bencher, &questions, |namespace, name| {
            map.get(&Key(namespace, name)).map(|object: &Object| black_box(object).resource_version().is_some())
        });
    }

    #[divan::bench(args = SIZES)]
    fn b_get(bencher: Bencher<'_, '_>, count: usize) {
        let (_writer, store) = filled(plan(), count);
        let (snapshot, questions) = (store.snapshot(), questions(count));
        ask(bencher, &questions, |namespace, name| {
            let mut objects = snapshot.get([namespace, name]).expect("two");
            objects.next().map(|object| black_box(object).resource_version().is_some())
        });
    }

    #[divan::bench(args = SIZES)]
    fn c_by_name(bencher: Bencher<'_, '_>, count: usize) {
        let (_writer, store) = filled(plan(), count);
        let (snapshot, questions) = (store.snapshot(), questions(count));
        ask(bencher, &questions, |namespace, name| {
            let object = snapshot.by_name(Some(namespace), name);
            object.map(|object| black_box(object).resource_version().is_some())
        });
    }

    #[divan::bench(args = SIZES)]
    fn d_get_of_a_named_index(bencher: Bencher<'_, '_>, count: usize) {
        let (_writer, store) = filled(plan(), count);
        let snapshot = store.snapshot();
        let index = snapshot.index("by-uid").expect("known");
        let uids: Vec<_> = questions(count)
            .iter()
            .filter_map(|(namespace, name)| snapshot.by_name(Some(namespace), name)?.uid())
            .map(|uid| (uid.to_owned(), String::new()))
            .collect();
        ask(bencher, &uids, |uid, _| {
            let mut objects = index.get([uid]).expect("one");
            objects.next().map(|object| black_box(object).resource_version().is_some())
        });
    }
}

mod many {
    use super::*;

    fn walk<'a>(objects: impl Iterator<Item = &'a Object>) -> usize {
        objects.fold(0, |count, object| {
            black_box(object);
            count + 1
        })
    }

    #[divan::bench]
    fn namespace_of_200(bencher: Bencher<'_, '_>) {
        let (_writer, store) = filled(plan(), 20_000);
        let (snapshot, questions) = (store.snapshot(), questions(20_000));
        ask(bencher, &questions, |namespace, _| walk(snapshot.get([namespace]).expect("one")));
    }

    #[divan::bench]
    fn bucket_of_200(bencher: Bencher<'_, '_>) {
        let (_writer, store) = filled(plan(), 20_000);
        let snapshot = store.snapshot();
        let index = snapshot.index("by-node").expect("known");
        bencher.counter(ItemsCount::new(IN_NAMESPACE)).bench_local(|| walk(index.get(["node-42"]).expect("one")));
    }

    /// A prefix that gathers many keys and puts them in order.
    #[divan::bench]
    fn prefix_of_200_in_order(bencher: Bencher<'_, '_>) {
        let by_node = Indexer::new(["spec.nodeName", "metadata.name"]).expect("valid");
        let (_writer, store) = filled(StorePlan::new(by_node), 20_000);
        let snapshot = store.snapshot();
        bencher.counter(ItemsCount::new(IN_NAMESPACE)).bench_local(|| walk(snapshot.get(["node-42"]).expect("one")));
    }

    #[divan::bench]
    fn list_of_20_000(bencher: Bencher<'_, '_>) {
        let (_writer, store) = filled(plan(), 20_000);
        let snapshot = store.snapshot();
        bencher.counter(ItemsCount::new(20_000_usize)).bench_local(|| walk(snapshot.list()));
    }
}

#[divan::bench(args = SIZES)]
fn snapshot(bencher: Bencher<'_, '_>, count: usize) {
    let (_writer, store) = filled(plan(), count);
    bencher.bench_local(|| store.snapshot());
}

mod update {
    use super::*;

    fn plan_of(indexes: usize) -> StorePlan {
        match indexes {
            0 => StorePlan::index_by(["metadata.namespace", "metadata.name"]).expect("valid"),
            _ => plan(),
        }
    }

    /// One object with the same keys, and its commit. `indexes` stand beside that of namespace and name.
    #[divan::bench(args = [0, 3])]
    fn replace_and_commit(bencher: Bencher<'_, '_>, indexes: usize) {
        let (mut writer, _store) = filled(plan_of(indexes), 20_000);
        let forms: Vec<Object> = (0..1000).map(|i| pod(i * 7919 % 20_000, 1)).collect();
        let mut next = (0..forms.len()).cycle();
        bencher.bench_local(|| {
            let object = forms[next.next().unwrap_or_default()].clone();
            writer.upsert(object);
            writer.commit()
        });
    }

    /// One object away, commit, and back, commit.
    #[divan::bench(args = [0, 3])]
    fn remove_commit_create_commit(bencher: Bencher<'_, '_>, indexes: usize) {
        let (mut writer, _store) = filled(plan_of(indexes), 20_000);
        let forms: Vec<Object> = (0..1000).map(|i| pod(i * 7919 % 20_000, 1)).collect();
        let mut next = (0..forms.len()).cycle();
        bencher.bench_local(|| {
            let object = forms[next.next().unwrap_or_default()].clone();
            writer.remove(object.namespace(), object.name());
            writer.commit();
            writer.upsert(object);
            writer.commit()
        });
    }

    /// An initial load in one batch.
    #[divan::bench(args = [0, 3], sample_count = 10)]
    fn load_20_000(bencher: Bencher<'_, '_>, indexes: usize) {
        let objects: Vec<Object> = (0..20_000).map(|i| pod(i, 0)).collect();
        bencher.counter(ItemsCount::new(20_000_usize)).bench_local(|| {
            let (mut writer, store) = memory_store(plan_of(indexes), Encoder::new());
            for object in &objects {
                writer.upsert(object.clone());
            }
            writer.commit();
            store
        });
    }
}
