//! Public types go between threads.

use k8s_indexer::{Expression, ExpressionError, FieldSelector, Indexer, IndexerError, Keys};

fn shared<T: Send + Sync + Unpin + 'static>() {}

#[test]
fn public_types_are_send_and_sync() {
    shared::<Expression>();
    shared::<ExpressionError>();
    shared::<FieldSelector>();
    shared::<Indexer>();
    shared::<IndexerError>();
    shared::<Keys>();
}
