//! Documents for property tests: JSON as a plain tree that keeps the order of members.
//!
//! `serde_json::Value` cannot be the model alone: without `preserve_order` it forgets that order, and with
//! `arbitrary_precision` its numbers are texts.

use k8s_packed::{Object, Path, Step, ValueRef};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

#[derive(Clone, Debug)]
pub(crate) enum Doc {
    Null,
    Bool(bool),
    Int(i64),
    /// Above `i64::MAX`.
    Uint(u64),
    Float(f64),
    Text(String),
    List(Vec<Doc>),
    Map(Vec<(String, Doc)>),
}

use Doc::{Bool, Float, Int, List, Map, Null, Text, Uint};

impl Doc {
    /// Compact text, as serde_json writes it.
    pub(crate) fn json(&self) -> String {
        match self {
            Null => "null".into(),
            Bool(b) => b.to_string(),
            Int(n) => n.to_string(),
            Uint(n) => n.to_string(),
            Float(n) => serde_json::to_string(n).unwrap(),
            Text(s) => serde_json::to_string(s).unwrap(),
            List(items) => format!("[{}]", items.iter().map(Doc::json).collect::<Vec<_>>().join(",")),
            Map(members) => {
                let members =
                    members.iter().map(|(k, v)| format!("{}:{}", serde_json::to_string(k).unwrap(), v.json()));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
        }
    }

    pub(crate) fn value(&self) -> Value {
        match self {
            Null => Value::Null,
            Bool(b) => (*b).into(),
            Int(n) => (*n).into(),
            Uint(n) => (*n).into(),
            Float(n) => (*n).into(),
            Text(s) => s.clone().into(),
            List(items) => items.iter().map(Doc::value).collect(),
            Map(members) => members.iter().map(|(k, v)| (k.clone(), v.value())).collect(),
        }
    }

    pub(crate) fn object(&self) -> Object {
        Object::from_slice(self.json().as_bytes()).unwrap()
    }

    pub(crate) fn members(&mut self) -> &mut Vec<(String, Doc)> {
        match self {
            Map(members) => members,
            other => panic!("{other:?} is no map"),
        }
    }

    /// Sets a member of a map, in its old place if it has one.
    pub(crate) fn set(&mut self, key: &str, value: Doc) {
        let members = self.members();
        match members.iter_mut().find(|(k, _)| k == key) {
            Some(member) => member.1 = value,
            None => members.push((key.into(), value)),
        }
    }

    /// Every leaf, empty containers included.
    pub(crate) fn leaves(&mut self) -> Vec<&mut Doc> {
        if self.children().is_empty() {
            return vec![self];
        }
        match self {
            List(items) => items.iter_mut().flat_map(Doc::leaves).collect(),
            Map(members) => members.iter_mut().flat_map(|(_, v)| v.leaves()).collect(),
            _ => vec![],
        }
    }

    fn children(&self) -> Vec<(Place, &Doc)> {
        match self {
            List(items) => items.iter().enumerate().map(|(i, v)| (Place::Item(i), v)).collect(),
            Map(members) => members.iter().map(|(k, v)| (Place::Member(k.clone()), v)).collect(),
            _ => vec![],
        }
    }

    /// The places that a path selects, in document order.
    pub(crate) fn locate(&self, steps: &[Step]) -> Vec<Vec<Place>> {
        let Some((step, rest)) = steps.split_first() else {
            return vec![vec![]];
        };
        let children = self.children();
        let len = children.len();
        let chosen = children.into_iter().filter(|(place, _)| match (place, step) {
            (_, Step::Wildcard) => true,
            (Place::Member(name), Step::Member(wanted)) => **wanted == **name,
            (Place::Item(at), Step::Index(wanted)) => {
                *at as i64 == if *wanted < 0 { wanted.saturating_add(len as i64) } else { *wanted }
            }
            _ => false,
        });
        let below = |(place, child): (Place, &Doc)| {
            child.locate(rest).into_iter().map(move |mut way| {
                way.insert(0, place.clone());
                way
            })
        };
        chosen.flat_map(below).collect()
    }

    pub(crate) fn at(&self, way: &[Place]) -> &Doc {
        way.iter().fold(self, |doc, place| match (doc, place) {
            (List(items), Place::Item(at)) => &items[*at],
            (Map(members), Place::Member(name)) => &members.iter().find(|(k, _)| k == name).unwrap().1,
            _ => panic!("no such place"),
        })
    }

    /// The document without the places.
    pub(crate) fn without(&self, places: &[Vec<Place>]) -> Doc {
        self.without_below(places, &mut vec![])
    }

    fn without_below(&self, places: &[Vec<Place>], here: &mut Vec<Place>) -> Doc {
        let mut kept = vec![];
        for (place, child) in self.children() {
            here.push(place.clone());
            if !places.contains(here) {
                kept.push((place, child.without_below(places, here)));
            }
            here.pop();
        }
        match self {
            List(_) => List(kept.into_iter().map(|(_, v)| v).collect()),
            Map(_) => Map(kept
                .into_iter()
                .map(|(p, v)| match p {
                    Place::Member(name) => (name, v),
                    Place::Item(_) => unreachable!("maps have members"),
                })
                .collect()),
            leaf => leaf.clone(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    Member(String),
    Item(usize),
}

/// A value with its numbers in the form that `serde_json` gives them in a plain build.
pub(crate) fn plain(value: &Value) -> Value {
    match value {
        Value::Number(n) if n.to_string() == "-0" => (-0.0).into(),
        Value::Number(n) => match (n.as_i64(), n.as_u64(), n.as_f64()) {
            (Some(n), _, _) => n.into(),
            (_, Some(n), _) => n.into(),
            (_, _, Some(n)) => n.into(),
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(members) => members.iter().map(|(k, v)| (k.clone(), plain(v))).collect(),
        other => other.clone(),
    }
}

/// Whether some crate of the build has turned on `arbitrary_precision`.
pub(crate) fn numbers_are_texts() -> bool {
    serde_json::from_str::<Value>("1.50").unwrap().to_string().ends_with("50")
}

#[track_caller]
pub(crate) fn check_object(object: &Object, expected: &Doc) {
    assert_eq!(object.to_value(), expected.value());
    assert_eq!(serde_json::to_string(object).unwrap(), expected.json());
}

#[track_caller]
pub(crate) fn check_value(value: Option<ValueRef<'_>>, expected: Option<&Doc>) {
    assert_eq!(value.map(|v| serde_json::to_string(&v).unwrap()), expected.map(Doc::json));
}

// === strategies ===

pub(crate) fn scalar() -> impl Strategy<Value = Doc> {
    prop_oneof![
        Just(Null),
        any::<bool>().prop_map(Bool),
        (-70i64..70).prop_map(Int),
        any::<i64>().prop_map(Int),
        any::<i64>().prop_map(|n| Int(n >> (n & 63))),
        prop::sample::select(vec![i64::MIN, i64::MAX, (1 << 53) + 1, -(1 << 53) - 1, i64::from(i32::MAX) + 1, 21, 22])
            .prop_map(Int),
        (1u64 << 63..=u64::MAX).prop_map(Uint),
        Just(Uint(u64::MAX)),
        prop::num::f64::NORMAL.prop_map(Float),
        prop::num::f64::SUBNORMAL.prop_map(Float),
        prop::sample::select(vec![0.0, -0.0, 1.0, 0.1, 1e308, -1e308, 5e-324, f64::MAX, f64::EPSILON, 1e16, 1e21])
            .prop_map(Float),
        text().prop_map(Text),
    ]
}

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9-]{0,12}",
        "\\PC{0,8}",
        any::<String>(),
        (40usize..60).prop_map(|n| "x".repeat(n)),
        (0usize..3).prop_map(|n| "🦀".repeat(n * 50)),
        prop::sample::select(vec!["shop", "registry.test/cart:1.2.3", "2026-08-01T00:00:00Z"]).prop_map(str::to_owned),
    ]
}

pub(crate) fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::sample::select(vec![
            "apiVersion", "kind", "metadata", "name", "namespace", "uid", "resourceVersion", "labels", "spec", "status",
            "items", "a.b/c", "it's", "a", "b", "",
        ])
        .prop_map(str::to_owned),
        2 => text(),
    ]
}

