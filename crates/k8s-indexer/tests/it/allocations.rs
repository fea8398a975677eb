//! What is read by plain paths allocates the keys and nothing else.

use k8s_indexer::{FieldSelector, IndexExpression, Indexer, Keys};
use k8s_packed::object;
use test_support::{Counting, allocations};

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn keys_of_plain_paths_cost_one_allocation_each() {
    let object = object!({
        "metadata": {"name": "a", "namespace": "shop", "labels": {"kubernetes.io/service-name": "cart"}},
        "ports": [{"port": 8080}, {"port": 8443.0}, {"port": null}],
        "weight": 0.25,
    });
    let single = Indexer::new([
        "metadata.namespace",
        "metadata.labels['kubernetes.io/service-name']",
        "ports[1].port",
        "ports[*].port",
        "weight",
    ]);
    let several = Indexer::new(["metadata.namespace".into(), IndexExpression::multi_valued("ports[*].port")]);
    let mut keys = Keys::new();
    for (index, expected) in [(single.expect("index"), 1), (several.expect("index"), 2)] {
        // The first object makes the room that all later ones use.
        index.keys(&object, &mut keys);
        assert_eq!(allocations(|| index.keys(&object, &mut keys)), expected);
        assert_eq!(keys.len(), expected);
    }
}

#[test]
fn field_selectors_of_plain_paths_allocate_nothing() {
    let object = object!({"spec": {"nodeName": "n1", "replicas": 3, "on": true}});
    for text in ["spec.nodeName=n1", "spec.replicas=3", "spec.on=true", "spec.nope=x"] {
        let selector: FieldSelector = text.parse().expect(text);
        let mut matched = false;
        assert_eq!(allocations(|| matched = selector.matches(&object)), 0, "{text}");
        assert_eq!(matched, text != "spec.nope=x");
    }
}
