//! Which indexes a store has, and how each is answered.
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use foldhash::quality::RandomState;
use k8s_indexer::{Expression, Indexer, IndexerError, Keys};
use k8s_packed::{Object, Step};
use k8s_types::IndexExpression;

use crate::error::Error;

/// The indexes of a store: a primary one, which [`Snapshot::get`](crate::Snapshot::get) reads, and any number of named
/// ones.
///
/// A plan without a primary index is of use too: objects are then found by name, in the list and by named indexes.
///
/// # Examples
///
/// ```
/// use k8s_indexer::Indexer;
/// use k8s_store::StorePlan;
///
/// let plan = StorePlan::index_by(["metadata.namespace", "metadata.labels['app']"])?
///     .named("by-node", Indexer::new(["spec.nodeName"])?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct StorePlan {
    primary: Option<Arc<Indexer>>,
    named: Vec<(String, Arc<Indexer>)>,
}

impl StorePlan {
    /// A plan with this primary index.
    #[must_use]
    pub fn new(primary: Indexer) -> Self {
        Self { primary: Some(Arc::new(primary)), named: vec![] }
    }

    /// A plan whose primary index is that of these expressions.
    ///
    /// # Errors
    ///
    /// The first expression that is not valid, with its position.
    pub fn index_by<I>(expressions: I) -> Result<Self, IndexerError>
    where
        I: IntoIterator<Item: Into<IndexExpression>>,
    {
        Indexer::new(expressions).map(Self::new)
    }

    /// Adds a named index.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateIndex`] if the plan has an index of this name.
    pub fn named(mut self, name: impl Into<String>, indexer: Indexer) -> Result<Self, Error> {
        let name = name.into();
        if self.named.iter().any(|(known, _)| *known == name) {
            return Err(Error::DuplicateIndex { name });
        }
        self.named.push((name, Arc::new(indexer)));
        Ok(self)
    }
}

impl From<Indexer> for StorePlan {
    fn from(primary: Indexer) -> Self {
        Self::new(primary)
    }
}

/// The plan as the store uses it.
pub(crate) struct Plan {
    hasher: RandomState,
    /// The primary index, then the named ones.
    lookups: Vec<(usize, Lookup)>,
    names: Vec<String>,
    /// For each [`Lookup::Index`], in order.
    stored: Vec<Arc<Indexer>>,
}

/// How an index is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// The key is a prefix of the identity, which the store keeps in any case.
    Identity,
    /// By an index of its own.
    Index {
        /// Its number.
        at: usize,
        /// Whether the first segment is the namespace, so that a prefix of one is answered in order.
        by_namespace: bool,
    },
}

impl Plan {
    pub(crate) fn new(plan: StorePlan) -> Self {
        let mut stored = vec![];
        let mut lookup = |indexer: Option<Arc<Indexer>>| {
            let Some(indexer) = indexer else {
                return (0, Lookup::Identity);
            };
            let arity = indexer.arity();
            let is = |at: usize, member: &str| {
                indexer.expressions().nth(at).is_none_or(|expression| is_metadata(expression, member))
            };
            let by_namespace = is(0, "namespace");
            if by_namespace && is(1, "name") && arity <= 2 {
                return (arity, Lookup::Identity);
            }
            let at = stored.len();
            stored.push(indexer);
            (arity, Lookup::Index { at, by_namespace })
        };
        let mut lookups = vec![lookup(plan.primary)];
        let mut names = vec![];
        for (name, indexer) in plan.named {
            names.push(name);
            lookups.push(lookup(Some(indexer)));
        }
        Self { hasher: RandomState::default(), lookups, names, stored }
    }

    /// The number of expressions of an index, and how it is answered. Index 0 is the primary one.
    #[inline]
    pub(crate) fn lookup(&self, index: usize) -> (usize, Lookup) {
        self.lookups[index]
    }

    /// The number of the index with this name.
    pub(crate) fn named(&self, name: &str) -> Result<usize, Error> {
        let at = self.names.iter().position(|known| known == name);
        at.map(|at| at + 1).ok_or_else(|| Error::UnknownIndex { name: name.to_owned(), known: self.names.clone() })
    }

    /// Number of indexes that identity does not answer.
    pub(crate) fn stored(&self) -> usize {
        self.stored.len()
    }

    /// Computes the keys of an object in a stored index.
    pub(crate) fn keys(&self, at: usize, object: Option<&Object>, keys: &mut Keys) {
        match object {
            Some(object) => self.stored[at].keys(object, keys),
            None => drop(keys.drain()),
        }
    }

    /// The hash of a sequence of texts: of a key's segments, or of namespace and name.
    #[inline]
    pub(crate) fn hash<T: AsRef<[u8]>>(&self, texts: impl IntoIterator<Item = T>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        // The hasher mixes the length of each text in.
        texts.into_iter().for_each(|text| hasher.write(text.as_ref()));
        hasher.finish()
    }
}

/// Whether an expression reads this member of `metadata` and nothing else.
fn is_metadata(expression: &Expression, member: &str) -> bool {
    let is = |step: &Step, name: &str| matches!(step, Step::Member(member) if **member == *name);
    let steps = expression.path().map(|path| path.steps());
    matches!(steps, Some([a, b]) if is(a, "metadata") && is(b, member))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_answers_what_it_can() {
        let check = |expressions: &[&str], expected: Lookup| {
            let plan = StorePlan::index_by(expressions.iter().copied()).expect("valid");
            assert_eq!(Plan::new(plan).lookup(0), (expressions.len(), expected), "{expressions:?}");
        };
        let stored = |by_namespace| Lookup::Index { at: 0, by_namespace };
        check(&[], Lookup::Identity);
        check(&["metadata.namespace"], Lookup::Identity);
        check(&["metadata.namespace", "metadata.name"], Lookup::Identity);
        check(&["{.metadata.namespace}", "$.metadata.name"], Lookup::Identity);
        check(&["metadata.name"], stored(false));
        check(&["metadata.name", "metadata.namespace"], stored(false));
        check(&["metadata.namespace", "spec.nodeName"], stored(true));
        check(&["metadata.namespace", "metadata.name", "metadata.uid"], stored(true));
        check(&["spec.namespace", "metadata.name"], stored(false));
    }
}
