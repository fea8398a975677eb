//! The packed object: one immutable allocation, eight bytes to hold.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;
use triomphe::ThinArc;

use crate::encode::{encode_single, from_json};
use crate::equality::same_members;
use crate::error::Error;
use crate::layout::{self, KeyToken, Token};
use crate::path::Path;
use crate::symbols::Symbols;
use crate::value::{MapRef, Members, ValueRef};

/// A Kubernetes object, or any other JSON object, as compact immutable bytes.
///
/// Cloning costs one atomic increment; a handle takes eight bytes. Getters and [`get`](Self::get) read the
/// bytes in place and allocate nothing; [`decode`](Self::decode) gives any type that serde knows.
///
/// Two objects are equal when their JSON is, regardless of the order of members. The text that `Debug` prints
/// names the object and shows nothing of its content.
///
/// # Examples
///
/// ```
/// let object = k8s_packed::object!({
///     "apiVersion": "v1", "kind": "Service",
///     "metadata": {"name": "cart", "namespace": "shop", "labels": {"app": "cart"}},
///     "spec": {"ports": [{"name": "http", "port": 8080}]}
/// });
/// assert_eq!((object.namespace(), object.name()), (Some("shop"), "cart"));
/// assert_eq!(object.label("app"), Some("cart"));
///
/// let port = object.get(&"spec.ports[0].port".parse()?).unwrap();
/// assert_eq!(port.as_i64(), Some(8080));
/// # Ok::<(), k8s_packed::PathError>(())
/// ```
#[derive(Clone)]
pub struct Object(ThinArc<Header, u8>);

/// What stands before the bytes.
struct Header {
    symbols: Option<Arc<Symbols>>,
    /// Where in the bytes the contents of `metadata` begin and end; zeros when there is no such map.
    metadata: (u32, u32),
    name: At,
    namespace: At,
    uid: At,
    resource_version: At,
}

/// Where in the bytes a value begins.
#[derive(Clone, Copy)]
struct At(u32);

impl At {
    const NOWHERE: Self = Self(u32::MAX);
}

impl Object {
    /// Encodes the JSON text of one object, for itself: it shares nothing with others.
    ///
    /// For many objects use an [`Encoder`](crate::Encoder).
    ///
    /// # Errors
    ///
    /// When the bytes are no JSON, no object, or nested deeper than `serde_json` reads (127 levels).
    pub fn from_slice(json: &[u8]) -> Result<Self, Error> {
        from_json(json, |json| encode_single(json))
    }

    /// Encodes a JSON value for itself.
    ///
    /// # Errors
    ///
    /// When the value is no object or nested deeper than 127 levels.
    pub fn from_value(value: &Value) -> Result<Self, Error> {
        encode_single(value).map_err(|e: serde_json::Error| Error::from_json(&e))
    }

    /// Encodes anything that serializes to an object, such as a typed resource, for itself.
    ///
    /// # Errors
    ///
    /// When the value cannot be serialized to JSON, is no object, or is nested deeper than 127 levels.
    pub fn from_serialize(value: &impl Serialize) -> Result<Self, Error> {
        let json = serde_json::to_vec(value).map_err(|_| Error::not_an_object())?;
        Self::from_slice(&json)
    }

    /// Takes over the bytes of one map.
    pub(crate) fn from_bytes(symbols: Option<Arc<Symbols>>, bytes: &[u8]) -> Self {
        let header = Header::find(symbols, bytes);
        Self(ThinArc::from_header_and_slice(header, bytes))
    }

    /// `metadata.name`, empty when there is none.
    #[inline]
    pub fn name(&self) -> &str {
        self.text_at(self.header().name).unwrap_or("")
    }

    /// `metadata.namespace`; none when it is missing or empty, as for cluster-scoped kinds.
    #[inline]
    pub fn namespace(&self) -> Option<&str> {
        self.text_at(self.header().namespace).filter(|n| !n.is_empty())
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> Option<&str> {
        self.text_at(self.header().uid)
    }

    /// `metadata.resourceVersion`.
    pub fn resource_version(&self) -> Option<&str> {
        self.text_at(self.header().resource_version)
    }

    /// `metadata.generation`; kinds such as Secret and ConfigMap have none.
    pub fn generation(&self) -> Option<i64> {
        self.metadata().get("generation")?.as_i64()
    }

    /// `apiVersion`.
    pub fn api_version(&self) -> Option<&str> {
        self.root().get("apiVersion")?.as_str()
    }

    /// `kind`.
    pub fn kind(&self) -> Option<&str> {
        self.root().get("kind")?.as_str()
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata().get("labels")?.as_map()?.get(key)?.as_str()
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata().get("annotations")?.as_map()?.get(key)?.as_str()
    }

    /// The labels, in the object's order; a label whose value is no text is left out.
    pub fn labels(&self) -> Labels<'_> {
        let labels = self.metadata().get("labels").and_then(|l| l.as_map());
        Labels(labels.unwrap_or(MapRef::EMPTY).iter())
    }

