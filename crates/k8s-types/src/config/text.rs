//! Settings that may be given as text: a wrong text is kept and reported when the configuration is checked.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{Gvr, LabelSelector, ParseError};

/// A resource as it was given: a [`Gvr`], or text that may turn out to be none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceRef {
    given: Given<Gvr>,
}

/// A label selector as it was given: a [`LabelSelector`], or text that may turn out to be none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorRef {
    given: Given<LabelSelector>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Given<T> {
    Value(T),
    Wrong { text: Box<str>, error: ParseError },
}

impl<T: FromStr<Err = ParseError>> Given<T> {
    fn text(text: &str) -> Given<T> {
        match text.parse() {
            Ok(value) => Given::Value(value),
            Err(error) => Given::Wrong { text: text.into(), error },
        }
    }

    fn get(&self) -> Result<&T, &ParseError> {
        match self {
            Given::Value(value) => Ok(value),
            Given::Wrong { error, .. } => Err(error),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Given<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Given::Value(value) => value.fmt(f),
            Given::Wrong { text, .. } => f.write_str(text),
        }
    }
}

impl ResourceRef {
    /// The resource.
    ///
    /// # Errors
    ///
    /// Why the text that was given is no resource.
    pub fn gvr(&self) -> Result<&Gvr, &ParseError> {
        self.given.get()
    }
}

impl SelectorRef {
    /// The selector.
    ///
    /// # Errors
    ///
    /// Why the text that was given is no selector.
    pub fn selector(&self) -> Result<&LabelSelector, &ParseError> {
        self.given.get()
    }
}

impl fmt::Display for ResourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.given.fmt(f)
    }
}

impl fmt::Display for SelectorRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.given.fmt(f)
    }
}

macro_rules! from_value_or_text {
    ($reference:ty, $value:ty) => {
        impl From<$value> for $reference {
            fn from(value: $value) -> Self {
                Self { given: Given::Value(value) }
            }
        }
        impl From<&$value> for $reference {
            fn from(value: &$value) -> Self {
                value.clone().into()
            }
        }
        impl From<&str> for $reference {
            fn from(text: &str) -> Self {
                Self { given: Given::text(text) }
            }
        }
        impl From<String> for $reference {
            fn from(text: String) -> Self {
                text.as_str().into()
            }
        }
        impl From<&String> for $reference {
            fn from(text: &String) -> Self {
                text.as_str().into()
            }
        }
    };
}

from_value_or_text!(ResourceRef, Gvr);
from_value_or_text!(SelectorRef, LabelSelector);

impl Serialize for ResourceRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ResourceRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ResourceRef, D::Error> {
        String::deserialize(deserializer).map(ResourceRef::from)
    }
}

impl Serialize for SelectorRef {
    /// Writes the API's structure; a text that is no selector stays text.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.given {
            Given::Value(selector) => selector.serialize(serializer),
            Given::Wrong { text, .. } => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for SelectorRef {
    /// Reads the API's structure or text.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SelectorRef, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = SelectorRef;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a label selector, as text or with matchLabels and matchExpressions")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<SelectorRef, E> {
                Ok(text.into())
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<SelectorRef, A::Error> {
                let map = de::value::MapAccessDeserializer::new(map);
                LabelSelector::deserialize(map).map(SelectorRef::from)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
