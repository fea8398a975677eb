//! Fields that are dropped while objects are decoded.

use k8s_packed::Path;

use crate::{
    dialect::{self, Parsed},
    error::{ExpressionError, IndexerError},
};

/// What makes an object that object, and that version of it.
const IDENTITY: [&str; 4] = ["name", "namespace", "uid", "resourceVersion"];

/// Parses the paths of fields to ignore, in both dialects of expressions.
///
/// Members, indexes and wildcards only (`status.conditions[*].lastProbeTime`), since they are applied while decoding.
/// What they would take away from an index or a selector is told by
/// [`Expression::covered_by`](crate::Expression::covered_by).
///
/// ```
/// let paths = k8s_indexer::ignored_paths(["metadata.annotations", "status.conditions[*].lastProbeTime"])?;
/// assert_eq!(paths[0].to_string(), "metadata.annotations");
///
/// let error = k8s_indexer::ignored_paths(["status", "metadata"]).unwrap_err();
/// assert_eq!(error.position(), 1);
/// assert_eq!(error.error().message(), "path covers metadata.name, which identifies the object");
/// # Ok::<(), k8s_indexer::IndexerError>(())
/// ```
///
/// # Errors
///
/// The first text that is no such path, or that covers the name, namespace, uid or resourceVersion, with its position.
pub fn ignored_paths<I>(texts: I) -> Result<Vec<Path>, IndexerError>
where
    I: IntoIterator<Item: AsRef<str>>,
{
    let parse = |(position, text): (usize, I::Item)| {
        ignored_path(text.as_ref()).map_err(|error| IndexerError::new(position, error))
    };
    texts.into_iter().enumerate().map(parse).collect()
}

fn ignored_path(text: &str) -> Result<Path, ExpressionError> {
    let path = match dialect::parse(text)? {
        Parsed::Path(path) => path,
        Parsed::Query(_) => {
            let offset = match text.parse::<Path>() {
                Err(error) => text.char_indices().nth(error.column() - 1).map_or(0, |(i, _)| i),
                Ok(_) => 0,
            };
            let error = ExpressionError::at(text, offset, "more than a plain path");
            return Err(error.hint("ignored fields have members, indexes and [*] only"));
        }
    };
    for name in IDENTITY {
        let identity: Path =
            Path::from_steps([k8s_packed::Step::Member("metadata".into()), k8s_packed::Step::Member(name.into())]);
        if path.covers(&identity) {
            let message = format!("path covers {identity}, which identifies the object");
            return Err(ExpressionError::at(text, 0, message));
        }
    }
    Ok(path)
}
