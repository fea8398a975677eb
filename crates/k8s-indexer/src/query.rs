//! The general path: expressions that need the query engine.

use std::ops::ControlFlow;

use k8s_packed::{Object, Path};
use serde_json_path::JsonPath;

use crate::normalize::Scalar;

/// A compiled query: a plain path, read from the packed object, and a query below each value found there, read from
/// a `serde_json::Value` made for it.
#[derive(Debug)]
pub(crate) struct Query {
    prefix: Path,
    query: JsonPath,
    reads: Vec<Path>,
}

impl Query {
    pub(crate) fn new(prefix: Path, query: JsonPath, reads: Vec<Path>) -> Query {
        Query { prefix, query, reads }
    }

    /// The plain beginning: everything is read below it.
    pub(crate) fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// The paths whose values the query reads, as far as they are known.
    pub(crate) fn reads(&self) -> &[Path] {
        &self.reads
    }

    /// Calls `visit` with each result that is not null, in order, until it breaks.
    pub(crate) fn visit(&self, object: &Object, mut visit: impl FnMut(Scalar<'_>) -> ControlFlow<()>) {
        let mut below = |value: &serde_json::Value| -> ControlFlow<()> {
            for found in self.query.query(value) {
                if let Some(scalar) = Scalar::of_value(found) {
                    visit(scalar)?;
                }
            }
            ControlFlow::Continue(())
        };
        if self.prefix.steps().is_empty() {
            let _ = below(&object.to_value());
            return;
        }
        for value in object.all(&self.prefix) {
            if below(&value.to_value()).is_break() {
                return;
            }
        }
    }
}
