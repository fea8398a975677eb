//! Numbers as `serde_json` passes them on under its feature `arbitrary_precision`: as maps of one text.

use std::fmt;
use std::sync::OnceLock;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};

use super::sink::Sink;
use crate::error::{NOT_AN_OBJECT, NUMBER_RANGE};

/// The key by which `serde_json` passes on a number when it keeps its text.
pub(super) const NUMBER: &str = "$serde_json::private::Number";

/// Whether the build turned that on: any crate of the user's may have, and features are shared.
pub(super) fn numbers_are_maps() -> bool {
    struct Probe;
    impl<'de> Visitor<'de> for Probe {
        type Value = bool;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number")
        }
        fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
            Ok(false)
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
            map.next_entry::<String, String>().map(|_| true)
        }
    }
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        // Integers of 64 bits come as such in either case.
        let mut json = serde_json::Deserializer::from_str("1.5");
        Deserializer::deserialize_any(&mut json, Probe).unwrap_or(true)
    })
}

/// Writes a number from its text.
pub(super) fn number<E: serde::de::Error>(sink: &mut Sink<'_>, text: &str) -> Result<(), E> {
    if text == "-0" {
        // As serde_json reads it otherwise.
        sink.float(-0.0);
    } else if let Ok(n) = text.parse() {
        sink.int(n);
    } else if let Ok(n) = text.parse() {
        sink.uint(n);
    } else {
        match text.parse::<f64>() {
            Ok(n) if n.is_finite() => sink.float(n),
            _ => return Err(E::custom(NUMBER_RANGE)),
        }
    }
    Ok(())
}

/// A root that may be a number in disguise: its first key tells.
pub(super) struct RefuseNumber<A> {
    pub(super) map: A,
    pub(super) at_first: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for RefuseNumber<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        if !std::mem::take(&mut self.at_first) {
            return self.map.next_key_seed(seed);
        }
        let Some(key) = self.map.next_key::<String>()? else {
            return Ok(None);
        };
        if key == NUMBER {
            return Err(A::Error::custom(NOT_AN_OBJECT));
        }
        seed.deserialize(serde::de::value::StringDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}
