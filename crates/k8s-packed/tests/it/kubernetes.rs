//! Typed Kubernetes resources decode from packed bytes as they do from JSON.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::Ingress;
use k8s_packed::{Encoder, Object};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::doc::numbers_are_texts;
use crate::pod::pod;

/// Alone and shared, typed as serde_json types it; what it refuses is refused.
#[track_caller]
fn check<T: DeserializeOwned + PartialEq + Debug>(value: &Value) {
    let text = value.to_string();
    let expected = serde_json::from_str::<T>(&text);
    let mut encoder = Encoder::new();
    let mut objects: Vec<Object> = (0..4).map(|_| encoder.encode(text.as_bytes()).unwrap()).collect();
    objects.push(Object::from_slice(text.as_bytes()).unwrap());
    for object in objects {
        match (object.decode::<T>(), &expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, *expected),
            (Err(error), Err(_)) => assert!(error.is_decode()),
            // With `arbitrary_precision` serde_json gives a Quantity a map for a number.
            (Ok(_), Err(_)) if numbers_are_texts() => {}
            (found, _) => panic!("{found:?}\n{expected:?}"),
        }
    }
}

fn ingress() -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "cart", "namespace": "shop", "annotations": {"nginx.org/rewrite": "true"}},
        "spec": {
            "ingressClassName": "nginx",
            "tls": [{"hosts": ["shop.example"], "secretName": "shop-tls"}],
            "rules": [{"host": "shop.example", "http": {"paths": [
                {"path": "/cart", "pathType": "Prefix", "backend": {"service": {"name": "cart", "port": {"number": 8080}}}},
                {"path": "/", "pathType": "Exact", "backend": {"service": {"name": "web", "port": {"name": "http"}}}},
            ]}}],
        },
        "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1", "ports": [{"port": 443, "protocol": "TCP"}]}]}},
    })
}

fn endpoint_slice() -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "cart-x7k2p", "labels": {"kubernetes.io/service-name": "cart"}},
        "endpoints": [{"addresses": ["10.0.0.7"], "conditions": {"ready": true, "serving": null}, "nodeName": "n1"}],
        "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
    })
}

fn service() -> Value {
    json!({
        "kind": "Service", "metadata": {"name": "cart"},
        "spec": {"ports": [
            {"port": 80, "targetPort": "http"}, {"port": 81, "targetPort": 8081, "nodePort": 30_000},
        ], "clusterIPs": ["10.0.0.1", "fd00::1"]},
    })
}

fn secret() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "cart", "creationTimestamp": "2026-03-01T10:40:26Z", "deletionTimestamp": null},
        "data": {"password": "aHVudGVyMg==", "empty": ""},
    })
}

fn node() -> Value {
    json!({
        "metadata": {"name": "n1"},
        "status": {"capacity": {"cpu": "4", "memory": "16Gi"}, "conditions": [{
            "type": "Ready", "status": "True", "lastHeartbeatTime": "2026-03-01T10:40:26Z",
        }]},
    })
}

#[test]
fn the_kinds_that_controllers_read_decode() {
    for i in [0, 77] {
        for managed_fields in [false, true] {
            check::<Pod>(&pod(i, managed_fields));
        }
    }
    check::<Ingress>(&ingress());
    check::<EndpointSlice>(&endpoint_slice());
    check::<Service>(&service());
    check::<Secret>(&secret());
    check::<Node>(&node());
    check::<ConfigMap>(&json!({"data": {"a": "b"}, "binaryData": {"c": "AAEC"}, "immutable": true}));
}

/// Replaces the value at a random place.
fn spoil(value: &mut Value, way: &[prop::sample::Index], with: &Value) {
    let below = |len: usize| (len > 0).then(|| way.first().map(|w| w.index(len))).flatten();
    let child = match value {
        Value::Array(items) => below(items.len()).map(|at| &mut items[at]),
        Value::Object(members) => below(members.len()).and_then(|at| members.values_mut().nth(at)),
        _ => None,
    };
    match child {
        Some(child) => spoil(child, &way[1..], with),
        None => *value = with.clone(),
    }
}

proptest! {
    #![proptest_config(test_support::cases(256))]

    #[test]
    fn a_spoiled_field_is_refused_as_serde_json_refuses_it(
        way in prop::collection::vec(any::<prop::sample::Index>(), 1..8),
        with in prop::sample::select(vec![
            json!(null), json!(true), json!(-1), json!(1.5), json!(u64::MAX), json!("text"), json!("2026-03-01T10:40:26Z"),
            json!(["a"]), json!({"a": 1}), json!([]), json!({}), json!({"name": "x", "port": 1}),
        ]),
    ) {
        macro_rules! spoiled {
            ($($kind:ty: $value:expr),*) => {$(
                let mut value = $value;
                spoil(&mut value, &way, &with);
                if value.is_object() {
                    check::<$kind>(&value);
                }
            )*};
        }
        spoiled!(Pod: pod(3, false), Ingress: ingress(), EndpointSlice: endpoint_slice(), Service: service(), Secret: secret(), Node: node());
    }
}
