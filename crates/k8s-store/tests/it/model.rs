//! The store against a plain map: after every step each lookup is compared with a full scan.
use std::collections::BTreeMap;

use k8s_packed::Object;
use k8s_store::{Objects, Snapshot};
use proptest::prelude::*;

use crate::fixture::{Fixture, empty, plan};

const NAMESPACES: [&str; 3] = ["", "a", "a-b"];
const NAMES: [&str; 5] = ["a", "b", "b-c", "c", "n"];
const TEAMS: [&str; 3] = ["t1", "t2", ""];
const ZONES: [&str; 4] = ["z1", "z2", "z3", "z4"];

/// What an index files an object under; shorter where a component is missing.
type Keys = fn(&Fixture) -> Vec<Vec<&str>>;

/// The indexes of the plan, with the keys as a reader of its documentation would expect them.
const INDEXES: [(&str, usize, Keys); 5] = [
    ("", 2, |f| product(&[one(&f.namespace), one(&f.team)])),
    ("by-zone", 1, |f| product(&[many(&f.zones)])),
    ("by-name", 2, |f| product(&[one(&f.namespace), vec![&f.name]])),
    ("by-namespace", 1, |f| product(&[one(&f.namespace)])),
    ("by-team-zone-name", 3, |f| product(&[one(&f.team), many(&f.zones), vec![&f.name]])),
];

fn one(value: &Option<String>) -> Vec<&str> {
    value.as_deref().into_iter().collect()
}

fn many(values: &[String]) -> Vec<&str> {
    values.iter().map(|value| &**value).collect()
}

fn product<'a>(components: &[Vec<&'a str>]) -> Vec<Vec<&'a str>> {
    let mut keys = vec![vec![]];
    for values in components {
        if values.is_empty() {
            break;
        }
        keys = keys
            .iter()
            .flat_map(|key: &Vec<&str>| {
                values.iter().map(|value| {
                    let mut key = key.clone();
                    key.push(*value);
                    key
                })
            })
            .collect();
    }
    keys
}

#[derive(Clone, Debug)]
enum Step {
    Put(Fixture),
    Remove(&'static str, &'static str),
    Relist(Option<&'static str>, Vec<Fixture>),
    /// Nothing is committed after the steps before this one.
    Hold,
}

fn fixture() -> impl Strategy<Value = Fixture> {
    let zones = prop::collection::vec(prop::sample::select(&ZONES[..]), 0..=4);
    let select = |texts: &'static [&'static str]| prop::sample::select(texts);
    (select(&NAMESPACES), select(&NAMES), prop::option::of(select(&TEAMS)), zones, 0..4_u32).prop_map(
        |(namespace, name, team, zones, version)| {
            let fixture = Fixture::new(namespace, name).zones(&zones).version(version);
            match team {
                Some(team) => fixture.team(team),
                None => fixture,
            }
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let select = |texts: &'static [&'static str]| prop::sample::select(texts);
    let scope = prop::option::of(select(&NAMESPACES[1..]));
    let step = prop_oneof![
        10 => fixture().prop_map(Step::Put),
        4 => (select(&NAMESPACES), select(&NAMES)).prop_map(|(ns, name)| Step::Remove(ns, name)),
        1 => (scope, prop::collection::vec(fixture(), 0..12))
            .prop_map(|(scope, list)| Step::Relist(scope, list)),
        2 => Just(Step::Hold),
    ];
    prop::collection::vec(step, 1..60)
}

type Identity = (Option<String>, String);
type Model = BTreeMap<Identity, Fixture>;

fn identity(namespace: &str, name: &str) -> Identity {
    let namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
    (namespace, name.to_owned())
}

fn identity_of(fixture: &Fixture) -> Identity {
    let (namespace, name) = fixture.identity();
    (namespace.map(str::to_owned), name.to_owned())
}

/// Compares each read of a snapshot with a scan over the model.
fn check(snapshot: &Snapshot, model: &Model) {
    let check_objects = |what: &dyn std::fmt::Debug, found: Objects<'_>, expected: Vec<&Fixture>| {
        assert_eq!(found.len(), expected.len(), "{what:?}");
        for (found, expected) in found.zip(expected) {
            check_object(found, expected);
        }
    };
    assert_eq!(snapshot.len(), model.len());
    check_objects(&"list", snapshot.list(), model.values().collect());

    // As for a cluster-scoped kind, where a namespace means nothing.
    let all_outside = model.keys().all(|(namespace, _)| namespace.is_none());
    for namespace in NAMESPACES {
        for name in NAMES {
            let found = snapshot.by_name(Some(namespace), name);
            let expected = model.get(&identity(if all_outside { "" } else { namespace }, name));
            assert_eq!(found.is_some(), expected.is_some(), "{namespace}/{name}");
            if let (Some(found), Some(expected)) = (found, expected) {
                check_object(found, expected);
            }
        }
    }

