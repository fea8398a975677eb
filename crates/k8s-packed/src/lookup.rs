//! Following a path through a value.

use std::fmt;

use crate::path::{Path, Step};
use crate::value::{ArrayRef, Items, Members, ValueRef};

impl Step {
    pub(crate) fn is_member(&self, name: &str) -> bool {
        matches!(self, Self::Member(n) if &**n == name)
    }
}

impl<'a> ValueRef<'a> {
    /// The first value that the path selects, in document order. Allocates nothing.
    pub fn get(&self, path: &Path) -> Option<ValueRef<'a>> {
        self.first(path.steps())
    }

    /// All values that the path selects, in document order. Allocates nothing for up to three wildcards.
    pub fn all(&self, path: &'a Path) -> All<'a> {
        All { next: Some((*self, path.steps())), open: [const { None }; INLINE], more: vec![] }
    }

    pub(crate) fn first(self, steps: &[Step]) -> Option<ValueRef<'a>> {
        let mut value = self;
        for (i, step) in steps.iter().enumerate() {
            if *step == Step::Wildcard {
                let rest = &steps[i + 1..];
                return Children::of(value)?.find_map(|child| child.first(rest));
            }
            value = value.step(step)?;
        }
        Some(value)
    }

    /// One step that is no wildcard. A member of a list and a place in a map are not there.
    fn step(self, step: &Step) -> Option<ValueRef<'a>> {
        match (self, step) {
            (ValueRef::Map(map), Step::Member(name)) => map.get(name),
            (ValueRef::Array(items), Step::Index(at)) => items.get(place(items, *at)?),
            _ => None,
        }
    }
}

/// Where an index points to; counted from the end when it is negative.
fn place(items: ArrayRef<'_>, at: i64) -> Option<usize> {
    match usize::try_from(at) {
        Ok(at) => Some(at),
        Err(_) => items.len().checked_sub(usize::try_from(at.unsigned_abs()).ok()?),
    }
}

/// The items of an array or the values of a map.
#[derive(Clone)]
enum Children<'a> {
    Items(Items<'a>),
    Members(Members<'a>),
}

impl<'a> Children<'a> {
    fn of(value: ValueRef<'a>) -> Option<Self> {
        match value {
            ValueRef::Array(items) => Some(Self::Items(items.iter())),
            ValueRef::Map(map) => Some(Self::Members(map.iter())),
            _ => None,
        }
    }
}

impl<'a> Iterator for Children<'a> {
    type Item = ValueRef<'a>;

    fn next(&mut self) -> Option<ValueRef<'a>> {
        match self {
            Self::Items(items) => items.next(),
            Self::Members(members) => members.next().map(|(_, v)| v),
        }
    }
}

const INLINE: usize = 3;

/// Iterator over the values that a path selects; see [`Object::all`](crate::Object::all).
#[derive(Clone)]
pub struct All<'a> {
    /// A value to go on from, and the steps still to take.
    next: Option<(ValueRef<'a>, &'a [Step])>,
    /// The wildcards that are open, outermost first: what is left of their children, the steps behind them.
    open: [Option<Level<'a>>; INLINE],
    /// Wildcards beyond those that fit.
    more: Vec<Level<'a>>,
}

type Level<'a> = (Children<'a>, &'a [Step]);

impl<'a> All<'a> {
    fn push(&mut self, level: Level<'a>) {
        match self.open.iter_mut().find(|l| l.is_none()) {
            Some(free) => *free = Some(level),
            None => self.more.push(level),
        }
    }

    /// The next child of the innermost open wildcard that still has one.
    fn advance(&mut self) -> Option<(ValueRef<'a>, &'a [Step])> {
        while let Some((children, steps)) = self.more.last_mut() {
            if let Some(child) = children.next() {
                return Some((child, steps));
            }
            self.more.pop();
        }
        for slot in self.open.iter_mut().rev() {
            if let Some((children, steps)) = slot {
                if let Some(child) = children.next() {
                    return Some((child, steps));
                }
                *slot = None;
            }
        }
        None
    }
}

impl<'a> Iterator for All<'a> {
    type Item = ValueRef<'a>;

    fn next(&mut self) -> Option<ValueRef<'a>> {
        loop {
            let (value, steps) = self.next.take().or_else(|| self.advance())?;
            let Some((step, rest)) = steps.split_first() else {
                return Some(value);
            };
            if *step == Step::Wildcard {
                if let Some(children) = Children::of(value) {
                    self.push((children, rest));
                }
            } else if let Some(value) = value.step(step) {
                self.next = Some((value, rest));
            }
        }
    }
}

impl fmt::Debug for All<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("All").finish_non_exhaustive()
    }
}
