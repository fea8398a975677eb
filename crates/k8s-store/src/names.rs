//! The names of all objects in little space, by id.
//!
//! An object is some kilobyte large, so in a big store it is far from the processor whenever it is not in use. Finding
//! one by name and keeping the order by name must not touch the others: what they compare stands here, for sixteen
//! neighbours in one allocation, about forty bytes an object. Neighbours mostly share a namespace; it is kept once.
use triomphe::{Arc, ThinArc};

use crate::persistent::Slab;

const BLOCK: u32 = 16;

/// The identity of an object within a store: namespace (empty for none) and name. Ordered as their texts are.
pub(crate) type Name<'a> = (&'a [u8], &'a [u8]);

/// The persistent map; cloning is one step.
#[derive(Clone, Default)]
pub(crate) struct Names {
    blocks: Slab<Block>,
    /// Names with a part of more than 255 bytes, which Kubernetes does not allow.
    long: Slab<Arc<[Box<[u8]>; 2]>>,
}

#[derive(Clone)]
struct Block(ThinArc<[Place; BLOCK as usize], u8>);

/// Where in the text of a block a name stands.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    namespace: u16,
    name: u16,
    namespace_len: u8,
    name_len: u8,
}

impl Place {
    const NONE: Self = Self { namespace: u16::MAX, name: u16::MAX, namespace_len: 0, name_len: 0 };
}

impl Names {
    /// The name behind an id that has one.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<Name<'_>> {
        let short = self.blocks.get(id / BLOCK).and_then(|block| block.get(id));
        short.or_else(|| self.long.get(id).map(|long| (&*long[0], &*long[1])))
    }

    /// Names an id that has no name.
    pub(crate) fn set(&mut self, id: u32, name: Name<'_>) {
        if name.0.len().max(name.1.len()) > usize::from(u8::MAX) {
            self.long.set(id, Arc::new([name.0.into(), name.1.into()]));
        } else {
            self.change(id, Some(name));
        }
    }

    pub(crate) fn remove(&mut self, id: u32) {
        if self.long.take(id).is_none() {
            self.change(id, None);
        }
    }

    /// Bytes of everything. Visits each block.
    pub(crate) fn bytes(&self) -> usize {
        let long =
            |long: &Arc<[Box<[u8]>; 2]>| size_of::<usize>() + size_of_val(&**long) + long[0].len() + long[1].len();
        self.blocks.bytes_with(Block::bytes) + self.long.bytes_with(long)
    }

    fn change(&mut self, id: u32, name: Option<Name<'_>>) {
        let at = id / BLOCK;
        match Block::changed(self.blocks.get(at), id, name) {
            Some(block) => self.blocks.set(at, block),
            None => self.blocks.take(at),
        };
    }
}

impl Block {
    #[inline]
    fn get(&self, id: u32) -> Option<Name<'_>> {
        let place = self.0.header.header[(id % BLOCK) as usize];
        let part = |start: u16, len: u8| self.0.slice.get(usize::from(start)..usize::from(start) + usize::from(len));
        Some((part(place.namespace, place.namespace_len)?, part(place.name, place.name_len)?))
    }

    /// A block with another name at one id; none if it would be empty.
    fn changed(old: Option<&Self>, id: u32, name: Option<Name<'_>>) -> Option<Self> {
        let mut places = [Place::NONE; BLOCK as usize];
        let mut text: Vec<u8> = vec![];
        let mut last: (&[u8], u16) = (&[], 0);
        for slot in 0..BLOCK {
            let of_slot = if slot == id % BLOCK { name } else { old.and_then(|old| old.get(slot)) };
            let Some((namespace, name)) = of_slot else {
                continue;
            };
            // Sixteen times two parts of up to 255 bytes: the starts fit.
            if last.0 != namespace {
                last = (namespace, text.len() as u16);
                text.extend_from_slice(namespace);
            }
            places[slot as usize] = Place {
                namespace: last.1,
                name: text.len() as u16,
                namespace_len: namespace.len() as u8,
                name_len: name.len() as u8,
            };
            text.extend_from_slice(name);
        }
        let is_empty = places.iter().all(|place| *place == Place::NONE);
        (!is_empty).then(|| Self(ThinArc::from_header_and_slice(places, &text)))
    }

    fn bytes(&self) -> usize {
        2 * size_of::<usize>() + size_of_val(&self.0.header.header) + self.0.slice.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(names: &Names, id: u32) -> Option<(&str, &str)> {
        let (namespace, name) = names.get(id)?;
        Some((std::str::from_utf8(namespace).ok()?, std::str::from_utf8(name).ok()?))
    }

    #[test]
    fn names_are_what_was_set_and_old_versions_stay() {
        let mut names = Names::default();
        let mut held = vec![];
        for id in 0..100_u32 {
            let (namespace, name) = (format!("ns-{}", id / 7 % 3), format!("name-{id}"));
            names.set(id, (namespace.as_bytes(), name.as_bytes()));
            held.push(names.clone());
        }
        names.set(40, (b"", b"other"));
        names.remove(41);
        names.remove(41);
        for (last, names) in held.iter().enumerate() {
            for id in 0..100_u32 {
                let (namespace, name) = (format!("ns-{}", id / 7 % 3), format!("name-{id}"));
                let expected = (id as usize <= last).then_some((&*namespace, &*name));
                assert_eq!(texts(names, id), expected, "{id} of {last}");
            }
        }
        assert_eq!(texts(&names, 40), Some(("", "other")));
        assert_eq!(texts(&names, 41), None);
        (0..100).for_each(|id| names.remove(id));
        assert_eq!(names.bytes(), 0);
    }

    #[test]
    fn empty_and_overlong_parts() {
        let mut names = Names::default();
        let long = [b'x'; 256];
        names.set(0, (b"", b""));
        names.set(1, (b"ns", &long));
        names.set(2, (&long[1..], &long[1..]));
        assert_eq!(names.get(0), Some((&b""[..], &b""[..])));
        assert_eq!(names.get(1), Some((&b"ns"[..], &long[..])));
        assert_eq!(names.get(2), Some((&long[1..], &long[1..])));
        (0..3).for_each(|id| names.remove(id));
        assert_eq!((names.get(1), names.bytes()), (None, 0));
    }

    #[test]
    fn a_full_block_of_the_longest_names_is_read_back() {
        let mut names = Names::default();
        for id in 0..BLOCK {
            names.set(id, (&[id as u8; 255], &[id as u8 + 100; 255]));
        }
        for id in 0..BLOCK {
            assert_eq!(names.get(id), Some((&[id as u8; 255][..], &[id as u8 + 100; 255][..])));
        }
    }
}
