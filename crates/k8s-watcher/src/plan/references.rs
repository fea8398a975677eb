//! What is kept of an object where the store has references only.

use k8s_indexer::Expression;
use k8s_packed::{Encoder, Path};

pub(crate) struct References {
    /// Keeps identity, and what indexes and the field selector read.
    pub(crate) encoder: Encoder,
    /// All of that is metadata.
    pub(crate) only_metadata: bool,
}

impl References {
    pub(super) fn new<'a>(
        ignored: impl Iterator<Item = &'a Path>,
        expressions: impl Iterator<Item = &'a Expression> + Clone,
    ) -> Self {
        let only_metadata = expressions.clone().all(Expression::reads_only_metadata);
        let encoder = Encoder::new().ignore(ignored).keep_only(expressions.map(Expression::root));
        Self { encoder, only_metadata }
    }
}
