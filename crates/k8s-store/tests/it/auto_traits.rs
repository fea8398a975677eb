//! What may be sent to other threads, and how big handles are.
use k8s_store::{Error, IndexView, MemoryStore, Objects, Snapshot, StoreBytes, StorePlan, StoreReader, Writer};

fn sendable<T: Send + Sync + Unpin>() {}
fn future<T: Send>(_: &T) {}

#[test]
fn types_can_be_sent_and_shared() {
    sendable::<MemoryStore>();
    sendable::<Snapshot>();
    sendable::<IndexView<'_>>();
    sendable::<Objects<'_>>();
    sendable::<StorePlan>();
    sendable::<StoreBytes>();
    sendable::<Error>();
    sendable::<Writer>();
}

fn reads_can_be_sent<S: StoreReader>(store: &S) {
    future(&store.get(&["a"]));
    future(&store.by_index("i", &["a"]));
    future(&store.by_name(None, "a"));
    future(&store.list());
}

#[test]
fn futures_of_reads_can_be_sent() {
    let store = MemoryStore::from_objects(StorePlan::default(), []).expect("no objects");
    reads_can_be_sent(&store);
}

#[test]
fn a_snapshot_and_a_reader_are_one_pointer() {
    assert_eq!(size_of::<Snapshot>(), size_of::<usize>());
    assert_eq!(size_of::<MemoryStore>(), size_of::<usize>());
}
