//! `Gvr` ↔ request paths, kube's `ApiResource`, and what discovery says about a resource.

use k8s_types::Gvr;
use kube::core::ApiResource;
use serde::Deserialize;

use crate::error::Error;

/// What the server says about one resource: its kind, whether it lives in namespaces, and its verbs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceScope {
    kind: Box<str>,
    namespaced: bool,
    verbs: Box<[Box<str>]>,
}

impl ResourceScope {
    /// The kind's name, e.g. `Pod`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Whether its objects live in namespaces.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        self.namespaced
    }

    /// The verbs that the server offers for it (RBAC may allow fewer).
    pub fn verbs(&self) -> impl Iterator<Item = &str> {
        self.verbs.iter().map(AsRef::as_ref)
    }

    /// Whether `verb` (`get`, `list`, `watch`, …) is among [`verbs`](Self::verbs).
    #[must_use]
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs().any(|v| v == verb)
    }

    /// kube's description of `gvr`, for `kube::Api` with `DynamicObject`.
    #[must_use]
    pub fn api_resource(&self, gvr: &Gvr) -> ApiResource {
        ApiResource {
            group: gvr.group().to_owned(),
            version: gvr.version().to_owned(),
            api_version: gvr.api_version().into(),
            kind: self.kind.to_string(),
            plural: gvr.resource().to_owned(),
        }
    }
}

/// The resource that a kube `ApiResource` stands for.
#[must_use]
pub fn gvr_of(resource: &ApiResource) -> Gvr {
    Gvr::new(resource.group.as_str(), resource.version.as_str(), resource.plural.as_str())
}

/// All resources of one group version, as discovery listed them.
#[derive(Debug, Default)]
pub(crate) struct GroupVersion(Vec<(Box<str>, ResourceScope)>);

#[derive(Deserialize)]
struct WireList {
    resources: Vec<WireResource>,
}

#[derive(Deserialize)]
struct WireResource {
    name: Box<str>,
    #[serde(default)]
    kind: Box<str>,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    verbs: Vec<Box<str>>,
}

impl GroupVersion {
    /// Reads an `APIResourceList`; subresources (`pods/status`) are left out.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, serde_json::Error> {
        let list: WireList = serde_json::from_slice(body)?;
        let resources = list.resources.into_iter().filter(|r| !r.name.contains('/'));
        Ok(Self(
            resources
                .map(|r| (r.name, ResourceScope { kind: r.kind, namespaced: r.namespaced, verbs: r.verbs.into() }))
                .collect(),
        ))
    }

    pub(crate) fn find(&self, resource: &str) -> Option<&ResourceScope> {
        self.0.iter().find(|(name, _)| &**name == resource).map(|(_, scope)| scope)
    }
}

/// The path under which discovery lists the resources of `gvr`'s group version: `/api/v1` or `/apis/GROUP/VERSION`.
pub(crate) fn group_version_path(gvr: &Gvr) -> Result<String, Error> {
    let mut path = String::with_capacity(64);
    if gvr.group().is_empty() {
        path.push_str("/api");
    } else {
        path.push_str("/apis");
        push_segment(&mut path, "group", gvr.group())?;
    }
    push_segment(&mut path, "version", gvr.version())?;
    Ok(path)
}

/// The path of a list or a watch: `/api/v1/pods`, `/apis/apps/v1/namespaces/shop/deployments`.
///
/// Every part is percent-encoded where it must be.
///
/// # Errors
///
/// [`Error::InvalidName`] for a part that is empty, `.` or `..`: such a path would address something else.
///
/// # Examples
///
/// ```
/// let pods = "v1/pods".parse()?;
/// assert_eq!(k8s_client::collection_path(&pods, Some("shop"))?, "/api/v1/namespaces/shop/pods");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn collection_path(gvr: &Gvr, namespace: Option<&str>) -> Result<String, Error> {
    let mut path = group_version_path(gvr)?;
    if let Some(namespace) = namespace {
        path.push_str("/namespaces");
        push_segment(&mut path, "namespace", namespace)?;
    }
    push_segment(&mut path, "resource", gvr.resource())?;
    Ok(path)
}

/// The path of one object: [`collection_path`] and the name.
///
/// # Errors
///
/// [`Error::InvalidName`] for a part that is empty, `.` or `..`.
///
/// # Examples
///
/// ```
/// let nodes = "v1/nodes".parse()?;
/// assert_eq!(k8s_client::object_path(&nodes, None, "n1")?, "/api/v1/nodes/n1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn object_path(gvr: &Gvr, namespace: Option<&str>, name: &str) -> Result<String, Error> {
    let mut path = collection_path(gvr, namespace)?;
    push_segment(&mut path, "name", name)?;
    Ok(path)
}

/// Appends `/segment`; what RFC 3986 does not allow in a segment is percent-encoded.
fn push_segment(path: &mut String, field: &'static str, segment: &str) -> Result<(), Error> {
    if matches!(segment, "" | "." | "..") {
        return Err(Error::InvalidName { field, value: segment.to_owned() });
    }
    path.push('/');
    for &byte in segment.as_bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte) {
            path.push(char::from(byte));
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            path.push('%');
            path.push(char::from(HEX[usize::from(byte >> 4)]));
            path.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_core_and_group_kinds() {
        let path = |gvr: &str, ns, name: Option<&str>| {
            let gvr: Gvr = gvr.parse().unwrap();
            match name {
                Some(name) => object_path(&gvr, ns, name).unwrap(),
                None => collection_path(&gvr, ns).unwrap(),
            }
        };
        assert_eq!(path("v1/pods", None, None), "/api/v1/pods");
        assert_eq!(path("v1/pods", Some("shop"), Some("cart-1")), "/api/v1/namespaces/shop/pods/cart-1");
        assert_eq!(path("apps/v1/deployments", Some("a"), None), "/apis/apps/v1/namespaces/a/deployments");
        assert_eq!(
            path("rbac.authorization.k8s.io/v1/clusterroles", None, Some("system:node")),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"
        );
        assert_eq!(path("v1/namespaces", None, Some("shop")), "/api/v1/namespaces/shop");
    }

    #[test]
    fn names_cannot_leave_their_segment() {
        let pods: Gvr = "v1/pods".parse().unwrap();
        assert_eq!(
            object_path(&pods, Some("a"), "../b?c#d e").unwrap(),
            "/api/v1/namespaces/a/pods/..%2Fb%3Fc%23d%20e"
        );
        for bad in ["", ".", ".."] {
            let error = object_path(&pods, Some("a"), bad).unwrap_err();
            assert!(matches!(error, Error::InvalidName { field: "name", .. }), "{error}");
            let error = collection_path(&pods, Some(bad)).unwrap_err();
            assert_eq!(error.to_string(), format!("namespace {bad:?} cannot be part of a path"));
        }
    }

    #[test]
    fn discovery_skips_subresources_and_tolerates_missing_fields() {
        let list = br#"{"kind":"APIResourceList","groupVersion":"v1","resources":[
            {"name":"pods/status","kind":"Pod","namespaced":true,"verbs":["get"]},
            {"name":"pods","singularName":"pod","kind":"Pod","namespaced":true,"verbs":["get","list","watch"]},
            {"name":"bare"}]}"#;
        let gv = GroupVersion::parse(list).unwrap();
        let pods = gv.find("pods").unwrap();
        assert!(pods.is_namespaced() && pods.has_verb("watch") && !pods.has_verb("delete"));
        assert_eq!(pods.kind(), "Pod");
        assert!(gv.find("pods/status").is_none() && gv.find("bare").is_some_and(|b| !b.is_namespaced()));
    }
}
