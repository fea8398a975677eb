//! What can be wrong with a text or a configuration.

use std::fmt;

/// Why a text is no resource, object key, duration or label selector, with the position.
///
/// Displays as message, column and, where one is known, a hint:
/// `resource in upper case at column 9: write the plural in lower case, as in 'apps/v1/deployments'`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    message: Box<str>,
    column: usize,
    hint: Option<Box<str>>,
}

impl ParseError {
    /// An error at a byte offset of the text.
    pub(crate) fn at(text: &str, offset: usize, message: impl Into<Box<str>>) -> ParseError {
        let column = text.char_indices().take_while(|(i, _)| *i < offset).count() + 1;
        ParseError { message: message.into(), column, hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<Box<str>>) -> ParseError {
        self.hint = Some(hint.into());
        self
    }

    /// What is wrong, without position and hint.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Where it is: the column in characters, the first is 1. An end that came too early is one past the last.
    pub fn column(&self) -> usize {
        self.column
    }

    /// How to write it, where that is known.
    pub fn suggestion(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at column {}", self.message, self.column)?;
        match &self.hint {
            Some(hint) => write!(f, ": {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ParseError {}

/// A setting that cannot work, with the name of its field: `namespaces: empty list`.
///
/// The field is written as the setter is called, with the position in a list: `index_by[1]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    field: Box<str>,
    message: Box<str>,
}

impl ConfigError {
    /// An error of this field. Public for the crates that check what only they can, such as JSONPath.
    pub fn new(field: impl Into<Box<str>>, message: impl fmt::Display) -> ConfigError {
        ConfigError { field: field.into(), message: message.to_string().into() }
    }

    /// The field that is wrong, such as `index_by[1]`.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What is wrong with it.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for ConfigError {}
