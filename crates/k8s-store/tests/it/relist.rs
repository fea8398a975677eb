//! Lists that replace what is known, in pages and by namespace.
use k8s_store::StorePlan;

use crate::fixture::{Fixture, empty, names, plan};

fn object(namespace: &str, name: &str, version: u32) -> k8s_packed::Object {
    Fixture::new(namespace, name).version(version).object()
}

#[test]
fn what_a_relist_does_not_bring_is_removed_at_its_end() {
    let (mut writer, store) = empty(plan());
    for name in ["a", "b", "c", "d"] {
        writer.upsert(object("ns", name, 1));
    }
    writer.commit();

    writer.begin_relist(None);
    writer.upsert(object("ns", "b", 2));
    writer.commit();
    // Until the end readers see old and new.
    assert_eq!(store.len(), 4);
    writer.upsert(object("ns", "e", 2));
    writer.upsert(object("ns", "d", 1));
    let gone = writer.finish_relist(None);
    let gone: Vec<&str> = gone.iter().map(|o| o.name()).collect();
    assert_eq!(gone, ["a", "c"]);
    assert_eq!(store.len(), 4);
    writer.commit();
    assert_eq!(names(store.snapshot().list()), ["ns/b", "ns/d", "ns/e"]);
}

#[test]
fn c68_an_unchanged_object_of_a_relist_is_the_stored_one() {
    let (mut writer, store) = empty(plan());
    writer.upsert(object("ns", "same", 1));
    writer.upsert(object("ns", "newer", 1));
    writer.commit();
    let before = store.snapshot();

    writer.begin_relist(Some("ns"));
    let previous = writer.upsert(object("ns", "same", 1)).expect("known");
    let stored = before.by_name(Some("ns"), "same").expect("known");
    assert!(previous.ptr_eq(stored));
    writer.upsert(object("ns", "newer", 2));
    assert!(writer.finish_relist(Some("ns")).is_empty());
    writer.commit();

    let after = store.snapshot();
    let kept = |name| {
        let find = |s: &k8s_store::Snapshot| s.by_name(Some("ns"), name).cloned().expect("known");
        find(&before).ptr_eq(&find(&after))
    };
    assert!(kept("same"));
    assert!(!kept("newer"));
}

#[test]
fn outside_a_relist_and_without_versions_the_new_object_is_stored() {
    let (mut writer, _) = empty(StorePlan::default());
    let bare = || k8s_packed::object!({"metadata": {"name": "a"}, "data": "x"});
    writer.upsert(bare());
    writer.begin_relist(None);
    let new = bare();
    writer.upsert(new.clone());
    assert!(writer.get(None, "a").expect("known").ptr_eq(&new));
    writer.finish_relist(None);

    let first = object("ns", "b", 1);
    writer.upsert(first);
    let second = object("ns", "b", 1);
    writer.upsert(second.clone());
    assert!(writer.get(Some("ns"), "b").expect("known").ptr_eq(&second));
}

#[test]
fn namespaces_relist_independently() {
    let (mut writer, store) = empty(plan());
    for namespace in ["a", "b", "c"] {
        for name in ["x", "y"] {
            writer.upsert(object(namespace, name, 1));
        }
    }
    writer.begin_relist(Some("a"));
    writer.begin_relist(Some("b"));
    writer.upsert(object("b", "y", 2));
    writer.upsert(object("a", "x", 2));
    assert_eq!(writer.finish_relist(Some("a")).len(), 1);
    // A live event of another namespace, and one of the namespace that is still listed.
    writer.remove(Some("c"), "x");
    writer.upsert(object("b", "live", 3));
    assert_eq!(writer.finish_relist(Some("b")).len(), 1);
    assert!(writer.finish_relist(Some("b")).is_empty(), "it has ended");
    assert!(writer.finish_relist(Some("never begun")).is_empty());
    writer.commit();
    assert_eq!(names(store.snapshot().list()), ["a/x", "b/live", "b/y", "c/y"]);
}

#[test]
fn a_relist_that_is_given_up_or_starts_anew_removes_by_the_last_list_only() {
    let (mut writer, _) = empty(plan());
    for name in ["a", "b"] {
        writer.upsert(object("ns", name, 1));
    }
    writer.begin_relist(None);
    writer.upsert(object("ns", "a", 1));
    writer.cancel_relist(None);
    assert!(writer.finish_relist(None).is_empty());
    assert_eq!(writer.len(), 2);

    writer.begin_relist(None);
    writer.upsert(object("ns", "a", 1));
    writer.begin_relist(None);
    writer.upsert(object("ns", "b", 1));
    let gone = writer.finish_relist(None);
    assert_eq!(gone.len(), 1);
    assert_eq!(gone[0].name(), "a");
}

#[test]
fn an_id_that_is_used_again_during_a_relist_carries_no_mark_of_its_former_object() {
    let (mut writer, _) = empty(plan());
    writer.upsert(object("a", "x", 1));
    writer.upsert(object("b", "y", 1));
    writer.begin_relist(Some("a"));
    writer.begin_relist(Some("b"));
    writer.upsert(object("a", "x", 1));
    writer.remove(Some("a"), "x");
    writer.upsert(object("b", "z", 1));
    assert!(writer.finish_relist(Some("a")).is_empty());
    let gone = writer.finish_relist(Some("b"));
    assert_eq!(gone.iter().map(|o| o.name()).collect::<Vec<_>>(), ["y"]);
}

#[test]
fn an_empty_list_empties_its_scope_and_clear_empties_all() {
    let (mut writer, store) = empty(plan());
    for namespace in ["a", "b"] {
        writer.upsert(object(namespace, "x", 1));
    }
    writer.begin_relist(Some("a"));
    assert_eq!(writer.finish_relist(Some("a")).len(), 1);
    writer.commit();
    assert_eq!(names(store.snapshot().list()), ["b/x"]);
    let version = store.snapshot().version();

    writer.begin_relist(None);
    writer.clear();
    writer.commit();
    assert!(store.is_empty());
    assert_eq!(store.snapshot().version(), version + 1);
    writer.upsert(object("a", "x", 1));
    assert!(writer.finish_relist(None).is_empty(), "clear ended it");
    assert_eq!(writer.len(), 1);
}

#[test]
fn a_touched_object_is_seen_as_it_is() {
    let (mut writer, _) = empty(plan());
    writer.upsert(object("a", "x", 5));
    writer.upsert(object("a", "y", 5));
    writer.upsert(object("b", "z", 5));
    writer.begin_relist(Some("a"));
    // The list shows an older version than a live event has brought.
    assert!(writer.touch(Some("a"), "x"));
    assert!(!writer.touch(Some("a"), "unknown"));
    assert!(writer.touch(Some("b"), "z"), "known, and no relist asks for it");
    let gone = writer.finish_relist(Some("a"));
    assert_eq!(gone.iter().map(|o| o.name()).collect::<Vec<_>>(), ["y"]);
    assert_eq!(writer.get(Some("a"), "x").and_then(|o| o.resource_version()), Some("5"));
}
