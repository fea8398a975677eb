//! Which kinds the server knows, and how each behaves.

use std::fmt;

/// A kind of objects that the server serves: its names, its scope, and the ways in which kinds differ.
///
/// The built-in kinds are there from the start; further ones, as a CustomResourceDefinition would add them, are
/// registered with [`FakeApiServerBuilder::resource`](crate::FakeApiServerBuilder::resource) or, while the server
/// runs, with [`FakeApiServer::register`](crate::FakeApiServer::register).
///
/// ```
/// use k8s_fake_apiserver::ResourceKind;
/// let widgets = ResourceKind::namespaced("example.com", "v1", "widgets", "Widget").with_status();
/// assert_eq!(widgets.resource(), "example.com/v1/widgets");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceKind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) status: bool,
    pub(crate) rules: Rules,
    pub(crate) fields: Vec<SelectableField>,
    pub(crate) resource: String,
    /// `{"kind":"Pod","apiVersion":"v1",`: how every object of the kind begins.
    pub(crate) head: String,
}

/// The habits of the real registry strategies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Typed lists of the real server leave `kind` and `apiVersion` out of their items.
    pub(crate) built_in: bool,
    pub(crate) generation: bool,
    pub(crate) unconditional_update: bool,
    pub(crate) create_on_update: bool,
    /// A delete answers with the object instead of a Status.
    pub(crate) returns_deleted: bool,
    /// Names must be labels (no dots).
    pub(crate) label_names: bool,
}

/// A field that field selectors may name, and where its value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SelectableField {
    pub(crate) name: String,
    pub(crate) source: FieldSource,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldSource {
    /// Member names from the root; a missing value reads as the default.
    Path(Vec<String>, &'static str),
    /// `source` of an Event: `source.component`, else `reportingComponent`.
    EventSource,
}

impl FieldSource {
    /// The top-level member that the value is read from; empty when there are several.
    pub(crate) fn member(&self) -> &str {
        match self {
            Self::Path(path, _) => path.first().map_or("", String::as_str),
            Self::EventSource => "",
        }
    }
}

impl ResourceKind {
    /// A namespaced kind, as a CustomResourceDefinition with `scope: Namespaced` would add it.
    ///
    /// The core group is the empty text. The singular is the kind in lower case.
    pub fn namespaced(group: &str, version: &str, plural: &str, kind: &str) -> Self {
        Self::new(group, version, plural, kind, true)
    }

    /// A cluster-scoped kind.
    pub fn cluster(group: &str, version: &str, plural: &str, kind: &str) -> Self {
        Self::new(group, version, plural, kind, false)
    }

    fn new(group: &str, version: &str, plural: &str, kind: &str, namespaced: bool) -> Self {
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        Self {
            group: group.into(),
            version: version.into(),
            plural: plural.into(),
            singular: kind.to_lowercase(),
            kind: kind.into(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced,
            status: false,
            rules: Rules {
                built_in: false,
                generation: true,
                unconditional_update: false,
                create_on_update: false,
                returns_deleted: false,
                label_names: false,
            },
            fields: Vec::new(),
            resource: format!("{api_version}/{plural}"),
            head: format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\","),
        }
    }

    /// Serves `/status`: the main endpoint then ignores the status of what is written, the subresource all but it.
    #[must_use]
    pub fn with_status(mut self) -> Self {
        self.status = true;
        self
    }

    /// Short names for kubectl (`kubectl get wd`).
    #[must_use]
    pub fn with_short_names<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.short_names = names.into_iter().map(Into::into).collect();
        self
    }

    /// A field that field selectors may name, as `selectableFields` of a CustomResourceDefinition:
    /// member names joined by dots (`spec.color`). A missing value reads as empty.
    #[must_use]
    pub fn with_selectable_field(self, path: &str) -> Self {
        self.field(path.trim_start_matches('.'), path.trim_start_matches('.'), "")
    }

    /// The resource as this crate writes it: `v1/pods`, `networking.k8s.io/v1/ingresses`.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The kind, such as `Pod`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The `apiVersion` of the kind's objects: `v1`, `apps/v1`.
    pub fn api_version(&self) -> &str {
        self.resource.strip_suffix(self.plural.as_str()).unwrap_or_default().trim_end_matches('/')
    }

    /// Whether objects of the kind live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.namespaced
    }

    /// What the real server calls the kind, or the list of it, in texts that let its code show through.
    pub(crate) fn go_type(&self, list: bool) -> String {
        let list = if list { "List" } else { "" };
        if !self.rules.built_in {
            return format!("*unstructured.Unstructured{list}");
        }
        let package = self.group.split('.').next().filter(|p| !p.is_empty()).unwrap_or("core");
        format!("*{package}.{}{list}", self.kind)
    }

    pub(crate) fn is(&self, resource: &str) -> bool {
        self.resource == resource
    }

    fn field(mut self, name: &str, path: &str, default: &'static str) -> Self {
        let path = path.split('.').map(str::to_owned).collect();
        self.fields.push(SelectableField { name: name.into(), source: FieldSource::Path(path, default) });
        self
    }

    fn built_in(mut self, short: &str) -> Self {
        self.rules.built_in = true;
        self.rules.generation = false;
        self.rules.unconditional_update = true;
        self.short_names = short.split_whitespace().map(str::to_owned).collect();
        self
    }

    fn generation(mut self) -> Self {
        self.rules.generation = true;
        self
    }

    fn create_on_update(mut self) -> Self {
        self.rules.create_on_update = true;
        self
    }

    fn returns_deleted(mut self) -> Self {
        self.rules.returns_deleted = true;
        self
    }

    fn label_names(mut self) -> Self {
        self.rules.label_names = true;
        self
    }

    fn in_all(mut self) -> Self {
        self.categories.push("all".into());
        self
    }
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)
    }
}

