//! Where in a document the encoder stands, and what of it is wanted there.

use crate::path_tree::PathTree;

/// What the rules say about one place and all below it.
#[derive(Clone, Copy)]
pub(super) struct Walk<'r> {
    /// What is ignored; nothing if there is none.
    prune: Option<&'r PathTree>,
    /// The parts that are kept; everything if there is none.
    keep: Option<&'r PathTree>,
}

impl<'r> Walk<'r> {
    pub(super) fn new(prune: &'r PathTree, keep: Option<&'r PathTree>) -> Self {
        Self { prune: Some(prune), keep: keep.filter(|k| !k.is_whole()) }
    }

    /// The way to a member; none if it is left out.
    pub(super) fn member(self, name: &str) -> Option<Self> {
        self.below(|tree| tree.member(name))
    }

    /// The way to an item; none if it is left out.
    pub(super) fn item(self, at: usize) -> Option<Self> {
        self.below(|tree| tree.item(at))
    }

    /// Whether only parts are wanted of what is here: then a value that has none has nothing to give.
    pub(super) fn wants_parts(self) -> bool {
        self.keep.is_some()
    }

    /// What is ignored is so even if it is also kept.
    fn below(self, step: impl Fn(&'r PathTree) -> Option<&'r PathTree>) -> Option<Self> {
        let prune = self.prune.and_then(&step);
        if prune.is_some_and(PathTree::is_whole) {
            return None;
        }
        let keep = match self.keep {
            Some(parts) => Some(step(parts)?).filter(|k| !k.is_whole()),
            None => None,
        };
        Some(Self { prune, keep })
    }
}
