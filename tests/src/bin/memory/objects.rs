//! Objects with values that never come again.

use k8s_informer::types::{SingleWatcherConfig, WatcherConfig};
use serde_json::{Value, json};

pub(crate) const PODS: &str = "v1/pods";
pub(crate) const MAPS: &str = "v1/configmaps";
pub(crate) const NAMESPACE: &str = "shop";

/// How many Pods have the values of a rollout in common.
pub(crate) const REPLICAS: usize = 5;

/// Pods by what a rollout changes, and by what each update changes.
pub(crate) fn pod_config() -> WatcherConfig {
    WatcherConfig::new(PODS)
        .index_by(["metadata.namespace", "metadata.labels.pod-template-hash"])
        .named_index("by-ip", ["status.podIP"])
        .named_index("by-revision", ["metadata.annotations.revision", "metadata.name"])
}

pub(crate) fn single_pod_config() -> SingleWatcherConfig {
    SingleWatcherConfig::new(PODS, NAMESPACE, pod_name(0))
}

pub(crate) fn pod_name(pod: usize) -> String {
    format!("cart-{pod:05}")
}

/// A Pod as it is after a rollout of its set; the update is what it alone has.
pub(crate) fn pod(pod: usize, rollout: usize, update: usize) -> Value {
    let of_set = |what: &str| hash(&format!("{what} of set {} in rollout {rollout}", pod / REPLICAS));
    let own = hash(&format!("container of pod {pod} after update {update}"));
    let [_, b, c, d] = u32::try_from(update % (1 << 24)).unwrap_or_default().to_be_bytes();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": NAMESPACE, "name": pod_name(pod),
            "labels": {
                "app": "cart", "pod-template-hash": &of_set("template")[..10], "version": &of_set("version")[..20],
            },
            "annotations": {
                "checksum/config": of_set("config"), "checksum/secret": of_set("secret"), "revision": of_set("revision"),
                "restarted": format!("update {update}"),
            },
        },
        "spec": {
            "nodeName": format!("node-{:03}", pod % 200),
            "containers": [{
                "name": "cart", "image": format!("registry.example/cart@sha256:{}", of_set("image")),
                "env": [{"name": "RELEASE", "value": of_set("release")}, {"name": "SEED", "value": of_set("seed")}],
            }],
        },
        "status": {
            "phase": "Running", "podIP": format!("10.{b}.{c}.{d}"), "podIPs": [{"ip": format!("10.{b}.{c}.{d}")}],
            "containerStatuses": [{"name": "cart", "containerID": format!("containerd://{own}"), "ready": true}],
        },
    })
}

/// ConfigMaps under three indexes of which each object has keys that no other ever has.
pub(crate) fn map_config() -> WatcherConfig {
    WatcherConfig::new(MAPS)
        .index_by(["metadata.namespace", "metadata.labels.job"])
        .named_index("by-owner", ["metadata.annotations.owner"])
        .named_index("by-token", ["data.token", "metadata.name"])
}

pub(crate) fn map_namespace(at: usize) -> String {
    format!("ns-{:02}", at % 40)
}

pub(crate) fn map_name(at: usize) -> String {
    format!("job-{}", &hash(&format!("name {at}"))[..12])
}

/// The keys of the three indexes.
pub(crate) fn map_keys(at: usize) -> [String; 3] {
    ["job", "owner", "token"].map(|what| hash(&format!("{what} {at}")))
}

pub(crate) fn map(at: usize) -> Value {
    let [job, owner, token] = map_keys(at);
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "namespace": map_namespace(at), "name": map_name(at),
            "labels": {"job": &job[..63], "kind": "short-lived"}, "annotations": {"owner": owner},
        },
        "data": {"token": token, "script": "#!/bin/sh\nexec run"},
    })
}

/// 64 hexadecimal digits that follow from a text.
fn hash(text: &str) -> String {
    let mut digits = String::with_capacity(64);
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for round in 0..4_u8 {
        for byte in text.bytes().chain([round]) {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        // The bits of a product are not equally good: mix them.
        let mixed = (state ^ state >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        digits.push_str(&format!("{:016x}", mixed ^ mixed >> 32));
    }
    digits
}
