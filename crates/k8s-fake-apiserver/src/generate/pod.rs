//! Pods: a server, a mesh proxy, often a helper, and the status that a kubelet reports.

use serde_json::{Value, json};

use super::{Cluster, node_name, pod_ip, team, time};
use crate::rng::Rng;

impl Cluster {
    /// The `i`th Pod.
    pub fn pod(&self, i: usize) -> Value {
        let service = self.service_of_pod(i);
        let (namespace, app) = self.service_name(service);
        // What all Pods of one ReplicaSet share comes from the Service's own numbers.
        let mut shared = self.rng("replicaset", service);
        let (hash, set_uid) = (shared.suffix(10), shared.uid());
        let image =
            format!("registry.internal.example/{namespace}/{app}:{}.{}.{}", service % 5 + 1, service % 40, service % 7);
        let (image_digest, config_sum) = (shared.hex(64), shared.hex(64));
        let mut rng = self.rng("pod", i);
        let name = self.pod_name(i);
        let token = format!("kube-api-access-{}", rng.suffix(5));
        let containers = containers(i, &app, &namespace, &image, &token);
        let metadata = json!({
            "name": name, "generateName": format!("{app}-{hash}-"), "namespace": namespace, "uid": self.pod_uid(i), "generation": 1,
            "creationTimestamp": time(i),
            "labels": {
                "app": app, "app.kubernetes.io/component": "server", "app.kubernetes.io/instance": app,
                "app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/name": app,
                "app.kubernetes.io/part-of": namespace, "app.kubernetes.io/version": format!("{}.{}.{}", service % 5 + 1, service % 40, service % 7),
                "helm.sh/chart": format!("{app}-7.3.1"), "pod-template-hash": hash, "team": team(service),
            },
            "annotations": {
                "checksum/config": config_sum, "cluster-autoscaler.kubernetes.io/safe-to-evict": "true",
                "kubectl.kubernetes.io/default-container": app, "kubectl.kubernetes.io/restartedAt": time(service),
                "prometheus.io/path": "/metrics", "prometheus.io/port": "9102", "prometheus.io/scrape": "true",
                "sidecar.mesh.example/status": json!({"containers": ["mesh-proxy"], "volumes": ["mesh-envoy", "mesh-identity"], "revision": "stable"}).to_string(),
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{app}-{hash}"), "uid": set_uid,
                "controller": true, "blockOwnerDeletion": true,
            }],
        });
        let status = status(i, &containers, &image, &image_digest, &mut rng, self.nodes);
        let spec = spec(i, &app, containers, &token, self.nodes);
        self.finish(
            json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status }),
            &[("kube-controller-manager", &["metadata", "spec"], ""), ("kubelet", &["status"], "status")],
        )
    }

    pub(super) fn pod_uid(&self, i: usize) -> String {
        self.rng("pod uid", i).uid()
    }

    pub(super) fn pod_name(&self, i: usize) -> String {
        let service = self.service_of_pod(i);
        let hash = self.rng("replicaset", service).suffix(10);
        format!("{}-{hash}-{}", self.service_name(service).1, self.rng("pod name", i).suffix(5))
    }
}

fn probe(path: &str, port: &str, delay: u32, period: u32) -> Value {
    json!({
        "httpGet": { "path": path, "port": port, "scheme": "HTTP" }, "initialDelaySeconds": delay, "timeoutSeconds": 2,
        "periodSeconds": period, "successThreshold": 1, "failureThreshold": 3,
    })
}

fn from_field(name: &str, path: &str) -> Value {
    json!({ "name": name, "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": path } } })
}

fn from_secret(name: &str, secret: &str, key: &str) -> Value {
    json!({ "name": name, "valueFrom": { "secretKeyRef": { "name": secret, "key": key } } })
}

fn plain(name: &str, value: impl Into<String>) -> Value {
    json!({ "name": name, "value": value.into() })
}

fn confined(user: u32) -> Value {
    json!({
        "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] }, "readOnlyRootFilesystem": true,
        "runAsNonRoot": true, "runAsUser": user,
    })
}

