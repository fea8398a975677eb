//! The configuration of a watcher over one named object.

use serde::{Deserialize, Serialize};

use super::{
    ResourceRef, Transport, check_name, check_namespace, check_texts, transport::transport_setters,
    watcher::check_resource,
};
use crate::error::ConfigError;

/// What a watcher over one named object watches. Plain data, as [`WatcherConfig`](crate::WatcherConfig) is.
///
/// ```
/// use k8s_types::SingleWatcherConfig;
///
/// let config = SingleWatcherConfig::new("v1/secrets", "haproxy", "credentials");
/// assert_eq!(config.validate(), Ok(()));
/// let config = SingleWatcherConfig::cluster_scoped("v1/nodes", "n1").skip_status_updates(true);
/// assert_eq!(config.spec().namespace, None);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SingleWatcherConfig {
    spec: SingleWatcherSpec,
}

/// The fields of a [`SingleWatcherConfig`], to read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct SingleWatcherSpec {
    /// The kind of the object. Required.
    pub resource: ResourceRef,
    /// Its namespace; none for cluster-scoped kinds only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name. Required.
    pub name: String,
    /// Fields that are dropped while the object is decoded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore_fields: Vec<String>,
    /// Whether `metadata.managedFields` is kept. Default: no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_managed_fields: bool,
    /// Whether updates that leave the generation alone are skipped. Default: no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_status_updates: bool,
    /// How lists and watches are made.
    #[serde(default)]
    pub transport: Transport,
}

impl SingleWatcherConfig {
    /// A configuration for the object of this kind, namespace and name. A resource text that is none is kept and
    /// reported by [`validate`](SingleWatcherConfig::validate).
    pub fn new(
        resource: impl Into<ResourceRef>,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> SingleWatcherConfig {
        SingleWatcherConfig::of(resource.into(), Some(namespace.into()), name.into())
    }

    /// A configuration for an object of a cluster-scoped kind.
    pub fn cluster_scoped(resource: impl Into<ResourceRef>, name: impl Into<String>) -> SingleWatcherConfig {
        SingleWatcherConfig::of(resource.into(), None, name.into())
    }

    fn of(resource: ResourceRef, namespace: Option<String>, name: String) -> SingleWatcherConfig {
        SingleWatcherConfig {
            spec: SingleWatcherSpec {
                resource,
                namespace,
                name,
                ignore_fields: Vec::new(),
                keep_managed_fields: false,
                skip_status_updates: false,
                transport: Transport::default(),
            },
        }
    }

    /// Everything that is set, defaults included.
    pub fn spec(&self) -> &SingleWatcherSpec {
        &self.spec
    }

    /// Drops these fields while the object is decoded; their changes are none.
    #[must_use]
    pub fn ignore_fields<I>(mut self, paths: I) -> SingleWatcherConfig
    where
        I: IntoIterator<Item: Into<String>>,
    {
        self.spec.ignore_fields = paths.into_iter().map(Into::into).collect();
        self
    }

    /// Keeps `metadata.managedFields`. Default: no.
    #[must_use]
    pub fn keep_managed_fields(mut self, on: bool) -> SingleWatcherConfig {
        self.spec.keep_managed_fields = on;
        self
    }

    /// Skips updates that leave the generation alone. Default: no. Kinds without a generation (Secret, ConfigMap) are
    /// compared by content, so no update of theirs is lost.
    #[must_use]
    pub fn skip_status_updates(mut self, on: bool) -> SingleWatcherConfig {
        self.spec.skip_status_updates = on;
        self
    }

    transport_setters!();

    /// Checks all that can be checked without compiling expressions and without a server.
    ///
    /// # Errors
    ///
    /// The first setting that cannot work, by name: a resource that does not parse, an empty or impossible namespace
    /// or name, an empty expression, a zero where it makes no sense.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let spec = &self.spec;
        check_resource(&spec.resource)?;
        if let Some(namespace) = &spec.namespace {
            check_namespace("namespace", namespace)?;
        }
        check_name("name", &spec.name)?;
        check_texts("ignore_fields", &spec.ignore_fields)?;
        spec.transport.validate()
    }
}
