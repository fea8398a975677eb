//! Generated clusters: size, uniqueness, and that their parts fit together.

use std::collections::{BTreeMap, HashSet};

use k8s_fake_apiserver::FakeApiServer;
use k8s_fake_apiserver::generate::Cluster;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::Ingress;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;

fn cluster() -> Cluster {
    Cluster {
        namespaces: 5,
        services: 20,
        endpoint_slices: 60,
        ingresses: 40,
        pods: 200,
        config_maps: 30,
        secrets: 30,
        ..Cluster::default()
    }
}

#[test]
fn pods_have_the_size_of_real_ones() {
    let mean = |managed_fields: bool| {
        let cluster = Cluster { managed_fields, ..cluster() };
        (0..100).map(|i| cluster.pod(i).to_string().len()).sum::<usize>() / 100
    };
    let (with, without) = (mean(true), mean(false));
    assert!((16_000..19_000).contains(&with) && (8_900..10_500).contains(&without), "{with} {without}");
}

#[test]
fn one_seed_gives_one_cluster() {
    assert!(cluster().objects().eq(cluster().objects()));
    assert_ne!(cluster().pod(7), Cluster { seed: 1, ..cluster() }.pod(7));
    assert_eq!(cluster().objects().count(), cluster().len());
}

#[test]
fn what_is_unique_in_a_cluster_is_unique_here() {
    let mut keys = HashSet::new();
    let mut uids = HashSet::new();
    let mut ips = HashSet::new();
    for object in cluster().objects() {
        let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
        assert!(keys.insert((object["kind"].to_string(), text("namespace"), text("name"))), "{} twice", text("name"));
        assert!(uids.insert(text("uid")), "uid of {} twice", text("name"));
        if let Some(ip) = object["status"]["podIP"].as_str() {
            assert!(ips.insert(ip.to_owned()));
        }
    }
}

#[test]
fn endpoints_are_the_pods_of_their_service() {
    let cluster = cluster();
    let mut pods: BTreeMap<String, Value> = BTreeMap::new();
    let mut services = HashSet::new();
    for object in cluster.objects() {
        let key = format!(
            "{}/{}",
            object["metadata"]["namespace"].as_str().unwrap_or_default(),
            object["metadata"]["name"].as_str().unwrap()
        );
        match object["kind"].as_str().unwrap() {
            "Pod" => drop(pods.insert(key, object)),
            "Service" => drop(services.insert(key)),
            _ => {}
        }
    }
    let mut endpoints = 0;
    for slice in (0..cluster.endpoint_slices).map(|i| cluster.endpoint_slice(i)) {
        let namespace = slice["metadata"]["namespace"].as_str().unwrap();
        let service = slice["metadata"]["labels"]["kubernetes.io/service-name"].as_str().unwrap();
        assert!(services.contains(&format!("{namespace}/{service}")));
        for endpoint in slice["endpoints"].as_array().unwrap() {
            let pod = &pods[&format!("{namespace}/{}", endpoint["targetRef"]["name"].as_str().unwrap())];
            assert_eq!(pod["status"]["podIP"], endpoint["addresses"][0]);
            assert_eq!(pod["metadata"]["uid"], endpoint["targetRef"]["uid"]);
            assert_eq!(pod["metadata"]["labels"]["app.kubernetes.io/name"], service);
            endpoints += 1;
        }
    }
    assert_eq!(endpoints, pods.len());
    assert!(services.contains("shop/cart"));
    for ingress in (0..cluster.ingresses).map(|i| cluster.ingress(i)) {
        let backend = &ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"];
        let key = format!("{}/{}", ingress["metadata"]["namespace"].as_str().unwrap(), backend.as_str().unwrap());
        assert!(services.contains(&key), "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn typed_clients_read_all_of_it() {
    let cluster = cluster();
    let server = FakeApiServer::builder().objects(cluster.objects()).start().await.unwrap();
    macro_rules! check {
        ($kind:ty, $count:expr) => {
            let list = Api::<$kind>::all(server.client()).list(&ListParams::default()).await.unwrap();
            assert_eq!(list.items.len(), $count);
            assert!(list.items.iter().all(|o| !o.metadata.managed_fields.as_ref().unwrap().is_empty()));
        };
    }
    check!(Pod, 200);
    check!(Service, 20);
    check!(Ingress, 40);
    check!(EndpointSlice, 60);
    check!(ConfigMap, 30);
    check!(Secret, 30);
    check!(Node, 20);
    let running =
        ListParams::default().fields("status.phase=Running,spec.nodeName=ip-10-4-0-1.eu-west-1.compute.internal");
    assert_eq!(Api::<Pod>::all(server.client()).list(&running).await.unwrap().items.len(), 10);
}

#[test]
fn few_or_no_services_are_no_trouble() {
    for (services, pods, slices) in [(0, 10, 3), (3, 0, 7), (1, 5, 0), (0, 0, 0)] {
        let cluster = Cluster {
            namespaces: 0,
            nodes: 0,
            services,
            pods,
            endpoint_slices: slices,
            ingresses: 5,
            ..Cluster::default()
        };
        assert_eq!(cluster.objects().count(), cluster.len());
        assert!(!cluster.is_empty());
    }
}
