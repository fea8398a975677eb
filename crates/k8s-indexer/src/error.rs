//! What can be wrong with an expression.

use std::{error::Error, fmt};

use k8s_packed::PathError;

/// Why a text is no expression or selector, with the position.
///
/// Displays as message, column and, where one is known, a hint:
/// `unescaped dots in a label key at column 17: write metadata.labels['app.kubernetes.io/name']`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    message: Box<str>,
    column: usize,
    hint: Option<Box<str>>,
}

impl ExpressionError {
    /// An error at a byte offset of the text.
    pub(crate) fn at(text: &str, offset: usize, message: impl Into<Box<str>>) -> ExpressionError {
        ExpressionError { message: message.into(), column: column(text, offset), hint: None }
    }

    /// The error of a part that begins at a byte offset of the text.
    pub(crate) fn within(text: &str, offset: usize, error: &PathError) -> ExpressionError {
        ExpressionError {
            message: error.message().into(),
            column: column(text, offset) - 1 + error.column(),
            hint: error.suggestion().map(Box::from),
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<Box<str>>) -> ExpressionError {
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

/// The column of a byte offset, from 1.
pub(crate) fn column(text: &str, offset: usize) -> usize {
    text.char_indices().take_while(|(i, _)| *i < offset).count() + 1
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at column {}", self.message, self.column)?;
        match &self.hint {
            Some(hint) => write!(f, ": {hint}"),
            None => Ok(()),
        }
    }
}

impl Error for ExpressionError {}

/// One of several expressions is wrong: which, and why. Displays as `expression 1`; the reason is
/// [`error`](IndexerError::error) and the source.
///
/// A configuration's field is best named in front: `index_by[1]: unclosed quote at column 17`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexerError {
    position: usize,
    error: ExpressionError,
}

impl IndexerError {
    pub(crate) fn new(position: usize, error: ExpressionError) -> IndexerError {
        IndexerError { position, error }
    }

    /// Which expression of the list, from 0.
    pub fn position(&self) -> usize {
        self.position
    }

    /// What is wrong with it.
    pub fn error(&self) -> &ExpressionError {
        &self.error
    }
}

impl fmt::Display for IndexerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expression {}", self.position)
    }
}

impl Error for IndexerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}
