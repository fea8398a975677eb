//! What went wrong elsewhere, by the numbers of the case list.
use k8s_indexer::Indexer;
use k8s_packed::object;
use k8s_store::{MemoryStore, StorePlan};

use crate::fixture::{Fixture, TEAM, ZONES, empty, multi_valued, names, plan};

#[test]
fn c32_same_name_in_two_namespaces_with_equal_keys() {
    let plan = StorePlan::index_by([TEAM]).expect("valid");
    let (mut writer, store) = empty(plan);
    writer.upsert(Fixture::new("ns2", "a").team("x").object());
    writer.upsert(Fixture::new("ns1", "a").team("x").object());
    writer.commit();
    assert_eq!(names(store.snapshot().get(["x"]).expect("one")), ["ns1/a", "ns2/a"]);

    let removed = writer.remove(Some("ns1"), "a").expect("it is there");
    assert_eq!(removed.namespace(), Some("ns1"));
    assert!(writer.remove(Some("ns1"), "a").is_none());
    writer.commit();
    assert_eq!(names(store.snapshot().get(["x"]).expect("one")), ["ns2/a"]);
}

#[test]
fn c54_multi_valued_keys_are_exactly_the_present_ones_after_each_of_100_000_updates() {
    const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    const VALUES: [&str; 4] = ["w", "x", "y", "z"];
    let indexer = Indexer::new([multi_valued(ZONES)]).expect("valid");
    let (mut writer, store) = empty(StorePlan::new(indexer));
    // Each object with each set of keys.
    let forms: Vec<Vec<_>> = NAMES
        .iter()
        .map(|name| {
            let sets = 0..1_u32 << VALUES.len();
            let form = |set: u32| {
                let zones: Vec<&str> =
                    (0..VALUES.len()).filter(|bit| set >> bit & 1 == 1).map(|bit| VALUES[bit]).collect();
                Fixture::new("ns", name).zones(&zones).object()
            };
            sets.map(form).collect()
        })
        .collect();
    let mut present: [Option<u32>; NAMES.len()] = [None; NAMES.len()];
    let mut random = 1_u64;
    for step in 0..100_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let object = (random >> 33) as usize % NAMES.len();
        let set = (random >> 40) as u32 % 17;
        if set == 16 {
            let removed = writer.remove(Some("ns"), NAMES[object]);
            assert_eq!(removed.is_some(), present[object].take().is_some());
        } else {
            let previous = writer.upsert(forms[object][set as usize].clone());
            assert_eq!(previous.is_some(), present[object].replace(set).is_some());
        }
        let snapshot = writer.commit();
        for (bit, value) in VALUES.iter().enumerate() {
            let found = snapshot.get([value]).expect("one").map(|o| o.name());
            let scanned = NAMES.iter().zip(present).filter(|(_, set)| set.is_some_and(|set| set >> bit & 1 == 1));
            assert!(found.eq(scanned.map(|(name, _)| *name)), "step {step}, key {value}");
        }
        // Those without any key are in the list all the same, each once.
        assert_eq!(snapshot.len(), present.iter().flatten().count());
    }
    assert!(store.snapshot().get(["v"]).expect("one").is_empty());
}

#[test]
fn c55_an_object_that_loses_its_key_leaves_no_entry_and_stays_listed() {
    let (mut writer, _) = empty(StorePlan::index_by([TEAM]).expect("valid"));
    let bare = Fixture::new("ns", "a");
    let mut found = |change: Option<Fixture>| {
        match change {
            Some(fixture) => writer.upsert(fixture.object()),
            None => writer.remove(Some("ns"), "a"),
        };
        let snapshot = writer.commit();
        let by = |team: &str| snapshot.get([team]).expect("one").len();
        (by("x"), by("y"), by(""), snapshot.list().len())
    };
    assert_eq!(found(Some(bare.clone().team("x"))), (1, 0, 0, 1));
    assert_eq!(found(Some(bare.clone())), (0, 0, 0, 1));
    assert_eq!(found(Some(bare.clone().team("y"))), (0, 1, 0, 1));
    assert_eq!(found(None), (0, 0, 0, 0));
    assert_eq!(found(Some(bare)), (0, 0, 0, 1));
}

#[test]
fn c60_what_a_reader_holds_never_changes() {
    let (mut writer, store) = empty(plan());
    let fixture = |i: u32, version: u32| {
        Fixture::new("ns", &format!("o-{i}"))
            .team(&format!("t-{}", (i + version) % 5))
            .zones(&["z1", "z2"][..(version as usize % 3).min(2)])
            .version(version)
    };
    for i in 0..50 {
        writer.upsert(fixture(i, 0).object());
    }
    writer.commit();
    let snapshot = store.snapshot();
    let object = snapshot.by_name(Some("ns"), "o-7").expect("it is there").clone();
    let content = || {
        let list: Vec<_> = snapshot.list().map(|o| o.to_value()).collect();
        let teams: Vec<_> = (0..5).map(|t| names(snapshot.get(["ns", &format!("t-{t}")]).expect("two"))).collect();
        let zones: Vec<_> =
            ["z1", "z2"].map(|z| names(snapshot.index("by-zone").expect("known").get([z]).expect("one"))).into();
        (list, teams, zones, object.to_value(), snapshot.version())
    };
    let before = content();

    for version in 1..=20 {
        for i in 0..50 {
            writer.upsert(fixture(i, version).object());
            writer.commit();
        }
    }
    writer.begin_relist(None);
    for i in 0..25 {
        writer.upsert(fixture(i, 21).object());
    }
    assert_eq!(writer.finish_relist(None).len(), 25);
    writer.commit();

    assert_eq!(content(), before);
    assert_eq!(store.len(), 25);
    assert_eq!(store.snapshot().version(), 1002);
}

#[test]
fn c30_a_namespace_is_ignored_where_no_object_has_one() {
    let node = |name: &str| object!({"metadata": {"name": name}});
    let store = MemoryStore::from_objects(StorePlan::default(), [node("n1"), node("n2")]).unwrap();
    let found = |store: &MemoryStore, namespace: Option<&str>, name: &str| {
        let key = k8s_types::ObjectKey::new(namespace, name);
        let (by_name, by_key) = (store.by_name(namespace, name), store.snapshot().by_key(&key).cloned());
        assert_eq!(by_name, by_key);
        by_name.is_some()
    };
    for namespace in [None, Some(""), Some("default")] {
        assert!(found(&store, namespace, "n1") && !found(&store, namespace, "n3"));
    }
    // Where one object has a namespace, a namespace means something.
    let pod = object!({"metadata": {"name": "p", "namespace": "shop"}});
    let store = MemoryStore::from_objects(StorePlan::default(), [node("n1"), pod]).unwrap();
    assert!(found(&store, None, "n1") && !found(&store, Some("default"), "n1") && !found(&store, None, "p"));
    let empty = MemoryStore::from_objects(StorePlan::default(), []).unwrap();
    assert!(!found(&empty, Some("default"), "n1"));
}
