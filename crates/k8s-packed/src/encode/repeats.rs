//! Strings that an object has more than once and no other object has: written once, referred to after that.

use crate::layout::{self, REPEAT_BYTES, Token};

/// The strings that the object being written has in its own bytes, and the references to them.
///
/// A start time stands at each condition and each container of a Pod, a generated name at each mount.
#[derive(Default)]
pub(super) struct Repeats {
    /// Hashes of the strings, in the order in which they stand in the bytes.
    hashes: Vec<u64>,
    /// Where they stand.
    places: Vec<usize>,
    /// Where references stand, in order.
    references: Vec<usize>,
}

/// Strings beyond so many are not remembered: each new one is compared with all that are.
const MAX_STRINGS: usize = 128;
/// A reference reaches 16 bits far, and containers that are still open move a string by the bytes of their heads.
const MAX_PLACE: usize = 0xf000;

impl Repeats {
    /// Replaces the string that was just written by a reference, if the object has it already.
    pub(super) fn string(&mut self, out: &mut Vec<u8>, start: usize, hash: u64) {
        if out.len() - start <= REPEAT_BYTES + 2 {
            return;
        }
        let known = self.hashes.iter().position(|h| *h == hash).map(|i| self.places[i]);
        match known {
            Some(place) if layout::read_value(&out[place..start]).0 == layout::read_value(&out[start..]).0 => {
                out.truncate(start);
                layout::write_repeat(out, place as u16);
                self.references.push(start);
            }
            None if self.hashes.len() < MAX_STRINGS && start < MAX_PLACE => {
                self.hashes.push(hash);
                self.places.push(start);
            }
            _ => {}
        }
    }

    /// Whether there is a reference in the bytes from `start` on.
    pub(super) fn any_from(&self, start: usize) -> bool {
        self.references.last().is_some_and(|r| *r >= start)
    }

    /// Follows the bytes from `start` on, which have been moved.
    pub(super) fn moved(&mut self, out: &mut [u8], start: usize, by: usize) {
        for place in self.places.iter_mut().rev().take_while(|p| **p >= start) {
            *place += by;
        }
        for reference in self.references.iter_mut().rev().take_while(|r| **r >= start) {
            *reference += by;
            if let (Token::Repeat(at), _) = layout::read_value(&out[*reference..])
                && usize::from(at) >= start
            {
                layout::move_repeat(out, *reference, at + by as u16);
            }
        }
    }

    /// Forgets the strings from `start` on: their bytes have been replaced by a symbol.
    pub(super) fn forget(&mut self, start: usize) {
        let left = self.places.partition_point(|p| *p < start);
        self.places.truncate(left);
        self.hashes.truncate(left);
    }
}
