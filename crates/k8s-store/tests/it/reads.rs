//! What each read gives and refuses.
use k8s_indexer::Indexer;
use k8s_packed::object;
use k8s_store::{Error, MemoryStore, StorePlan, StoreReader};

use crate::fixture::{Fixture, names, plan};

fn shop() -> MemoryStore {
    let objects = [
        Fixture::new("shop", "web").team("front").zones(&["z1", "z2"]),
        Fixture::new("shop", "cart").team("back").zones(&["z1"]),
        Fixture::new("shop", "api").team("back"),
        Fixture::new("shop", "bare").zones(&["z2", "z2", "z3"]),
        Fixture::new("blog", "web").team("front").zones(&["z3"]),
        Fixture::new("", "node").team("back").zones(&["z1"]),
    ];
    MemoryStore::from_objects(plan(), objects.iter().map(Fixture::object)).expect("valid objects")
}

#[test]
fn reads_by_table() {
    let snapshot = shop().snapshot();
    let everything = ["node", "blog/web", "shop/api", "shop/bare", "shop/cart", "shop/web"];
    let check = |index: &str, segments: &[&str], expected: &[&str]| {
        let objects = match index {
            "" => snapshot.get(segments),
            name => snapshot.index(name).expect("known").get(segments),
        };
        let objects = objects.expect("not too many segments");
        assert_eq!(objects.len(), expected.len(), "{index} {segments:?}");
        assert_eq!(objects.is_empty(), expected.is_empty());
        assert_eq!(objects.to_vec().len(), expected.len());
        assert_eq!(names(objects), expected, "{index} {segments:?}");
    };
    // Exact.
    check("", &["shop", "back"], &["shop/api", "shop/cart"]);
    check("", &["shop", "nobody"], &[]);
    check("", &["", "back"], &[]);
    check("by-zone", &["z1"], &["node", "shop/cart", "shop/web"]);
    check("by-zone", &["z2"], &["shop/bare", "shop/web"]);
    check("by-name", &["shop", "cart"], &["shop/cart"]);
    check("by-name", &["", "node"], &[]);
    check("by-name", &["shop", "node"], &[]);
    check("by-namespace", &["blog"], &["blog/web"]);
    check("by-namespace", &[""], &[]);
    check("by-team-zone-name", &["front", "z3", "web"], &["blog/web"]);
    // Prefixes: what lacks a later component is among them, what lacks an earlier one is not.
    check("", &["shop"], &["shop/api", "shop/bare", "shop/cart", "shop/web"]);
    check("", &["sho"], &[]);
    check("", &[""], &[]);
    check("by-name", &["shop"], &["shop/api", "shop/bare", "shop/cart", "shop/web"]);
    check("by-team-zone-name", &["back"], &["node", "shop/api", "shop/cart"]);
    check("by-team-zone-name", &["front"], &["blog/web", "shop/web"]);
    check("by-team-zone-name", &["front", "z1"], &["shop/web"]);
    check("by-team-zone-name", &["back", ""], &[]);
    // Everything.
    for index in ["", "by-zone", "by-name", "by-namespace", "by-team-zone-name"] {
        check(index, &[], &everything);
    }
    assert_eq!(names(snapshot.list()), everything);
    assert_eq!(snapshot.len(), 6);
}

#[test]
fn by_name_knows_the_namespace_and_treats_an_empty_one_as_none() {
    let snapshot = shop().snapshot();
    let version = |namespace, name| snapshot.by_name(namespace, name).map(|o| o.namespace());
    assert_eq!(version(Some("shop"), "web"), Some(Some("shop")));
    assert_eq!(version(Some("blog"), "web"), Some(Some("blog")));
    assert_eq!(version(None, "web"), None);
    assert_eq!(version(None, "node"), Some(None));
    assert_eq!(version(Some(""), "node"), Some(None));
    assert_eq!(version(Some("shop"), "node"), None);
    let key = "shop/cart".parse().expect("a key");
    assert_eq!(snapshot.by_key(&key).map(|o| o.name()), Some("cart"));
}

#[test]
fn refusals_say_what_there_is() {
    let snapshot = shop().snapshot();
    let text = |error: Error| error.to_string();
    assert_eq!(
        text(snapshot.get(["a", "b", "c"]).expect_err("too many")),
        "3 key segments for an index of 2 expressions"
    );
    assert_eq!(
        text(snapshot.index("by-node").expect_err("unknown")),
        "index \"by-node\" does not exist; known: by-zone, by-name, by-namespace, by-team-zone-name"
    );
    let zones = snapshot.index("by-zone").expect("known");
    assert_eq!(text(zones.get(["z1", "x"]).expect_err("too many")), "2 key segments for an index of 1 expression");
    let again = Indexer::new(["spec.zones"]).expect("valid");
    assert_eq!(text(plan().named("by-zone", again).expect_err("twice")), "index \"by-zone\" is defined twice");
    let twice = MemoryStore::from_objects(plan(), [shop().list(), shop().list()].concat());
    assert_eq!(text(twice.expect_err("twice")), "object \"node\" is given twice");
    let unnamed = MemoryStore::from_objects(plan(), [object!({"metadata": {"namespace": "a"}})]);
    assert_eq!(text(unnamed.expect_err("unnamed")), "object 0 has no metadata.name");
}

