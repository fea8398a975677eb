//! The configuration of a watcher over a collection.

use std::{fmt, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{
    ResourceRef, SelectorRef, Transport, check_namespace, check_texts, duration, transport::transport_setters,
};
use crate::error::ConfigError;

/// What a watcher watches, keeps and reports. Plain data: nothing is checked before
/// [`validate`](WatcherConfig::validate), which the watcher's builder calls.
///
/// A setter called again replaces what it set, except [`named_index`](WatcherConfig::named_index), which adds.
/// [`spec`](WatcherConfig::spec) reads everything back. Serde reads and writes the fields of [`WatcherSpec`] in camel
/// case and refuses unknown ones, since a misspelled selector would widen the watch.
///
/// ```
/// use k8s_types::WatcherConfig;
///
/// let config = WatcherConfig::new("discovery.k8s.io/v1/endpointslices")
///     .index_by(["metadata.namespace", "metadata.labels['kubernetes.io/service-name']"])
///     .label_selector("endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io")
///     .ignore_fields(["metadata.annotations"]);
/// assert_eq!(config.validate(), Ok(()));
///
/// let wrong = config.label_selector("app in");
/// let error = wrong.validate().unwrap_err();
/// assert_eq!(error.to_string(), "label_selector: expected '(', found the end at column 7");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WatcherConfig {
    spec: WatcherSpec,
}

/// The fields of a [`WatcherConfig`], to read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct WatcherSpec {
    /// The kind of objects. Required.
    pub resource: ResourceRef,
    /// The namespaces to watch; none means all. A cluster-scoped kind is watched once, whatever stands here. Names
    /// that stand twice count once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
    /// Whether to watch the client's own namespace. Default: no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub namespaced_watch: bool,
    /// The label selector, evaluated by the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<SelectorRef>,
    /// The field selector `path=value`, evaluated in the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_selector: Option<String>,
    /// The field selector that is sent to the server as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_field_selector: Option<String>,
    /// The expressions of the composite index, in order. Required.
    #[serde(default)]
    pub index_by: Vec<IndexExpression>,
    /// Further indexes by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_indexes: Vec<NamedIndex>,
    /// Fields that are dropped while objects are decoded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore_fields: Vec<String>,
    /// Whether `metadata.managedFields` is kept. Default: no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_managed_fields: bool,
    /// Whether only the metadata of objects is asked for. Default: no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub metadata_only: bool,
    /// The least time from the start of one callback to the next. Default: 100 milliseconds; zero is off.
    #[serde(default = "default_debounce", with = "duration")]
    pub debounce: Duration,
    /// Whether callbacks run during the initial load. Default: no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub call_on_change_during_sync: bool,
    /// How lists and watches are made.
    #[serde(default)]
    pub transport: Transport,
}

fn default_debounce() -> Duration {
    Duration::from_millis(100)
}

impl WatcherSpec {
    /// The namespaces to watch, each once, in the given order; none means all.
    pub fn distinct_namespaces(&self) -> Option<Vec<&str>> {
        let mut distinct: Vec<&str> = Vec::new();
        for namespace in self.namespaces.as_ref()? {
            if !distinct.contains(&namespace.as_str()) {
                distinct.push(namespace);
            }
        }
        Some(distinct)
    }
}

impl WatcherConfig {
    /// A configuration for this kind: a [`Gvr`](crate::Gvr), or text (`v1/pods`,
    /// `networking.k8s.io/v1/ingresses`). A wrong text is kept and reported by [`validate`](WatcherConfig::validate).
    pub fn new(resource: impl Into<ResourceRef>) -> WatcherConfig {
        WatcherConfig {
            spec: WatcherSpec {
                resource: resource.into(),
                namespaces: None,
                namespaced_watch: false,
                label_selector: None,
                field_selector: None,
                server_field_selector: None,
                index_by: Vec::new(),
                named_indexes: Vec::new(),
                ignore_fields: Vec::new(),
                keep_managed_fields: false,
                metadata_only: false,
                debounce: default_debounce(),
                call_on_change_during_sync: false,
                transport: Transport::default(),
            },
        }
    }

    /// Everything that is set, defaults included.
    pub fn spec(&self) -> &WatcherSpec {
        &self.spec
    }

    /// Watches this namespace only. Default: all namespaces.
    #[must_use]
    pub fn namespace(self, namespace: impl Into<String>) -> WatcherConfig {
        self.namespaces([namespace])
    }

