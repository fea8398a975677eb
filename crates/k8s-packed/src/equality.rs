//! When values are equal: when their JSON is, whatever their bytes are.

use crate::layout::{self, KeyToken, Token};
use crate::value::{ArrayRef, Home, MapRef, ValueRef};

impl PartialEq for ValueRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            _ => false,
        }
    }
}

impl PartialEq for MapRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        same_members(*self, *other, None)
    }
}

impl PartialEq for ArrayRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        let (mut left, mut right) = (Walk::new(self.parts()), Walk::new(other.parts()));
        let one_table = left.shares_table(&right);
        loop {
            match (left.item(), right.item()) {
                (None, None) => return true,
                (Some(a), Some(b)) if same(one_table, (left.home, a), (right.home, b)) => {}
                _ => return false,
            }
        }
    }
}

/// Whether two maps have the same members, apart from the one named.
///
/// Servers send members in one order, so the two are walked side by side; only from the first difference on
/// each member is looked up, in an index made for that.
pub(crate) fn same_members(a: MapRef<'_>, b: MapRef<'_>, except: Option<&str>) -> bool {
    let (mut left, mut right) = (Walk::new(a.parts()), Walk::new(b.parts()));
    let one_table = left.shares_table(&right);
    let mut index: Option<hashbrown::HashMap<&str, ValueRef<'_>>> = None;
    loop {
        match (left.member(except), right.member(except)) {
            (None, None) => return true,
            (Some((ka, a)), Some((kb, vb))) => {
                let in_step = index.is_none()
                    && match (ka, kb) {
                        (KeyToken::Symbol(a), KeyToken::Symbol(b)) if one_table => a == b,
                        _ => left.text(ka) == right.text(kb),
                    };
                let equal = if in_step {
                    same(one_table, (left.home, a), (right.home, vb))
                } else {
                    let index = index.get_or_insert_with(|| b.iter().collect());
                    std::str::from_utf8(left.text(ka)).ok().and_then(|k| index.get(k))
                        == Some(&ValueRef::of(left.home, a))
                };
                if !equal {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

/// Whether two values are equal. Numbers of one table need not be looked up to be known as the same; different
/// ones may still be equal, and so may what looks alike in two objects refer to different strings.
#[inline]
fn same(one_table: bool, (a_home, a): (Home<'_>, Token<'_>), (b_home, b): (Home<'_>, Token<'_>)) -> bool {
    match (a, b) {
        (Token::Symbol(a), Token::Symbol(b)) if one_table && a == b => true,
        _ => ValueRef::of(a_home, a) == ValueRef::of(b_home, b),
    }
}

/// Steps over the contents of a container without resolving what they refer to.
struct Walk<'a> {
    home: Home<'a>,
    rest: &'a [u8],
}

impl<'a> Walk<'a> {
    fn new((home, rest): (Home<'a>, &'a [u8])) -> Self {
        Self { home, rest }
    }

    fn shares_table(&self, other: &Walk<'_>) -> bool {
        let table = |home: Home<'_>| home.and_then(|o| o.symbols()).map(std::ptr::from_ref);
        table(self.home) == table(other.home)
    }

    fn item(&mut self) -> Option<Token<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let (token, rest) = layout::read_value(self.rest);
        self.rest = rest;
        Some(token)
    }

    fn member(&mut self, except: Option<&str>) -> Option<(KeyToken<'a>, Token<'a>)> {
        while !self.rest.is_empty() {
            let (key, value) = layout::read_key(self.rest);
            let (token, rest) = layout::read_value(value);
            self.rest = rest;
            if except.is_none_or(|e| self.text(key) != e.as_bytes()) {
                return Some((key, token));
            }
        }
        None
    }

    fn text(&self, key: KeyToken<'a>) -> &'a [u8] {
        match key {
            KeyToken::Symbol(id) => self.home.map_or("", |o| o.key(id)).as_bytes(),
            KeyToken::Inline(text) => text,
        }
    }
}
