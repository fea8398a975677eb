//! A line of a watch → an event.

use std::fmt;

use k8s_packed::{Encoder, Object};
use k8s_types::ApiStatus;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::engine::EventKind;

/// The annotation of the bookmark that ends the initial events of a streaming list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// The API's own limit.
const LONGEST_NAME: usize = 253;

/// What a line of a watch says.
#[derive(Debug)]
pub(crate) enum Frame {
    Object {
        kind: EventKind,
        object: Object,
    },
    Bookmark {
        resource_version: String,
        initial_events_end: bool,
    },
    Error(ApiStatus),
    /// An event about an object that cannot be held.
    Bad {
        kind: EventKind,
        bad: BadObject,
    },
    /// No event at all.
    Unreadable(String),
}

/// An object that cannot be held, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BadObject {
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) reason: String,
}

/// Decodes one line. Objects go straight to the encoder.
pub(crate) fn decode_event(encoder: &mut Encoder, line: &[u8]) -> Frame {
    // Once for the line is much cheaper than once for each string in it.
    let Ok(text) = std::str::from_utf8(line) else { return Frame::Unreadable("no watch event: not UTF-8".to_owned()) };
    let mut json = serde_json::Deserializer::from_str(text);
    let parsed = EventSeed { encoder }.deserialize(&mut json).and_then(|p| json.end().map(|()| p));
    match parsed {
        Ok(Parsed::Object(kind, object)) if object.name().is_empty() => {
            Frame::Bad { kind, bad: BadObject::nameless(&object) }
        }
        Ok(Parsed::Object(kind, object)) => Frame::Object { kind, object },
        Ok(Parsed::Bookmark(object)) => bookmark(&object),
        Ok(Parsed::Error(status)) => Frame::Error(ApiStatus::of_event(status.get().as_bytes())),
        // An object in an event is nested one level deeper than by itself, and its parts may be read even
        // when the whole cannot.
        Err(e) => decode_apart(encoder, line).unwrap_or_else(|| Frame::Unreadable(place_of(&e))),
    }
}

/// The slow way: the line in its two parts, then the object by itself.
fn decode_apart(encoder: &mut Encoder, line: &[u8]) -> Option<Frame> {
    #[derive(serde::Deserialize)]
    struct Event<'a> {
        #[serde(rename = "type")]
        kind: String,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    let event: Event<'_> = serde_json::from_slice(line).ok()?;
    let kind = EventType::parse(&event.kind)?;
    let json = event.object.get().as_bytes();
    Some(match kind {
        EventType::Change(kind) => match encoder.encode(json) {
            Ok(object) if object.name().is_empty() => Frame::Bad { kind, bad: BadObject::nameless(&object) },
            Ok(object) => Frame::Object { kind, object },
            Err(e) => Frame::Bad { kind, bad: BadObject::of_json(json, e.to_string()) },
        },
        EventType::Bookmark => match Object::from_slice(json) {
            Ok(object) => bookmark(&object),
            Err(_) => {
                let bad = BadObject::of_json(json, String::new());
                Frame::Bookmark { resource_version: bad.resource_version?, initial_events_end: false }
            }
        },
        EventType::Error => Frame::Error(ApiStatus::of_event(json)),
    })
}

fn bookmark(object: &Object) -> Frame {
    Frame::Bookmark {
        resource_version: object.resource_version().unwrap_or_default().to_owned(),
        initial_events_end: object.annotation(INITIAL_EVENTS_END) == Some("true"),
    }
}

/// Where the JSON breaks, without what stands there.
fn place_of(e: &serde_json::Error) -> String {
    format!("no watch event: unreadable at column {}", e.column())
}

// === impl BadObject ===

impl BadObject {
    pub(super) fn nameless(object: &Object) -> Self {
        Self::of(object, "no metadata.name")
    }

    /// An object of a namespace that was not asked for.
    pub(crate) fn foreign(object: &Object) -> Self {
        Self::of(object, "not in a namespace that was asked for")
    }

