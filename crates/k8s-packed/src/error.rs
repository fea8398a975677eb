//! What can go wrong while an object is encoded or decoded.

use std::fmt;

/// Why bytes are no object, or an object is not of the wanted type.
///
/// The text never quotes a value: objects may be Secrets. It names the place instead: line and column of
/// the JSON while encoding, the path of the field while decoding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] Kind);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Kind {
    #[error("invalid JSON at line {line} column {column}")]
    Syntax { line: usize, column: usize },
    #[error("JSON ends in the middle of a value")]
    Truncated,
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("not a JSON object")]
    NotAnObject,
    #[error("larger than 4 GiB")]
    TooLarge,
    #[error("{}{message}", At(path))]
    Decode { path: Vec<Place>, message: String },
    #[error("{0}")]
    Source(String),
}

/// How deep values may be nested: what `serde_json` reads.
pub(crate) const MAX_DEPTH: usize = 127;

/// A step to the field that could not be decoded, innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Member(String),
    Item(usize),
}

impl Error {
    pub(crate) fn not_an_object() -> Self {
        Kind::NotAnObject.into()
    }

    /// The JSON is nested too deep to be held as an object; the limit is `serde_json`'s.
    pub fn is_too_deep(&self) -> bool {
        self.0 == Kind::TooDeep
    }

    /// The bytes end in the middle of a value: more of them might have been an object.
    pub fn is_truncated(&self) -> bool {
        self.0 == Kind::Truncated
    }

    /// The object is sound but not of the type asked for.
    pub fn is_decode(&self) -> bool {
        matches!(self.0, Kind::Decode { .. })
    }

    pub(crate) fn decode(message: String) -> Self {
        Kind::Decode { path: vec![], message }.into()
    }

    /// Adds the member or item that the error came from.
    pub(crate) fn at(mut self, place: impl FnOnce() -> Place) -> Self {
        if let Kind::Decode { path, .. } = &mut self.0 {
            path.push(place());
        }
        self
    }

    /// Takes over what matters of a `serde_json` error: its text may quote the input, ours must not.
    pub(crate) fn from_json(e: &serde_json::Error) -> Self {
        match e.classify() {
            serde_json::error::Category::Eof => Kind::Truncated.into(),
            serde_json::error::Category::Syntax if e.to_string().starts_with("recursion limit") => Kind::TooDeep.into(),
            serde_json::error::Category::Data if e.to_string().starts_with(TOO_DEEP) => Kind::TooDeep.into(),
            serde_json::error::Category::Data if e.to_string().starts_with(TOO_LARGE) => Kind::TooLarge.into(),
            serde_json::error::Category::Data if e.to_string().starts_with(NOT_AN_OBJECT) => Self::not_an_object(),
            _ => Kind::Syntax { line: e.line(), column: e.column() }.into(),
        }
    }
}

/// How the encoder tells a foreign `Deserializer` what is wrong: by the only thing it can pass on, a text.
pub(crate) const TOO_DEEP: &str = "nested too deep for an object";
/// See [`TOO_DEEP`].
pub(crate) const TOO_LARGE: &str = "too large for an object";
/// See [`TOO_DEEP`].
pub(crate) const NOT_AN_OBJECT: &str = "invalid type: expected a JSON object";

struct At<'a>(&'a [Place]);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, place) in self.0.iter().rev().enumerate() {
            match place {
                Place::Item(at) => write!(f, "[{at}]")?,
                Place::Member(name) if name.contains(['.', '/', '\'']) => {
                    write!(f, "['{}']", name.replace('\'', "\\'"))?
                }
                Place::Member(name) if i == 0 => f.write_str(name)?,
                Place::Member(name) => write!(f, ".{name}")?,
            }
        }
        if self.0.is_empty() { Ok(()) } else { f.write_str(": ") }
    }
}