    /// Watches these namespaces only, with a list and watch each. Default: all namespaces. An empty list and an empty
    /// name are errors, never "all".
    #[must_use]
    pub fn namespaces<I>(mut self, namespaces: I) -> WatcherConfig
    where
        I: IntoIterator<Item: Into<String>>,
    {
        self.spec.namespaces = Some(namespaces.into_iter().map(Into::into).collect());
        self
    }

    /// Watches the client's own namespace only. Default: no; together with namespaces an error.
    #[must_use]
    pub fn namespaced_watch(mut self, on: bool) -> WatcherConfig {
        self.spec.namespaced_watch = on;
        self
    }

    /// Watches objects whose labels match; the server selects. A [`LabelSelector`](crate::LabelSelector) or text
    /// (`app=web,!canary`). A wrong text is kept and reported by [`validate`](WatcherConfig::validate).
    #[must_use]
    pub fn label_selector(mut self, selector: impl Into<SelectorRef>) -> WatcherConfig {
        self.spec.label_selector = Some(selector.into());
        self
    }

    /// Keeps objects in which the path has this value (`spec.nodeName=n1`, `metadata.labels.team=red`); the client
    /// selects, so any path will do. An object that starts to match counts as created, one that stops as deleted.
    #[must_use]
    pub fn field_selector(mut self, selector: impl Into<String>) -> WatcherConfig {
        self.spec.field_selector = Some(selector.into());
        self
    }

    /// Sends this field selector to the server as it is, which selects by the few fields it supports for the kind.
    #[must_use]
    pub fn server_field_selector(mut self, selector: impl Into<String>) -> WatcherConfig {
        self.spec.server_field_selector = Some(selector.into());
        self
    }

    /// Sets the expressions of the composite index; their order is that of the key's parts. Plain texts take the first
    /// value; see [`IndexExpression::multi_valued`] for all of them.
    #[must_use]
    pub fn index_by<I>(mut self, expressions: I) -> WatcherConfig
    where
        I: IntoIterator<Item: Into<IndexExpression>>,
    {
        self.spec.index_by = expressions.into_iter().map(Into::into).collect();
        self
    }

    /// Adds an index with a name of its own, beside the composite one.
    #[must_use]
    pub fn named_index<I>(mut self, name: impl Into<String>, expressions: I) -> WatcherConfig
    where
        I: IntoIterator<Item: Into<IndexExpression>>,
    {
        self.spec
            .named_indexes
            .push(NamedIndex { name: name.into(), expressions: expressions.into_iter().map(Into::into).collect() });
        self
    }

    /// Drops these fields while objects are decoded: they take no memory and their changes are none. Members, indexes
    /// and wildcards (`status.conditions[*].lastProbeTime`); a missing field is no error.
    #[must_use]
    pub fn ignore_fields<I>(mut self, paths: I) -> WatcherConfig
    where
        I: IntoIterator<Item: Into<String>>,
    {
        self.spec.ignore_fields = paths.into_iter().map(Into::into).collect();
        self
    }

    /// Keeps `metadata.managedFields`. Default: no; it is often half of an object, and few programs read it.
    #[must_use]
    pub fn keep_managed_fields(mut self, on: bool) -> WatcherConfig {
        self.spec.keep_managed_fields = on;
        self
    }

    /// Asks the server for the metadata of objects only. Default: no.
    #[must_use]
    pub fn metadata_only(mut self, on: bool) -> WatcherConfig {
        self.spec.metadata_only = on;
        self
    }

    /// Sets the least time from the start of one callback to the next. Default: 100 milliseconds. Zero switches
    /// debouncing off: each batch of changes is reported at once.
    #[must_use]
    pub fn debounce(mut self, interval: Duration) -> WatcherConfig {
        self.spec.debounce = interval;
        self
    }

    /// Runs callbacks during the initial load too. Default: no; the initial objects are then reported once, by the
    /// end of the load.
    #[must_use]
    pub fn call_on_change_during_sync(mut self, on: bool) -> WatcherConfig {
        self.spec.call_on_change_during_sync = on;
        self
    }

    transport_setters!();

