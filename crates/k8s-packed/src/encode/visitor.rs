//! The serde visitor that reads a value into the sink.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Rules;
use super::number::{NUMBER, RefuseNumber, number, numbers_are_maps};
use super::sink::{Open, Sink};
use super::walk::Walk;
use crate::error::{MAX_DEPTH, NOT_AN_OBJECT, TOO_DEEP, TOO_LARGE};

/// Reads a whole object.
pub(super) struct Root<'s, 'e> {
    pub(super) sink: &'s mut Sink<'e>,
    pub(super) rules: &'s Rules,
}

impl<'de> Root<'_, '_> {
    pub(super) fn read<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let Self { sink, rules } = self;
        deserializer.deserialize_any(Root { sink, rules })?;
        if sink.is_too_large() { Err(D::Error::custom(TOO_LARGE)) } else { Ok(()) }
    }

    /// Members of the root that are filled in when they are missing, and one that is read with care.
    fn read_members<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { sink, rules } = self;
        let walk = rules.walk();
        let mut open = sink.open();
        let (mut has_kind, mut has_version) = (false, false);
        loop {
            let seed = Key { sink, open: &mut open, walk, metadata_only: rules.metadata_only };
            let Some((member, role)) = map.next_key_seed(seed)? else {
                break;
            };
            has_kind |= role == Role::Kind;
            has_version |= role == Role::ApiVersion;
            // Metadata stays in the object's own bytes, where its getters find it at once.
            let share = role != Role::Metadata;
            member.read_value(sink, &mut map, 1, share)?;
        }
        if let Some(meta) = &rules.type_meta {
            for (has, key, value) in [(has_version, "apiVersion", &meta.api_version), (has_kind, "kind", &meta.kind)] {
                if !has && walk.member(key).is_some() {
                    sink.key(&mut open, key);
                    sink.string(value);
                }
            }
        }
        sink.close_map(open, false);
        Ok(())
    }
}

/// Serde's own error for these would quote the value.
macro_rules! refuse {
    ($($visit:ident: $type:ty,)*) => {$(
        fn $visit<E: serde::de::Error>(self, _: $type) -> Result<(), E> {
            Err(E::custom(NOT_AN_OBJECT))
        }
    )*};
}

impl<'de> Visitor<'de> for Root<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        if numbers_are_maps() {
            return self.read_members(RefuseNumber { map, at_first: true });
        }
        self.read_members(map)
    }

    refuse! {
        visit_bool: bool, visit_i64: i64, visit_i128: i128, visit_u64: u64, visit_u128: u128, visit_f64: f64,
        visit_str: &str,
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Err(E::custom(NOT_AN_OBJECT))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(A::Error::custom(NOT_AN_OBJECT))
    }
}

/// Reads any value below the root.
struct Any<'s, 'e, 'p> {
    sink: &'s mut Sink<'e>,
    walk: Walk<'p>,
    /// How many containers are open around the value.
    depth: usize,
    share: bool,
}

impl<'e> Any<'_, 'e, '_> {
    /// Writes a value that has no parts, or null where parts are wanted.
    fn scalar<E>(self, write: impl FnOnce(&mut Sink<'e>)) -> Result<(), E> {
        match self.walk.wants_parts() {
            true => self.sink.null(),
            false => write(self.sink),
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Any<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.sink.null();
        Ok(())
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.scalar(|sink| sink.bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.scalar(|sink| sink.int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.scalar(|sink| sink.uint(value))
    }

    /// Beyond 64 bits a number is a float, as in JSON.
    fn visit_i128<E>(self, value: i128) -> Result<(), E> {
        self.scalar(|sink| match i64::try_from(value) {
            Ok(value) => sink.int(value),
            Err(_) => sink.float(value as f64),
        })
    }

    /// As for `i128`.
    fn visit_u128<E>(self, value: u128) -> Result<(), E> {
        self.scalar(|sink| match u64::try_from(value) {
            Ok(value) => sink.uint(value),
            Err(_) => sink.float(value as f64),
        })
    }

    /// JSON has no other floats than finite ones; like `serde_json`, null stands for those of other formats.
    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.scalar(|sink| if value.is_finite() { sink.float(value) } else { sink.null() })
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.scalar(|sink| sink.string(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { sink, walk, depth, .. } = self;
        if depth >= MAX_DEPTH {
            return Err(A::Error::custom(TOO_DEEP));
        }
        let open = sink.open();
        let mut at = 0;
        loop {
            let more = match walk.item(at) {
                Some(walk) => seq.next_element_seed(Any { sink, walk, depth: depth + 1, share: true })?.is_some(),
                None => seq.next_element::<IgnoredAny>()?.is_some(),
            };
            if !more {
                break;
            }
            at += 1;
        }
        sink.close_array(open);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { sink, walk, depth, share } = self;
        if depth >= MAX_DEPTH {
            return Err(A::Error::custom(TOO_DEEP));
        }
        let mut open = sink.open();
        if numbers_are_maps() {
            // The first key tells whether this is a number.
            match map.next_key::<String>()? {
                None => {
                    sink.close_map(open, share);
                    return Ok(());
                }
                Some(key) if key == NUMBER => {
                    let text = map.next_value::<String>()?;
                    if walk.wants_parts() {
                        sink.null();
                        return Ok(());
                    }
                    return number(sink, &text);
                }
                Some(key) => {
                    let key_seed = Key { sink, open: &mut open, walk, metadata_only: false };
                    let (member, _) = key_seed.accept(&key);
                    member.read_value(sink, &mut map, depth + 1, true)?;
                }
            }
        }
        while let Some((member, _)) = map.next_key_seed(Key { sink, open: &mut open, walk, metadata_only: false })? {
            member.read_value(sink, &mut map, depth + 1, true)?;
        }
        sink.close_map(open, share);
        Ok(())
    }
}

/// Reads a key and decides what becomes of the member.
struct Key<'s, 'e, 'p> {
    sink: &'s mut Sink<'e>,
    open: &'s mut Open,
    walk: Walk<'p>,
    metadata_only: bool,
}

/// What becomes of a member's value.
enum Member<'p> {
    Skip,
    Keep(Walk<'p>),
}

/// The members of the root that mean something to the encoder.
#[derive(PartialEq)]
enum Role {
    ApiVersion,
    Kind,
    Metadata,
    Other,
}

impl<'p> Key<'_, '_, 'p> {
    fn accept(self, key: &str) -> (Member<'p>, Role) {
        let role = match key {
            "apiVersion" => Role::ApiVersion,
            "kind" => Role::Kind,
            "metadata" => Role::Metadata,
            _ => Role::Other,
        };
        match self.walk.member(key) {
            Some(walk) if role != Role::Other || !self.metadata_only => {
                self.sink.key(self.open, key);
                (Member::Keep(walk), role)
            }
            _ => (Member::Skip, role),
        }
    }
}

impl<'de, 'p> DeserializeSeed<'de> for Key<'_, '_, 'p> {
    type Value = (Member<'p>, Role);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'p> Visitor<'_> for Key<'_, '_, 'p> {
    type Value = (Member<'p>, Role);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.accept(key))
    }
}

impl Member<'_> {
    fn read_value<'de, A: MapAccess<'de>>(
        self,
        sink: &mut Sink<'_>,
        map: &mut A,
        depth: usize,
        share: bool,
    ) -> Result<(), A::Error> {
        match self {
            Self::Skip => map.next_value::<IgnoredAny>().map(|_| ()),
            Self::Keep(walk) => map.next_value_seed(Any { sink, walk, depth, share }),
        }
    }
}
