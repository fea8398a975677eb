//! The vocabulary beside packed objects.

use k8s_packed::object;
use k8s_types::{Change, ChangeStats, LabelSelector, ObjectKey};

#[test]
fn keys_and_selectors_of_objects() {
    let pod = object!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "shop", "labels": {"app": "web"}},
    });
    assert_eq!(ObjectKey::of(&pod), ObjectKey::new(Some("shop"), "a"));
    let node = object!({"metadata": {"name": "n", "namespace": ""}});
    assert_eq!(ObjectKey::from(&node), ObjectKey::new(None, "n"));

    let web: LabelSelector = "app=web,!canary".parse().expect("selector");
    assert!(web.matches(&pod));
    assert!(!web.matches(&node));
    assert!(LabelSelector::new().matches(&node));
}

#[test]
fn changes_are_counted_as_they_happen() {
    let old = object!({"metadata": {"name": "a", "resourceVersion": "1"}});
    let new = object!({"metadata": {"name": "a", "resourceVersion": "2"}});
    let changes = [
        Change::Created(old.clone()),
        Change::Modified { old: old.clone(), new: new.clone() },
        Change::Deleted(new.clone()),
    ];
    let mut stats = ChangeStats::default();
    for change in &changes {
        stats.record(change);
    }
    assert_eq!((stats.created, stats.modified, stats.deleted), (1, 1, 1));
    assert_eq!(changes[0].previous(), None);
    assert_eq!(changes[1].previous(), Some(&old));
    assert_eq!(changes[1].object(), &new);
    assert!(changes[2].is_deleted());
}
