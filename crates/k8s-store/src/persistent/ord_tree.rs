//! `OrdTree`: a persistent ordered sequence of ids; the caller knows the order.
//!
//! A counted B+tree. Searching takes a predicate that is true for a first part of the sequence (as
//! `slice::partition_point` does) and gives a position; reading and changing go by position. So the order, which needs
//! the objects behind the ids, appears in searches only. No id or one id needs no allocation: most keys of an index have
//! one object. Nodes have no slack; a leaf takes four bytes an id.
use std::ops::Range;

use triomphe::ThinArc;

use super::thin;

const LEAF: usize = 64;
const FAN: usize = 32;

/// The persistent sequence; cloning is one step whatever its size.
#[derive(Clone, Default)]
pub(crate) struct OrdTree {
    root: Node,
}

#[derive(Clone, Default)]
enum Node {
    #[default]
    Empty,
    One(u32),
    Leaf(ThinArc<(), u32>),
    Branch(ThinArc<(), Edge>),
}

#[derive(Clone)]
struct Edge {
    node: Node,
    /// The first id below, so that a search does not open the node.
    first: u32,
    /// Number of ids below.
    len: u32,
}

impl OrdTree {
    /// Number of ids.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.root.len()
    }

    /// Number of ids for which `before` holds; it must hold for a first part of the sequence and for none after.
    pub(crate) fn partition_point(&self, mut before: impl FnMut(u32) -> bool) -> usize {
        let mut node = &self.root;
        let mut position = 0;
        loop {
            match node {
                Node::Empty => return position,
                Node::One(id) => return position + usize::from(before(*id)),
                Node::Leaf(leaf) => {
                    return position + leaf.slice.partition_point(|&id| before(id));
                }
                Node::Branch(branch) => {
                    let edges = &branch.slice;
                    let child = edges.partition_point(|edge| before(edge.first)).saturating_sub(1);
                    position += edges[..child].iter().map(Edge::count).sum::<usize>();
                    node = &edges[child].node;
                }
            }
        }
    }

    /// The id at `position`.
    #[inline]
    pub(crate) fn get(&self, position: usize) -> Option<u32> {
        self.root.run(position).first().copied()
    }

    /// Puts `id` at `position` (at the end if there are fewer) before the id that was there.
    pub(crate) fn insert(&mut self, position: usize, id: u32) {
        let position = position.min(self.len());
        if let Some(right) = self.root.insert(position, id, true) {
            let left = Edge::new(std::mem::take(&mut self.root));
            self.root = Node::Branch(thin::spliced((), &[], 0..0, &[left, right]));
        }
    }

    /// Takes the id at `position` out.
    pub(crate) fn remove(&mut self, position: usize) -> Option<u32> {
        if position >= self.len() {
            return None;
        }
        let id = self.root.remove(position);
        while let Node::Branch(branch) = &self.root
            && let [only] = &branch.slice
        {
            let only = only.node.clone();
            self.root = only;
        }
        if let Node::Leaf(leaf) = &self.root {
            match leaf.slice {
                [] => self.root = Node::Empty,
                [only] => self.root = Node::One(only),
                _ => {}
            }
        }
        Some(id)
    }

    /// The ids at `positions`, in order. Positions past the end are left out.
    pub(crate) fn range(&self, positions: Range<usize>) -> Ids<'_> {
        let end = positions.end.min(self.len());
        Ids { root: &self.root, run: [].iter(), next: positions.start.min(end), end }
    }

    /// All ids in order.
    #[inline]
    pub(crate) fn iter(&self) -> Ids<'_> {
        Ids { root: &self.root, run: [].iter(), next: 0, end: self.len() }
    }

    /// Bytes of all nodes. Visits each node.
    pub(crate) fn node_bytes(&self) -> usize {
        self.root.bytes()
    }
}

impl Edge {
    fn new(node: Node) -> Self {
        Self {
            first: node.run(0).first().copied().unwrap_or_default(),
            // Ids are distinct numbers of 32 bits.
            len: node.len() as u32,
            node,
        }
    }

