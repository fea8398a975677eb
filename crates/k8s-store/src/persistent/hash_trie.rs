//! `HashTrie`: a persistent map from a hash to ids; the caller decides by the id whether it is the right one.
//!
//! The upper 32 bits of the caller's hash lead from the root, [`BITS`] at a time, and are kept beside each id, so that
//! a lookup asks the caller about the right id only and a split never has to ask for a hash again. A leaf is a small
//! table with open addressing: one cache line of it is read as a rule. A full leaf is cut in two by its next bit, not
//! into [`FAN`] crumbs: a child of a branch stands for a run of its digits. So leaves are well filled at any size, in
//! few levels.
use triomphe::{Arc, ThinArc};

use super::thin;

/// Slots of a leaf, and how many of them are used at most.
const SLOTS: usize = 32;
const FULL: usize = 28;
const BITS: u32 = 6;
const FAN: usize = 1 << BITS;
/// Where the digit of the root lies; those below follow at 20, 14, 8 and 2.
const TOP: u32 = u32::BITS - BITS;

/// The persistent map; cloning is one step whatever its size.
#[derive(Clone, Default)]
pub(crate) struct HashTrie {
    root: Option<Node>,
}

#[derive(Clone)]
enum Node {
    Leaf(Arc<Table>),
    Branch(ThinArc<Starts, Node>),
    /// Below the deepest branches, where hashes are equal in all their digits.
    List(ThinArc<(), Slot>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Slot {
    hash: u32,
    id: u32,
}

/// A slot without an id. No id has this number.
const FREE: Slot = Slot { hash: 0, id: u32::MAX };

/// Open addressing from the lowest bits of the hash, which lead nowhere else but in a trie of millions.
#[derive(Clone, Copy)]
struct Table([Slot; SLOTS]);

/// The digits at which the children of a branch start, as bits. A child's digits are an aligned run whose length is a
/// power of two.
#[derive(Clone, Copy)]
struct Starts(u64);

impl HashTrie {
    /// The first id under `hash` that `is_it` accepts.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let hash = upper(hash);
        let mut node = self.root.as_ref()?;
        let mut shift = TOP;
        loop {
            match node {
                Node::Branch(branch) => {
                    let child = branch.header.header.child(digit(hash, shift));
                    node = &branch.slice[child];
                    shift = shift.wrapping_sub(BITS);
                }
                Node::Leaf(table) => return table.find(hash, is_it),
                Node::List(list) => return list.slice.iter().find(is(hash, is_it)).map(|slot| slot.id),
            }
        }
    }

    /// Files `id` under `hash`. It must not be there already.
    pub(crate) fn insert(&mut self, hash: u64, id: u32) {
        let hash = upper(hash);
        let root = self.root.get_or_insert_with(|| Table::node(&[]));
        root.insert(Slot { hash, id }, Some(TOP));
    }

    /// Removes `id` from `hash`; says whether it was there.
    pub(crate) fn remove(&mut self, hash: u64, id: u32) -> bool {
        if self.find(hash, |candidate| candidate == id).is_none() {
            return false;
        }
        if let Some(root) = &mut self.root {
            let hash = upper(hash);
            root.remove(Slot { hash, id }, TOP);
            if root.len() == Some(0) {
                self.root = None;
            }
        }
        true
    }

    /// Bytes of all nodes. Visits each node.
    pub(crate) fn node_bytes(&self) -> usize {
        self.root.as_ref().map_or(0, Node::bytes)
    }
}

// === impl Node ===

impl Node {
    /// `shift` is where the digit of a branch in this place lies; none below the deepest branches.
    fn insert(&mut self, slot: Slot, shift: Option<u32>) {
        if self.is_full() {
            let whole = |node: &Self| ThinArc::from_header_and_iter(Starts(1), std::iter::once(node.clone()));
            *self = match (&*self, shift) {
                (node, Some(_)) => Self::Branch(whole(node)),
                (Self::Leaf(table), None) => Self::List(thin::spliced((), &table.slots(), 0..0, &[])),
                _ => return,
            };
        }
        match (self, shift) {
            (Self::Branch(branch), Some(shift)) => {
                let digit = digit(slot.hash, shift);
                let mut child = branch.header.header.child(digit);
                while let Some(halves) = halved(branch, child, shift) {
                    *branch = halves;
                    child = branch.header.header.child(digit);
                }
                let below = shift.checked_sub(BITS);
                thin::edit(branch, |children| children[child].insert(slot, below));
            }
            (Self::Leaf(table), _) => Arc::make_mut(table).insert(slot),
            (Self::List(list), _) => {
                let end = list.slice.len();
                *list = thin::spliced((), &list.slice, end..end, &[slot]);
            }
            (Self::Branch(_), None) => unreachable!("no branch stands below the deepest digit"),
        }
    }

