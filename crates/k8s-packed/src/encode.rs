//! From JSON, or anything else that serde reads, to an object: one pass, no tree in between.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer};
use serde_json::de::StrRead;

use crate::error::Error;
use crate::interner::Interner;
use crate::object::Object;
use crate::path::Path;
use crate::path_tree::PathTree;

mod number;
mod repeats;
mod sink;
mod visitor;
mod walk;

use sink::Sink;
use visitor::Root;
use walk::Walk;

/// Makes objects for one store: drops what is ignored while it reads, shares what the objects have in common.
///
/// Key texts and values that several objects bring are kept once, in a table that grows with the encoder and
/// that each object holds on to. An encoder is owned by the one writer of a store; objects are free to go
/// anywhere.
///
/// # Examples
///
/// ```
/// use k8s_packed::{Encoder, Path};
///
/// let ignored: Path = "metadata.managedFields".parse()?;
/// let mut encoder = Encoder::new().ignore([&ignored]);
/// let pod = encoder.encode(br#"{"metadata": {"name": "cart", "managedFields": [{"manager": "kubelet"}]}}"#)?;
/// assert_eq!(pod.name(), "cart");
/// assert_eq!(pod.get(&ignored), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Encoder {
    interner: Interner,
    rules: Rules,
    out: Vec<u8>,
}

/// What an encoder leaves out of objects and adds to them.
#[derive(Default)]
pub(crate) struct Rules {
    prune: PathTree,
    keep: Option<PathTree>,
    metadata_only: bool,
    type_meta: Option<TypeMeta>,
}

impl Rules {
    /// The way from the root.
    fn walk(&self) -> Walk<'_> {
        Walk::new(&self.prune, self.keep.as_ref())
    }
}

struct TypeMeta {
    api_version: Box<str>,
    kind: Box<str>,
}

impl Encoder {
    /// An encoder that keeps everything, with an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves out what the paths select, wildcards over arrays and maps included, in place of any paths given
    /// before. What is not there is no error. Indexes count the items as they came, however many of them are
    /// left out; one from the end (`[-1]`) selects nothing, since how long an array is shows only when it has
    /// been read. So does the empty path: the object itself stays.
    #[must_use]
    pub fn ignore<'p>(mut self, paths: impl IntoIterator<Item = &'p Path>) -> Self {
        self.rules.prune = PathTree::ignored(paths);
        self
    }

    /// Keeps what the paths select and the identity, and leaves out everything else while it reads: for
    /// references to objects that are kept elsewhere. In place of any paths given before.
    ///
    /// The identity is `metadata.name`, `namespace`, `uid`, `resourceVersion` and `generation`. What a path
    /// selects is kept whole, so a path also stands for everything below its end; the empty path keeps all.
    /// An index keeps the same of every item, since items keep their places. What lies on the way stays with
    /// what is kept of it, a scalar there as null. So [`get`](Object::get) and [`all`](Object::all) give for
    /// each of the paths what they give for the whole object.
    ///
    /// What is [ignored](Self::ignore) is left out even if it is kept by these paths, and a
    /// [type](Self::set_type_meta) is filled in only if it is kept.
    ///
    /// # Examples
    ///
    /// ```
    /// use k8s_packed::{Encoder, Path};
    ///
    /// let hosts: Path = "spec.rules[*].host".parse()?;
    /// let mut encoder = Encoder::new().keep_only([&hosts]);
    /// let ingress = encoder.encode(br#"{
    ///     "metadata": {"name": "cart", "uid": "7f3a", "labels": {"app": "cart"}},
    ///     "spec": {"rules": [{"host": "a.example", "http": {"paths": []}}, {"host": "b.example"}]}
    /// }"#)?;
    /// assert_eq!(
    ///     serde_json::to_string(&ingress)?,
    ///     r#"{"metadata":{"name":"cart","uid":"7f3a"},"spec":{"rules":[{"host":"a.example"},{"host":"b.example"}]}}"#,
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn keep_only<'p>(mut self, paths: impl IntoIterator<Item = &'p Path>) -> Self {
        self.rules.keep = Some(PathTree::kept(paths));
        self
    }

    /// Keeps `apiVersion`, `kind` and `metadata` only.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.rules.metadata_only = true;
        self
    }

    /// Fills in `apiVersion` and `kind` where an object has none, as the items of a list do.
    pub fn set_type_meta(&mut self, api_version: &str, kind: &str) {
        self.rules.type_meta = Some(TypeMeta { api_version: api_version.into(), kind: kind.into() });
    }

    /// Encodes the JSON text of one object.
    ///
    /// Numbers are exact, members keep their order, the last of duplicate members wins.
    ///
    /// # Errors
    ///
    /// When the bytes are no JSON, no object, or nested deeper than `serde_json` reads (127 levels).
    pub fn encode(&mut self, json: &[u8]) -> Result<Object, Error> {
        from_json(json, |json| self.seed().deserialize(json))
    }

    /// Encodes the JSON text of one object by the same rules, but for itself: it shares nothing with others.
    ///
    /// For objects that come and go, such as those of a cache: each takes what its size says, and needs no
    /// table to live on.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode).
    pub fn encode_alone(&self, json: &[u8]) -> Result<Object, Error> {
        from_json(json, |json| encode_alone(json, &self.rules))
    }

    /// An object inside something bigger, such as an item of a list: decodes the next value as one object.
    ///
    /// A value that fails leaves the encoder as it was.
    pub fn seed(&mut self) -> ObjectSeed<'_> {
        ObjectSeed { encoder: self }
    }

    /// Encodes an object again, into the present table.
    ///
    /// The content stays exactly what it is: what the encoder leaves out or adds concerns new objects only, so
    /// that doing it twice cannot take away a second item by the same index.
    #[must_use]
    pub fn reencode(&mut self, object: &Object) -> Object {
        let Self { interner, out, .. } = self;
        // Reading an object cannot fail, and it is no deeper than it was when it came in.
        encode_shared(interner, out, &Rules::default(), object.root_value()).unwrap_or_else(|_| object.clone())
    }

    /// Whether the object uses the present table, or none.
    pub fn is_current(&self, object: &Object) -> bool {
        object.symbols().is_none_or(|s| std::ptr::eq(s, &**self.interner.symbols()))
    }

    /// Bytes of the present table and of what the encoder needs to fill it.
    pub fn memory(&self) -> usize {
        self.interner.memory()
    }

    /// Whether much of the table is likely dead: it has outgrown the `live` bytes of objects that use it, and
    /// doubled since the last compaction.
    pub fn wants_compaction(&self, live: usize) -> bool {
        self.interner.wants_compaction(live)
    }

    /// Begins a compaction: from now on objects are encoded into an empty table.
    ///
    /// The caller then [re-encodes](Self::reencode) the objects that are [not current](Self::is_current), as
    /// many at a time as it likes, and ends with [`finish_compaction`](Self::finish_compaction). The old table
    /// is freed with the last object that uses it.
    pub fn start_compaction(&mut self) {
        self.interner.start_table();
    }

    /// Ends a compaction: the present size is what the live objects need.
    pub fn finish_compaction(&mut self) {
        self.interner.settle_table();
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("memory", &self.memory()).finish_non_exhaustive()
    }
}