fn mount(name: &str, path: &str, read_only: bool) -> Value {
    if read_only {
        json!({ "name": name, "mountPath": path, "readOnly": true })
    } else {
        json!({ "name": name, "mountPath": path })
    }
}

fn containers(i: usize, app: &str, namespace: &str, image: &str, token: &str) -> Vec<Value> {
    let account = mount(token, "/var/run/secrets/kubernetes.io/serviceaccount", true);
    let credentials = format!("{app}-credentials");
    let mut containers = vec![
        json!({
            "name": app, "image": image, "imagePullPolicy": "IfNotPresent",
            "args": ["serve", format!("--config=/etc/{app}/server.yaml"), "--http=:8080", "--metrics=:9102"],
            "ports": [
                { "name": "http", "containerPort": 8080, "protocol": "TCP" },
                { "name": "metrics", "containerPort": 9102, "protocol": "TCP" },
            ],
            "envFrom": [{ "configMapRef": { "name": format!("{app}-settings") } }],
            "env": [
                from_field("POD_NAME", "metadata.name"), from_field("POD_NAMESPACE", "metadata.namespace"),
                from_field("POD_IP", "status.podIP"), from_field("NODE_NAME", "spec.nodeName"),
                plain("LOG_LEVEL", "info"), plain("LOG_FORMAT", "json"),
                plain("OTEL_SERVICE_NAME", app),
                plain("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.observability.svc.cluster.local:4317"),
                plain("OTEL_RESOURCE_ATTRIBUTES", format!("deployment.environment=production,service.namespace={namespace}")),
                plain("DATABASE_HOST", format!("{app}-primary.databases.svc.cluster.local")),
                plain("CACHE_URL", format!("redis://{app}-cache.{namespace}.svc.cluster.local:6379/0")),
                from_secret("DATABASE_PASSWORD", &credentials, "password"), from_secret("API_TOKEN", &credentials, "token"),
            ],
            "resources": { "limits": { "cpu": "2", "memory": "1Gi" }, "requests": { "cpu": "300m", "memory": "384Mi" } },
            "livenessProbe": probe("/livez", "http", 10, 10), "readinessProbe": probe("/readyz", "http", 3, 5),
            "startupProbe": probe("/livez", "http", 0, 2),
            "lifecycle": { "preStop": { "exec": { "command": ["/bin/sh", "-c", "sleep 12"] } } },
            "volumeMounts": [mount("config", &format!("/etc/{app}"), true), mount("scratch", "/tmp", false), account],
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": confined(10_001),
        }),
        json!({
            "name": "mesh-proxy", "image": "registry.internal.example/mesh/proxy:1.29.2", "imagePullPolicy": "IfNotPresent",
            "args": ["proxy", "sidecar", "--domain", "$(POD_NAMESPACE).svc.cluster.local", "--log-level=warning", "--concurrency=2"],
            "ports": [{ "name": "mesh-metrics", "containerPort": 15_090, "protocol": "TCP" }],
            "env": [
                from_field("POD_NAME", "metadata.name"), from_field("POD_NAMESPACE", "metadata.namespace"),
                from_field("INSTANCE_IP", "status.podIP"), from_field("HOST_IP", "status.hostIP"),
                from_field("SERVICE_ACCOUNT", "spec.serviceAccountName"),
                plain("CONTROL_PLANE", "mesh-control.mesh-system.svc:15012"),
                plain("TRUST_DOMAIN", "cluster.local"), plain("WORKLOAD_NAME", app),
            ],
            "resources": { "limits": { "cpu": "1", "memory": "256Mi" }, "requests": { "cpu": "50m", "memory": "96Mi" } },
            "readinessProbe": probe("/healthz/ready", "mesh-metrics", 1, 15),
            "volumeMounts": [
                mount("mesh-envoy", "/etc/mesh/proxy", false), mount("mesh-identity", "/var/run/secrets/mesh", true),
                mount(token, "/var/run/secrets/kubernetes.io/serviceaccount", true),
            ],
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "securityContext": confined(1337),
        }),
    ];
    if i.is_multiple_of(2) {
        containers.push(json!({
            "name": "config-reload", "image": "registry.internal.example/platform/config-reload:0.12.0", "imagePullPolicy": "IfNotPresent",
            "args": [format!("--watch=/etc/{app}"), "--signal=SIGHUP", "--interval=30s"],
            "env": [from_field("POD_NAME", "metadata.name"), plain("RELOAD_JITTER", "5s")],
            "resources": { "limits": { "cpu": "50m", "memory": "32Mi" }, "requests": { "cpu": "5m", "memory": "16Mi" } },
            "volumeMounts": [mount("config", &format!("/etc/{app}"), true), mount(token, "/var/run/secrets/kubernetes.io/serviceaccount", true)],
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "securityContext": confined(10_001),
        }));
    }
    containers
}

