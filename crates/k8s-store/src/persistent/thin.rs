//! Copy-on-write of the thin nodes that the persistent structures are made of.
//!
//! A node is one allocation behind an 8-byte handle: a count, a header and a slice without slack. A node with one
//! owner is changed in place; any other is copied first, so whoever holds the old handle keeps the old content.
use std::ops::Range;

use triomphe::{Arc, ThinArc};

/// Gives mutable access to the items of `node`, after copying the node if anybody else holds it.
pub(crate) fn edit<H: Clone, T: Clone, R>(node: &mut ThinArc<H, T>, change: impl FnOnce(&mut [T]) -> R) -> R {
    if ThinArc::strong_count(node) != 1 {
        *node = ThinArc::from_header_and_iter(node.header.header.clone(), node.slice.iter().cloned());
    }
    node.with_arc_mut(|shared| match Arc::get_mut(shared) {
        Some(own) => change(own.slice_mut()),
        None => unreachable!("the copy above has one owner"),
    })
}

/// A new node: `old` with `range` replaced by `new`.
pub(crate) fn spliced<H, T: Clone>(header: H, old: &[T], range: Range<usize>, new: &[T]) -> ThinArc<H, T> {
    let (added, removed) = (new.len(), range.len());
    let items = (0..old.len() - removed + added).map(|i| {
        if i < range.start {
            old[i].clone()
        } else if i < range.start + added {
            new[i - range.start].clone()
        } else {
            old[i - added + removed].clone()
        }
    });
    ThinArc::from_header_and_iter(header, items)
}

/// Bytes of the allocation behind `node`.
pub(crate) fn size<H, T>(node: &ThinArc<H, T>) -> usize {
    let counts = 2 * size_of::<usize>();
    counts + size_of::<H>() + size_of_val(&node.slice)
}
