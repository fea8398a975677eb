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
    /// `{"kind":…,"apiVersion":…,"metadata":{…,"managedFields":…,"resourceVersion":"7"},…}`
    pub(crate) json: Bytes,
    head: usize,
    metadata: Range<usize>,
    managed: Option<Range<usize>>,
    version: Range<usize>,
    /// Where the values of the members after the metadata stand.
    members: Box<[(Box<str>, Range<usize>)]>,
}

/// Which parts of an object a write may look at or change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Touched {
    All,
    /// The metadata (without `managedFields`) and these members.
    Only(Vec<String>),
}

/// An object of which only some parts were parsed. The rest is carried over as bytes.
#[derive(Debug)]
pub(crate) struct Partial<'a> {
    base: &'a Stored,
    touched: &'a Touched,
}

/// A revision without its number, which only the log knows.
pub(crate) struct Prepared {
    key: Box<str>,
    uid: Box<str>,
    labels: Box<[(Box<str>, Box<str>)]>,
    fields: Box<[Box<str>]>,
    head: usize,
    metadata: usize,
    managed: Option<Range<usize>>,
    members: Vec<(Box<str>, Range<usize>)>,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Touched {
    fn covers(&self, member: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(members) => members.iter().any(|m| m == member),
        }
    }
}

impl<'a> Partial<'a> {
    pub(crate) fn new(base: &'a Stored, touched: &'a Touched) -> Self {
        Self { base, touched }
    }

    /// The parsed parts.
    pub(crate) fn value(&self) -> Value {
        if *self.touched == Touched::All {
            return self.base.value();
        }
        let mut root = Map::new();
        let metadata = match &self.base.managed {
            Some(managed) => {
                // From the comma before the name to the end of the value.
                let start = managed.start - ",\"managedFields\":".len();
                let parts = [
                    &self.base.json[self.base.metadata.start..start],
                    &self.base.json[managed.end..self.base.metadata.end],
                ];
                serde_json::from_slice(&parts.concat())
            }
            None => serde_json::from_slice(self.base.metadata()),
        };
        root.insert("metadata".into(), metadata.unwrap_or_default());
        for (name, range) in &self.base.members {
            if self.touched.covers(name) {
                root.insert(
                    (**name).into(),
                    serde_json::from_slice(&self.base.json[range.clone()]).unwrap_or_default(),
                );
            }
        }
        Value::Object(root)
    }

    /// The bytes of the parts that were not parsed.
    fn carried(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let members = self.base.members.iter().filter(|(name, _)| !self.touched.covers(name));
        members.map(|(name, range)| (&**name, &self.base.json[range.clone()]))
    }

    fn carried_managed(&self) -> Option<&[u8]> {
        let managed = self.base.managed.clone().filter(|_| *self.touched != Touched::All)?;
        Some(&self.base.json[managed])
    }
}

impl Prepared {
    /// `object` must carry `metadata.name`, and `metadata.namespace` where the kind has one.
    pub(crate) fn new(kind: &ResourceKind, object: &Value) -> Self {
        Self::build(kind, object, None)
    }

    /// As [`new`](Self::new), with the parts that `partial` did not parse as they were.
    pub(crate) fn with_rest(kind: &ResourceKind, object: &Value, partial: &Partial<'_>) -> Self {
        Self::build(kind, object, Some(partial))
    }

