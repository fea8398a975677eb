//! What is in order already is neither gathered nor sorted: such reads allocate nothing.

use k8s_store::{MemoryStore, StorePlan};
use test_support::{Counting, allocations};

use crate::fixture::{Fixture, TEAM};

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn lists_exact_reads_and_snapshots_allocate_nothing_and_are_in_order() {
    let plan = StorePlan::index_by([TEAM]).expect("valid");
    // In no order at all.
    let objects = (0..2_000_u32).map(|i| {
        let scattered = i.wrapping_mul(2_654_435_761) % 2_000;
        let namespace = format!("ns-{}", scattered % 7);
        Fixture::new(&namespace, &format!("o-{i:04}")).team(&format!("t{}", i % 3)).object()
    });
    let store = MemoryStore::from_objects(plan, objects).expect("valid");
    let in_order = |objects: k8s_store::Objects<'_>, expected: usize| {
        let mut last = None;
        let mut count = 0;
        for object in objects {
            let place = Some((object.namespace(), object.name()));
            assert!(last < place, "{last:?} before {place:?}");
            last = place;
            count += 1;
        }
        assert_eq!(count, expected);
    };
    let counted = allocations(|| {
        let snapshot = store.snapshot();
        in_order(snapshot.list(), 2_000);
        in_order(snapshot.get(["t1"]).expect("one"), 667);
        assert!(snapshot.by_name(Some("ns-0"), "o-0000").is_some());
    });
    assert_eq!(counted, 0);
    // The counter counts: a read that stands by itself has a list of its own.
    assert!(allocations(|| drop(store.list())) > 0);
}
