//! Where the visitor puts what it reads: writes bytes, shares what has a symbol, notices duplicate members.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::interner::{Found, Interner};
use crate::layout;
use crate::object::Object;
use crate::value::{Number, ValueRef};

use super::repeats::Repeats;

pub(super) struct Sink<'e> {
    out: &'e mut Vec<u8>,
    interner: Option<&'e mut Interner>,
    /// A mark for each key of the maps that are open, to notice duplicates.
    marks: Vec<u64>,
    has_duplicates: bool,
    repeats: Repeats,
}

/// A container that is being written.
pub(super) struct Open {
    start: usize,
    /// How many candidates for symbols there were before it.
    candidates: usize,
    first_mark: usize,
    /// The marks again, once there are too many to look through.
    many: Option<hashbrown::HashSet<u64>>,
}

/// Maps with more members than this look for duplicates in a set.
const FEW: usize = 48;

impl<'e> Sink<'e> {
    pub(super) fn new(out: &'e mut Vec<u8>, interner: Option<&'e mut Interner>) -> Self {
        Self { out, interner, marks: vec![], has_duplicates: false, repeats: Repeats::default() }
    }

    /// Whether more was written than an object can hold.
    pub(super) fn is_too_large(&self) -> bool {
        u32::try_from(self.out.len()).is_err()
    }

    pub(super) fn null(&mut self) {
        layout::write_null(self.out);
    }

    pub(super) fn bool(&mut self, value: bool) {
        layout::write_bool(self.out, value);
    }

    pub(super) fn int(&mut self, value: i64) {
        layout::write_int(self.out, value);
    }

    pub(super) fn uint(&mut self, value: u64) {
        layout::write_uint(self.out, value);
    }

    pub(super) fn float(&mut self, value: f64) {
        let start = self.out.len();
        layout::write_float(self.out, value);
        let found = self.look_up(start);
        self.replace(start, &found);
    }

    pub(super) fn string(&mut self, text: &str) {
        let start = self.out.len();
        layout::write_string(self.out, text.as_bytes());
        let found = self.look_up(start);
        if let Found::Candidate(hash) = found {
            self.repeats.string(self.out, start, hash);
        }
        self.replace(start, &found);
    }

    pub(super) fn open(&self) -> Open {
        let candidates = self.interner.as_ref().map_or(0, |i| i.candidates());
        Open { start: self.out.len(), candidates, first_mark: self.marks.len(), many: None }
    }

    pub(super) fn key(&mut self, open: &mut Open, text: &str) {
        let id = self.interner.as_mut().and_then(|i| i.key(text));
        let mark = match id {
            Some(id) => {
                layout::write_key_symbol(self.out, id);
                u64::from(id)
            }
            None => {
                layout::write_key_inline(self.out, text.as_bytes());
                FixedState::default().hash_one(text) | 1 << 63
            }
        };
        let known = match &mut open.many {
            Some(many) => !many.insert(mark),
            None => self.marks[open.first_mark..].contains(&mark),
        };
        self.has_duplicates |= known;
        self.marks.push(mark);
        if open.many.is_none() && self.marks.len() - open.first_mark > FEW {
            open.many = Some(self.marks[open.first_mark..].iter().copied().collect());
        }
    }

    pub(super) fn close_array(&mut self, open: Open) {
        let moved = layout::close_array(self.out, open.start);
        self.close(&open, moved, true);
    }

    /// Ends a map; one that is not to be shared stays in the object's own bytes.
    pub(super) fn close_map(&mut self, open: Open, share: bool) {
        self.marks.truncate(open.first_mark);
        let moved = layout::close_map(self.out, open.start);
        self.close(&open, moved, share);
    }

    /// Ends a container whose contents have been moved by the bytes of its head.
    fn close(&mut self, open: &Open, moved: usize, share: bool) {
        self.repeats.moved(self.out, open.start, moved);
        // What refers to a string of this object means something in this object only.
        if !share || self.repeats.any_from(open.start) {
            return;
        }
        let found = self.look_up(open.start);
        if self.replace(open.start, &found) {
            self.repeats.forget(open.start);
            // What is inside needs no symbols of its own then. Should it get some all the same, because it
            // comes without this container too, the container has other bytes from then on, and is learned
            // anew.
            if let Some(interner) = &mut self.interner {
                interner.forget_candidates(open.candidates);
            }
        }
    }

    /// What the table has for the value that was just written.
    fn look_up(&mut self, start: usize) -> Found {
        self.interner.as_mut().map_or(Found::Unfit, |i| i.value(&self.out[start..]))
    }

    /// Writes a symbol in place of the value that was just written, if it has one; tells whether it has.
    fn replace(&mut self, start: usize, found: &Found) -> bool {
        let Found::Symbol(id) = *found else { return false };
        self.out.truncate(start);
        layout::write_symbol(self.out, id);
        true
    }

    /// The object that was written.
    pub(super) fn finish(&mut self) -> Object {
        let symbols = self.interner.as_ref().map(|i| i.symbols().clone());
        let object = Object::from_bytes(symbols.clone(), self.out);
        if !self.has_duplicates {
            return object;
        }
        // No API server sends duplicates; who does pays for a second pass over what was written.
        self.out.clear();
        self.repeats = Repeats::default();
        self.unique(object.root_value(), false);
        Object::from_bytes(symbols, self.out)
    }

    /// Writes a value with one member for each key: the last value, in the first one's place.
    fn unique(&mut self, value: ValueRef<'_>, share: bool) {
        match value {
            ValueRef::Null => self.null(),
            ValueRef::Bool(b) => self.bool(b),
            ValueRef::Number(Number::Int(n)) => self.int(n),
            ValueRef::Number(Number::Uint(n)) => self.uint(n),
            ValueRef::Number(Number::Float(n)) => self.float(n),
            ValueRef::String(s) => self.string(s),
            ValueRef::Array(items) => {
                let open = self.open();
                items.iter().for_each(|item| self.unique(item, true));
                self.close_array(open);
            }
            ValueRef::Map(map) => {
                let mut places = hashbrown::HashMap::new();
                let mut members: Vec<(&str, ValueRef<'_>)> = vec![];
                for (key, value) in map {
                    let place = *places.entry(key).or_insert(members.len());
                    match members.get_mut(place) {
                        Some(member) => member.1 = value,
                        None => members.push((key, value)),
                    }
                }
                let mut open = self.open();
                for (key, value) in members {
                    self.key(&mut open, key);
                    let is_metadata = !share && key == "metadata";
                    self.unique(value, !is_metadata);
                }
                self.close_map(open, share);
            }
        }
    }
}
