//! Services, Ingresses and EndpointSlices that belong together.

use serde_json::{Value, json};

use super::{Cluster, node_name, pod_ip, team, time, zone};

impl Cluster {
    /// The `i`th Service.
    pub fn service(&self, i: usize) -> Value {
        let (namespace, app) = self.service_name(i);
        let mut rng = self.rng("service", i);
        let ip = format!("10.96.{}.{}", i >> 8 & 255, i & 255);
        let metadata = json!({
            "name": app, "namespace": namespace, "uid": rng.uid(), "creationTimestamp": time(i), "labels": labels(&app, &namespace, i),
            "annotations": { "meta.helm.sh/release-name": app, "meta.helm.sh/release-namespace": namespace },
        });
        let spec = json!({
            "type": "ClusterIP", "clusterIP": ip, "clusterIPs": [ip], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster", "sessionAffinity": "None",
            "selector": { "app.kubernetes.io/instance": app, "app.kubernetes.io/name": app },
            "ports": [
                { "name": "http", "port": 80, "targetPort": "http", "protocol": "TCP", "appProtocol": "http" },
                { "name": "metrics", "port": 9102, "targetPort": "metrics", "protocol": "TCP" },
            ],
        });
        let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec, "status": { "loadBalancer": {} } });
        self.finish(service, &[("helm", &["metadata", "spec"], "")])
    }

    /// The `i`th Ingress.
    pub fn ingress(&self, i: usize) -> Value {
        let (namespace, app) = self.service_name(if self.services == 0 { i } else { i % self.services });
        let round = i / self.services.max(1);
        let name = if round == 0 { app.clone() } else { format!("{app}-{}", round + 1) };
        let host = format!("{name}.{namespace}.example.com");
        let mut rng = self.rng("ingress", i);
        let metadata = json!({
            "name": name, "namespace": namespace, "uid": rng.uid(), "generation": 1, "creationTimestamp": time(i),
            "labels": labels(&app, &namespace, i),
            "annotations": {
                "cert-manager.io/cluster-issuer": "letsencrypt", "haproxy.org/timeout-server": "30s",
                "external-dns.alpha.kubernetes.io/hostname": host, "checksum/template": rng.hex(64),
            },
        });
        let path = |path: &str, port: &str| json!({ "path": path, "pathType": "Prefix", "backend": { "service": { "name": app, "port": { "name": port } } } });
        let spec = json!({
            "ingressClassName": "haproxy", "tls": [{ "hosts": [host], "secretName": format!("{name}-tls") }],
            "rules": [{ "host": host, "http": { "paths": [path("/", "http"), path("/api", "http")] } }],
        });
        let status = json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.10" }, { "ip": "192.0.2.11" }] } });
        let ingress = json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec, "status": status });
        self.finish(ingress, &[("helm", &["metadata", "spec"], ""), ("ingress-controller", &["status"], "status")])
    }

    /// The `i`th EndpointSlice: its share of the Pods of its Service, or three addresses when there are no Pods.
    pub fn endpoint_slice(&self, i: usize) -> Value {
        let service = if self.services == 0 { i } else { i % self.services };
        let (namespace, app) = self.service_name(service);
        let mut rng = self.rng("endpointslice", i);
        let mut owner = self.rng("service", service);
        let metadata = json!({
            "name": format!("{app}-{}", rng.suffix(5)), "generateName": format!("{app}-"), "namespace": namespace, "uid": rng.uid(),
            "generation": 1, "creationTimestamp": time(i),
            "labels": {
                "kubernetes.io/service-name": app, "app.kubernetes.io/name": app, "app.kubernetes.io/part-of": namespace,
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            },
            "annotations": { "endpoints.kubernetes.io/last-change-trigger-time": time(i + 3) },
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Service", "name": app, "uid": owner.uid(), "controller": true, "blockOwnerDeletion": true,
            }],
        });
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata, "addressType": "IPv4",
            "ports": [
                { "name": "http", "port": 8080, "protocol": "TCP", "appProtocol": "http" },
                { "name": "metrics", "port": 9102, "protocol": "TCP" },
            ],
            "endpoints": self.endpoints(i, service, &namespace),
        });
        self.finish(slice, &[("kube-controller-manager", &["metadata", "addressType", "endpoints", "ports"], "")])
    }

    fn endpoints(&self, i: usize, service: usize, namespace: &str) -> Vec<Value> {
        let services = self.services.max(1);
        // This Service has the slices service, service + services, …: this one is number `turn` of `turns`.
        let (turn, turns) = (i / services, self.endpoint_slices.saturating_sub(service).div_ceil(services).max(1));
        let pods: Vec<usize> = if self.services == 0 || self.pods == 0 {
            (i * 3..i * 3 + 3).collect()
        } else {
            self.pods_of_service(service).skip(turn).step_by(turns).collect()
        };
        let endpoint = |pod: usize| {
            let node = pod % self.nodes.max(1);
            json!({
                "addresses": [pod_ip(pod)], "conditions": { "ready": true, "serving": true, "terminating": false },
                "nodeName": node_name(node), "zone": zone(node),
                "targetRef": { "kind": "Pod", "namespace": namespace, "name": self.pod_name(pod), "uid": self.pod_uid(pod) },
            })
        };
        pods.into_iter().map(endpoint).collect()
    }
}

fn labels(app: &str, namespace: &str, i: usize) -> Value {
    json!({
        "app.kubernetes.io/instance": app, "app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/name": app,
        "app.kubernetes.io/part-of": namespace, "helm.sh/chart": format!("{app}-7.3.1"), "team": team(i),
    })
}
