//! A configuration, checked and compiled: parsed selectors, paths, the store and its encoder, the requests.

#[cfg(feature = "cached")]
mod references;
mod requests;
mod single;

use std::sync::Arc;
use std::time::Duration;

use k8s_client::{Client, collection_path};
use k8s_indexer::{Expression, FieldSelector, Indexer, ignored_paths};
use k8s_packed::{Encoder, Path};
use k8s_store::StorePlan;
use k8s_types::{ConfigError, Gvr, IndexExpression, ResourceRef, SelfWriteFilter, WatcherConfig, WatcherSpec};

#[cfg(feature = "cached")]
pub(crate) use self::references::References;
use self::requests::engine_config;
#[cfg(feature = "cached")]
pub(crate) use self::requests::name_selector;
pub(crate) use self::requests::{Reading, Requests, Scopes};
pub(crate) use self::single::SinglePlan;

/// Everything that a watcher needs to know, once.
pub(crate) struct Plan {
    pub(crate) reading: Reading,
    pub(crate) indexes: StorePlan,
    pub(crate) encoder: Encoder,
    pub(crate) selector: Option<Arc<FieldSelector>>,
    /// What a cached store keeps in memory.
    #[cfg(feature = "cached")]
    pub(crate) references: References,
    pub(crate) own_writes: Option<Arc<dyn SelfWriteFilter>>,
    pub(crate) debounce: Duration,
    pub(crate) call_on_change_during_sync: bool,
}

const MANAGED_FIELDS: &str = "metadata.managedFields";

impl Plan {
    pub(crate) fn new(
        client: &Client,
        config: &WatcherConfig,
        own_writes: Option<Arc<dyn SelfWriteFilter>>,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        let spec = config.spec();
        let gvr = checked_resource(&spec.resource)?;
        let indexes = Indexes::new(spec)?;
        let selector = match &spec.field_selector {
            Some(text) => Some(text.parse::<FieldSelector>().map_err(|e| ConfigError::new("field_selector", e))?),
            None => None,
        };
        let ignored = compiled_ignored(&spec.ignore_fields)?;
        let managed_fields = managed_fields(spec.keep_managed_fields);
        let of_selector = selector.iter().map(|s| ("field_selector".into(), s.expression()));
        let expressions: Vec<_> = indexes.expressions().chain(of_selector).collect();
        for (field, expression) in &expressions {
            check_reads(spec, &ignored, field, expression)?;
            if expression.covered_by(managed_fields.as_slice()).is_some() {
                let reason = format!("{MANAGED_FIELDS} is dropped (keep_managed_fields)");
                return Err(ConfigError::new(field.as_str(), reason));
            }
        }
        #[cfg(feature = "cached")]
        let references = References::new(ignored.iter().chain(&managed_fields), expressions.iter().map(|(_, e)| *e));
        let mut encoder = Encoder::new().ignore(ignored.iter().chain(&managed_fields));
        if spec.metadata_only {
            encoder = encoder.metadata_only();
        }
        let label_selector = match &spec.label_selector {
            Some(selector) => Some(selector.selector().map_err(|e| ConfigError::new("label_selector", e))?),
            None => None,
        };
        let requests = Requests {
            gvr,
            label_selector: label_selector.filter(|s| !s.is_empty()).map(ToString::to_string),
            field_selector: spec.server_field_selector.clone(),
            metadata_only: spec.metadata_only,
        };
        Ok(Self {
            reading: Reading { requests, engine: engine_config(&spec.transport), scopes: scopes(client, spec)? },
            indexes: indexes.into_store_plan()?,
            encoder,
            selector: selector.map(Arc::new),
            #[cfg(feature = "cached")]
            references,
            own_writes,
            debounce: spec.debounce,
            call_on_change_during_sync: spec.call_on_change_during_sync,
        })
    }
}

fn checked_resource(resource: &ResourceRef) -> Result<Gvr, ConfigError> {
    let gvr = resource.gvr().map_err(|e| ConfigError::new("resource", e))?.clone();
    collection_path(&gvr, None).map_err(|e| ConfigError::new("resource", e))?;
    Ok(gvr)
}

fn compiled_ignored(ignore_fields: &[String]) -> Result<Vec<Path>, ConfigError> {
    ignored_paths(ignore_fields).map_err(|e| ConfigError::new(format!("ignore_fields[{}]", e.position()), e.error()))
}

/// What is dropped besides the ignored fields.
fn managed_fields(keep: bool) -> Option<Path> {
    MANAGED_FIELDS.parse().ok().filter(|_| !keep)
}

fn scopes(client: &Client, spec: &WatcherSpec) -> Result<Scopes, ConfigError> {
    if spec.namespaced_watch {
        let own = client.namespace().map_err(|e| ConfigError::new("namespaced_watch", e))?;
        return Ok(Scopes::Namespaces(vec![own.to_owned()]));
    }
    Ok(match spec.distinct_namespaces() {
        Some(namespaces) => Scopes::Namespaces(namespaces.into_iter().map(str::to_owned).collect()),
        None => Scopes::All,
    })
}

/// What an expression reads must not be ignored, and must be there when only metadata is asked for.
fn check_reads(spec: &WatcherSpec, ignored: &[Path], field: &str, expression: &Expression) -> Result<(), ConfigError> {
    if let Some(covering) = expression.covered_by(ignored) {
        let at = ignored.iter().position(|p| p == covering).unwrap_or_default();
        let reason = format!("{} is needed by {field}", spec.ignore_fields[at]);
        return Err(ConfigError::new(format!("ignore_fields[{at}]"), reason));
    }
    if spec.metadata_only && !expression.reads_only_metadata() {
        return Err(ConfigError::new(field, format!("{} is no metadata (metadata_only)", expression.text())));
    }
    Ok(())
}

/// The compiled indexes, with the names of their fields.
struct Indexes {
    primary: Indexer,
    named: Vec<(String, Indexer)>,
}

impl Indexes {
    fn new(spec: &WatcherSpec) -> Result<Self, ConfigError> {
        let compile = |field: &str, expressions: &[IndexExpression]| {
            Indexer::new(expressions.iter().cloned())
                .map_err(|e| ConfigError::new(format!("{field}[{}]", e.position()), e.error()))
        };
        let named = spec
            .named_indexes
            .iter()
            .enumerate()
            .map(|(i, index)| Ok((index.name.clone(), compile(&named_field(i), &index.expressions)?)));
        Ok(Self { primary: compile("index_by", &spec.index_by)?, named: named.collect::<Result<_, _>>()? })
    }

    fn expressions(&self) -> impl Iterator<Item = (String, &Expression)> {
        let fields = self.named.iter().enumerate().map(|(i, (_, indexer))| (named_field(i), indexer));
        std::iter::once(("index_by".to_owned(), &self.primary)).chain(fields).flat_map(|(field, indexer)| {
            indexer.expressions().enumerate().map(move |(i, e)| (format!("{field}[{i}]"), e))
        })
    }

    fn into_store_plan(self) -> Result<StorePlan, ConfigError> {
        let mut plan = StorePlan::new(self.primary);
        for (name, indexer) in self.named {
            plan = plan.named(name, indexer).map_err(|e| ConfigError::new("named_indexes", e))?;
        }
        Ok(plan)
    }
}

fn named_field(at: usize) -> String {
    format!("named_indexes[{at}].expressions")
}
