//! `cargo bench -p k8s-packed`: a realistic Pod packed, read and decoded, beside `serde_json`; and its bytes.
#![allow(clippy::print_stdout)]

#[path = "../tests/it/pod.rs"]
mod pod;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use k8s_openapi::api::core::v1::Pod;
use k8s_packed::{Encoder, Object, Path};
use serde::de::IgnoredAny;
use serde_json::Value;

fn main() {
    // Not when `cargo test` asks whether it runs at all.
    if std::env::args().any(|a| a == "--bench") {
        print_sizes(20_000);
    }
    // Enough runs that the first, with a cold cache, does not show.
    divan::Divan::default().sample_count(400).sample_size(20).config_with_args().main();
}

fn print_sizes(count: usize) {
    let mut encoder = encoder();
    let (mut json, mut packed, mut alone) = (0, 0, 0);
    for i in 0..count {
        let text = pod::pod_json(i, true);
        json += text.len();
        packed += encoder.encode(text.as_bytes()).unwrap().size();
        alone += Object::from_slice(pod::pod_json(i, false).as_bytes()).unwrap().size();
    }
    let table = encoder.memory();
    println!("{count} Pods with managedFields ignored:");
    println!("  JSON           {:>6} bytes each", json / count);
    println!("  packed alone   {:>6} bytes each", alone / count);
    println!(
        "  packed shared  {:>6} bytes each, and a table of {} KiB: {} together",
        packed / count,
        table >> 10,
        (packed + table) / count
    );
    println!();
}

fn encoder() -> Encoder {
    let managed_fields: Path = "metadata.managedFields".parse().unwrap();
    Encoder::new().ignore([&managed_fields])
}

/// Enough Pods that none of them is in the processor's cache the next time.
fn pods() -> Vec<String> {
    (0..4_000).map(|i| pod::pod_json(i, true)).collect()
}

fn objects() -> Vec<Object> {
    let mut encoder = encoder();
    pods().iter().map(|p| encoder.encode(p.as_bytes()).unwrap()).collect()
}

fn json(bencher: Bencher<'_, '_>, mut read: impl FnMut(&[u8])) {
    let pods = pods();
    let bytes = pods.iter().map(String::len).sum::<usize>() / pods.len();
    let mut pods = pods.iter().cycle();
    bencher.counter(BytesCount::new(bytes)).bench_local(|| read(pods.next().unwrap().as_bytes()));
}

mod from_json {
    use super::*;

    #[divan::bench]
    fn skip(bencher: Bencher<'_, '_>) {
        json(bencher, |j| _ = black_box(serde_json::from_slice::<IgnoredAny>(j).unwrap()));
    }

    #[divan::bench]
    fn encoder(bencher: Bencher<'_, '_>) {
        let mut encoder = super::encoder();
        json(bencher, |j| drop(black_box(encoder.encode(j).unwrap())));
    }

    #[divan::bench]
    fn single_object(bencher: Bencher<'_, '_>) {
        json(bencher, |j| drop(black_box(Object::from_slice(j).unwrap())));
    }

    #[divan::bench]
    fn serde_json_value(bencher: Bencher<'_, '_>) {
        json(bencher, |j| drop(black_box(serde_json::from_slice::<Value>(j).unwrap())));
    }

    #[divan::bench]
    fn typed_pod(bencher: Bencher<'_, '_>) {
        json(bencher, |j| drop(black_box(serde_json::from_slice::<Pod>(j).unwrap())));
    }
}

mod read {
    use super::*;

    fn get(bencher: Bencher<'_, '_>, path: &str) {
        let (objects, path) = (objects(), path.parse::<Path>().unwrap());
        let mut objects = objects.iter().cycle();
        bencher.bench_local(|| black_box(objects.next().unwrap().get(&path).is_some()));
    }

    #[divan::bench]
    fn name(bencher: Bencher<'_, '_>) {
        let objects = objects();
        let mut objects = objects.iter().cycle();
        bencher.bench_local(|| black_box(objects.next().unwrap().name().len()));
    }

    #[divan::bench]
    fn label(bencher: Bencher<'_, '_>) {
        get(bencher, "metadata.labels['app.kubernetes.io/name']");
    }

    #[divan::bench]
    fn node_name(bencher: Bencher<'_, '_>) {
        get(bencher, "spec.nodeName");
    }

    #[divan::bench]
    fn last_container_id(bencher: Bencher<'_, '_>) {
        get(bencher, "status.containerStatuses[2].containerID");
    }

    #[divan::bench]
    fn decode_typed_pod(bencher: Bencher<'_, '_>) {
        let objects = objects();
        let mut objects = objects.iter().cycle();
        bencher.bench_local(|| drop(black_box(objects.next().unwrap().decode::<Pod>().unwrap())));
    }

    #[divan::bench]
    fn same_content_as_its_successor(bencher: Bencher<'_, '_>) {
        let mut encoder = encoder();
        let pairs: Vec<(Object, Object)> = (0..4_000)
            .map(|i| {
                let mut pod = pod::pod(i, true);
                let old = encoder.encode(pod.to_string().as_bytes()).unwrap();
                pod["metadata"]["resourceVersion"] = "new".into();
                (old, encoder.encode(pod.to_string().as_bytes()).unwrap())
            })
            .collect();
        let mut pairs = pairs.iter().cycle();
        bencher.bench_local(|| {
            let (old, new) = pairs.next().unwrap();
            assert!(old.same_content(new));
        });
    }
}