/// Decodes one object with an [`Encoder`]; see [`Encoder::seed`].
#[derive(Debug)]
pub struct ObjectSeed<'e> {
    encoder: &'e mut Encoder,
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_> {
    type Value = Object;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Object, D::Error> {
        let Encoder { interner, rules, out } = self.encoder;
        encode_shared(interner, out, rules, deserializer)
    }
}

/// Encodes an object that shares what it can through the table.
fn encode_shared<'de, D: Deserializer<'de>>(
    interner: &mut Interner,
    out: &mut Vec<u8>,
    rules: &Rules,
    deserializer: D,
) -> Result<Object, D::Error> {
    out.clear();
    let mut sink = Sink::new(out, Some(interner));
    match (Root { sink: &mut sink, rules }).read(deserializer) {
        Ok(()) => {
            let object = sink.finish();
            interner.settle(identity(&object));
            out.shrink_to(256 << 10);
            Ok(object)
        }
        Err(e) => {
            interner.abandon();
            Err(e)
        }
    }
}

/// What tells an object from others: the uid, or the name where there is none.
fn identity(object: &Object) -> &[u8] {
    object.uid().unwrap_or(object.name()).as_bytes()
}

/// Reads the JSON text of one object with `read`.
pub(crate) fn from_json(
    json: &[u8],
    read: impl FnOnce(&mut serde_json::Deserializer<StrRead<'_>>) -> serde_json::Result<Object>,
) -> Result<Object, Error> {
    // Checked as a whole, the texts need not be checked one by one, which takes longer.
    let json = std::str::from_utf8(json).map_err(|e| Error::from_utf8(e, json))?;
    let mut json = serde_json::Deserializer::from_str(json);
    let object = read(&mut json);
    object.and_then(|o| json.end().map(|()| o)).map_err(|e| Error::from_json(&e))
}

/// Encodes an object that uses no table, as it is.
pub(crate) fn encode_single<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Object, D::Error> {
    encode_alone(deserializer, &Rules::default())
}

/// Encodes an object that uses no table.
fn encode_alone<'de, D: Deserializer<'de>>(deserializer: D, rules: &Rules) -> Result<Object, D::Error> {
    let mut out = vec![];
    let mut sink = Sink::new(&mut out, None);
    Root { sink: &mut sink, rules }.read(deserializer)?;
    Ok(sink.finish())
}
