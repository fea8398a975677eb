//! Believable objects in any number, for demos, benchmarks and load tests.
//!
//! A [`Cluster`] describes how many of each kind there are; its objects fit together: Pods belong to Services,
//! EndpointSlices list the addresses of those Pods, Ingresses lead to the Services, everything lives on Nodes. Names are
//! such as people give (`shop`, `cart`), while uids, hashes, addresses and image digests are unique per object, as in a
//! real cluster: nothing is more compressible here than there. A Pod has about 17 KB of JSON, of which `managedFields`
//! take somewhat less than half.
//!
//! The same numbers and the same seed give the same objects.
//!
//! ```
//! use k8s_fake_apiserver::generate::Cluster;
//! let cluster = Cluster { pods: 40, services: 4, endpoint_slices: 8, ..Cluster::default() };
//! let objects: Vec<_> = cluster.objects().collect();
//! assert_eq!(objects.iter().filter(|o| o["kind"] == "Pod").count(), 40);
//! assert_eq!(cluster.pod(0)["metadata"]["labels"]["app.kubernetes.io/name"], "cart");
//! ```

mod config;
mod managed;
mod network;
mod pod;

use serde_json::{Value, json};

use crate::rng::Rng;

/// The namespaces, in this order; further ones get numbers.
const NAMESPACES: &[&str] = &[
    "shop",
    "payments",
    "search",
    "logistics",
    "identity",
    "analytics",
    "support",
    "marketing",
    "platform",
    "partners",
];

/// The services of a namespace, in this order; further ones get numbers.
const SERVICES: &[&str] = &[
    "cart",
    "checkout",
    "catalog",
    "recommendations",
    "inventory",
    "pricing",
    "web-frontend",
    "order-events",
    "session-store",
    "fraud-scoring",
    "shipping-quotes",
    "mail-dispatch",
    "user-profile",
    "image-resizer",
];

/// How many objects of each kind there are. Use struct update syntax: `Cluster { pods: 100, ..Cluster::default() }`.
///
/// The default has 10 namespaces, 20 Nodes, managedFields, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Namespaces; the first one is `shop`. At least one is made.
    pub namespaces: usize,
    /// Nodes. At least one is made.
    pub nodes: usize,
    /// Services; the first one is `shop/cart`.
    pub services: usize,
    /// EndpointSlices, dealt out to the Services in turn.
    pub endpoint_slices: usize,
    /// Ingresses, leading to the Services in turn.
    pub ingresses: usize,
    /// Pods, dealt out to the Services in turn.
    pub pods: usize,
    /// ConfigMaps of about 2 KB.
    pub config_maps: usize,
    /// Secrets.
    pub secrets: usize,
    /// Bytes of plain data in a Secret.
    pub secret_bytes: usize,
    /// Whether objects carry `metadata.managedFields`, as all of a real cluster do.
    pub managed_fields: bool,
    /// Other seeds give other uids, hashes and names.
    pub seed: u64,
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            namespaces: 10,
            nodes: 20,
            services: 0,
            endpoint_slices: 0,
            ingresses: 0,
            pods: 0,
            config_maps: 0,
            secrets: 0,
            secret_bytes: 1024,
            managed_fields: true,
            seed: 0,
        }
    }
}

