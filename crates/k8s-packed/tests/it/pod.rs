//! Believable Pods for tests and the benchmark: each with a name, uid, addresses and hashes of its own, the rest
//! shared by its application, its node or all.

use serde_json::{Map, Value, json};

/// The JSON text of one Pod, with the `managedFields` that a server keeps or without.
pub(crate) fn pod_json(i: usize, managed_fields: bool) -> String {
    pod(i, managed_fields).to_string()
}

/// The Pod as a tree.
pub(crate) fn pod(i: usize, managed_fields: bool) -> Value {
    let mut pod = bare_pod(&Ids::new(i));
    if managed_fields {
        let owned = |parts: &[&str]| -> Value {
            let members = parts.iter().filter_map(|p| Some((format!("f:{p}"), fields(pod.get(p)?, 5))));
            Value::Object(members.collect())
        };
        let entries = json!([
            {
                "manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1",
                "time": at(i), "fieldsType": "FieldsV1", "fieldsV1": owned(&["metadata", "spec"]),
            },
            {
                "manager": "kubelet", "operation": "Update", "apiVersion": "v1", "subresource": "status",
                "time": at(i), "fieldsType": "FieldsV1", "fieldsV1": owned(&["status"]),
            },
        ]);
        pod["metadata"]["managedFields"] = entries;
    }
    pod
}

struct Ids {
    i: usize,
    app: String,
    namespace: String,
    replica_set: String,
    name: String,
}

impl Ids {
    fn new(i: usize) -> Self {
        let app = ["cart", "checkout", "search", "stock", "mail", "ledger", "images"][i / 10 % 7].to_owned();
        let namespace = format!("shop-{:03}", i / 200);
        let replica_set = format!("{app}-{}", &hash(i / 10, 1)[..9]);
        let name = format!("{replica_set}-{}", &hash(i, 2)[..5]);
        Self { i, app, namespace, replica_set, name }
    }
}

/// Hexadecimal digits that look random and are the same in every run.
fn hash(i: usize, salt: u64) -> String {
    let mut state = (i as u64) << 8 | salt;
    let word = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        format!("{:016x}", mixed ^ mixed >> 29)
    };
    std::iter::repeat_with(word).take(4).collect()
}

fn uid(i: usize, salt: u64) -> String {
    let h = hash(i, salt);
    format!("{}-{}-4{}-a{}-{}", &h[..8], &h[8..12], &h[12..15], &h[15..18], &h[18..30])
}

fn at(i: usize) -> String {
    format!("2026-03-{:02}T{:02}:{:02}:{:02}Z", 1 + i / 700 % 28, i / 60 % 24, i % 60, i * 7 % 60)
}

fn bare_pod(ids: &Ids) -> Value {
    let Ids { i, app, namespace, replica_set, name } = ids;
    let token = format!("kube-api-access-{}", &hash(*i, 3)[..5]);
    let conditions = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
        .map(|kind| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": at(*i)}));
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": format!("{replica_set}-"),
            "namespace": namespace,
            "uid": uid(*i, 4),
            "resourceVersion": (30_000 + i * 3).to_string(),
            "generation": 1,
            "creationTimestamp": at(*i),
            "labels": {
                "app": app,
                "app.kubernetes.io/component": "server",
                "app.kubernetes.io/instance": format!("{app}-v1"),
                "app.kubernetes.io/managed-by": "Helm",
                "app.kubernetes.io/name": app,
                "app.kubernetes.io/part-of": "shop",
                "app.kubernetes.io/version": "1.20.2",
                "helm.sh/chart": format!("{app}-4.2.0"),
                "pod-template-hash": &replica_set[app.len() + 1..],
                "team": format!("team-{}", i / 10 % 5),
            },
            "annotations": {
                "checksum/config": hash(i / 10, 5),
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "true",
                "mesh.example/status": "{\"initContainers\":[],\"containers\":[\"proxy\"],\"revision\":\"default\"}",
                "prometheus.io/path": "/metrics",
                "prometheus.io/port": "9090",
                "prometheus.io/scrape": "true",
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": replica_set, "uid": uid(i / 10, 6),
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "volumes": [
                {"name": "config", "configMap": {"name": format!("{app}-config"), "defaultMode": 420}},
                {"name": "tmp", "emptyDir": {}},
                {"name": "mesh-certs", "emptyDir": {"medium": "Memory"}},
                {"name": token, "projected": {"defaultMode": 420, "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    {"downwardAPI": {"items": [
                        {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
                    ]}},
                ]}},
            ],
            "containers": [
                container(app, &format!("registry.shop.example/{app}/{app}:1.20.2"), &token),
                container("proxy", "registry.shop.example/mesh/proxy:1.27.1", &token),
                container("config-reloader", "registry.shop.example/platform/config-reloader:0.9.4", &token),
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 45,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": app,
            "serviceAccount": app,
            "nodeName": format!("ip-10-4-2-{}.eu-west-1.compute.internal", i * 31 % 250),
            "securityContext": {"fsGroup": 1337, "seccompProfile": {"type": "RuntimeDefault"}},
            "imagePullSecrets": [{"name": "registry-pull"}],
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
                "weight": 100,
                "podAffinityTerm": {
                    "labelSelector": {"matchLabels": {"app.kubernetes.io/instance": format!("{app}-v1")}},
                    "topologyKey": "kubernetes.io/hostname",
                },
            }]}},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "pool", "operator": "Equal", "value": "general", "effect": "NoSchedule"},
            ],
            "enableServiceLinks": false,
        },
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "hostIP": format!("10.128.0.{}", i * 31 % 250),
            "hostIPs": [{"ip": format!("10.128.0.{}", i * 31 % 250)}],
            "podIP": address(*i),
            "podIPs": [{"ip": address(*i)}],
            "startTime": at(*i),
            "containerStatuses": [
                status(*i, app, &format!("registry.shop.example/{app}/{app}:1.20.2")),
                status(*i, "proxy", "registry.shop.example/mesh/proxy:1.27.1"),
                status(*i, "config-reloader", "registry.shop.example/platform/config-reloader:0.9.4"),
            ],
            "qosClass": "Burstable",
        },
    })
}

