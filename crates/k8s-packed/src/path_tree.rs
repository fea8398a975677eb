//! Paths as a tree that the encoder walks along while it reads.

use crate::path::{Path, Step};

/// What paths select below one place of a document.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathTree {
    /// Whether a path ends here: all that is here is selected.
    whole: bool,
    members: Vec<(Box<str>, PathTree)>,
    /// By place; one without a place stands for every item.
    items: Vec<(Option<usize>, PathTree)>,
    /// Of each item and each member.
    wildcard: Option<Box<PathTree>>,
}

/// What makes an object that object, and that version of it.
const IDENTITY: [&str; 5] = ["name", "namespace", "uid", "resourceVersion", "generation"];

impl PathTree {
    /// What is to be left out. How long an array is shows only at its end, so a path that counts from there selects
    /// nothing.
    pub(crate) fn ignored<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let from_the_end = |step: &Step| matches!(step, Step::Index(at) if *at < 0);
        let mut root = Self::default();
        for path in paths.into_iter().filter(|path| !path.steps().iter().any(from_the_end)) {
            root.insert(path.steps(), |at| usize::try_from(at).ok());
        }
        root.spread_wildcards();
        root
    }

    /// What is to be kept, and the identity. An item that goes would move those behind it, and one that is counted
    /// from the end is known only when it has been read: so an index stands for every item.
    pub(crate) fn kept<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut root = Self::default();
        for name in IDENTITY {
            root.insert(&["metadata", name].map(|step| Step::Member(step.into())), |_| None);
        }
        for path in paths {
            root.insert(path.steps(), |_| None);
        }
        root.spread_wildcards();
        root
    }

    /// `place` says where the item of an index is filed.
    fn insert(&mut self, steps: &[Step], place: fn(i64) -> Option<usize>) {
        let Some((step, rest)) = steps.split_first() else {
            self.whole = true;
            return;
        };
        let child = match step {
            Step::Wildcard => self.wildcard.get_or_insert_default(),
            Step::Member(name) => child(&mut self.members, name.clone()),
            Step::Index(at) => child(&mut self.items, place(*at)),
        };
        child.insert(rest, place);
    }

    /// Makes what a wildcard selects part of each named neighbour, so that one look-up finds everything.
    fn spread_wildcards(&mut self) {
        let Self { members, items, wildcard, .. } = self;
        let neighbours = members.iter_mut().map(|(_, c)| c).chain(items.iter_mut().map(|(_, c)| c));
        for neighbour in neighbours {
            if let Some(wildcard) = wildcard {
                neighbour.merge(wildcard);
            }
            neighbour.spread_wildcards();
        }
        if let Some(wildcard) = wildcard {
            wildcard.spread_wildcards();
        }
    }

    fn merge(&mut self, other: &Self) {
        self.whole |= other.whole;
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

    /// Whether all that is here is selected.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        self.members.iter().find(|(n, _)| &**n == name).map(|(_, c)| c).or(self.wildcard.as_deref())
    }

    pub(crate) fn item(&self, at: usize) -> Option<&Self> {
        self.items.iter().find(|(n, _)| n.is_none_or(|n| n == at)).map(|(_, c)| c).or(self.wildcard.as_deref())
    }
}

/// The child with this key, a new one if there is none.
fn child<K: PartialEq>(children: &mut Vec<(K, PathTree)>, key: K) -> &mut PathTree {
    let at = children.iter().position(|(k, _)| *k == key).unwrap_or_else(|| {
        children.push((key, PathTree::default()));
        children.len() - 1
    });
    &mut children[at].1
}
