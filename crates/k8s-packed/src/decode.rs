//! A serde `Deserializer` over packed bytes.

use std::fmt::{Display, Formatter};

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, IgnoredAny, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::error::Error;
use crate::path::Step;
use crate::value::{Items, Members, Number, ValueRef};

/// The newtype by which `serde_json::value::RawValue` asks for the text of a value.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// Methods for a type that takes some kinds of value only; that also keeps a number from being read as the
/// place of an enum's variant.
macro_rules! only {
    ($($method:ident$(($($hint:ident: $type:ty),*))?: $kinds:pat,)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($(_: $type,)*)? visitor: V) -> Result<V::Value, Error> {
            match self {
                $kinds => self.deserialize_any(visitor),
                other => Err(Error::invalid_type(other.unexpected(), &visitor)),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for ValueRef<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Bool(b) => visitor.visit_bool(b),
            // As serde_json does: there are visitors that take one of the two only.
            Self::Number(Number::Int(n)) => match u64::try_from(n) {
                Ok(n) => visitor.visit_u64(n),
                Err(_) => visitor.visit_i64(n),
            },
            Self::Number(Number::Uint(n)) => visitor.visit_u64(n),
            Self::Number(Number::Float(n)) => visitor.visit_f64(n),
            Self::String(s) => visitor.visit_borrowed_str(s),
            Self::Array(items) => {
                let mut seq = Seq { items: items.iter(), at: 0 };
                let value = visitor.visit_seq(&mut seq)?;
                match seq.items.next() {
                    None => Ok(value),
                    Some(_) => Err(Error::invalid_length(items.len(), &"fewer items")),
                }
            }
            Self::Map(map) => {
                let mut access = Map { members: map.iter(), value: None };
                let value = visitor.visit_map(&mut access)?;
                match access.members.next() {
                    None => Ok(value),
                    Some(_) => Err(Error::invalid_length(map.len(), &"fewer members")),
                }
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        if name == RAW_VALUE {
            let text = serde_json::to_string(&self).map_err(Error::custom)?;
            let mut members = serde::de::value::MapDeserializer::new(std::iter::once((RAW_VALUE, text)));
            return visitor.visit_map(&mut members);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Self::String(variant) => visitor.visit_enum(Enum { variant, value: None }),
            Self::Map(map) => {
                let mut members = map.iter();
                match (members.next(), members.next()) {
                    (Some((variant, value)), None) => visitor.visit_enum(Enum { variant, value: Some(value) }),
                    _ => Err(Error::invalid_type(Unexpected::Map, &"a map with one member")),
                }
            }
            other => Err(Error::invalid_type(other.unexpected(), &"a string or a map")),
        }
    }

    only! {
        deserialize_bool: Self::Bool(_),
        deserialize_i8: Self::Number(_),
        deserialize_i16: Self::Number(_),
        deserialize_i32: Self::Number(_),
        deserialize_i64: Self::Number(_),
        deserialize_i128: Self::Number(_),
        deserialize_u8: Self::Number(_),
        deserialize_u16: Self::Number(_),
        deserialize_u32: Self::Number(_),
        deserialize_u64: Self::Number(_),
        deserialize_u128: Self::Number(_),
        deserialize_f32: Self::Number(_),
        deserialize_f64: Self::Number(_),
        deserialize_char: Self::String(_),
        deserialize_str: Self::String(_),
        deserialize_string: Self::String(_),
        deserialize_identifier: Self::String(_),
        deserialize_bytes: Self::String(_) | Self::Array(_),
        deserialize_byte_buf: Self::String(_) | Self::Array(_),
        deserialize_unit: Self::Null,
        deserialize_unit_struct(name: &'static str): Self::Null,
        deserialize_seq: Self::Array(_),
        deserialize_tuple(len: usize): Self::Array(_),
        deserialize_tuple_struct(name: &'static str, len: usize): Self::Array(_),
        deserialize_map: Self::Map(_),
        deserialize_struct(name: &'static str, fields: &'static [&'static str]): Self::Array(_) | Self::Map(_),
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }
}

impl ValueRef<'_> {
    fn unexpected(&self) -> Unexpected<'static> {
        match self {
            Self::Null => Unexpected::Unit,
            Self::Bool(b) => Unexpected::Bool(*b),
            Self::Number(Number::Int(n)) => Unexpected::Signed(*n),
            Self::Number(Number::Uint(n)) => Unexpected::Unsigned(*n),
            Self::Number(Number::Float(n)) => Unexpected::Float(*n),
            Self::String(_) => Unexpected::Str(""),
            Self::Array(_) => Unexpected::Seq,
            Self::Map(_) => Unexpected::Map,
        }
    }
}

// === containers ===

struct Seq<'de> {
    items: Items<'de>,
    at: i64,
}

impl<'de> SeqAccess<'de> for &mut Seq<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let at = self.at;
        self.at += 1;
        seed.deserialize(item).map(Some).map_err(|e| e.at(item, || Step::Index(at)))
    }
}

struct Map<'de> {
    members: Members<'de>,
    value: Option<(&'de str, ValueRef<'de>)>,
}