    fn count(&self) -> usize {
        self.len as usize
    }
}

impl Node {
    #[inline]
    fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::One(_) => 1,
            Self::Leaf(leaf) => leaf.slice.len(),
            Self::Branch(branch) => branch.slice.iter().map(Edge::count).sum(),
        }
    }

    /// The ids from `position` to the end of their leaf.
    #[inline]
    fn run(&self, mut position: usize) -> &[u32] {
        let mut node = self;
        loop {
            let ids = match node {
                Self::Empty => &[],
                Self::One(id) => std::slice::from_ref(id),
                Self::Leaf(leaf) => &leaf.slice,
                Self::Branch(branch) => {
                    let Some(child) = child_at(&branch.slice, &mut position) else {
                        return &[];
                    };
                    node = &branch.slice[child].node;
                    continue;
                }
            };
            return ids.get(position..).unwrap_or_default();
        }
    }

    /// Inserts and gives the new right neighbour, if the node had to be cut. `last` says that no id follows the node.
    fn insert(&mut self, position: usize, id: u32, last: bool) -> Option<Edge> {
        match self {
            Self::Empty => *self = Self::One(id),
            Self::One(other) => {
                let both = if position == 0 { [id, *other] } else { [*other, id] };
                *self = Self::Leaf(ThinArc::from_header_and_slice((), &both));
            }
            Self::Leaf(leaf) => {
                let ids = &leaf.slice;
                if ids.len() < LEAF {
                    *leaf = thin::spliced((), ids, position..position, &[id]);
                } else {
                    // Lists arrive in order: what is appended leaves full leaves behind.
                    let append = last && position == LEAF;
                    let cut = if append { LEAF } else { LEAF / 2 };
                    let (low, high) = ids.split_at(cut);
                    let (left, right) = if position < cut || (position == cut && !append) {
                        (thin::spliced((), low, position..position, &[id]), ThinArc::from_header_and_slice((), high))
                    } else {
                        let position = position - cut;
                        (ThinArc::from_header_and_slice((), low), thin::spliced((), high, position..position, &[id]))
                    };
                    *leaf = left;
                    return Some(Edge::new(Self::Leaf(right)));
                }
            }
            Self::Branch(branch) => {
                let mut within = position;
                let len = branch.slice.len();
                // At a border the id goes to the end of the left child.
                let child = child_at_or_before(&branch.slice, &mut within);
                let right = thin::edit(branch, |edges| {
                    let edge = &mut edges[child];
                    let right = edge.node.insert(within, id, last && child + 1 == len);
                    edge.len = edge.len + 1 - right.as_ref().map_or(0, |right| right.len);
                    if within == 0 {
                        edge.first = id;
                    }
                    right
                })?;
                let at = child + 1;
                let edges = &branch.slice;
                if len < FAN {
                    *branch = thin::spliced((), edges, at..at, &[right]);
                } else {
                    let append = last && at == FAN;
                    let cut = if append { FAN } else { FAN / 2 };
                    let (low, high) = edges.split_at(cut);
                    let (left, right) = if at < cut {
                        (thin::spliced((), low, at..at, &[right]), thin::spliced((), high, 0..0, &[]))
                    } else {
                        let at = at - cut;
                        (thin::spliced((), low, 0..0, &[]), thin::spliced((), high, at..at, &[right]))
                    };
                    *branch = left;
                    return Some(Edge::new(Self::Branch(right)));
                }
            }
        }
        None
    }

    /// Removes the id at a position that is there.
    fn remove(&mut self, position: usize) -> u32 {
        match self {
            Self::Empty => unreachable!("the caller has checked the position"),
            Self::One(id) => {
                let id = *id;
                *self = Self::Empty;
                id
            }
            Self::Leaf(leaf) => {
                let id = leaf.slice[position];
                *leaf = thin::spliced((), &leaf.slice, position..position + 1, &[]);
                id
            }
            Self::Branch(branch) => {
                let mut within = position;
                let Some(child) = child_at(&branch.slice, &mut within) else {
                    unreachable!("the caller has checked the position");
                };
                let id = thin::edit(branch, |edges| {
                    let edge = &mut edges[child];
                    let id = edge.node.remove(within);
                    edge.len -= 1;
                    if within == 0 {
                        edge.first = edge.node.run(0).first().copied().unwrap_or_default();
                    }
                    id
                });
                if let Some(fewer) = tidied(&branch.slice, child) {
                    *branch = fewer;
                }
                id
            }
        }
    }

    /// Entries of this very node against what fits.
    fn fill(&self) -> (usize, usize) {
        match self {
            Self::Empty => (0, LEAF),
            Self::One(_) => (1, LEAF),
            Self::Leaf(leaf) => (leaf.slice.len(), LEAF),
            Self::Branch(branch) => (branch.slice.len(), FAN),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Empty | Self::One(_) => 0,
            Self::Leaf(leaf) => thin::size(leaf),
            Self::Branch(branch) => {
                let below: usize = branch.slice.iter().map(|edge| edge.node.bytes()).sum();
                thin::size(branch) + below
            }
        }
    }
}