    /// The object as a map.
    pub fn root(&self) -> MapRef<'_> {
        self.root_value().as_map().unwrap_or(MapRef::EMPTY)
    }

    /// The members of `metadata`; empty when there is none.
    pub fn metadata(&self) -> MapRef<'_> {
        let (start, end) = self.header().metadata;
        let contents = self.bytes().get(start as usize..end as usize).unwrap_or(&[]);
        MapRef::new(self, contents)
    }

    /// The first value that the path selects, in document order. Allocates nothing.
    pub fn get(&self, path: &Path) -> Option<ValueRef<'_>> {
        match path.steps().split_first() {
            Some((step, rest)) if step.is_member("metadata") && self.header().has_metadata() => {
                ValueRef::Map(self.metadata()).first(rest)
            }
            _ => self.root_value().first(path.steps()),
        }
    }

    /// All values that the path selects, in document order. Allocates nothing for up to three wildcards.
    pub fn all<'a>(&'a self, path: &'a Path) -> crate::All<'a> {
        self.root_value().all(path)
    }

    /// The object as a tree of its own. Allocates for each text, array and map.
    pub fn to_value(&self) -> Value {
        self.root_value().to_value()
    }

    /// Decodes a typed object straight from the bytes; texts may be borrowed from them.
    ///
    /// # Errors
    ///
    /// When the object does not fit the type; the text names the field and quotes no value.
    ///
    /// # Examples
    ///
    /// ```
    /// #[derive(serde::Deserialize)]
    /// struct Named { metadata: Metadata }
    /// #[derive(serde::Deserialize)]
    /// struct Metadata { name: String, generation: u8 }
    ///
    /// let object = k8s_packed::object!({"metadata": {"name": "a", "generation": 7}});
    /// let named: Named = object.decode()?;
    /// assert_eq!((&*named.metadata.name, named.metadata.generation), ("a", 7));
    ///
    /// let object = k8s_packed::object!({"metadata": {"name": "a", "generation": "secret"}});
    /// let error = object.decode::<Named>().err().unwrap();
    /// assert_eq!(error.to_string(), "metadata.generation: invalid type: string, expected u8");
    /// # Ok::<(), k8s_packed::Error>(())
    /// ```
    pub fn decode<'de, T: Deserialize<'de>>(&'de self) -> Result<T, Error> {
        let root = self.root_value();
        T::deserialize(root).map_err(|e| e.checked(root))
    }

    /// Bytes of the allocation: header and content, without the symbols that the content refers to.
    pub fn size(&self) -> usize {
        // The count of references, the header, the length, the bytes.
        size_of::<usize>() + size_of::<Header>() + size_of::<usize>() + self.bytes().len()
    }

    /// The same content in an object that stands for itself; this one if it does already.
    ///
    /// An object that an [`Encoder`](crate::Encoder) made keeps alive the table that it shares with others.
    #[must_use]
    pub fn detached(&self) -> Self {
        match self.symbols() {
            // Reading an object cannot fail, and it is no deeper than it was when it came in.
            Some(_) => encode_single(self.root_value()).unwrap_or_else(|_: Error| self.clone()),
            None => self.clone(),
        }
    }

    /// Whether two objects are equal apart from `metadata.resourceVersion`.
    ///
    /// Costs a walk over both at most; what both share is not walked over.
    pub fn same_content(&self, other: &Self) -> bool {
        if self.ptr_eq(other) {
            return true;
        }
        if !self.header().has_metadata() || !other.header().has_metadata() {
            return self == other;
        }
        same_members(self.metadata(), other.metadata(), Some("resourceVersion"))
            && same_members(self.root(), other.root(), Some("metadata"))
    }

    /// Whether both are the same allocation.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.0.ptr() == other.0.ptr()
    }

    /// Whether both have the same bytes over the same table: then they are equal, but not only then.
    fn shares_bytes(&self, other: &Self) -> bool {
        let table = |o: &Self| o.symbols().map(std::ptr::from_ref);
        table(self) == table(other) && self.bytes() == other.bytes()
    }

    #[inline]
    fn header(&self) -> &Header {
        &self.0.header.header
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.0.slice
    }

    #[inline]
    pub(crate) fn symbols(&self) -> Option<&Symbols> {
        self.header().symbols.as_deref()
    }

    /// The text of a key in the table.
    #[inline]
    pub(crate) fn key(&self, id: u32) -> &str {
        self.symbols().map_or("", |s| s.key(id))
    }

    /// The bytes of a value in the table.
    #[inline]
    pub(crate) fn value(&self, id: u32) -> &[u8] {
        self.symbols().map_or(&[], |s| s.value(id))
    }

    /// The bytes from a place on; none when it is beyond the end.
    #[inline]
    pub(crate) fn bytes_from(&self, at: usize) -> &[u8] {
        self.bytes().get(at..).unwrap_or(&[])
    }

    pub(crate) fn root_value(&self) -> ValueRef<'_> {
        ValueRef::read(Some(self), self.bytes()).0
    }

    #[inline]
    fn text_at(&self, at: At) -> Option<&str> {
        // Nowhere is beyond the end, where nothing is no text.
        ValueRef::read(Some(self), self.bytes_from(at.0 as usize)).0.as_str()
    }
}

