//! The table that objects of one encoder share: that it is used, bounded, and can be rebuilt.

use k8s_packed::{Encoder, Object};

use crate::pod::pod_json;

fn encode(encoder: &mut Encoder, json: &str) -> Object {
    encoder.encode(json.as_bytes()).unwrap()
}

#[test]
fn objects_of_one_kind_take_a_fraction_of_what_they_take_alone() {
    let mut encoder = Encoder::new();
    let jsons: Vec<String> = (0..600).map(|i| pod_json(i, false)).collect();
    let objects: Vec<Object> = jsons.iter().map(|j| encode(&mut encoder, j)).collect();
    let late = 300..600;
    let json: usize = jsons[late.clone()].iter().map(String::len).sum();
    let shared: usize = objects[late.clone()].iter().map(Object::size).sum();
    let alone: usize = jsons[late.clone()].iter().map(|j| Object::from_slice(j.as_bytes()).unwrap().size()).sum();
    assert!(shared * 3 < alone && shared * 5 < json, "{shared} shared, {alone} alone, {json} as JSON");
    for i in late {
        assert_eq!(serde_json::to_string(&objects[i]).unwrap(), jsons[i]);
        assert_eq!(objects[i], Object::from_slice(jsons[i].as_bytes()).unwrap());
    }
}

/// An object of which every text and every key is new, beside a few that all objects have.
fn unique(i: u64) -> String {
    let hash = |salt: u64| format!("{:016x}", (i * 8 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    format!(
        r#"{{"metadata":{{"name":"job-{i}","uid":"{}","annotations":{{"{}":"{}"}}}},"spec":{{"image":"registry.test/job:1.2.3","args":["{}"],"{}":{i}.5}}}}"#,
        hash(1),
        hash(2),
        hash(3),
        hash(4),
        hash(5),
    )
}

#[test]
fn endless_unique_values_and_keys_leave_the_table_flat() {
    let mut encoder = Encoder::new();
    for i in 0..2_000 {
        encode(&mut encoder, &unique(i));
    }
    let early = encoder.memory();
    for i in 2_000..40_000 {
        encode(&mut encoder, &unique(i));
    }
    assert!(encoder.memory() <= early, "{early} bytes, then {}", encoder.memory());
}

#[test]
fn one_object_that_changes_for_ever_leaves_the_table_flat() {
    let mut encoder = Encoder::new();
    let version = |i: u64| {
        format!(
            r#"{{"metadata":{{"name":"lease","uid":"one","resourceVersion":"{i}"}},"spec":{{"holder":"an address of its own","at":"time {i}"}}}}"#
        )
    };
    let first = encode(&mut encoder, &version(0));
    let early = encoder.memory();
    for i in 1..5_000 {
        let object = encode(&mut encoder, &version(i));
        assert!(object.size() <= first.size() + 8);
    }
    assert_eq!(encoder.memory(), early);
}

#[test]
fn a_huge_key_stays_out_of_the_table() {
    let mut encoder = Encoder::new();
    let key = "k".repeat(100_000);
    for i in 0..50 {
        let object = encode(&mut encoder, &format!(r#"{{"metadata":{{"name":"{i}"}},"{key}":{i}}}"#));
        assert_eq!(object.root().get(&key).and_then(|v| v.as_i64()), Some(i));
    }
    assert!(encoder.memory() < 50_000, "{}", encoder.memory());
}

/// Objects of a generation have much in common with each other and nothing with the next generation.
fn generation(generation: u64, i: u64) -> String {
    let words: Vec<String> =
        (0..40).map(|w| format!("\"word {} of generation {generation}\"", (i * 7 + w) % 3_000)).collect();
    format!(r#"{{"metadata":{{"name":"object-{i}","uid":"{generation}-{i}"}},"words":[{}]}}"#, words.join(","))
}

#[test]
fn a_table_that_is_mostly_dead_is_rebuilt_a_slice_at_a_time() {
    let mut encoder = Encoder::new();
    let mut live: Vec<Object> = vec![];
    let mut highest = 0;
    let mut rebuilt = 0;
    for round in 0..30 {
        for i in 0..400 {
            let object = encode(&mut encoder, &generation(round, i));
            match live.get_mut(i as usize) {
                Some(old) => *old = object,
                None => live.push(object),
            }
        }
        let bytes = live.iter().map(Object::size).sum();
        if encoder.wants_compaction(bytes) {
            rebuilt += 1;
            let before: Vec<Object> =
                live.iter().map(|o| Object::from_slice(&serde_json::to_vec(o).unwrap()).unwrap()).collect();
            let memory = encoder.memory();
            encoder.start_compaction();
            assert!(!encoder.wants_compaction(0), "one at a time");
            assert!(live.iter().any(|o| !encoder.is_current(o)));
            for slice in live.chunks_mut(37) {
                for object in slice {
                    if !encoder.is_current(object) {
                        let again = encoder.reencode(object);
                        assert_eq!(again, *object);
                        *object = again;
                    }
                }
                // The writer goes on in between.
                let new = encode(&mut encoder, &generation(round, 1_000));
                assert!(encoder.is_current(&new));
            }
            encoder.finish_compaction();
            assert!(live.iter().all(|o| encoder.is_current(o)));
            assert_eq!(live, before);
            assert!(encoder.memory() < memory, "{memory}, then {}", encoder.memory());
            assert!(!encoder.wants_compaction(bytes), "it would never end");
        }
        highest = highest.max(encoder.memory());
    }
    assert!(rebuilt >= 2, "{rebuilt} times");
    assert!(highest < 3 << 20, "{highest} bytes");
}

#[test]
fn objects_outlive_their_encoder_and_its_tables() {
    let mut encoder = Encoder::new();
    let objects: Vec<Object> = (0..200).map(|i| encode(&mut encoder, &pod_json(i, true))).collect();
    encoder.start_compaction();
    drop(encoder);
    for (i, object) in objects.iter().enumerate() {
        assert_eq!(serde_json::to_string(object).unwrap(), pod_json(i, true));
    }
}

#[test]
fn readers_on_other_threads_see_whole_objects_while_the_table_grows() {
    let mut encoder = Encoder::new();
    let (send, receive) = std::sync::mpsc::sync_channel::<(usize, Object)>(64);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for (i, object) in receive {
                assert_eq!(serde_json::to_string(&object).unwrap(), pod_json(i, false));
            }
        });
        for i in 0..400 {
            let object = encode(&mut encoder, &pod_json(i, false));
            send.send((i, object)).unwrap();
        }
        drop(send);
    });
}