    /// Checks all that can be checked without compiling expressions and without a server. The watcher's builder calls
    /// this and checks the expressions after it.
    ///
    /// # Errors
    ///
    /// The first setting that cannot work, by name: a resource or label selector that does not parse, no index, an
    /// index without expressions or with a taken name, an empty list of namespaces, an empty or impossible name,
    /// namespaces together with `namespaced_watch`, an empty expression, a zero where it makes no sense.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let spec = &self.spec;
        check_resource(&spec.resource)?;
        if let Some(namespaces) = &spec.namespaces {
            if spec.namespaced_watch {
                return Err(ConfigError::new("namespaced_watch", "set together with namespaces"));
            }
            if namespaces.is_empty() {
                return Err(ConfigError::new("namespaces", "empty list"));
            }
            for (i, namespace) in namespaces.iter().enumerate() {
                check_namespace(&format!("namespaces[{i}]"), namespace)?;
            }
        }
        if let Some(selector) = &spec.label_selector {
            let wrong = |message: String| ConfigError::new("label_selector", message);
            let selector = selector.selector().map_err(|error| wrong(error.to_string()))?;
            selector.validate().map_err(|error| wrong(error.to_string()))?;
        }
        for (field, text) in
            [("field_selector", &spec.field_selector), ("server_field_selector", &spec.server_field_selector)]
        {
            if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
                return Err(ConfigError::new(field, "empty selector"));
            }
        }
        check_expressions("index_by", &spec.index_by)?;
        for (i, index) in spec.named_indexes.iter().enumerate() {
            let field = format!("named_indexes[{i}]");
            if index.name.is_empty() {
                return Err(ConfigError::new(field, "empty name"));
            }
            if spec.named_indexes[..i].iter().any(|other| other.name == index.name) {
                return Err(ConfigError::new(field, format!("name {:?} is taken", index.name)));
            }
            check_expressions(&format!("{field}.expressions"), &index.expressions)?;
        }
        check_texts("ignore_fields", &spec.ignore_fields)?;
        spec.transport.validate()
    }
}

pub(super) fn check_resource(resource: &ResourceRef) -> Result<(), ConfigError> {
    let checked = resource.gvr().map_err(Clone::clone).and_then(crate::Gvr::validate);
    checked.map_err(|error| ConfigError::new("resource", error))
}

fn check_expressions(field: &str, expressions: &[IndexExpression]) -> Result<(), ConfigError> {
    if expressions.is_empty() {
        return Err(ConfigError::new(field, "no expression"));
    }
    match expressions.iter().position(|e| e.expression.trim().is_empty()) {
        Some(i) => Err(ConfigError::new(format!("{field}[{i}]"), "empty expression")),
        None => Ok(()),
    }
}

/// An expression of an index: JSONPath in kubectl's dialect, or RFC 9535 if it begins with `$`.
///
/// Text converts into an expression that takes the first value. In serde it is a string, or
/// `{"expression": …, "multiValued": true}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IndexExpression {
    expression: String,
    multi_valued: bool,
}

impl IndexExpression {
    /// An expression that takes the first value.
    pub fn new(expression: impl Into<String>) -> IndexExpression {
        IndexExpression { expression: expression.into(), multi_valued: false }
    }

    /// An expression that takes all values: the object is found under each of them.
    pub fn multi_valued(expression: impl Into<String>) -> IndexExpression {
        IndexExpression { expression: expression.into(), multi_valued: true }
    }

    /// The expression's text.
    pub fn text(&self) -> &str {
        &self.expression
    }

    /// Whether all values count, not the first alone.
    pub fn is_multi_valued(&self) -> bool {
        self.multi_valued
    }
}

impl From<&str> for IndexExpression {
    fn from(text: &str) -> IndexExpression {
        IndexExpression::new(text)
    }
}

impl From<String> for IndexExpression {
    fn from(text: String) -> IndexExpression {
        IndexExpression::new(text)
    }
}

impl From<&String> for IndexExpression {
    fn from(text: &String) -> IndexExpression {
        IndexExpression::new(text)
    }
}

impl From<&IndexExpression> for IndexExpression {
    fn from(expression: &IndexExpression) -> IndexExpression {
        expression.clone()
    }
}

impl fmt::Display for IndexExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expression)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExpressionForm {
    expression: String,
    #[serde(default)]
    multi_valued: bool,
}

impl Serialize for IndexExpression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.multi_valued {
            return serializer.serialize_str(&self.expression);
        }
        let form = ExpressionForm { expression: self.expression.clone(), multi_valued: true };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for IndexExpression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<IndexExpression, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = IndexExpression;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an expression, as text or with expression and multiValued")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<IndexExpression, E> {
                Ok(text.into())
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<IndexExpression, A::Error> {
                let map = de::value::MapAccessDeserializer::new(map);
                let form = ExpressionForm::deserialize(map)?;
                Ok(IndexExpression { expression: form.expression, multi_valued: form.multi_valued })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// An index with a name of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct NamedIndex {
    /// By what name it is asked for.
    pub name: String,
    /// The expressions of its key, in order.
    pub expressions: Vec<IndexExpression>,
}
