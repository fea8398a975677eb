//! The cluster of the tour.

use anyhow::Result;
use k8s_fake_apiserver::FakeApiServer;
use k8s_fake_apiserver::generate::Cluster;

/// A served cluster and what is in it.
pub(crate) struct Served {
    pub(crate) server: FakeApiServer,
    pub(crate) kinds: Vec<Kind>,
}

/// A kind as the tour watches it.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) resource: &'static str,
    pub(crate) index_by: &'static [&'static str],
    pub(crate) objects: usize,
    pub(crate) json_bytes: usize,
}

/// Fills an API server: 2,000 Ingresses, 500 Services, 2,500 EndpointSlices, 10,000 Pods with `managedFields`, or a
/// share of that.
pub(crate) async fn start(scale: f64) -> Result<Served> {
    let scaled = |count: f64| (count * scale).ceil() as usize;
    let cluster = Cluster {
        namespaces: scaled(40.0),
        services: scaled(500.0),
        endpoint_slices: scaled(2_500.0),
        ingresses: scaled(2_000.0),
        pods: scaled(10_000.0),
        managed_fields: true,
        ..Cluster::default()
    };
    let kind = |name, resource, index_by| Kind { name, resource, index_by, objects: 0, json_bytes: 0 };
    let mut kinds = vec![
        kind("Ingress", "networking.k8s.io/v1/ingresses", &["metadata.namespace", "metadata.name"][..]),
        kind("Service", "v1/services", &["metadata.namespace", "metadata.name"]),
        kind(
            "EndpointSlice",
            "discovery.k8s.io/v1/endpointslices",
            &["metadata.namespace", "metadata.labels['kubernetes.io/service-name']"],
        ),
        kind("Pod", "v1/pods", &["metadata.namespace", "metadata.labels['app.kubernetes.io/name']"]),
    ];
    let mut objects = Vec::with_capacity(cluster.len());
    for object in cluster.objects() {
        if let Some(kind) = kinds.iter_mut().find(|k| object["kind"] == k.name) {
            kind.objects += 1;
            kind.json_bytes += serde_json::to_vec(&object)?.len();
        }
        objects.push(object);
    }
    let server = FakeApiServer::builder().objects(objects).start().await?;
    Ok(Served { server, kinds })
}
