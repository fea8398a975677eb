//! The serde visitor that reads a value into the sink.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Rules;
use super::number::{NUMBER, RefuseNumber, number, numbers_are_maps};
use super::sink::{Open, Sink};
use crate::error::{MAX_DEPTH, NOT_AN_OBJECT, TOO_DEEP, TOO_LARGE};
use crate::prune::Prune;

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
        let mut open = sink.open();
        let (mut has_kind, mut has_version) = (false, false);
        loop {
            let seed = Key { sink, open: &mut open, prune: Some(&rules.prune), metadata_only: rules.metadata_only };
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
                let ignored = rules.prune.member(key).is_some_and(Prune::is_dropped);
                if !has && !ignored {
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
    prune: Option<&'p Prune>,
    /// How many containers are open around the value.
    depth: usize,
    share: bool,
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
        self.sink.bool(value);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.sink.int(value);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.sink.uint(value);
        Ok(())
    }

    /// Beyond 64 bits a number is a float, as in JSON.
    fn visit_i128<E>(self, value: i128) -> Result<(), E> {
        match i64::try_from(value) {
            Ok(value) => self.sink.int(value),
            Err(_) => self.sink.float(value as f64),
        }
        Ok(())
    }

    /// As for `i128`.
    fn visit_u128<E>(self, value: u128) -> Result<(), E> {
        match u64::try_from(value) {
            Ok(value) => self.sink.uint(value),
            Err(_) => self.sink.float(value as f64),
        }
        Ok(())
    }

    /// JSON has no other floats than finite ones; like `serde_json`, null stands for those of other formats.
    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        if value.is_finite() {
            self.sink.float(value);
        } else {
            self.sink.null();
        }
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.sink.string(value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { sink, prune, depth, .. } = self;
        if depth >= MAX_DEPTH {
            return Err(A::Error::custom(TOO_DEEP));
        }
        let open = sink.open();
        let mut at = 0;
        loop {
            let prune = prune.and_then(|p| p.item(at));
            let more = if prune.is_some_and(Prune::is_dropped) {
                seq.next_element::<IgnoredAny>()?.is_some()
            } else {
                seq.next_element_seed(Any { sink, prune, depth: depth + 1, share: true })?.is_some()
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
        let Self { sink, prune, depth, share } = self;
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
                Some(key) if key == NUMBER => return number(sink, &map.next_value::<String>()?),
                Some(key) => {
                    let key_seed = Key { sink, open: &mut open, prune, metadata_only: false };
                    let (member, _) = key_seed.accept(&key);
                    member.read_value(sink, &mut map, depth + 1, true)?;
                }
            }
        }
        while let Some((member, _)) = map.next_key_seed(Key { sink, open: &mut open, prune, metadata_only: false })? {
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
    prune: Option<&'p Prune>,
    metadata_only: bool,
}

/// What becomes of a member's value.
enum Member<'p> {
    Skip,
    Keep(Option<&'p Prune>),
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
        let prune = self.prune.and_then(|p| p.member(key));
        if prune.is_some_and(Prune::is_dropped) || (self.metadata_only && role == Role::Other) {
            return (Member::Skip, role);
        }
        self.sink.key(self.open, key);
        (Member::Keep(prune), role)
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
            Self::Keep(prune) => map.next_value_seed(Any { sink, prune, depth, share }),
        }
    }
}