    fn of(object: &Object, reason: &str) -> Self {
        Self {
            namespace: object.namespace().and_then(allowed),
            name: allowed(object.name()),
            resource_version: object.resource_version().and_then(allowed),
            reason: reason.to_owned(),
        }
    }

    /// Finds the identity in an object that cannot be read as a whole, if there is one.
    pub(crate) fn of_json(json: &[u8], reason: String) -> Self {
        #[derive(Default, serde::Deserialize)]
        struct Named {
            metadata: Option<Metadata>,
        }
        #[derive(Default, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            #[serde(default, deserialize_with = "text")]
            namespace: Option<String>,
            #[serde(default, deserialize_with = "text")]
            name: Option<String>,
            #[serde(default, deserialize_with = "text")]
            resource_version: Option<String>,
        }
        let metadata = serde_json::from_slice::<Named>(json).unwrap_or_default().metadata.unwrap_or_default();
        Self { namespace: metadata.namespace, name: metadata.name, resource_version: metadata.resource_version, reason }
    }
}

impl fmt::Display for BadObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("(unnamed)");
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{name}: {}", self.reason),
            None => write!(f, "{name}: {}", self.reason),
        }
    }
}

/// A text, or nothing when something else stands there.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(value.as_str().and_then(allowed))
}

/// A text that may be a name: what is longer would fill the log and the memory, and names nothing that there is.
fn allowed(text: &str) -> Option<String> {
    (1..=LONGEST_NAME).contains(&text.len()).then(|| text.to_owned())
}

// === the visitor ===

enum EventType {
    Change(EventKind),
    Bookmark,
    Error,
}

impl EventType {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "ADDED" => Self::Change(EventKind::Added),
            "MODIFIED" => Self::Change(EventKind::Modified),
            "DELETED" => Self::Change(EventKind::Deleted),
            "BOOKMARK" => Self::Bookmark,
            "ERROR" => Self::Error,
            _ => return None,
        })
    }
}

enum Parsed {
    Object(EventKind, Object),
    Bookmark(Object),
    Error(Box<RawValue>),
}

struct EventSeed<'e> {
    encoder: &'e mut Encoder,
}

