//! Where the objects of a cached store come from: single reads from the server that the watcher watches.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt, Limited};
use k8s_client::{Client, collection_path, object_path};
use k8s_indexer::FieldSelector;
use k8s_packed::Object;
use k8s_store::{CacheConfig, CachedStore, Fetch, FetchError, FetchFuture, MemoryStore, cached_store};
use k8s_types::{ApiStatus, ConfigError, Gvr};
use kube::client::Body;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::cache_link::CacheLink;
use crate::plan::{Plan, Scopes, name_selector};
use crate::watcher::{Made, WatcherBuilder};

/// The most that is read of one answer.
const MAX_ANSWER: usize = 64 << 20;

impl WatcherBuilder<MemoryStore> {
    /// Keeps references in memory and whole objects in a cache of bounded size, from which they are fetched again
    /// when they are read. For big kinds of which few objects are read at a time, such as Secrets.
    ///
    /// - Only metadata is watched where indexes and the field selector read nothing else; a server that cannot
    ///   do that sends whole objects, of which the references are kept.
    /// - Reads of [`CachedStore`] are async and may fail, since the server may. Snapshots, in callbacks and batches
    ///   too, have the references: identity, and what indexes and the selector read.
    /// - The content is not there to be compared, so each new version of an object counts as a change.
    /// - A read by name of an object that the references do not have asks the server, with the watcher's selectors
    ///   and within its namespaces.
    ///
    /// Rights: `list` and `watch` as ever, and `get`; with a label selector or a server field selector the reads are
    /// lists of one name, and `list` is enough.
    ///
    /// Comes before the callbacks, which are given the store's kind.
    pub fn cached(self, config: CacheConfig) -> WatcherBuilder<CachedStore> {
        self.with_store(move |client, plan| in_cache(client, plan, config))
    }
}

fn in_cache(client: &Client, plan: &mut Plan, config: CacheConfig) -> Result<Made<CachedStore>, ConfigError> {
    config.validate()?;
    let requests = &mut plan.reading.requests;
    let fetch = FromServer {
        client: client.clone(),
        shared: Arc::new(What {
            gvr: requests.gvr.clone(),
            namespaces: match &plan.reading.scopes {
                Scopes::Namespaces(namespaces) => Some(namespaces.clone()),
                Scopes::All | Scopes::ClusterScoped => None,
            },
            label_selector: requests.label_selector.clone(),
            field_selector: requests.field_selector.clone(),
            selector: plan.selector.clone(),
            metadata_only: requests.metadata_only,
        }),
    };
    requests.metadata_only |= plan.references.only_metadata;
    let stubs = std::mem::take(&mut plan.references.encoder);
    let whole = std::mem::take(&mut plan.encoder);
    let indexes = std::mem::take(&mut plan.indexes);
    let (writer, invalidator, store) = cached_store(indexes, stubs, whole, config, fetch);
    Ok(Made { written: writer.store(), writer, cache: CacheLink::new(invalidator), store })
}

/// Reads objects one by one.
struct FromServer {
    client: Client,
    shared: Arc<What>,
}

/// What belongs to the store.
struct What {
    gvr: Gvr,
    namespaces: Option<Vec<String>>,
    label_selector: Option<String>,
    field_selector: Option<String>,
    selector: Option<Arc<FieldSelector>>,
    metadata_only: bool,
}

/// Why an object could not be read. Never has anything of a body but a Status.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("the server answered {code}{}", told(.message))]
    Refused { code: u16, message: Option<String> },
    #[error("the answer broke off or is too long")]
    Body,
    #[error("the answer cannot be read")]
    NoList,
}

fn told(message: &Option<String>) -> String {
    message.as_ref().map(|m| format!(": {m}")).unwrap_or_default()
}

impl Fetch for FromServer {
    fn fetch(&self, namespace: Option<&str>, name: &str) -> FetchFuture {
        let (client, what) = (self.client.clone(), self.shared.clone());
        let (namespace, name) = (namespace.map(str::to_owned), name.to_owned());
        Box::pin(async move { what.read(&client, namespace.as_deref(), &name).await })
    }
}

impl What {
    async fn read(&self, client: &Client, namespace: Option<&str>, name: &str) -> Result<Option<Bytes>, FetchError> {
        let is_namespaced = match client.resource_scope(&self.gvr).await {
            Ok(scope) => scope.is_namespaced(),
            // Who may not discover may still read.
            Err(e) if e.status_code() == Some(403) => namespace.is_some(),
            Err(e) => return Err(FetchError::new(e)),
        };
        let namespace = namespace.filter(|_| is_namespaced);
        let is_elsewhere = match (&self.namespaces, namespace) {
            (Some(own), Some(namespace)) => !own.iter().any(|own| own == namespace),
            _ => is_namespaced && namespace.is_none(),
        };
        if is_elsewhere {
            return Ok(None);
        }
        let is_selected = self.label_selector.is_some() || self.field_selector.is_some();
        let body = if is_selected {
            let uri = self.list_of_one(namespace, name).map_err(FetchError::new)?;
            let list = self.send(client, uri, "PartialObjectMetadataList").await?;
            list.map(|list| first_item(&list)).transpose()?.flatten()
        } else {
            let uri = object_path(&self.gvr, namespace, name).map_err(FetchError::new)?;
            self.send(client, uri, "PartialObjectMetadata").await?
        };
        Ok(body.filter(|body| self.matches(body)))
    }