fn address(i: usize) -> String {
    format!("10.{}.{}.{}", 129 + i / 62_500, i / 250 % 250, i % 250)
}

fn container(name: &str, image: &str, token: &str) -> Value {
    let from_field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}});
    let probe = |path: &str, delay: u32| {
        json!({
            "httpGet": {"path": path, "port": 8080, "scheme": "HTTP"}, "initialDelaySeconds": delay,
            "timeoutSeconds": 3, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
        })
    };
    json!({
        "name": name,
        "image": image,
        "args": ["serve", format!("--config=/etc/{name}/config.yaml"), "--listen=:8080"],
        "ports": [
            {"name": "http", "containerPort": 8080, "protocol": "TCP"},
            {"name": "metrics", "containerPort": 9090, "protocol": "TCP"},
        ],
        "envFrom": [{"configMapRef": {"name": format!("{name}-env")}}],
        "env": [
            from_field("POD_NAME", "metadata.name"),
            from_field("POD_NAMESPACE", "metadata.namespace"),
            from_field("POD_IP", "status.podIP"),
            {"name": "LOG_LEVEL", "value": "info"},
            {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://otel-collector.observability.svc:4317"},
            {"name": "OTEL_SERVICE_NAME", "value": name},
            {"name": "DATABASE_PASSWORD", "valueFrom": {"secretKeyRef": {"name": format!("{name}-db"), "key": "password"}}},
        ],
        "resources": {"limits": {"cpu": "1", "memory": "512Mi"}, "requests": {"cpu": "250m", "memory": "256Mi"}},
        "volumeMounts": [
            {"name": "config", "readOnly": true, "mountPath": format!("/etc/{name}")},
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": token, "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        ],
        "livenessProbe": probe("/healthz", 15),
        "readinessProbe": probe("/readyz", 5),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {
            "capabilities": {"drop": ["ALL"]}, "runAsUser": 1337, "runAsNonRoot": true,
            "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
        },
    })
}

fn status(i: usize, name: &str, image: &str) -> Value {
    let repository = image.rsplit_once(':').map_or(image, |(r, _)| r);
    json!({
        "name": name,
        "state": {"running": {"startedAt": at(i)}},
        "lastState": {},
        "ready": true,
        "restartCount": i % 3,
        "image": image,
        "imageID": format!("{repository}@sha256:{}", hash(image.len(), 7)),
        "containerID": format!("containerd://{}", hash(i, 8 + name.len() as u64)),
        "started": true,
    })
}

/// A tree of the fields of a value, as `managedFields` names them, some levels deep.
fn fields(value: &Value, levels: usize) -> Value {
    match value {
        Value::Object(members) if levels > 0 => {
            members.iter().map(|(k, v)| (format!("f:{k}"), fields(v, levels - 1))).collect()
        }
        Value::Array(items) if levels > 0 => {
            let key = |item: &Value| match item.get("name").or(item.get("type")).or(item.get("key")) {
                Some(name) => format!("k:{}", json!({"name": name})),
                None => format!("v:{item}"),
            };
            let members = items.iter().map(|item| {
                let mut below = Map::from_iter([(".".to_owned(), json!({}))]);
                if let Value::Object(more) = fields(item, levels - 1) {
                    below.extend(more);
                }
                (key(item), Value::Object(below))
            });
            members.collect()
        }
        _ => json!({}),
    }
}