    /// Removes a slot that is there.
    fn remove(&mut self, slot: Slot, shift: u32) {
        match self {
            Self::Leaf(table) => {
                let rest: Vec<Slot> = table.slots().into_iter().filter(|other| *other != slot).collect();
                *self = Table::node(&rest);
            }
            Self::List(list) => {
                let rest: Vec<Slot> = list.slice.iter().copied().filter(|other| *other != slot).collect();
                *self = match rest.len() {
                    0..FULL => Table::node(&rest),
                    _ => Self::List(ThinArc::from_header_and_slice((), &rest)),
                };
            }
            Self::Branch(branch) => {
                let digit = digit(slot.hash, shift);
                let mut child = branch.header.header.child(digit);
                let below = shift.saturating_sub(BITS);
                thin::edit(branch, |children| children[child].remove(slot, below));
                while let Some(joined) = joined(branch, child) {
                    *branch = joined;
                    child = branch.header.header.child(digit);
                }
                if let [only @ Self::Leaf(_)] = &branch.slice {
                    *self = only.clone();
                }
            }
        }
    }

    /// Number of ids, of a leaf.
    fn len(&self) -> Option<usize> {
        match self {
            Self::Leaf(table) => Some(table.0.iter().filter(|slot| **slot != FREE).count()),
            _ => None,
        }
    }

    fn is_full(&self) -> bool {
        self.len().is_some_and(|len| len >= FULL)
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Leaf(table) => size_of::<usize>() + size_of_val(&**table),
            Self::List(list) => thin::size(list),
            Self::Branch(branch) => thin::size(branch) + branch.slice.iter().map(Self::bytes).sum::<usize>(),
        }
    }
}

/// `branch` with `child` cut in two; none if the child is no full leaf, or has a single digit.
fn halved(branch: &ThinArc<Starts, Node>, child: usize, shift: u32) -> Option<ThinArc<Starts, Node>> {
    let Node::Leaf(table) = &branch.slice[child] else {
        return None;
    };
    let (first, width) = branch.header.header.run(child);
    if width == 1 || !branch.slice[child].is_full() {
        return None;
    }
    let middle = first + width / 2;
    let (low, high): (Vec<Slot>, Vec<Slot>) = table.slots().iter().partition(|slot| digit(slot.hash, shift) < middle);
    let starts = Starts(branch.header.header.0 | 1 << middle);
    Some(thin::spliced(starts, &branch.slice, child..child + 1, &[Table::node(&low), Table::node(&high)]))
}

/// `branch` with the leaf `child` and its neighbour of the same width made one, if both fill no more than half a leaf.
fn joined(branch: &ThinArc<Starts, Node>, child: usize) -> Option<ThinArc<Starts, Node>> {
    let starts = branch.header.header;
    let (first, width) = starts.run(child);
    if width == FAN {
        return None;
    }
    let other = starts.child(first ^ width);
    if starts.run(other).1 != width {
        return None;
    }
    let left = child.min(other);
    let [Node::Leaf(low), Node::Leaf(high)] = &branch.slice[left..left + 2] else {
        return None;
    };
    let both = [low.slots(), high.slots()].concat();
    if both.len() > FULL / 2 {
        return None;
    }
    let starts = Starts(starts.0 & !(1 << (first | width)));
    Some(thin::spliced(starts, &branch.slice, left..left + 2, &[Table::node(&both)]))
}

// === impl Table, Starts ===

impl Table {
    fn node(slots: &[Slot]) -> Node {
        let mut table = Self([FREE; SLOTS]);
        slots.iter().for_each(|slot| table.insert(*slot));
        Node::Leaf(Arc::new(table))
    }

    #[inline]
    fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut at = hash as usize % SLOTS;
        // There is a free slot, so this ends.
        loop {
            let slot = self.0[at];
            if slot == FREE {
                return None;
            }
            if slot.hash == hash && is_it(slot.id) {
                return Some(slot.id);
            }
            at = (at + 1) % SLOTS;
        }
    }

    /// Needs a free slot.
    fn insert(&mut self, slot: Slot) {
        let home = slot.hash as usize % SLOTS;
        let places = (home..SLOTS).chain(0..home);
        for at in places {
            if self.0[at] == FREE {
                self.0[at] = slot;
                return;
            }
        }
    }

    fn slots(&self) -> Vec<Slot> {
        self.0.iter().copied().filter(|slot| *slot != FREE).collect()
    }
}

impl Starts {
    /// The child that stands for a digit.
    #[inline]
    fn child(self, digit: usize) -> usize {
        (self.0 << (FAN - 1 - digit)).count_ones() as usize - 1
    }

    /// The first digit of `child`, and how many it has.
    fn run(self, child: usize) -> (usize, usize) {
        let mut rest = self.0;
        for _ in 0..child {
            rest &= rest - 1;
        }
        let first = rest.trailing_zeros();
        let next = (rest & rest.wrapping_sub(1)).trailing_zeros();
        (first as usize, (next - first) as usize)
    }
}

#[inline]
fn upper(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[inline]
fn digit(hash: u32, shift: u32) -> usize {
    (hash >> shift) as usize % FAN
}

fn is(hash: u32, mut is_it: impl FnMut(u32) -> bool) -> impl FnMut(&&Slot) -> bool {
    move |slot| slot.hash == hash && is_it(slot.id)
}