impl Cluster {
    /// All objects: namespaces, Nodes, Services, Ingresses, EndpointSlices, ConfigMaps, Secrets, Pods.
    ///
    /// They are made one by one while the iterator runs.
    pub fn objects(&self) -> impl Iterator<Item = Value> + '_ {
        let namespaces = (0..self.namespaces.max(1)).map(|i| self.namespace(i));
        let nodes = (0..self.nodes.max(1)).map(|i| self.node(i));
        namespaces
            .chain(nodes)
            .chain((0..self.services).map(|i| self.service(i)))
            .chain((0..self.ingresses).map(|i| self.ingress(i)))
            .chain((0..self.endpoint_slices).map(|i| self.endpoint_slice(i)))
            .chain((0..self.config_maps).map(|i| self.config_map(i)))
            .chain((0..self.secrets).map(|i| self.secret(i)))
            .chain((0..self.pods).map(|i| self.pod(i)))
    }

    /// How many objects [`objects`](Self::objects) gives.
    pub fn len(&self) -> usize {
        self.namespaces.max(1)
            + self.nodes.max(1)
            + self.services
            + self.ingresses
            + self.endpoint_slices
            + self.config_maps
            + self.secrets
            + self.pods
    }

    /// Never: there is always a namespace.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `i`th namespace.
    pub fn namespace(&self, i: usize) -> Value {
        let name = namespace_name(i);
        let mut rng = self.rng("namespace", i);
        let labels = json!({ "kubernetes.io/metadata.name": name, "environment": "production", "team": team(i) });
        let metadata = json!({ "name": name, "labels": labels, "uid": rng.uid(), "creationTimestamp": time(i) });
        self.finish(
            json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": metadata,
                "spec": { "finalizers": ["kubernetes"] }, "status": { "phase": "Active" },
            }),
            &[("kubectl-create", &["metadata"], "")],
        )
    }

    /// The `i`th Node.
    pub fn node(&self, i: usize) -> Value {
        let mut rng = self.rng("node", i);
        let ip = format!("10.4.{}.{}", i / 250, i % 250 + 1);
        let zone = zone(i);
        let metadata = json!({
            "name": node_name(i), "uid": rng.uid(), "creationTimestamp": time(i),
            "labels": {
                "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": node_name(i),
                "node.kubernetes.io/instance-type": "m6i.4xlarge", "topology.kubernetes.io/region": "eu-west-1",
                "topology.kubernetes.io/zone": zone,
            },
        });
        let condition = |kind: &str, status: &str, reason: &str| {
            json!({
                "type": kind, "status": status, "reason": reason, "message": format!("kubelet reports {reason}"),
                "lastHeartbeatTime": time(i + 7), "lastTransitionTime": time(i),
            })
        };
        let status = json!({
            "capacity": { "cpu": "16", "memory": "65011712Ki", "pods": "110" },
            "allocatable": { "cpu": "15890m", "memory": "63859712Ki", "pods": "110" },
            "addresses": [{ "type": "InternalIP", "address": ip }, { "type": "Hostname", "address": node_name(i) }],
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("Ready", "True", "KubeletReady"),
            ],
            "nodeInfo": {
                "architecture": "amd64", "bootID": rng.uid(), "containerRuntimeVersion": "containerd://2.1.4",
                "kernelVersion": "6.12.0", "kubeProxyVersion": "", "kubeletVersion": "v1.36.3", "machineID": rng.hex(32),
                "operatingSystem": "linux", "osImage": "Linux", "systemUUID": rng.uid(),
            },
        });
        self.finish(
            json!({ "apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": { "podCIDR": format!("10.{}.{}.0/24", 128 + i / 256, i % 256) }, "status": status }),
            &[("kubelet", &["metadata", "spec"], ""), ("kubelet", &["status"], "status")],
        )
    }

    /// The namespace and the name of the `i`th Service.
    pub fn service_name(&self, i: usize) -> (String, String) {
        let namespaces = self.namespaces.max(1);
        let (namespace, n) = (i % namespaces, i / namespaces);
        (namespace_name(namespace), numbered(SERVICES, n))
    }

    /// The Service that the `i`th Pod belongs to: its number.
    fn service_of_pod(&self, i: usize) -> usize {
        // With no Services there are still applications, two to a namespace.
        i % if self.services == 0 { self.namespaces.max(1) * 2 } else { self.services }
    }

    /// The numbers of the Pods of a Service.
    fn pods_of_service(&self, service: usize) -> impl Iterator<Item = usize> + use<> {
        (service..self.pods).step_by(self.services.max(1))
    }

    fn rng(&self, what: &str, i: usize) -> Rng {
        let mut word = self.seed ^ (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for byte in what.bytes() {
            word = (word ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
        Rng::new(word)
    }

    /// Adds managedFields for these managers: name, top-level members, subresource.
    fn finish(&self, mut object: Value, managers: &[managed::Manager<'_>]) -> Value {
        if self.managed_fields {
            let fields = managed::fields(&object, managers);
            object["metadata"]["managedFields"] = fields;
        }
        object
    }
}

fn namespace_name(i: usize) -> String {
    numbered(NAMESPACES, i)
}

/// The `i`th name; after the end of the list they begin again with numbers.
fn numbered(names: &[&str], i: usize) -> String {
    let (round, name) = (i / names.len(), names[i % names.len()]);
    if round == 0 { name.to_owned() } else { format!("{name}-{}", round + 1) }
}

fn node_name(i: usize) -> String {
    format!("ip-10-4-{}-{}.eu-west-1.compute.internal", i / 250, i % 250 + 1)
}

fn zone(i: usize) -> &'static str {
    ["eu-west-1a", "eu-west-1b", "eu-west-1c"][i % 3]
}

fn team(i: usize) -> String {
    format!("team-{}", i % 12)
}

/// Some time on a morning of March 2026.
fn time(i: usize) -> String {
    format!("2026-03-{:02}T{:02}:{:02}:{:02}Z", i / 7 % 28 + 1, i / 5 % 24, i % 60, i * 7 % 60)
}

/// The address of the `i`th Pod.
fn pod_ip(i: usize) -> String {
    format!("10.{}.{}.{}", 128 + (i >> 16 & 63), i >> 8 & 255, i & 255)
}
