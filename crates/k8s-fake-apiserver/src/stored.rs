//! One revision of one object: its bytes as they go over the wire, and what selectors ask of it.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::kind::{FieldSource, ResourceKind};

/// An immutable revision, serialised once. Lists and watches copy the bytes.
pub(crate) struct Stored {
    pub(crate) key: Box<str>,
    pub(crate) revision: u64,
    pub(crate) uid: Box<str>,
    pub(crate) labels: Box<[(Box<str>, Box<str>)]>,
    /// Values of the kind's selectable fields, in the kind's order.
    pub(crate) fields: Box<[Box<str>]>,
    /// `{"kind":…,"apiVersion":…,"metadata":{…,"resourceVersion":"7"},…}`
    pub(crate) json: Bytes,
    head: usize,
    metadata: Range<usize>,
    version: Range<usize>,
}

/// A revision without its number, which only the log knows.
pub(crate) struct Prepared {
    key: Box<str>,
    uid: Box<str>,
    labels: Box<[(Box<str>, Box<str>)]>,
    fields: Box<[Box<str>]>,
    head: usize,
    metadata: usize,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Prepared {
    /// `object` must carry `metadata.name`, and `metadata.namespace` where the kind has one.
    pub(crate) fn new(kind: &ResourceKind, object: &Value) -> Self {
        let empty = Map::new();
        let root = object.as_object().unwrap_or(&empty);
        let metadata = root.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
        let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
        let mut before = Vec::with_capacity(4096);
        before.extend_from_slice(kind.head.as_bytes());
        before.extend_from_slice(b"\"metadata\":");
        let start = before.len();
        write_members(&mut before, b'{', metadata, &["resourceVersion"]);
        before.extend_from_slice(if before.len() > start + 1 {
            b",\"resourceVersion\":\""
        } else {
            b"\"resourceVersion\":\""
        });
        let mut after = Vec::with_capacity(4096);
        after.extend_from_slice(b"\"}");
        write_members(&mut after, b',', root, &["kind", "apiVersion", "metadata"]);
        after.push(b'}');
        Self {
            key: key(kind.namespaced.then(|| text("namespace")), text("name")),
            uid: text("uid").into(),
            labels: labels(metadata),
            fields: kind.fields.iter().map(|f| field_value(&f.source, object)).collect(),
            head: kind.head.len(),
            metadata: start,
            before,
            after,
        }
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn finish(self, revision: u64) -> Stored {
        let digits = revision.to_string();
        let start = self.before.len();
        let mut json = Vec::with_capacity(start + digits.len() + self.after.len());
        json.extend_from_slice(&self.before);
        json.extend_from_slice(digits.as_bytes());
        json.extend_from_slice(&self.after);
        let version = start..start + digits.len();
        Stored {
            key: self.key,
            revision,
            uid: self.uid,
            labels: self.labels,
            fields: self.fields,
            json: json.into(),
            head: self.head,
            metadata: self.metadata..version.end + 2,
            version,
        }
    }
}

impl Stored {
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.key.split_once('/').map(|(namespace, _)| namespace)
    }

    pub(crate) fn name(&self) -> &str {
        self.key.split_once('/').map_or(&self.key, |(_, name)| name)
    }

    /// The bytes of the object without `kind` and `apiVersion`, after the opening brace.
    pub(crate) fn without_type(&self) -> &[u8] {
        &self.json[self.head..]
    }

    pub(crate) fn metadata(&self) -> &[u8] {
        &self.json[self.metadata.clone()]
    }

    /// The object as a tree. Only writes and scripted faults need it.
    pub(crate) fn value(&self) -> Value {
        // The bytes were written by serde_json from a `Value`.
        serde_json::from_slice(&self.json).unwrap_or_default()
    }

    /// The same object under another revision, as a DELETED event carries it.
    pub(crate) fn with_revision(&self, revision: u64) -> Self {
        let digits = revision.to_string();
        let mut json = Vec::with_capacity(self.json.len() + 4);
        json.extend_from_slice(&self.json[..self.version.start]);
        json.extend_from_slice(digits.as_bytes());
        json.extend_from_slice(&self.json[self.version.end..]);
        let version = self.version.start..self.version.start + digits.len();
        Self {
            key: self.key.clone(),
            revision,
            uid: self.uid.clone(),
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            json: json.into(),
            head: self.head,
            metadata: self.metadata.start..version.end + 2,
            version,
        }
    }
}

// Never the body: Secrets pass through here.
impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored").field("key", &self.key).field("revision", &self.revision).finish_non_exhaustive()
    }
}