// === impl Header ===

impl Header {
    /// Walks over the members of the root and of `metadata` once, so that the getters need not.
    fn find(symbols: Option<Arc<Symbols>>, bytes: &[u8]) -> Self {
        let mut header = Self {
            symbols,
            metadata: (0, 0),
            name: At::NOWHERE,
            namespace: At::NOWHERE,
            uid: At::NOWHERE,
            resource_version: At::NOWHERE,
        };
        // The places are 32 bits wide; an object of 4 GiB does without them.
        if u32::try_from(bytes.len()).is_err() {
            return header;
        }
        let at = |rest: &[u8]| rest.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr()) as u32;
        let Token::Map(mut rest) = layout::read_value(bytes).0 else {
            return header;
        };
        while !rest.is_empty() {
            let (key, value) = layout::read_key(rest);
            let (token, after) = layout::read_value(value);
            if let (Token::Map(contents), "metadata") = (token, header.key(key)) {
                header.metadata = (at(contents), at(contents) + contents.len() as u32);
                let mut rest = contents;
                while !rest.is_empty() {
                    let (key, value) = layout::read_key(rest);
                    let slot = match header.key(key) {
                        "name" => Some(&mut header.name),
                        "namespace" => Some(&mut header.namespace),
                        "uid" => Some(&mut header.uid),
                        "resourceVersion" => Some(&mut header.resource_version),
                        _ => None,
                    };
                    if let Some(slot) = slot {
                        *slot = At(at(value));
                    }
                    rest = layout::read_value(value).1;
                }
            }
            rest = after;
        }
        header
    }

    /// Whether there is a `metadata` that is a map; it may be empty.
    fn has_metadata(&self) -> bool {
        self.metadata.0 > 0
    }

    fn key<'k>(&self, key: KeyToken<'k>) -> &'k str {
        // Only the five names that are compared with matter, so the borrow can be shortened to theirs.
        let text = match key {
            KeyToken::Inline(text) => text,
            KeyToken::Symbol(id) => self.symbols.as_ref().map_or("", |s| s.key(id)).as_bytes(),
        };
        ["metadata", "name", "namespace", "uid", "resourceVersion"]
            .into_iter()
            .find(|k| k.as_bytes() == text)
            .unwrap_or("")
    }
}

// === trait impls ===

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.ptr_eq(other) || self.shares_bytes(other) || self.root() == other.root()
    }
}

/// Names the object; its content may be a secret.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("apiVersion", &self.api_version())
            .field("kind", &self.kind())
            .field("namespace", &self.namespace())
            .field("name", &self.name())
            .field("resourceVersion", &self.resource_version())
            .finish_non_exhaustive()
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.root().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        encode_single(deserializer)
    }
}

/// Iterator over the labels of an object; see [`Object::labels`].
#[derive(Clone, Debug)]
pub struct Labels<'a>(Members<'a>);

impl<'a> Iterator for Labels<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.by_ref().find_map(|(k, v)| Some((k, v.as_str()?)))
    }
}