fn spec(i: usize, app: &str, containers: Vec<Value>, token: &str, nodes: usize) -> Value {
    let instance = json!({ "matchLabels": { "app.kubernetes.io/instance": app } });
    let tolerate =
        |key: &str| json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 });
    json!({
        "containers": containers, "nodeName": node_name(i % nodes.max(1)), "serviceAccountName": app, "serviceAccount": app,
        "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority", "enableServiceLinks": false, "terminationGracePeriodSeconds": 40,
        "securityContext": { "fsGroup": 10_001, "seccompProfile": { "type": "RuntimeDefault" } },
        "imagePullSecrets": [{ "name": "registry-pull" }],
        "affinity": { "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 100, "podAffinityTerm": { "topologyKey": "kubernetes.io/hostname", "labelSelector": instance },
        }] } },
        "topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": instance,
        }],
        "tolerations": [
            tolerate("node.kubernetes.io/not-ready"), tolerate("node.kubernetes.io/unreachable"),
            { "key": "dedicated", "operator": "Equal", "value": "general", "effect": "NoSchedule" },
        ],
        "volumes": [
            { "name": "config", "configMap": { "name": format!("{app}-config"), "defaultMode": 420 } },
            { "name": "scratch", "emptyDir": { "sizeLimit": "1Gi" } },
            { "name": "mesh-envoy", "emptyDir": { "medium": "Memory" } },
            { "name": "mesh-identity", "projected": { "defaultMode": 420, "sources": [
                { "serviceAccountToken": { "audience": "mesh", "expirationSeconds": 43_200, "path": "token" } },
            ] } },
            { "name": token, "projected": { "defaultMode": 420, "sources": [
                { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
                { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
                { "downwardAPI": { "items": [{ "path": "namespace", "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" } }] } },
            ] } },
        ],
    })
}

fn status(i: usize, containers: &[Value], image: &str, digest: &str, rng: &mut Rng, nodes: usize) -> Value {
    let started = time(i);
    let conditions: Vec<Value> =
        ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
            .iter()
            .map(|kind| json!({ "type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": started}))
            .collect();
    let statuses: Vec<Value> = containers
        .iter()
        .map(|container| {
            let own = container["image"].as_str().unwrap_or_default();
            let repository = own.rsplit_once(':').map_or(own, |(r, _)| r);
            let digest = if own == image { digest.to_owned() } else { Rng::new(own.len() as u64).hex(64) };
            json!({
                "name": container["name"], "image": own, "imageID": format!("{repository}@sha256:{digest}"),
                "containerID": format!("containerd://{}", rng.hex(64)), "ready": true, "started": true, "restartCount": i % 3,
                "lastState": {}, "state": { "running": { "startedAt": started } },
            })
        })
        .collect();
    let node = i % nodes.max(1);
    let host = format!("10.4.{}.{}", node / 250, node % 250 + 1);
    json!({
        "phase": "Running", "hostIP": host, "hostIPs": [{ "ip": host }], "podIP": pod_ip(i), "podIPs": [{ "ip": pod_ip(i) }],
        "startTime": started, "qosClass": "Burstable", "observedGeneration": 1, "conditions": conditions,
        "containerStatuses": statuses,
    })
}
