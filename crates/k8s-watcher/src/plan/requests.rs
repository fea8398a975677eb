//! What is asked of the server: which collections, how, with which patience.

use std::borrow::Cow;

use http::{Request, header};
use k8s_client::collection_path;
use k8s_types::{Gvr, ListMode as ConfigListMode, Transport};

use crate::engine::{EngineConfig, ListMode};

/// Parameters of a query.
type Pairs<'a> = [(&'static str, Cow<'a, str>)];

/// What is asked of the server, and how.
pub(crate) struct Reading {
    pub(crate) requests: Requests,
    pub(crate) engine: EngineConfig,
    pub(crate) scopes: Scopes,
}

/// Which namespaces are wanted.
pub(crate) enum Scopes {
    All,
    Namespaces(Vec<String>),
    /// No namespace, of a kind that must not have any.
    ClusterScoped,
}

/// How requests of a watcher look, apart from what the engine decides.
pub(crate) struct Requests {
    pub(crate) gvr: Gvr,
    pub(crate) label_selector: Option<String>,
    pub(crate) field_selector: Option<String>,
    pub(crate) metadata_only: bool,
}

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

/// The field selector of one name. What it has of a selector's characters is escaped as the server wants it.
pub(crate) fn name_selector(name: &str) -> String {
    let mut selector = String::from("metadata.name=");
    for c in name.chars() {
        if matches!(c, '\\' | ',' | '=') {
            selector.push('\\');
        }
        selector.push(c);
    }
    selector
}

/// The engine's part of a configuration.
pub(super) fn engine_config(transport: &Transport) -> EngineConfig {
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
