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
    if let Ok(form) = std::env::var(HOLD) {
        return hold(&form);
    }
    // Not when `cargo test` asks whether it runs at all.
    if std::env::args().any(|a| a == "--bench") {
        print_sizes();
    }
    // Enough runs that the first, with a cold cache, does not show.
    divan::Divan::default().sample_count(400).sample_size(20).config_with_args().main();
}

const COUNT: usize = 20_000;

fn print_sizes() {
    let mut encoder = encoder();
    let (mut json, mut packed, mut alone) = (0, 0, 0);
    for i in 0..COUNT {
        let text = pod::pod_json(i, true);
        json += text.len();
        packed += encoder.encode(text.as_bytes()).unwrap().size();
        alone += Object::from_slice(pod::pod_json(i, false).as_bytes()).unwrap().size();
    }
    let table = encoder.memory();
    println!("{COUNT} Pods, bytes each, managedFields in the JSON only:");
    println!("  JSON                  {:>7}", json / COUNT);
    println!("  packed alone          {:>7}", alone / COUNT);
    println!("  packed, one encoder   {:>7} and {} of the table", packed / COUNT, table / COUNT);
    println!("Resident memory that {COUNT} of them take, bytes each:");
    for form in ["packed", "typed Pod", "serde_json::Value"] {
        if let Some(bytes) = resident_each(form) {
            println!("  {form:<22}{bytes:>7}");
        }
    }
    println!();
}

/// Tells a process of its own what to hold, so that no form lives in memory that another has freed.
const HOLD: &str = "K8S_PACKED_BENCH_HOLD";

fn resident_each(form: &str) -> Option<u64> {
    let output = std::process::Command::new(std::env::current_exe().ok()?).env(HOLD, form).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

fn hold(form: &str) {
    let mut encoder = encoder();
    let mut held: (Vec<Object>, Vec<Pod>, Vec<Value>) = (vec![], vec![], vec![]);
    let mut start = None;
    for i in 0..COUNT {
        let json = pod::pod_json(i, false);
        // What making the texts takes, it takes once.
        start = start.or_else(resident);
        match form {
            "packed" => held.0.push(encoder.encode(json.as_bytes()).unwrap()),
            "typed Pod" => held.1.push(serde_json::from_str(&json).unwrap()),
            _ => held.2.push(serde_json::from_str(&json).unwrap()),
        }
    }
    if let (Some(start), Some(end)) = (start, resident()) {
        println!("{}", (end - start) / COUNT as u64);
    }
    drop(black_box(held));
}

/// Bytes of this process in memory, where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
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
