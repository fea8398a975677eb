//! Paths into an object: members, array indexes and wildcards, parsed once and walked without allocation.

mod parse;
#[cfg(test)]
mod tests;

use std::{fmt, str::FromStr};

/// A parsed path into an object: a sequence of [`Step`]s.
///
/// The text form is kubectl's JSONPath dialect, restricted to member names, array indexes and wildcards:
///
/// | text | meaning |
/// | --- | --- |
/// | `metadata.name`, `.metadata.name`, `{.metadata.name}` | members |
/// | `metadata.labels['app.kubernetes.io/name']`, the same with `"` | a member whose name has dots or other special characters |
/// | `metadata.labels.app\.kubernetes\.io/name` | the same; the backslash takes the next character as it is, inside brackets too |
/// | `spec.rules[0].host`, `spec.rules[-1].host` | an item, counted from the start or from the end |
/// | `spec.rules[*].host`, `metadata.labels.*` | all items of an array or all values of a map |
///
/// In dotted names `-`, `/`, `:` and any letter of any script stand for themselves. A text that begins with `$` is
/// read by the rules of RFC 9535 instead (`$.metadata.labels['a.b/c']`, `$["spec"].rules[0]`): names after a dot are
/// letters, digits and `_` only, and backslashes are JSON escapes.
///
/// A label or annotation key with unescaped dots (`metadata.labels.app.kubernetes.io/name`) never names what its
/// author meant, so it is an error that shows the right spelling. Recursive descent, slices, unions and filters are
/// valid JSONPath but no plain paths; [`PathError::needs_query`] tells them from mistakes.
///
/// [`Display`](fmt::Display) writes a canonical text that parses to an equal path (the empty path, which selects the
/// whole object and can only be made by [`Path::from_steps`], is written `$` and does not parse).
///
/// # Examples
///
/// ```
/// use k8s_packed::{Path, Step};
///
/// let path: Path = r"{.metadata.labels.app\.kubernetes\.io/name}".parse()?;
/// assert_eq!(path.to_string(), "metadata.labels['app.kubernetes.io/name']");
/// assert_eq!(path.steps()[0], Step::Member("metadata".into()));
///
/// let error = "metadata.labels['team".parse::<Path>().unwrap_err();
/// assert_eq!(error.to_string(), "unclosed quote at column 17");
/// # Ok::<(), k8s_packed::PathError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Path {
    steps: Box<[Step]>,
}

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// The member of a map with this name. No result on arrays and scalars.
    Member(Box<str>),
    /// The item of an array at this position; a negative one counts from the end (`-1` is the last). No result out of
    /// range, on maps and on scalars.
    Index(i64),
    /// All items of an array or all member values of a map, in document order. No result on scalars.
    Wildcard,
}

/// Why a text is no [`Path`], with the position.
///
/// Displays as message, column and, where one is known, a hint:
/// `unescaped dots in a label key at column 17: write metadata.labels['app.kubernetes.io/name']`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError {
    message: Box<str>,
    column: usize,
    hint: Option<Box<str>>,
    needs_query: bool,
}

impl Path {
    /// A path made of these steps. Without any step it selects the whole object.
    pub fn from_steps(steps: impl IntoIterator<Item = Step>) -> Path {
        Path { steps: steps.into_iter().collect() }
    }

    /// The steps from the root down.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Whether `other` begins with exactly the steps of this path (equal paths included).
    pub fn is_prefix_of(&self, other: &Path) -> bool {
        other.steps.starts_with(&self.steps)
    }

    /// Whether removing what this path selects removes everything that `other` could select, in any document: each
    /// place that `other` selects is selected by this path or lies below one that is.
    ///
    /// A wildcard covers every member and index; an index does not cover a wildcard, nor the same item counted from
    /// the other end, since that depends on the document.
    ///
    /// ```
    /// use k8s_packed::Path;
    ///
    /// let ignored: Path = "status.conditions[*]".parse()?;
    /// assert!(ignored.covers(&"status.conditions[0].type".parse()?));
    /// assert!(!ignored.covers(&"status".parse()?));
    /// # Ok::<(), k8s_packed::PathError>(())
    /// ```
    pub fn covers(&self, other: &Path) -> bool {
        self.steps.len() <= other.steps.len()
            && self.steps.iter().zip(&other.steps).all(|(own, theirs)| *own == Step::Wildcard || own == theirs)
    }

    /// Whether this step names a label or an annotation and a bare name follows: written with dots, the two would be
    /// read as one key whose dots were not escaped.
    fn reads_as_cut_key(&self, at: usize) -> bool {
        matches!(self.steps.get(at + 1), Some(Step::Member(next)) if is_bare(next))
            && matches!(
                &self.steps[..at],
                [.., Step::Member(parent), Step::Member(map)] if parse::holds_texts(Some(parent), map)
            )
    }

    /// Whether the path has a wildcard, that is, whether it can select more than one value.
    pub fn has_wildcard(&self) -> bool {
        self.steps.contains(&Step::Wildcard)
    }
}

impl FromStr for Path {
    type Err = PathError;

    /// Parses the text form.
    ///
    /// # Errors
    ///
    /// A [`PathError`] with the column of the first thing that is wrong.
    fn from_str(text: &str) -> Result<Path, PathError> {
        parse::parse(text).map(Path::from_steps)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return f.write_str("$");
        }
        for (i, step) in self.steps.iter().enumerate() {
            match step {
                Step::Member(name) if is_bare(name) && !self.reads_as_cut_key(i) => {
                    if i > 0 {
                        f.write_str(".")?;
                    }
                    f.write_str(name)?;
                }
                Step::Member(name) => write_quoted(f, name)?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Wildcard => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Path({self})")
    }
}

/// Names that the canonical text writes without brackets: what needs no thought in any dialect, and `-`.
fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

fn write_quoted(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    f.write_str("['")?;
    for part in name.split_inclusive(['\'', '\\']) {
        match part.strip_suffix(['\'', '\\']) {
            Some(plain) => write!(f, "{plain}\\{}", &part[plain.len()..])?,
            None => f.write_str(part)?,
        }
    }
    f.write_str("']")
}

impl PathError {
    fn new(message: impl Into<Box<str>>, column: usize) -> PathError {
        PathError { message: message.into(), column, hint: None, needs_query: false }
    }

    fn hint(mut self, hint: impl Into<Box<str>>) -> PathError {
        self.hint = Some(hint.into());
        self
    }

    /// For what is JSONPath, but more than members, indexes and wildcards.
    fn unsupported(what: &str, column: usize) -> PathError {
        let message = format!("{what} in a plain path");
        PathError { message: message.into(), column, hint: None, needs_query: true }
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

    /// Whether the text up to the column is a path and what stands there is JSONPath that only a full query engine
    /// can evaluate: recursive descent, slice, union or filter.
    pub fn needs_query(&self) -> bool {
        self.needs_query
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at column {}", self.message, self.column)?;
        match &self.hint {
            Some(hint) => write!(f, ": {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for PathError {}