/// The child that holds `position`, which becomes a position within it.
#[inline]
fn child_at(edges: &[Edge], position: &mut usize) -> Option<usize> {
    for (child, edge) in edges.iter().enumerate() {
        if *position < edge.count() {
            return Some(child);
        }
        *position -= edge.count();
    }
    None
}

/// The child into which an id at `position` goes.
fn child_at_or_before(edges: &[Edge], position: &mut usize) -> usize {
    let last = edges.len() - 1;
    for (child, edge) in edges[..last].iter().enumerate() {
        if *position <= edge.count() {
            return child;
        }
        *position -= edge.count();
    }
    last
}

/// `edges` after a removal below `child`, if it is now empty or small enough to become one with a neighbour.
fn tidied(edges: &[Edge], child: usize) -> Option<ThinArc<(), Edge>> {
    let (entries, most) = edges[child].node.fill();
    if edges[child].len == 0 {
        return Some(thin::spliced((), edges, child..child + 1, &[]));
    }
    if entries > most / 4 {
        return None;
    }
    let neighbours = [child.checked_sub(1), Some(child)];
    neighbours.into_iter().flatten().find_map(|left| {
        let pair = edges.get(left..left + 2)?;
        let sum = pair[0].node.fill().0 + pair[1].node.fill().0;
        if sum > most * 3 / 4 {
            return None;
        }
        let node = match (&pair[0].node, &pair[1].node) {
            (Node::Leaf(low), Node::Leaf(high)) => {
                let end = low.slice.len();
                Node::Leaf(thin::spliced((), &low.slice, end..end, &high.slice))
            }
            (Node::Branch(low), Node::Branch(high)) => {
                let end = low.slice.len();
                Node::Branch(thin::spliced((), &low.slice, end..end, &high.slice))
            }
            _ => return None,
        };
        Some(thin::spliced((), edges, left..left + 2, &[Edge::new(node)]))
    })
}

/// Ids of a part of an [`OrdTree`], in order.
#[derive(Clone)]
pub(crate) struct Ids<'a> {
    root: &'a Node,
    /// The rest of the present leaf.
    run: std::slice::Iter<'a, u32>,
    /// Position after `run`.
    next: usize,
    end: usize,
}

impl Iterator for Ids<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if let Some(&id) = self.run.next() {
            return Some(id);
        }
        if self.next >= self.end {
            return None;
        }
        let run = self.root.run(self.next);
        let run = &run[..run.len().min(self.end - self.next)];
        self.next += run.len();
        self.run = run.iter();
        self.run.next().copied()
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.run.len() + (self.end - self.next);
        (len, Some(len))
    }
}

impl ExactSizeIterator for Ids<'_> {}