/// `namespace/name`, or the name alone. Ordered as the keys of etcd are.
pub(crate) fn key(namespace: Option<&str>, name: &str) -> Box<str> {
    match namespace {
        Some(namespace) => format!("{namespace}/{name}").into(),
        None => name.into(),
    }
}

fn labels(metadata: &Map<String, Value>) -> Box<[(Box<str>, Box<str>)]> {
    let Some(labels) = metadata.get("labels").and_then(Value::as_object) else { return Box::default() };
    labels.iter().filter_map(|(k, v)| Some((k.as_str().into(), v.as_str()?.into()))).collect()
}

fn field_value(source: &FieldSource, object: &Value) -> Box<str> {
    match source {
        FieldSource::Path(path, default) => {
            let found = path.iter().try_fold(object, |value, member| value.get(member));
            match found {
                Some(Value::String(text)) => text.as_str().into(),
                None | Some(Value::Null) => (*default).into(),
                Some(other) => other.to_string().into(),
            }
        }
        FieldSource::EventSource => {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|t| !t.is_empty());
            text("/source/component").or_else(|| text("/reportingComponent")).unwrap_or_default().into()
        }
    }
}

/// Writes `"a":1,"b":2` with `open` before the first member; nothing but `{` for no member.
fn write_members(out: &mut Vec<u8>, open: u8, map: &Map<String, Value>, skip: &[&str]) {
    if open == b'{' {
        out.push(b'{');
    }
    let mut first = open == b'{';
    for (name, value) in map.iter().filter(|(name, _)| !skip.contains(&name.as_str())) {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        // Writing a tree with string keys to memory cannot fail.
        let _ = serde_json::to_writer(&mut *out, name);
        out.push(b':');
        let _ = serde_json::to_writer(&mut *out, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stored(object: Value) -> Stored {
        let kind = crate::kind::built_in().into_iter().find(|k| k.is("v1/pods")).unwrap();
        Prepared::new(&kind, &object).finish(7)
    }

    #[test]
    fn bytes_and_ranges() {
        let pod =
            stored(json!({"metadata": {"name": "a", "namespace": "ns", "resourceVersion": "1", "labels": {"x": "y"}},
            "spec": {"nodeName": "n"}}));
        assert_eq!(&*pod.key, "ns/a");
        assert_eq!(pod.value()["metadata"]["resourceVersion"], "7");
        assert_eq!(pod.value()["kind"], "Pod");
        assert!(pod.without_type().starts_with(b"\"metadata\":{"));
        let metadata: Value = serde_json::from_slice(pod.metadata()).unwrap();
        assert_eq!(metadata["labels"]["x"], "y");
        assert_eq!(&*pod.fields[0], "n");
        assert_eq!(&*pod.fields[4], "false");
        let gone = pod.with_revision(12_345);
        assert_eq!(gone.value()["metadata"]["resourceVersion"], "12345");
        let metadata: Value = serde_json::from_slice(gone.metadata()).unwrap();
        assert_eq!(metadata["name"], "a");
    }

    #[test]
    fn debug_shows_no_content() {
        let text = format!("{:?}", stored(json!({"metadata": {"name": "a", "namespace": "n"}, "data": "secret"})));
        assert!(!text.contains("secret"), "{text}");
    }
}
