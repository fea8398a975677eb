//! What can go wrong while an object is encoded or decoded.

use std::fmt;

use serde_json::error::Category;

use crate::path::{Path, Step};
use crate::redact;
use crate::value::ValueRef;

/// Why bytes are no object, or an object is not of the wanted type.
///
/// The text does not quote values: objects may be Secrets. It names the place instead: line and column of
/// the JSON while encoding, the path of the field while decoding. What a type's own `Deserialize` says is
/// passed on, unless it repeats a part of the value.
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
    #[error("number out of range")]
    NumberRange,
    #[error("{}{message}", At(path))]
    Decode {
        /// The steps to the field, innermost first.
        path: Vec<Step>,
        message: String,
        /// The message comes from a type's own code, and was not yet compared with the value.
        unchecked: bool,
    },
}

/// How deep values may be nested: what `serde_json` reads.
pub(crate) const MAX_DEPTH: usize = 127;

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

    /// A message whose every part is known to be no value.
    pub(crate) fn decode(message: String) -> Self {
        Kind::Decode { path: vec![], message, unchecked: false }.into()
    }

    /// A message of a type's own code, which may say anything.
    pub(crate) fn foreign(message: String) -> Self {
        Kind::Decode { path: vec![], message, unchecked: true }.into()
    }

    /// Takes a foreign message away when it repeats some of the value that it is about.
    pub(crate) fn checked(mut self, value: ValueRef<'_>) -> Self {
        if let Kind::Decode { message, unchecked, .. } = &mut self.0
            && std::mem::take(unchecked)
            && redact::quotes(message, value)
        {
            "refused by its type, for a reason that quotes the value".clone_into(message);
        }
        self
    }

    /// Adds the member or item that the error came from, and that had this value.
    pub(crate) fn at(self, value: ValueRef<'_>, step: impl FnOnce() -> Step) -> Self {
        let mut error = self.checked(value);
        if let Kind::Decode { path, .. } = &mut error.0 {
            path.push(step());
        }
        error
    }

    /// The place of the first byte that is no text.
    pub(crate) fn from_utf8(e: std::str::Utf8Error, json: &[u8]) -> Self {
        if e.error_len().is_none() {
            return Kind::Truncated.into();
        }
        let before = &json[..e.valid_up_to()];
        let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let line = 1 + before.iter().filter(|b| **b == b'\n').count();
        Kind::Syntax { line, column: 1 + before.len() - line_start }.into()
    }

    /// Takes over what matters of a `serde_json` error: its text may quote the input, ours must not.
    pub(crate) fn from_json(e: &serde_json::Error) -> Self {
        match e.classify() {
            Category::Eof => Kind::Truncated.into(),
            Category::Syntax | Category::Data | Category::Io => {
                let text = e.to_string();
                let begins = |known: &str| text.starts_with(known);
                if begins("recursion limit") || begins(TOO_DEEP) {
                    Kind::TooDeep.into()
                } else if begins(TOO_LARGE) {
                    Kind::TooLarge.into()
                } else if begins(NOT_AN_OBJECT) {
                    Self::not_an_object()
                } else if begins(NUMBER_RANGE) {
                    Kind::NumberRange.into()
                } else {
                    Kind::Syntax { line: e.line(), column: e.column() }.into()
                }
            }
        }
    }
}

/// How the encoder tells a foreign `Deserializer` what is wrong: by the only thing it can pass on, a text.
pub(crate) const TOO_DEEP: &str = "nested too deep for an object";
/// See [`TOO_DEEP`].
pub(crate) const TOO_LARGE: &str = "too large for an object";
/// See [`TOO_DEEP`].
pub(crate) const NOT_AN_OBJECT: &str = "invalid type: expected a JSON object";

/// See [`TOO_DEEP`]; the words that `serde_json` itself has for it.
pub(crate) const NUMBER_RANGE: &str = "number out of range";

/// The way to the field and a colon; nothing for the object itself.
struct At<'a>(&'a [Step]);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, "{}: ", Path::from_steps(self.0.iter().rev().cloned()))
    }
}