pub(crate) fn doc() -> impl Strategy<Value = Doc> {
    scalar().prop_recursive(6, 80, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(List),
            map_of(inner.clone(), 0..7),
            // Items of one shape, as lists of containers or conditions are.
            (inner, 0usize..5).prop_map(|(item, n)| List(vec![item; n])),
        ]
    })
}

fn map_of(inner: impl Strategy<Value = Doc>, len: std::ops::Range<usize>) -> impl Strategy<Value = Doc> {
    vec((key(), inner), len).prop_map(unique)
}

/// A map that keeps the first of members with one key.
fn unique(members: Vec<(String, Doc)>) -> Doc {
    let mut seen = std::collections::HashSet::new();
    Map(members.into_iter().filter(|(k, _)| seen.insert(k.clone())).collect())
}

/// Any document whose root is a map.
pub(crate) fn root() -> impl Strategy<Value = Doc> {
    prop_oneof![
        6 => map_of(doc(), 0..8),
        3 => (map_of(doc(), 0..8), map_of(doc(), 0..6), "[a-z]{1,8}").prop_map(|(mut root, mut metadata, name)| {
            metadata.set("name", Text(name));
            root.set("metadata", metadata);
            root
        }),
        1 => vec((text(), scalar()), 45..120).prop_map(unique),
    ]
}