#[test]
fn a_plan_without_a_primary_index_serves_names_and_lists() {
    let objects = ["b", "a"].map(|name| Fixture::new("shop", name).object());
    let store = MemoryStore::from_objects(StorePlan::default(), objects).expect("valid");
    let snapshot = store.snapshot();
    assert_eq!(names(snapshot.list()), ["shop/a", "shop/b"]);
    assert_eq!(snapshot.get::<&str>([]).expect("everything").len(), 2);
    assert_eq!(
        snapshot.get(["shop"]).expect_err("no index").to_string(),
        "1 key segment for an index of 0 expressions"
    );
    assert_eq!(snapshot.index("x").expect_err("no index").to_string(), "index \"x\" does not exist; known: none");
}

#[test]
fn segments_are_never_joined() {
    let plan = StorePlan::index_by(["metadata.labels.a", "metadata.labels.b"]).expect("valid");
    let object = |name, a, b| object!({"metadata": {"name": (name), "labels": {"a": (a), "b": (b)}}});
    let store = MemoryStore::from_objects(
        plan,
        [object("one", "x/y", "z"), object("two", "x", "y/z"), object("three", "xy", "z")],
    )
    .expect("valid");
    let snapshot = store.snapshot();
    assert_eq!(names(snapshot.get(["x/y", "z"]).expect("two")), ["one"]);
    assert_eq!(names(snapshot.get(["x", "y/z"]).expect("two")), ["two"]);
    assert_eq!(names(snapshot.get(["x"]).expect("one")), ["two"]);
}

#[test]
fn any_sequence_of_texts_is_a_key() {
    let snapshot = shop().snapshot();
    let (namespace, team) = (String::from("shop"), String::from("back"));
    let expected = ["shop/api", "shop/cart"];
    assert_eq!(names(snapshot.get(["shop", "back"]).expect("two")), expected);
    assert_eq!(names(snapshot.get([&namespace, &team]).expect("two")), expected);
    assert_eq!(names(snapshot.get(vec![namespace.clone(), team]).expect("two")), expected);
    let slice: &[&str] = &["shop", "back"];
    assert_eq!(names(snapshot.get(slice).expect("two")), expected);
}

#[test]
fn objects_iterate_by_reference_and_by_value() {
    let snapshot = shop().snapshot();
    let objects = snapshot.get(["shop"]).expect("one");
    let mut count = 0;
    for object in &objects {
        assert_eq!(object.namespace(), Some("shop"));
        count += 1;
    }
    assert_eq!((count, objects.len()), (4, 4));
    assert_eq!(objects.first().map(|o| o.name()), Some("api"));
    let mut rest = objects.iter();
    rest.next();
    assert_eq!(rest.len(), 3);
}

/// Polls a future that must be ready.
fn now<F: Future>(future: F) -> F::Output {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("a memory store never waits"),
    }
}

fn by_trait<S: StoreReader>(store: &S) {
    assert_eq!(now(store.get(&["shop", "back"])).expect("two").len(), 2);
    assert_eq!(now(store.by_index("by-zone", &["z1"])).expect("one").len(), 3);
    assert!(now(store.by_index("nothing", &[])).is_err());
    let cart = now(store.by_name(Some("shop"), "cart")).expect("in memory");
    assert_eq!(cart.map(|o| o.name().to_owned()).as_deref(), Some("cart"));
    assert_eq!(now(store.list()).expect("in memory").len(), store.len());
    assert!(!store.is_empty());
}

#[test]
fn generic_code_reads_through_the_trait() {
    by_trait(&shop());
}

#[test]
fn what_is_wrong_with_keys_is_counted_and_loses_no_object() {
    let zones: Vec<String> = (0..k8s_indexer::MAX_KEYS + 5).map(|zone| format!("z{zone}")).collect();
    let by_zone = Indexer::new([crate::fixture::multi_valued("spec.zones[*]")]).expect("valid");
    let plan = StorePlan::index_by(["spec.zones"]).expect("valid").named("by-zone", by_zone).expect("new name");
    let (mut writer, store) = crate::fixture::empty(plan);
    writer.upsert(object!({"metadata": {"name": "a"}, "spec": {"zones": zones}}));
    writer.upsert(object!({"metadata": {"name": "b"}}));
    writer.commit();
    let issues = writer.key_issues();
    assert_eq!((issues.overflowed, issues.not_scalar), (1, 1));
    let snapshot = store.snapshot();
    assert_eq!(names(snapshot.list()), ["a", "b"]);
    let zone = |zone: &str| snapshot.index("by-zone").expect("known").get([zone]).expect("one").len();
    assert_eq!((zone("z0"), zone("z999"), zone("z1000")), (1, 1, 0));
    writer.remove(None, "a");
    let snapshot = writer.commit();
    assert_eq!(snapshot.index("by-zone").expect("known").get(["z0"]).expect("one").len(), 0);
    assert_eq!(snapshot.len(), 1);
}
