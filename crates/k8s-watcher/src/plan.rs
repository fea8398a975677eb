//! A configuration, checked and compiled: parsed selectors, paths, the store and its encoder, the requests.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, header};
use k8s_client::{Client, collection_path};
use k8s_indexer::{Expression, FieldSelector, Indexer, ignored_paths};
use k8s_packed::{Encoder, Path};
use k8s_store::{MemoryStore, StorePlan, Writer, memory_store};
use k8s_types::{
    ConfigError, Gvr, IndexExpression, ListMode as ConfigListMode, SelfWriteFilter, WatcherConfig, WatcherSpec,
};

use crate::engine::{EngineConfig, ListMode};

/// Parameters of a query.
type Pairs<'a> = [(&'static str, Cow<'a, str>)];

/// Everything that a watcher needs to know, once.
pub(crate) struct Plan {
    pub(crate) requests: Requests,
    pub(crate) engine: EngineConfig,
    pub(crate) scopes: Scopes,
    pub(crate) writer: Writer,
    pub(crate) store: MemoryStore,
    pub(crate) selector: Option<FieldSelector>,
    pub(crate) own_writes: Option<Arc<dyn SelfWriteFilter>>,
    pub(crate) debounce: Duration,
    pub(crate) call_on_change_during_sync: bool,
}

/// Which namespaces are wanted.
pub(crate) enum Scopes {
    All,
    Namespaces(Vec<String>),
}

/// How requests of a watcher look, apart from what the engine decides.
pub(crate) struct Requests {
    pub(crate) gvr: Gvr,
    label_selector: Option<String>,
    field_selector: Option<String>,
    metadata_only: bool,
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
        let gvr = spec.resource.gvr().map_err(|e| ConfigError::new("resource", e))?.clone();
        collection_path(&gvr, None).map_err(|e| ConfigError::new("resource", e))?;
        let indexes = Indexes::new(spec)?;
        let selector = match &spec.field_selector {
            Some(text) => Some(text.parse::<FieldSelector>().map_err(|e| ConfigError::new("field_selector", e))?),
            None => None,
        };
        let ignored = ignored_paths(&spec.ignore_fields)
            .map_err(|e| ConfigError::new(format!("ignore_fields[{}]", e.position()), e.error()))?;
        let expressions =
            indexes.expressions().chain(selector.iter().map(|s| ("field_selector".into(), s.expression())));
        let managed_fields: Option<Path> = MANAGED_FIELDS.parse().ok().filter(|_| !spec.keep_managed_fields);
        for (field, expression) in expressions {
            check_reads(spec, &ignored, &field, expression)?;
            if expression.covered_by(managed_fields.as_slice()).is_some() {
                let reason = format!("{MANAGED_FIELDS} is dropped (keep_managed_fields)");
                return Err(ConfigError::new(field, reason));
            }
        }
        let mut encoder = Encoder::new().ignore(ignored.iter().chain(&managed_fields));
        if spec.metadata_only {
            encoder = encoder.metadata_only();
        }
        let (writer, store) = memory_store(indexes.into_store_plan()?, encoder);
        let label_selector = match &spec.label_selector {
            Some(selector) => Some(selector.selector().map_err(|e| ConfigError::new("label_selector", e))?),
            None => None,
        };
        Ok(Self {
            requests: Requests {
                gvr,
                label_selector: label_selector.filter(|s| !s.is_empty()).map(ToString::to_string),
                field_selector: spec.server_field_selector.clone(),
                metadata_only: spec.metadata_only,
            },
            engine: engine_config(spec),
            scopes: scopes(client, spec)?,
            writer,
            store,
            selector,
            own_writes,
            debounce: spec.debounce,
            call_on_change_during_sync: spec.call_on_change_during_sync,
        })
    }
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

fn engine_config(spec: &WatcherSpec) -> EngineConfig {
    let transport = &spec.transport;
    EngineConfig {
        list_mode: match transport.list_mode {
            ConfigListMode::Paged => ListMode::Paged,
            _ => ListMode::Streaming,
        },
        page_size: transport.page_size,
        watch_timeout: transport.watch_timeout,
        idle_limit: transport.idle_limit,
        backoff_initial: transport.backoff.initial,
        backoff_max: transport.backoff.max,
        backoff_factor: transport.backoff.factor,
        ..EngineConfig::default()
    }
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

// === impl Requests ===

impl Requests {
    /// A list, or a page of one.
    pub(crate) fn list(&self, namespace: Option<&str>, pairs: &Pairs<'_>) -> Request<Vec<u8>> {
        self.request(namespace, pairs, "PartialObjectMetadataList")
    }

    pub(crate) fn watch(&self, namespace: Option<&str>, pairs: &Pairs<'_>) -> Request<Vec<u8>> {
        self.request(namespace, pairs, "PartialObjectMetadata")
    }

    fn request(&self, namespace: Option<&str>, pairs: &Pairs<'_>, partial: &str) -> Request<Vec<u8>> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(pairs);
        for (name, selector) in [("labelSelector", &self.label_selector), ("fieldSelector", &self.field_selector)] {
            if let Some(selector) = selector {
                query.append_pair(name, selector);
            }
        }
        // The plan has checked both, so the path and the request are sound; an empty request is refused by the server.
        let path = collection_path(&self.gvr, namespace).unwrap_or_default();
        let mut request = Request::new(vec![]);
        if let Ok(uri) = format!("{path}?{}", query.finish()).parse() {
            *request.uri_mut() = uri;
        }
        if self.metadata_only {
            let accept = format!("application/json;as={partial};g=meta.k8s.io;v=v1,application/json");
            if let Ok(accept) = accept.parse() {
                request.headers_mut().insert(header::ACCEPT, accept);
            }
        }
        request
    }
}
