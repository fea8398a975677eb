//! A compiled expression.

use std::{fmt, ops::ControlFlow, str::FromStr};

use k8s_packed::{Object, Path, Step};

use crate::{
    dialect::{self, Parsed},
    error::ExpressionError,
    normalize::{Buffer, Scalar},
    query::Query,
};

/// A compiled expression: JSONPath in kubectl's dialect, or RFC 9535 if the text begins with `$`.
///
/// Members, indexes and wildcards are read from the packed object directly, without allocation; what needs more
/// (recursive descent, slices, unions, filters, functions) is read by `serde_json_path` from a `serde_json::Value` of
/// the part below the plain beginning of the expression. Both give the same results. See the
/// [crate's documentation](crate) for the dialects and the text of values.
///
/// ```
/// use k8s_indexer::Expression;
/// use k8s_packed::object;
///
/// let pod = object!({"status": {"conditions": [
///     {"type": "Initialized", "status": "True"},
///     {"type": "Ready", "status": "False"},
/// ]}});
/// let ready: Expression = "status.conditions[?(@.type==\"Ready\")].status".parse()?;
/// assert_eq!(ready.first(&pod).as_deref(), Some("False"));
/// let types: Expression = "status.conditions[*].type".parse()?;
/// assert_eq!(types.values(&pod), ["Initialized", "Ready"]);
/// # Ok::<(), k8s_indexer::ExpressionError>(())
/// ```
#[derive(Debug)]
pub struct Expression {
    text: Box<str>,
    compiled: Compiled,
}

#[derive(Debug)]
enum Compiled {
    Path(Path),
    Query(Box<Query>),
}

/// The first result that is not null.
#[derive(Clone, Copy)]
pub(crate) enum First<'a> {
    Text(&'a str),
    /// An array or a map.
    Composite,
    Missing,
}

impl<'a> First<'a> {
    fn of<'s: 'a>(scalar: Scalar<'s>, buffer: &'a mut Buffer) -> First<'a> {
        scalar.text(buffer).map_or(First::Composite, First::Text)
    }
}

impl Expression {
    /// The text of the expression as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The plain path that the expression is; none if it needs the query engine.
    pub fn path(&self) -> Option<&Path> {
        match &self.compiled {
            Compiled::Path(path) => Some(path),
            Compiled::Query(_) => None,
        }
    }

    /// The key text of the first result; none if there is none, or if it is an array or a map. Null results are as if
    /// they were not there.
    pub fn first(&self, object: &Object) -> Option<String> {
        self.with_first(object, |first| match first {
            First::Text(text) => Some(text.to_owned()),
            First::Composite | First::Missing => None,
        })
    }

    /// The key texts of all results in order, repeated ones too. Nulls, arrays and maps are left out.
    pub fn values(&self, object: &Object) -> Vec<String> {
        let mut texts = Vec::new();
        let mut buffer = Buffer::new();
        self.visit(object, |scalar| {
            texts.extend(scalar.text(&mut buffer).map(str::to_owned));
            ControlFlow::Continue(())
        });
        texts
    }

    /// The first of these paths whose removal leaves the expression without a value to read: it covers what the
    /// expression selects, or what one of its filters compares.
    ///
    /// Values below a recursive descent may be anywhere and are not considered, nor are the filters of RFC 9535
    /// expressions.
    pub fn covered_by<'p>(&self, ignored: &'p [Path]) -> Option<&'p Path> {
        ignored.iter().find(|ignored| self.reads().iter().any(|read| ignored.covers(read)))
    }

    /// Whether everything that the expression reads lies in the metadata, the name of the kind or its version, which
    /// metadata-only objects have.
    pub fn reads_only_metadata(&self) -> bool {
        self.reads().iter().all(|path| match path.steps().first() {
            Some(Step::Member(name)) => matches!(&**name, "metadata" | "kind" | "apiVersion"),
            _ => false,
        })
    }

    /// The path below which lies everything that the expression reads: what it is itself, or, where it needs the query
    /// engine, its plain beginning. Empty if that may be anywhere in the object.
    pub fn root(&self) -> &Path {
        match &self.compiled {
            Compiled::Path(path) => path,
            Compiled::Query(query) => query.prefix(),
        }
    }

    fn reads(&self) -> &[Path] {
        match &self.compiled {
            Compiled::Path(path) => std::slice::from_ref(path),
            Compiled::Query(query) => query.reads(),
        }
    }

    /// Calls `use_it` with the first result, its text borrowed.
    pub(crate) fn with_first<T>(&self, object: &Object, use_it: impl FnOnce(First<'_>) -> T) -> T {
        let mut buffer = Buffer::new();
        match &self.compiled {
            Compiled::Path(path) => {
                let first = match path.has_wildcard() {
                    false => object.get(path).and_then(Scalar::of_packed),
                    true => object.all(path).find_map(Scalar::of_packed),
                };
                use_it(first.map_or(First::Missing, |scalar| First::of(scalar, &mut buffer)))
            }
            Compiled::Query(query) => {
                let mut found = None;
                query.visit(object, |scalar| {
                    found = Some(scalar.text(&mut buffer).map(str::to_owned));
                    ControlFlow::Break(())
                });
                use_it(match &found {
                    Some(Some(text)) => First::Text(text),
                    Some(None) => First::Composite,
                    None => First::Missing,
                })
            }
        }
    }

    /// Calls `visit` with each result that is not null, in order, until it breaks.
    pub(crate) fn visit(&self, object: &Object, mut visit: impl FnMut(Scalar<'_>) -> ControlFlow<()>) {
        match &self.compiled {
            Compiled::Path(path) => {
                for scalar in object.all(path).filter_map(Scalar::of_packed) {
                    if visit(scalar).is_break() {
                        return;
                    }
                }
            }
            Compiled::Query(query) => query.visit(object, visit),
        }
    }
}

impl FromStr for Expression {
    type Err = ExpressionError;

    /// Compiles an expression.
    ///
    /// # Errors
    ///
    /// An [`ExpressionError`] with the column of the first thing that is wrong.
    fn from_str(text: &str) -> Result<Expression, ExpressionError> {
        let compiled = match dialect::parse(text)? {
            Parsed::Path(path) => Compiled::Path(path),
            Parsed::Query(query) => Compiled::Query(Box::new(query)),
        };
        Ok(Expression { text: text.into(), compiled })
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Checks an expression without keeping it.
///
/// ```
/// let error = k8s_indexer::validate("metadata.labels['team").unwrap_err();
/// assert_eq!(error.to_string(), "unclosed quote at column 17");
/// ```
///
/// # Errors
///
/// An [`ExpressionError`] with the column of the first thing that is wrong.
pub fn validate(expression: &str) -> Result<(), ExpressionError> {
    expression.parse::<Expression>().map(|_| ())
}
