//! `Slab`: a persistent vector with holes, from small numbers (ids) to values.
//!
//! Everything else in a store refers to an object by its id, four bytes that can be copied without touching a
//! reference count. So replacing an object whose name and keys stay the same changes this structure alone, and a copied
//! node of an index costs a `memcpy`.
//!
//! A radix tree over the bits of the id: leaves of [`LEAF`] values under branches of [`FAN`] children. Cloning shares
//! all nodes; a change copies the path to one leaf, or nothing where the path has one owner.
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use triomphe::Arc;

const LEAF_BITS: u32 = 4;
const LEAF: usize = 1 << LEAF_BITS;
const FAN_BITS: u32 = 6;
const FAN: usize = 1 << FAN_BITS;

/// The persistent vector; cloning is one step whatever its size.
pub(crate) struct Slab<T> {
    root: Option<Node<T>>,
    /// Bits of an id below the root's own.
    shift: u32,
}

enum Node<T> {
    Leaf(Arc<[Option<T>; LEAF]>),
    Branch(Arc<[Option<Node<T>>; FAN]>),
}

impl<T> Clone for Slab<T> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone(), shift: self.shift }
    }
}

impl<T> Clone for Node<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(leaf) => Self::Leaf(leaf.clone()),
            Self::Branch(branch) => Self::Branch(branch.clone()),
        }
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { root: None, shift: 0 }
    }
}

impl<T: Clone> Slab<T> {
    /// The value at `id`.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        if !self.covers(id) {
            return None;
        }
        let mut shift = self.shift;
        let mut node = self.root.as_ref()?;
        loop {
            match node {
                Node::Branch(branch) => {
                    node = branch[digit(id, shift)].as_ref()?;
                    shift = below(shift);
                }
                Node::Leaf(leaf) => return leaf[id as usize % LEAF].as_ref(),
            }
        }
    }

    /// Puts `value` at `id` and returns what was there. Ids near zero keep the structure small.
    pub(crate) fn set(&mut self, id: u32, value: T) -> Option<T> {
        while !self.covers(id) {
            self.shift = above(self.shift);
            if let Some(root) = self.root.take() {
                let mut children = [const { None }; FAN];
                children[0] = Some(root);
                self.root = Some(Node::Branch(Arc::new(children)));
            }
        }
        let mut shift = self.shift;
        let mut node = &mut self.root;
        loop {
            match node.get_or_insert_with(|| Node::empty(shift)) {
                Node::Branch(branch) => {
                    node = &mut Arc::make_mut(branch)[digit(id, shift)];
                    shift = below(shift);
                }
                Node::Leaf(leaf) => {
                    return Arc::make_mut(leaf)[id as usize % LEAF].replace(value);
                }
            }
        }
    }

    /// Mutable access to the value at `id`, on a path of its own.
    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.get(id)?;
        let mut shift = self.shift;
        let mut node = self.root.as_mut()?;
        loop {
            match node {
                Node::Branch(branch) => {
                    node = Arc::make_mut(branch)[digit(id, shift)].as_mut()?;
                    shift = below(shift);
                }
                Node::Leaf(leaf) => return Arc::make_mut(leaf)[id as usize % LEAF].as_mut(),
            }
        }
    }

    /// Takes the value at `id` out. Nodes that become empty are given back.
    pub(crate) fn take(&mut self, id: u32) -> Option<T> {
        self.get(id)?;
        let taken = Node::take(&mut self.root, id, self.shift);
        self.lower();
        taken
    }

    /// Bytes of all nodes and of what `more` gives for each value. Visits each value.
    pub(crate) fn bytes_with(&self, more: impl Fn(&T) -> usize) -> usize {
        self.root.as_ref().map_or(0, |root| root.bytes_with(&more))
    }

    /// Bytes of all nodes. Visits each value.
    pub(crate) fn node_bytes(&self) -> usize {
        self.bytes_with(|_| 0)
    }

    fn covers(&self, id: u32) -> bool {
        let bits = match self.shift {
            0 => LEAF_BITS,
            shift => shift + FAN_BITS,
        };
        u64::from(id) >> bits == 0
    }

    /// Drops branches at the root that hold only their first child.
    fn lower(&mut self) {
        while let Some(Node::Branch(branch)) = &self.root {
            if branch[1..].iter().any(Option::is_some) {
                return;
            }
            let only = branch[0].clone();
            self.root = only;
            self.shift = below(self.shift);
        }
        if self.root.is_none() {
            self.shift = 0;
        }
    }
}

impl<T: Clone> Node<T> {
    fn empty(shift: u32) -> Self {
        match shift {
            0 => Self::Leaf(Arc::new([const { None }; LEAF])),
            _ => Self::Branch(Arc::new([const { None }; FAN])),
        }
    }

    fn take(node: &mut Option<Self>, id: u32, shift: u32) -> Option<T> {
        let (taken, empty) = match node.as_mut()? {
            Self::Branch(branch) => {
                let children = Arc::make_mut(branch);
                let taken = Self::take(&mut children[digit(id, shift)], id, below(shift));
                (taken, children.iter().all(Option::is_none))
            }
            Self::Leaf(leaf) => {
                let values = Arc::make_mut(leaf);
                let taken = values[id as usize % LEAF].take();
                (taken, values.iter().all(Option::is_none))
            }
        };
        if empty {
            *node = None;
        }
        taken
    }

    fn bytes_with(&self, more: &impl Fn(&T) -> usize) -> usize {
        let count = size_of::<usize>();
        match self {
            Self::Leaf(leaf) => count + size_of_val(&**leaf) + leaf.iter().flatten().map(more).sum::<usize>(),
            Self::Branch(branch) => {
                let below: usize = branch.iter().flatten().map(|child| child.bytes_with(more)).sum();
                count + size_of_val(&**branch) + below
            }
        }
    }
}

/// The writer's side of a [`Slab`]: which ids are free.
///
/// The smallest free id is given first, so that after many removals the upper leaves empty themselves.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    fresh: u32,
    free: BinaryHeap<Reverse<u32>>,
}

impl Ids {
    /// An id that nobody uses. There are 2^32 - 1 of them, more than memory has room for.
    pub(crate) fn take(&mut self) -> u32 {
        if let Some(Reverse(id)) = self.free.pop() {
            return id;
        }
        let id = self.fresh;
        assert!(id < u32::MAX, "a store holds at most 2^32 - 1 entries");
        self.fresh += 1;
        id
    }

    /// Gives an id back; it must not be used any more.
    pub(crate) fn give_back(&mut self, id: u32) {
        self.free.push(Reverse(id));
        if self.free.len() == self.fresh as usize {
            *self = Self::default();
        }
    }

    /// All ids in use are smaller than this.
    pub(crate) fn bound(&self) -> u32 {
        self.fresh
    }
}

#[inline]
fn digit(id: u32, shift: u32) -> usize {
    (id >> shift) as usize % FAN
}

/// The shift of a branch's children; 0 marks a leaf.
#[inline]
fn below(shift: u32) -> u32 {
    match shift {
        LEAF_BITS => 0,
        shift => shift - FAN_BITS,
    }
}

fn above(shift: u32) -> u32 {
    match shift {
        0 => LEAF_BITS,
        shift => shift + FAN_BITS,
    }
}