/// Documents that resemble each other as objects of one kind do, each with a name and a uid of its own.
pub(crate) fn similar(count: usize) -> impl Strategy<Value = Vec<Doc>> {
    let change = (any::<prop::sample::Index>(), scalar().boxed());
    let one = (vec(change.clone(), 0..3), any::<prop::sample::Index>());
    // What changes comes from few alternatives, so that it comes back.
    (root(), vec(change, 1..6), vec(one, count)).prop_map(|(base, pool, each)| {
        let mut docs = vec![];
        for (i, (own, pooled)) in each.into_iter().enumerate() {
            let mut doc = base.clone();
            for (at, leaf) in own.into_iter().chain([pooled.get(&pool).clone()]) {
                let mut leaves = doc.leaves();
                let at = at.index(leaves.len());
                if !matches!(leaves[at], Map(_)) {
                    *leaves[at] = leaf;
                }
            }
            let mut metadata = Map(vec![]);
            metadata.set("name", Text(format!("object-{i}")));
            metadata.set("uid", Text(format!("00000000-0000-0000-0000-{i:012}")));
            metadata.set("labels", Map(vec![("app.kubernetes.io/name".into(), Text("cart-service".into()))]));
            doc.set("metadata", metadata);
            doc.set("common", Text("what every one of these objects says".into()));
            docs.push(doc);
        }
        docs
    })
}

/// Choices from which [`path_in`] makes a path that leads somewhere, mostly.
pub(crate) fn choices() -> impl Strategy<Value = Vec<(u8, u8)>> {
    vec(any::<(u8, u8)>(), 0..7)
}

/// A path that walks down a document as the choices say, with wildcards and wrong turns now and then.
pub(crate) fn path_in(doc: &Doc, choices: &[(u8, u8)]) -> Path {
    let mut here = doc;
    let mut steps = vec![];
    for &(which, how) in choices {
        let children = here.children();
        let Some((place, child)) = children.get(usize::from(which) % children.len().max(1)) else {
            if how < 40 {
                steps.push(if how < 20 { Step::Wildcard } else { Step::Member("name".into()) });
            }
            break;
        };
        steps.push(match (how, place) {
            (0..50, _) => Step::Wildcard,
            (50..60, _) => Step::Index(i64::from(which) - 128),
            (60..66, _) => Step::Member("absent".into()),
            (_, Place::Member(name)) => Step::Member(name.as_str().into()),
            (66..140, Place::Item(at)) => Step::Index(*at as i64 - children.len() as i64),
            (_, Place::Item(at)) => Step::Index(*at as i64),
        });
        here = child;
    }
    Path::from_steps(steps)
}

/// How long this machine takes at this moment for reading the text into a tree: a measure for what should be linear.
pub(crate) fn time_of_a_plain_read(json: &str) -> std::time::Duration {
    let start = std::time::Instant::now();
    assert!(serde_json::from_str::<serde_json::Value>(json).unwrap().is_object());
    start.elapsed()
}
