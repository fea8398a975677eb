//! Borrowed views of what is inside an object: values, maps, arrays, numbers.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

use crate::layout::{self, KeyToken, Token};
use crate::object::Object;

/// A value inside an [`Object`](crate::Object), borrowed from it.
///
/// Two values are equal when their JSON is: maps regardless of the order of their members, numbers as
/// `serde_json::Value` compares them (`1` and `1.0` differ).
#[derive(Clone, Copy)]
pub enum ValueRef<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, exact.
    Number(Number),
    /// A text.
    String(&'a str),
    /// A list.
    Array(ArrayRef<'a>),
    /// An object in JSON's sense.
    Map(MapRef<'a>),
}

/// A number as JSON has it: integers exact over the ranges of `i64` and `u64`, floats to the bit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer that fits `i64`.
    Int(i64),
    /// An integer above `i64::MAX`.
    Uint(u64),
    /// A number with a fraction or an exponent; always finite.
    Float(f64),
}

/// The object that a view is of: what its references refer to. None for the empty map of no object.
pub(crate) type Home<'a> = Option<&'a Object>;

/// The members of a map, in the order in which the server sent them.
#[derive(Clone, Copy)]
pub struct MapRef<'a> {
    home: Home<'a>,
    contents: &'a [u8],
}

/// The items of an array.
#[derive(Clone, Copy)]
pub struct ArrayRef<'a> {
    home: Home<'a>,
    contents: &'a [u8],
}

/// Iterator over the items of an array; see [`ArrayRef::iter`].
#[derive(Clone)]
pub struct Items<'a> {
    home: Home<'a>,
    rest: &'a [u8],
}

/// Iterator over the members of a map; see [`MapRef::iter`].
#[derive(Clone)]
pub struct Members<'a> {
    home: Home<'a>,
    rest: &'a [u8],
}

/// Texts come only from `str`s, so this never fails; it is checked because it costs little.
#[inline]
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or("")
}

// === impl ValueRef ===

impl<'a> ValueRef<'a> {
    /// Reads one value and gives it with the bytes behind it.
    #[inline]
    pub(crate) fn read(home: Home<'a>, bytes: &'a [u8]) -> (Self, &'a [u8]) {
        let (token, rest) = layout::read_value(bytes);
        (Self::of(home, token), rest)
    }

    /// The value that a token of the object stands for.
    #[inline]
    pub(crate) fn of(home: Home<'a>, mut token: Token<'a>) -> Self {
        match token {
            Token::Symbol(id) => token = layout::read_value(home.map_or(&[], |o| o.value(id))).0,
            Token::Repeat(at) => token = layout::read_value(home.map_or(&[], |o| o.bytes_from(at.into()))).0,
            _ => {}
        }
        match token {
            Token::Null | Token::Symbol(_) | Token::Repeat(_) => Self::Null,
            Token::Bool(b) => Self::Bool(b),
            Token::Int(n) => Self::Number(Number::Int(n)),
            Token::Uint(n) => Self::Number(Number::Uint(n)),
            Token::Float(n) => Self::Number(Number::Float(n)),
            Token::String(s) => Self::String(text(s)),
            Token::Array(contents) => Self::Array(ArrayRef { home, contents }),
            Token::Map(contents) => Self::Map(MapRef { home, contents }),
        }
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&'a str> {
        if let Self::String(s) = *self { Some(s) } else { None }
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(b) = *self { Some(b) } else { None }
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<Number> {
        if let Self::Number(n) = *self { Some(n) } else { None }
    }

    /// The number as `i64`, if it is an integer in that range.
    pub fn as_i64(&self) -> Option<i64> {
        if let Self::Number(Number::Int(n)) = *self { Some(n) } else { None }
    }

    /// The number as `u64`, if it is an integer in that range.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::Number(Number::Uint(n)) => Some(n),
            Self::Number(Number::Int(n)) => u64::try_from(n).ok(),
            _ => None,
        }
    }

    /// The number as `f64`, if it is one; large integers are rounded.
    pub fn as_f64(&self) -> Option<f64> {
        Some(match self.as_number()? {
            Number::Int(n) => n as f64,
            Number::Uint(n) => n as f64,
            Number::Float(n) => n,
        })
    }

    /// The array, if it is one.
    pub fn as_array(&self) -> Option<ArrayRef<'a>> {
        if let Self::Array(a) = *self { Some(a) } else { None }
    }

    /// The map, if it is one.
    pub fn as_map(&self) -> Option<MapRef<'a>> {
        if let Self::Map(m) = *self { Some(m) } else { None }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// A `serde_json::Value` of its own. Allocates for each text, array and map.
    pub fn to_value(&self) -> Value {
        match *self {
            Self::Null => Value::Null,
            Self::Bool(b) => Value::Bool(b),
            Self::Number(n) => n.to_value(),
            Self::String(s) => Value::String(s.to_owned()),
            Self::Array(a) => Value::Array(a.iter().map(|v| v.to_value()).collect()),
            Self::Map(m) => Value::Object(m.iter().map(|(k, v)| (k.to_owned(), v.to_value())).collect()),
        }
    }
}

/// A text as it is, anything else as JSON.
impl fmt::Display for ValueRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(s) => f.write_str(s),
            other => f.write_str(&serde_json::to_string(other).map_err(|_| fmt::Error)?),
        }
    }
}

