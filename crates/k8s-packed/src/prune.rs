//! The ignored paths as a tree that the encoder walks along while it reads.

use crate::path::{Path, Step};

/// What is ignored below one place of a document.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prune {
    drop: bool,
    members: Vec<(Box<str>, Prune)>,
    items: Vec<(usize, Prune)>,
    wildcard: Option<Box<Prune>>,
}

impl Prune {
    pub(crate) fn new<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut root = Self::default();
        for path in paths {
            root.insert(path.steps());
        }
        root.spread_wildcards();
        root
    }

    fn insert(&mut self, steps: &[Step]) {
        let Some((step, rest)) = steps.split_first() else {
            self.drop = true;
            return;
        };
        match step {
            Step::Wildcard => self.wildcard.get_or_insert_default().insert(rest),
            Step::Member(name) => child(&mut self.members, name.clone()).insert(rest),
            // How long an array is shows only at its end, so a place counted from there selects nothing.
            Step::Index(at) => {
                if let Ok(at) = usize::try_from(*at) {
                    child(&mut self.items, at).insert(rest);
                }
            }
        }
    }

    /// Makes what a wildcard ignores part of each named neighbour, so that one look-up finds everything.
    fn spread_wildcards(&mut self) {
        if let Some(wildcard) = self.wildcard.take() {
            for child in self.children() {
                child.merge(&wildcard);
            }
            self.wildcard = Some(wildcard);
        }
        for child in self.children() {
            child.spread_wildcards();
        }
        if let Some(wildcard) = &mut self.wildcard {
            wildcard.spread_wildcards();
        }
    }

    fn children(&mut self) -> impl Iterator<Item = &mut Prune> {
        self.members.iter_mut().map(|(_, c)| c).chain(self.items.iter_mut().map(|(_, c)| c))
    }

    fn merge(&mut self, other: &Prune) {
        self.drop |= other.drop;
        for (name, theirs) in &other.members {
            child(&mut self.members, name.clone()).merge(theirs);
        }
        for (at, theirs) in &other.items {
            child(&mut self.items, *at).merge(theirs);
        }
        if let Some(theirs) = &other.wildcard {
            self.wildcard.get_or_insert_default().merge(theirs);
        }
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.drop
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Prune> {
        self.members.iter().find(|(n, _)| &**n == name).map(|(_, c)| c).or(self.wildcard.as_deref())
    }

    pub(crate) fn item(&self, at: usize) -> Option<&Prune> {
        self.items.iter().find(|(n, _)| *n == at).map(|(_, c)| c).or(self.wildcard.as_deref())
    }
}

/// The child with this key, a new one if there is none.
pub(crate) fn child<K: PartialEq, T: Default>(children: &mut Vec<(K, T)>, key: K) -> &mut T {
    let at = children.iter().position(|(k, _)| *k == key).unwrap_or_else(|| {
        children.push((key, T::default()));
        children.len() - 1
    });
    &mut children[at].1
}
