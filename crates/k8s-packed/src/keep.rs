//! The paths that are kept, if not everything is, as a tree that the encoder walks along while it reads.

use crate::path::{Path, Step};
use crate::prune::child;

/// What is kept below one place of a document.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keep {
    /// All that is there.
    whole: bool,
    members: Vec<(Box<str>, Keep)>,
    /// Of each item of an array: an item counted from the end is known only when it has been read, and one that goes
    /// moves those behind it.
    items: Option<Box<Keep>>,
    /// Of each item and each member.
    wildcard: Option<Box<Keep>>,
}

/// What makes an object that object, and that version of it.
const IDENTITY: [&str; 5] = ["name", "namespace", "uid", "resourceVersion", "generation"];

impl Keep {
    /// The paths and the identity.
    pub(crate) fn new<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut root = Self::default();
        for name in IDENTITY {
            root.insert(&[Step::Member("metadata".into()), Step::Member(name.into())]);
        }
        for path in paths {
            root.insert(path.steps());
        }
        root.spread_wildcards();
        root
    }

    fn insert(&mut self, steps: &[Step]) {
        let Some((step, rest)) = steps.split_first() else {
            self.whole = true;
            return;
        };
        match step {
            Step::Member(name) => child(&mut self.members, name.clone()).insert(rest),
            Step::Index(_) => self.items.get_or_insert_default().insert(rest),
            Step::Wildcard => self.wildcard.get_or_insert_default().insert(rest),
        }
    }

    /// Makes what a wildcard keeps part of each neighbour, so that one look-up finds everything.
    fn spread_wildcards(&mut self) {
        if let Some(wildcard) = &self.wildcard {
            for child in self.members.iter_mut().map(|(_, c)| c).chain(self.items.as_deref_mut()) {
                child.merge(wildcard);
            }
        }
        let children = self.members.iter_mut().map(|(_, c)| c);
        for child in children.chain(self.items.as_deref_mut()).chain(self.wildcard.as_deref_mut()) {
            child.spread_wildcards();
        }
    }

    fn merge(&mut self, other: &Self) {
        self.whole |= other.whole;
        for (name, theirs) in &other.members {
            child(&mut self.members, name.clone()).merge(theirs);
        }
        for (ours, theirs) in [(&mut self.items, &other.items), (&mut self.wildcard, &other.wildcard)] {
            if let Some(theirs) = theirs {
                ours.get_or_insert_default().merge(theirs);
            }
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        self.members.iter().find(|(n, _)| &**n == name).map(|(_, c)| c).or(self.wildcard.as_deref())
    }

    pub(crate) fn item(&self) -> Option<&Self> {
        self.items.as_deref().or(self.wildcard.as_deref())
    }
}
