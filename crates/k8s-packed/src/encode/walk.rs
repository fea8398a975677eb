//! Where in a document the encoder stands, and what of it is wanted there.

use crate::keep::Keep;
use crate::prune::Prune;

/// What the rules say about one place and all below it.
#[derive(Clone, Copy)]
pub(super) struct Walk<'r> {
    /// What is ignored; nothing if there is none.
    prune: Option<&'r Prune>,
    /// The parts that are kept; everything if there is none.
    keep: Option<&'r Keep>,
}

impl<'r> Walk<'r> {
    pub(super) fn new(prune: &'r Prune, keep: Option<&'r Keep>) -> Self {
        Self { prune: Some(prune), keep: keep.filter(|k| !k.is_whole()) }
    }

    /// The way to a member; none if it is left out.
    pub(super) fn member(self, name: &str) -> Option<Self> {
        self.below(self.prune.and_then(|p| p.member(name)), |k| k.member(name))
    }

    /// The way to an item; none if it is left out.
    pub(super) fn item(self, at: usize) -> Option<Self> {
        self.below(self.prune.and_then(|p| p.item(at)), Keep::item)
    }

    /// Whether only parts are wanted of what is here: then a value that has none has nothing to give.
    pub(super) fn wants_parts(self) -> bool {
        self.keep.is_some()
    }

    /// What is ignored is so even if it is also kept.
    fn below(self, prune: Option<&'r Prune>, keep: impl FnOnce(&'r Keep) -> Option<&'r Keep>) -> Option<Self> {
        if prune.is_some_and(Prune::is_dropped) {
            return None;
        }
        let keep = match self.keep {
            Some(parts) => Some(keep(parts)?).filter(|k| !k.is_whole()),
            None => None,
        };
        Some(Self { prune, keep })
    }
}
