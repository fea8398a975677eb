//! Persistent structures: a clone is one step and never changes again, a change costs its path.
//!
//! They know nothing of objects. [`Slab`] holds values by id; [`HashTrie`] and [`OrdTree`] hold ids, by hash and in an
//! order that the caller knows.
mod hash_trie;
mod ord_tree;
mod slab;
mod thin;

pub(crate) use hash_trie::HashTrie;
pub(crate) use ord_tree::{Ids as IdsInOrder, OrdTree};
pub(crate) use slab::{Ids, Slab};

#[cfg(test)]
mod tests;