    fn build(kind: &ResourceKind, object: &Value, partial: Option<&Partial<'_>>) -> Self {
        let empty = Map::new();
        let root = object.as_object().unwrap_or(&empty);
        let metadata = root.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
        let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
        let size = partial.map_or(4096, |p| p.base.json.len() + 256);
        let mut before = Vec::with_capacity(size);
        before.extend_from_slice(kind.head.as_bytes());
        before.extend_from_slice(b"\"metadata\":{");
        let start = before.len() - 1;
        for (name, value) in metadata {
            if !matches!(name.as_str(), "resourceVersion" | "managedFields") {
                write_member(&mut before, name, value);
            }
        }
        let mut managed = None;
        if let Some(bytes) = partial.and_then(Partial::carried_managed) {
            managed = Some(write_raw(&mut before, "managedFields", bytes));
        } else if let Some(value) = metadata.get("managedFields") {
            managed = Some(write_member(&mut before, "managedFields", value));
        }
        comma(&mut before);
        before.extend_from_slice(b"\"resourceVersion\":\"");
        let mut after = Vec::with_capacity(size);
        after.extend_from_slice(b"\"}");
        let mut members = Vec::new();
        for (name, value) in root {
            if !matches!(name.as_str(), "kind" | "apiVersion" | "metadata") {
                let range = write_member(&mut after, name, value);
                members.push((name.as_str().into(), range));
            }
        }
        for (name, bytes) in partial.into_iter().flat_map(Partial::carried) {
            let range = write_raw(&mut after, name, bytes);
            members.push((name.into(), range));
        }
        after.push(b'}');
        let field = |(index, field): (usize, &crate::kind::SelectableField)| match partial {
            Some(partial) if !partial.touched.covers(field.source.member()) => {
                partial.base.fields.get(index).cloned().unwrap_or_default()
            }
            _ => field_value(&field.source, object),
        };
        Self {
            key: key(kind.namespaced.then(|| text("namespace")), text("name")),
            uid: text("uid").into(),
            labels: labels(metadata),
            fields: kind.fields.iter().enumerate().map(field).collect(),
            head: kind.head.len(),
            metadata: start,
            managed,
            members,
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
        let mut json = self.before;
        json.reserve_exact(digits.len() + self.after.len());
        json.extend_from_slice(digits.as_bytes());
        json.extend_from_slice(&self.after);
        let version = start..start + digits.len();
        let shift =
            |(name, range): (Box<str>, Range<usize>)| (name, range.start + version.end..range.end + version.end);
        Stored {
            key: self.key,
            revision,
            uid: self.uid,
            labels: self.labels,
            fields: self.fields,
            // Without spare room: objects are kept for long.
            json: Bytes::from(json.into_boxed_slice()),
            head: self.head,
            metadata: self.metadata..version.end + 2,
            managed: self.managed,
            members: self.members.into_iter().map(shift).collect(),
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
        let mut json = Vec::with_capacity(self.json.len() + digits.len() - self.version.len().min(digits.len()));
        json.extend_from_slice(&self.json[..self.version.start]);
        json.extend_from_slice(digits.as_bytes());
        json.extend_from_slice(&self.json[self.version.end..]);
        let version = self.version.start..self.version.start + digits.len();
        let moved = |at: usize| at + digits.len() - self.version.len();
        Self {
            key: self.key.clone(),
            revision,
            uid: self.uid.clone(),
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            json: json.into(),
            head: self.head,
            metadata: self.metadata.start..version.end + 2,
            managed: self.managed.clone(),
            members: self.members.iter().map(|(n, r)| (n.clone(), moved(r.start)..moved(r.end))).collect(),
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

fn comma(out: &mut Vec<u8>) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
}

/// Writes `"name":value`; gives the place of the value.
fn write_member(out: &mut Vec<u8>, name: &str, value: &Value) -> Range<usize> {
    write_name(out, name);
    let start = out.len();
    // Writing a tree with string keys to memory cannot fail.
    let _ = serde_json::to_writer(&mut *out, value);
    start..out.len()
}

fn write_raw(out: &mut Vec<u8>, name: &str, value: &[u8]) -> Range<usize> {
    write_name(out, name);
    let start = out.len();
    out.extend_from_slice(value);
    start..out.len()
}

fn write_name(out: &mut Vec<u8>, name: &str) {
    comma(out);
    let _ = serde_json::to_writer(&mut *out, name);
    out.push(b':');
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
    fn untouched_parts_are_carried_over() {
        let kind = crate::kind::built_in().into_iter().find(|k| k.is("v1/pods")).unwrap();
        let whole = json!({"kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": "a", "namespace": "ns", "uid": "u", "managedFields": [{"manager": "m"}], "zone": 1},
            "spec": {"nodeName": "n"}, "status": {"phase": "Running"}});
        let old = Prepared::new(&kind, &whole).finish(99).with_revision(100);
        for touched in [
            Touched::All,
            Touched::Only(vec![]),
            Touched::Only(vec!["spec".into()]),
            Touched::Only(vec!["status".into()]),
        ] {
            let partial = Partial::new(&old, &touched);
            let mut value = partial.value();
            assert_eq!(value.get("spec").is_some(), touched.covers("spec"));
            value["metadata"]["labels"] = json!({"x": "y"});
            let new = Prepared::with_rest(&kind, &value, &partial).finish(7);
            let mut expected = whole.clone();
            expected["metadata"]["labels"] = json!({"x": "y"});
            expected["metadata"]["resourceVersion"] = "7".into();
            assert_eq!(new.value(), expected, "{touched:?}");
            assert_eq!(new.fields, old.fields);
            // And once more from the result.
            let again = Partial::new(&new, &touched);
            assert_eq!(Prepared::with_rest(&kind, &again.value(), &again).finish(7).value(), expected);
        }
    }

    #[test]
    fn debug_shows_no_content() {
        let text = format!("{:?}", stored(json!({"metadata": {"name": "a", "namespace": "n"}, "data": "secret"})));
        assert!(!text.contains("secret"), "{text}");
    }
}