    let mut texts: Vec<&str> = [&NAMESPACES[..], &NAMES, &TEAMS, &ZONES].concat();
    texts.sort_unstable();
    texts.dedup();
    for (index, arity, keys) in INDEXES {
        let keyed: Vec<(&Fixture, Vec<Vec<&str>>)> = model.values().map(|f| (f, keys(f))).collect();
        let scan = |segments: &[&str]| -> Vec<&Fixture> {
            let exact = segments.len() == arity;
            let is_found = |key: &Vec<&str>| match exact {
                true => key[..] == *segments,
                false => key.starts_with(segments),
            };
            keyed.iter().filter(|(_, keys)| keys.iter().any(is_found)).map(|(fixture, _)| *fixture).collect()
        };
        // Every key that anything has with all its prefixes, and every single text.
        let mut lookups: Vec<Vec<&str>> = texts.iter().map(|text| vec![*text]).collect();
        for key in keyed.iter().flat_map(|(_, keys)| keys) {
            lookups.extend((0..=key.len()).map(|len| key[..len].to_vec()));
        }
        lookups.push(vec!["t1"; arity]);
        lookups.sort();
        lookups.dedup();
        for segments in lookups {
            let found = match index {
                "" => snapshot.get(&segments),
                name => snapshot.index(name).expect("known").get(&segments),
            };
            let what = (index, &segments);
            check_objects(&what, found.expect("not too many segments"), scan(&segments));
        }
    }
}

fn check_object(found: &Object, expected: &Fixture) {
    let identity = (found.namespace(), found.name());
    assert_eq!(identity, expected.identity());
    assert_eq!(found.label("team"), expected.team.as_deref());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 400, ..Default::default() })]

    #[test]
    fn every_lookup_equals_a_full_scan_after_every_step(steps in steps()) {
        let (mut writer, store) = empty(plan());
        let mut model = Model::new();
        let mut committed = model.clone();
        let mut held: Vec<(Snapshot, Model)> = vec![];
        for step in steps {
            match step {
                Step::Put(fixture) => {
                    let previous = writer.upsert(fixture.object());
                    let expected = model.insert(identity_of(&fixture), fixture);
                    prop_assert_eq!(previous.is_some(), expected.is_some());
                    if let (Some(previous), Some(expected)) = (previous, expected) {
                        prop_assert_eq!(previous.to_value(), expected.json());
                    }
                }
                Step::Remove(namespace, name) => {
                    let removed = writer.remove(Some(namespace), name);
                    let expected = model.remove(&identity(namespace, name));
                    prop_assert_eq!(removed.map(|o| o.to_value()), expected.map(|f| f.json()));
                }
                Step::Relist(scope, list) => {
                    // As the engine does it: pages, each committed; what was not seen goes at the end.
                    let in_scope = |identity: &Identity| {
                        scope.is_none() || identity.0.as_deref() == scope
                    };
                    let list: Vec<Fixture> = list
                        .into_iter()
                        .filter(|fixture| in_scope(&identity_of(fixture)))
                        .collect();
                    writer.begin_relist(scope);
                    let mut listed = Model::new();
                    for (at, fixture) in list.into_iter().enumerate() {
                        writer.upsert(fixture.object());
                        let identity = identity_of(&fixture);
                        // Equal versions are equal objects by the word of the server; here they may differ, and
                        // the stored one stays.
                        let known = listed.get(&identity).or(model.get(&identity));
                        let stored = match known {
                            Some(known) if known.version == fixture.version => known.clone(),
                            _ => fixture,
                        };
                        listed.insert(identity, stored);
                        if at % 3 == 2 {
                            writer.commit();
                        }
                    }
                    let gone = writer.finish_relist(scope);
                    let expected: Vec<Identity> = model
                        .keys()
                        .filter(|identity| in_scope(identity) && !listed.contains_key(*identity))
                        .cloned()
                        .collect();
                    let gone: Vec<Identity> = gone
                        .iter()
                        .map(|o| (o.namespace().map(str::to_owned), o.name().to_owned()))
                        .collect();
                    prop_assert_eq!(gone, expected);
                    model.retain(|identity, _| !in_scope(identity));
                    model.extend(listed);
                }
                Step::Hold => {
                    // Readers still see the last commit; the writer sees its own changes.
                    check(&store.snapshot(), &committed);
                    prop_assert_eq!(writer.len(), model.len());
                    held.push((store.snapshot(), committed.clone()));
                    continue;
                }
            }
            let snapshot = writer.commit();
            committed = model.clone();
            check(&snapshot, &model);
        }
        for (snapshot, model) in &held {
            check(snapshot, model);
        }
        writer.clear();
        let empty = writer.commit().bytes();
        prop_assert_eq!(empty.objects, 0);
    }
}