impl<'de> DeserializeSeed<'de> for EventSeed<'_> {
    type Value = Parsed;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Parsed, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EventSeed<'_> {
    type Value = Parsed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a watch event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed, A::Error> {
        use serde::de::Error;
        let Self { encoder } = self;
        let (mut kind, mut parsed) = (None, None);
        while let Some(key) = map.next_key::<Field>()? {
            match (key, &kind) {
                (Field::Type, _) => {
                    let text = map.next_value::<std::borrow::Cow<'_, str>>()?;
                    kind = Some(EventType::parse(&text).ok_or_else(|| A::Error::custom("unknown type of event"))?);
                }
                (Field::Object, Some(EventType::Change(kind))) => {
                    parsed = Some(Parsed::Object(*kind, map.next_value_seed(encoder.seed())?));
                }
                (Field::Object, Some(EventType::Bookmark)) => parsed = Some(Parsed::Bookmark(map.next_value()?)),
                (Field::Object, Some(EventType::Error)) => parsed = Some(Parsed::Error(map.next_value()?)),
                // No server sends the object first; `decode_apart` takes it.
                (Field::Object, None) => return Err(A::Error::custom("the object comes before its type")),
                (Field::Other, _) => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        parsed.ok_or_else(|| A::Error::missing_field("object"))
    }
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Type,
    Object,
    #[serde(other)]
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(line: &str) -> String {
        match decode_event(&mut Encoder::new(), line.as_bytes()) {
            Frame::Object { kind, object } => {
                format!("{kind:?} {}@{}", object.name(), object.resource_version().unwrap_or("-"))
            }
            Frame::Bookmark { resource_version, initial_events_end } => {
                format!("bookmark {resource_version} {initial_events_end}")
            }
            Frame::Error(failure) => format!("error {} {}", failure.code, failure.reason),
            Frame::Bad { kind, bad } => format!("{kind:?} bad {bad}"),
            Frame::Unreadable(message) => message,
        }
    }

    #[test]
    fn what_lines_say() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        let a = r#"{"metadata":{"name":"a","namespace":"shop","resourceVersion":"7"}"#;
        let mark = r#"{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}"#;
        let table = [
            (format!(r#"{{"type":"ADDED","object":{a}}}}}"#), "Added a@7"),
            (format!(r#"{{"type":"DELETED","object":{a}}},"more":[1]}}"#), "Deleted a@7"),
            // No server writes the object first, though nothing forbids it.
            (format!(r#"{{"object":{a}}},"type":"MODIFIED"}}"#), "Modified a@7"),
            (format!(r#"{{"type":"BOOKMARK","object":{mark}}}}}"#), "bookmark 9 true"),
            (format!(r#"{{"object":{mark}}},"type":"BOOKMARK"}}"#), "bookmark 9 true"),
            (
                r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"},"spec":null}}"#.into(),
                "bookmark 9 false",
            ),
            (format!(r#"{{"type":"BOOKMARK","object":{mark},"spec":{}}}}}"#, deep(200)), "bookmark 9 false"),
            (r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Gone"}}"#.into(), "error 410 Gone"),
            (r#"{"object":{"kind":"Status","code":410},"type":"ERROR"}"#.into(), "error 410 "),
            (r#"{"type":"ERROR","object":{"kind":"Pod"}}"#.into(), "error 0 "),
            // As deep as an object by itself may be, and a level more.
            (format!(r#"{{"type":"ADDED","object":{a},"spec":{}}}}}"#, deep(126)), "Added a@7"),
            (
                format!(r#"{{"type":"ADDED","object":{a},"spec":{}}}}}"#, deep(127)),
                "Added bad shop/a: nested deeper than 127 levels",
            ),
            (r#"{"type":"ADDED","object":{"metadata":{}}}"#.into(), "Added bad (unnamed): no metadata.name"),
            (r#"{"type":"ADDED","object":7}"#.into(), "Added bad (unnamed): not a JSON object"),
            (r#"{"type":"ADDED"}"#.into(), "no watch event: unreadable at column 16"),
            (r#"{"type":"WHAT","object":{}}"#.into(), "no watch event: unreadable at column 14"),
            ("garbage".into(), "no watch event: unreadable at column 1"),
            ("".into(), "no watch event: unreadable at column 0"),
            (format!(r#"{{"type":"ADDED","object":{a}}}}} {{}}"#), "no watch event: unreadable at column 94"),
        ];
        for (line, expected) in table {
            assert_eq!(short(&line), expected, "{line}");
        }
    }

    #[test]
    fn a_name_that_no_object_can_have_is_not_kept_for_the_log() {
        let line = |name: &str| format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"{name}"}},"n":1e999}}}}"#);
        let told = "Added bad (unnamed): number out of range";
        assert_eq!(short(&line(&"x".repeat(254))), told);
        assert_eq!(short(&line("")), told);
        assert_eq!(short(&line("x")), told.replace("(unnamed)", "x"));
        let line = format!(r#"{{"type":"ADDED","object":{{"metadata":{{"namespace":"{}"}}}}}}"#, "x".repeat(254));
        assert_eq!(short(&line), "Added bad (unnamed): no metadata.name");
        let object = k8s_packed::object!({"metadata": {"name": "a", "namespace": "x".repeat(254)}});
        assert_eq!(BadObject::foreign(&object).to_string(), "a: not in a namespace that was asked for");
    }

    #[test]
    fn bytes_that_are_no_text_are_no_event() {
        let line = b"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\xff\"}}}";
        let frame = decode_event(&mut Encoder::new(), line);
        assert!(matches!(frame, Frame::Unreadable(_)), "{frame:?}");
    }
}
