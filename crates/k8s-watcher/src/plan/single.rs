//! The configuration of a watcher over one named object, checked.

use k8s_packed::Encoder;
use k8s_types::{ConfigError, SingleWatcherConfig};

use super::requests::name_selector;
use super::{Reading, Requests, Scopes, checked_resource, compiled_ignored, engine_config, managed_fields};

/// Everything that a watcher over one named object needs to know, once.
pub(crate) struct SinglePlan {
    pub(crate) reading: Reading,
    pub(crate) encoder: Encoder,
    pub(crate) skip_status_updates: bool,
}

impl SinglePlan {
    pub(crate) fn new(config: &SingleWatcherConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        let spec = config.spec();
        let ignored = compiled_ignored(&spec.ignore_fields)?;
        let requests = Requests {
            gvr: checked_resource(&spec.resource)?,
            label_selector: None,
            // On each list and watch: a right that is limited to this name is enough.
            field_selector: Some(name_selector(&spec.name)),
            metadata_only: false,
        };
        let scopes = match &spec.namespace {
            Some(namespace) => Scopes::Namespaces(vec![namespace.clone()]),
            None => Scopes::ClusterScoped,
        };
        Ok(Self {
            reading: Reading { requests, engine: engine_config(&spec.transport), scopes },
            encoder: Encoder::new().ignore(ignored.iter().chain(&managed_fields(spec.keep_managed_fields))),
            skip_status_updates: spec.skip_status_updates,
        })
    }
}