impl<'de> MapAccess<'de> for &mut Map<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((key, value)) = self.members.next() else {
            return Ok(None);
        };
        self.value = Some((key, value));
        seed.deserialize(Key(key)).map(Some).map_err(|e| e.at(value, || Step::Member(key.into())))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        match self.value.take() {
            Some((key, value)) => seed.deserialize(value).map_err(|e| e.at(value, || Step::Member(key.into()))),
            None => Err(Error::custom("a value was asked for before its key")),
        }
    }
}

/// A key: a text, or the number or boolean that a map with such keys was made of.
struct Key<'de>(&'de str);

macro_rules! parsed_key {
    ($($method:ident => $visit:ident,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.0.parse() {
                Ok(key) if self.is_json() => visitor.$visit(key),
                _ => visitor.visit_borrowed_str(self.0),
            }
        }
    )*};
}

impl Key<'_> {
    /// Rust reads texts that are no number to JSON, such as `+1`, `01` and `inf`.
    fn is_json(&self) -> bool {
        let spaced = |c: char| c.is_ascii_whitespace();
        !self.0.starts_with(spaced) && !self.0.ends_with(spaced) && serde_json::from_str::<IgnoredAny>(self.0).is_ok()
    }
}

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        BorrowedStrDeserializer::new(self.0).deserialize_enum(name, variants, visitor)
    }

    parsed_key! {
        deserialize_i8 => visit_i8, deserialize_i16 => visit_i16, deserialize_i32 => visit_i32,
        deserialize_i64 => visit_i64, deserialize_i128 => visit_i128,
        deserialize_u8 => visit_u8, deserialize_u16 => visit_u16, deserialize_u32 => visit_u32,
        deserialize_u64 => visit_u64, deserialize_u128 => visit_u128,
        deserialize_f32 => visit_f32, deserialize_f64 => visit_f64, deserialize_bool => visit_bool,
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

// === enums ===

struct Enum<'de> {
    variant: &'de str,
    value: Option<ValueRef<'de>>,
}

impl<'de> EnumAccess<'de> for Enum<'de> {
    type Error = Error;
    type Variant = Variant<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Variant<'de>), Error> {
        let variant = seed.deserialize(BorrowedStrDeserializer::<Error>::new(self.variant))?;
        Ok((variant, Variant { name: self.variant, value: self.value }))
    }
}

struct Variant<'de> {
    name: &'de str,
    value: Option<ValueRef<'de>>,
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.value {
            None | Some(ValueRef::Null) => Ok(()),
            Some(other) => Err(Error::invalid_type(other.unexpected(), &"unit variant")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        match self.value {
            Some(value) => seed.deserialize(value).map_err(|e| e.at(value, || Step::Member(self.name.into()))),
            None => Err(Error::invalid_type(Unexpected::UnitVariant, &"newtype variant")),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Some(value @ ValueRef::Array(_)) => value.deserialize_any(visitor),
            other => {
                Err(Error::invalid_type(other.map_or(Unexpected::UnitVariant, |v| v.unexpected()), &"tuple variant"))
            }
        }
    }

    fn struct_variant<V: Visitor<'de>>(self, _fields: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Some(value @ ValueRef::Map(_)) => value.deserialize_any(visitor),
            other => {
                Err(Error::invalid_type(other.map_or(Unexpected::UnitVariant, |v| v.unexpected()), &"struct variant"))
            }
        }
    }
}

// === errors ===

/// What serde's own texts would quote is left out: the kind of value is named, never the value.
impl serde::de::Error for Error {
    fn custom<T: Display>(message: T) -> Self {
        Self::foreign(message.to_string())
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::decode(format!("invalid type: {}, expected {expected}", KindOf(&unexpected)))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::decode(format!("invalid value: {}, expected {expected}", KindOf(&unexpected)))
    }

    fn invalid_length(len: usize, expected: &dyn Expected) -> Self {
        Self::decode(format!("invalid length {len}, expected {expected}"))
    }

    fn unknown_field(_field: &str, expected: &'static [&'static str]) -> Self {
        Self::decode(format!("unknown field, expected one of {}", expected.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::decode(format!("missing field {field}"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::decode(format!("duplicate field {field}"))
    }

    fn unknown_variant(_variant: &str, expected: &'static [&'static str]) -> Self {
        Self::decode(format!("unknown variant, expected one of {}", expected.join(", ")))
    }
}

struct KindOf<'a>(&'a Unexpected<'a>);

impl Display for KindOf<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Unexpected::Bool(_) => "boolean",
            Unexpected::Unsigned(_) | Unexpected::Signed(_) => "integer",
            Unexpected::Float(_) => "floating point number",
            Unexpected::Char(_) | Unexpected::Str(_) => "string",
            Unexpected::Unit => "null",
            Unexpected::Seq => "array",
            Unexpected::Map => "map",
            // May hold the value.
            Unexpected::Other(_) => "value",
            other => return other.fmt(f),
        })
    }
}