/// The kinds that are served from the start.
pub(crate) fn built_in() -> Vec<ResourceKind> {
    let ns = ResourceKind::namespaced;
    let cluster = ResourceKind::cluster;
    let mut kinds = core();
    kinds.extend([
        ns("apps", "v1", "deployments", "Deployment").built_in("deploy").generation().with_status().in_all(),
        ns("apps", "v1", "replicasets", "ReplicaSet").built_in("rs").generation().with_status().in_all(),
        ns("apps", "v1", "statefulsets", "StatefulSet").built_in("sts").generation().with_status().in_all(),
        ns("apps", "v1", "daemonsets", "DaemonSet").built_in("ds").generation().with_status().in_all(),
        ns("batch", "v1", "jobs", "Job").built_in("").generation().with_status().in_all().field(
            "status.successful",
            "status.succeeded",
            "0",
        ),
        ns("batch", "v1", "cronjobs", "CronJob").built_in("cj").generation().with_status().in_all(),
        ns("networking.k8s.io", "v1", "ingresses", "Ingress").built_in("ing").generation().with_status(),
        cluster("networking.k8s.io", "v1", "ingressclasses", "IngressClass").built_in("").generation(),
        ns("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy").built_in("netpol").generation(),
        ns("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice").built_in("").generation(),
        lease(),
        ns("rbac.authorization.k8s.io", "v1", "roles", "Role").built_in("").create_on_update(),
        ns("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding").built_in("").create_on_update(),
        cluster("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole").built_in("").create_on_update(),
        cluster("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding")
            .built_in("")
            .create_on_update(),
    ]);
    kinds
}

fn lease() -> ResourceKind {
    let mut lease =
        ResourceKind::namespaced("coordination.k8s.io", "v1", "leases", "Lease").built_in("").create_on_update();
    lease.rules.unconditional_update = false;
    lease
}

fn core() -> Vec<ResourceKind> {
    let ns = |plural: &str, kind: &str| ResourceKind::namespaced("", "v1", plural, kind);
    let cluster = |plural: &str, kind: &str| ResourceKind::cluster("", "v1", plural, kind);
    let mut events = ns("events", "Event").built_in("ev").create_on_update();
    for name in ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"] {
        let path = format!("involvedObject.{name}");
        events = events.field(&path, &path, "");
    }
    events = events
        .field("reason", "reason", "")
        .field("reportingComponent", "reportingComponent", "")
        .field("type", "type", "");
    events.fields.push(SelectableField { name: "source".into(), source: FieldSource::EventSource });
    let mut pods = ns("pods", "Pod").built_in("po").generation().with_status().returns_deleted().in_all();
    for name in ["spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"] {
        pods = pods.field(name, name, "");
    }
    pods = pods
        .field("spec.hostNetwork", "spec.hostNetwork", "false")
        .field("status.phase", "status.phase", "")
        .field("status.podIP", "status.podIP", "")
        .field("status.podIPs", "status.podIP", "")
        .field("status.nominatedNodeName", "status.nominatedNodeName", "");
    vec![
        pods,
        ns("services", "Service")
            .built_in("svc")
            .with_status()
            .create_on_update()
            .returns_deleted()
            .label_names()
            .in_all()
            .field("spec.clusterIP", "spec.clusterIP", "")
            .field("spec.type", "spec.type", ""),
        ns("configmaps", "ConfigMap").built_in("cm"),
        ns("secrets", "Secret").built_in("").field("type", "type", ""),
        cluster("namespaces", "Namespace").built_in("ns").with_status().returns_deleted().label_names().field(
            "status.phase",
            "status.phase",
            "",
        ),
        cluster("nodes", "Node").built_in("no").with_status().field(
            "spec.unschedulable",
            "spec.unschedulable",
            "false",
        ),
        ns("endpoints", "Endpoints").built_in("ep").create_on_update(),
        events,
        ns("serviceaccounts", "ServiceAccount").built_in("sa").returns_deleted(),
        ns("persistentvolumeclaims", "PersistentVolumeClaim").built_in("pvc").with_status().returns_deleted(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_kind() {
        let ingress = ResourceKind::namespaced("networking.k8s.io", "v1", "ingresses", "Ingress");
        assert_eq!(ingress.resource(), "networking.k8s.io/v1/ingresses");
        assert_eq!(ingress.api_version(), "networking.k8s.io/v1");
        assert_eq!(ingress.head, r#"{"kind":"Ingress","apiVersion":"networking.k8s.io/v1","#);
        assert_eq!(core()[0].api_version(), "v1");
    }

    #[test]
    fn built_in_resources_are_distinct() {
        let mut names: Vec<String> = built_in().iter().map(|k| k.resource.clone()).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