/// The kind of value only: what is inside may be a secret.
impl fmt::Debug for ValueRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::Bool(_) => f.write_str("Bool"),
            Self::Number(_) => f.write_str("Number"),
            Self::String(s) => write!(f, "String({} bytes)", s.len()),
            Self::Array(a) => a.fmt(f),
            Self::Map(m) => m.fmt(f),
        }
    }
}

impl Serialize for ValueRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(b) => serializer.serialize_bool(b),
            Self::Number(Number::Int(n)) => serializer.serialize_i64(n),
            Self::Number(Number::Uint(n)) => serializer.serialize_u64(n),
            Self::Number(Number::Float(n)) => serializer.serialize_f64(n),
            Self::String(s) => serializer.serialize_str(s),
            Self::Array(a) => a.serialize(serializer),
            Self::Map(m) => m.serialize(serializer),
        }
    }
}

// === impl Number ===

impl Number {
    fn to_value(self) -> Value {
        match self {
            Self::Int(n) => n.into(),
            Self::Uint(n) => n.into(),
            Self::Float(n) => n.into(),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_value().fmt(f)
    }
}

// === impl MapRef ===

impl<'a> MapRef<'a> {
    pub(crate) const EMPTY: Self = Self { home: None, contents: &[] };

    pub(crate) fn new(object: &'a Object, contents: &'a [u8]) -> Self {
        Self { home: Some(object), contents }
    }

    /// The value of a member. Steps over the members before it without reading them.
    pub fn get(&self, key: &str) -> Option<ValueRef<'a>> {
        let mut rest = self.contents;
        while !rest.is_empty() {
            let (found, after) = layout::read_key(rest);
            let found = match found {
                KeyToken::Symbol(id) => self.home.map_or("", |o| o.key(id)).as_bytes(),
                KeyToken::Inline(text) => text,
            };
            if found == key.as_bytes() {
                return Some(ValueRef::read(self.home, after).0);
            }
            rest = layout::read_value(after).1;
        }
        None
    }

    /// The object and the bytes that this is a view of.
    pub(crate) fn parts(&self) -> (Home<'a>, &'a [u8]) {
        (self.home, self.contents)
    }

    /// The members in order.
    pub fn iter(&self) -> Members<'a> {
        Members { home: self.home, rest: self.contents }
    }

    /// How many members there are. Steps over them.
    pub fn len(&self) -> usize {
        let (mut rest, mut n) = (self.contents, 0);
        while !rest.is_empty() {
            rest = layout::read_value(layout::read_key(rest).1).1;
            n += 1;
        }
        n
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.contents.is_empty()
    }
}

impl fmt::Debug for MapRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Map({} members)", self.len())
    }
}

impl Serialize for MapRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (key, value) in self.iter() {
            map.serialize_entry(key, &value)?;
        }
        map.end()
    }
}

impl<'a> IntoIterator for MapRef<'a> {
    type Item = (&'a str, ValueRef<'a>);
    type IntoIter = Members<'a>;

    fn into_iter(self) -> Members<'a> {
        self.iter()
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, ValueRef<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (key, after) = layout::read_key(self.rest);
        let key = match key {
            KeyToken::Symbol(id) => self.home.map_or("", |o| o.key(id)),
            KeyToken::Inline(bytes) => text(bytes),
        };
        let (value, rest) = ValueRef::read(self.home, after);
        self.rest = rest;
        Some((key, value))
    }
}

impl fmt::Debug for Members<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Members").finish_non_exhaustive()
    }
}

// === impl ArrayRef ===

impl<'a> ArrayRef<'a> {
    /// The item at a place. Steps over the items before it without reading them.
    pub fn get(&self, index: usize) -> Option<ValueRef<'a>> {
        let mut rest = self.contents;
        for _ in 0..index {
            if rest.is_empty() {
                return None;
            }
            rest = layout::read_value(rest).1;
        }
        (!rest.is_empty()).then(|| ValueRef::read(self.home, rest).0)
    }

    /// The object and the bytes that this is a view of.
    pub(crate) fn parts(&self) -> (Home<'a>, &'a [u8]) {
        (self.home, self.contents)
    }

    /// The items in order.
    pub fn iter(&self) -> Items<'a> {
        Items { home: self.home, rest: self.contents }
    }

    /// How many items there are. Steps over them.
    pub fn len(&self) -> usize {
        let (mut rest, mut n) = (self.contents, 0);
        while !rest.is_empty() {
            rest = layout::read_value(rest).1;
            n += 1;
        }
        n
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.contents.is_empty()
    }
}

impl fmt::Debug for ArrayRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({} items)", self.len())
    }
}

impl Serialize for ArrayRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.len()))?;
        for item in self.iter() {
            seq.serialize_element(&item)?;
        }
        seq.end()
    }
}

impl<'a> IntoIterator for ArrayRef<'a> {
    type Item = ValueRef<'a>;
    type IntoIter = Items<'a>;

    fn into_iter(self) -> Items<'a> {
        self.iter()
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = ValueRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (value, rest) = ValueRef::read(self.home, self.rest);
        self.rest = rest;
        Some(value)
    }
}

impl fmt::Debug for Items<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").finish_non_exhaustive()
    }
}