    /// The selectors are the server's: only it can tell whether the object is among the selected.
    fn list_of_one(&self, namespace: Option<&str>, name: &str) -> Result<String, k8s_client::Error> {
        let mut fields = name_selector(name);
        if let Some(selector) = &self.field_selector {
            fields = format!("{fields},{selector}");
        }
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("fieldSelector", &fields);
        if let Some(selector) = &self.label_selector {
            query.append_pair("labelSelector", selector);
        }
        Ok(format!("{}?{}", collection_path(&self.gvr, namespace)?, query.finish()))
    }

    /// The body of a good answer; none if the server says that there is no such object.
    async fn send(&self, client: &Client, uri: String, partial: &str) -> Result<Option<Bytes>, FetchError> {
        let mut request = Request::new(vec![]);
        *request.uri_mut() = uri.parse().map_err(FetchError::new)?;
        if self.metadata_only {
            let accept = format!("application/json;as={partial};g=meta.k8s.io;v=v1,application/json");
            request.headers_mut().insert(header::ACCEPT, accept.parse().map_err(FetchError::new)?);
        }
        let response = client.send(request).await.map_err(FetchError::new)?;
        let status = response.status();
        let body = read_body(response).await;
        if status.is_success() {
            return body.map(Some).map_err(FetchError::new);
        }
        let failure = ApiStatus::from_json(&body.unwrap_or_default());
        match (status.as_u16(), failure) {
            // Without a Status it is the whole kind that is missing, or somebody else who answers.
            (404, Some(_)) => Ok(None),
            (code, failure) => {
                let message = failure.map(|f| f.message).filter(|m| !m.is_empty());
                Err(FetchError::new(ReadError::Refused { code, message }))
            }
        }
    }

    /// Whether the object passes the client's selector. One that cannot be read is left to who decodes it.
    fn matches(&self, body: &[u8]) -> bool {
        let Some(selector) = &self.selector else { return true };
        Object::from_slice(body).map_or(true, |object| selector.matches(&object))
    }
}

async fn read_body(response: Response<Body>) -> Result<Bytes, ReadError> {
    let body = Limited::new(response.into_body(), MAX_ANSWER);
    body.collect().await.map(|body| body.to_bytes()).map_err(|_| ReadError::Body)
}

/// The first item of a list, with the type that the list says: items of built-in kinds have none of their own.
fn first_item(list: &[u8]) -> Result<Option<Bytes>, FetchError> {
    #[derive(Deserialize)]
    struct List<'a> {
        #[serde(rename = "apiVersion", default)]
        api_version: Option<String>,
        /// Without it the answer is something else, and tells nothing of the object.
        kind: String,
        #[serde(borrow, default)]
        items: Option<Vec<&'a RawValue>>,
    }
    let list: List<'_> = serde_json::from_slice(list).map_err(|_| FetchError::new(ReadError::NoList))?;
    if list.items.is_none() && !list.kind.ends_with("List") {
        return Err(FetchError::new(ReadError::NoList));
    }
    let Some(item) = list.items.unwrap_or_default().first().map(|item| item.get()) else { return Ok(None) };
    let kind = list.kind.strip_suffix("List");
    let typed = list.api_version.as_deref().zip(kind).and_then(|(version, kind)| typed(item, version, kind));
    Ok(Some(typed.map_or_else(|| Bytes::copy_from_slice(item.as_bytes()), Bytes::from)))
}

/// An object with a type, if it has none.
fn typed(object: &str, api_version: &str, kind: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Typed {
        kind: Option<IgnoredAny>,
    }
    let members = object.strip_prefix('{')?.trim_start();
    let Ok(Typed { kind: None }) = serde_json::from_str(object) else { return None };
    let (version, kind) = (serde_json::to_string(api_version).ok()?, serde_json::to_string(kind).ok()?);
    let comma = if members.starts_with('}') { "" } else { "," };
    Some(format!(r#"{{"apiVersion":{version},"kind":{kind}{comma}{members}"#))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_the_type_of_their_list() {
        let check = |list: &str, expected: Option<&str>| {
            let item = first_item(list.as_bytes()).expect("a list");
            assert_eq!(item.as_deref(), expected.map(str::as_bytes), "{list}");
        };
        let of = |items: &str| format!(r#"{{"kind":"PodList","apiVersion":"v1","items":{items}}}"#);
        check(&of(r#"[{"metadata":{}}, 7]"#), Some(r#"{"apiVersion":"v1","kind":"Pod","metadata":{}}"#));
        check(&of("[{ }]"), Some(r#"{"apiVersion":"v1","kind":"Pod"}"#));
        check(&of(r#"[{"kind":"Own"}]"#), Some(r#"{"kind":"Own"}"#));
        check(&of("[7]"), Some("7"));
        check(&of("[]"), None);
        check(&of("null"), None);
        check(r#"{"kind":"PodList","items":[{"a":1}]}"#, Some(r#"{"a":1}"#));
        check(r#"{"kind":"Odd","apiVersion":"v1","items":[{"a":1}]}"#, Some(r#"{"a":1}"#));
        for odd in [
            "",
            "7",
            "[]",
            "{}",
            r#"{"items":[]}"#,
            r#"{"kind":"Status"}"#,
            r#"{"kind":"Table","rows":[]}"#,
            r#"{"kind":"PodList","items":7}"#,
            r#"{"kind":7,"items":[]}"#,
        ] {
            assert!(first_item(odd.as_bytes()).is_err(), "{odd}");
        }
    }
}
