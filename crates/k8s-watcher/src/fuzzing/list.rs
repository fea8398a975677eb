//! Bodies of lists.

use std::collections::BTreeMap;
use std::fmt;

use k8s_packed::Encoder;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{is_our_reason, is_special, portions};
use crate::frame::{Envelope, FrameError, Items, Page};

/// However a body is cut, its items are the same; each is read as if it stood alone. Where `serde_json` reads the whole,
/// its items are those, or it is no list.
///
/// # Panics
///
/// When that does not hold.
pub fn check_list(body: &[u8]) {
    let whole = read(body, body.len().max(1));
    for size in portions(body) {
        assert_eq!(read(body, size), whole, "portions of {size}");
    }
    if let Ok(model) = serde_json::from_slice::<Model>(body)
        && !is_special(body)
    {
        model.compare(&whole);
    }
}

#[derive(Debug, PartialEq)]
struct Read {
    items: Vec<String>,
    envelope: Result<Envelope, FrameError>,
}

fn read(body: &[u8], size: usize) -> Read {
    let (mut items, mut texts) = (Items::default(), vec![]);
    let (mut again, mut page, mut encoder, mut list_type) = (Items::default(), Page::default(), Encoder::new(), None);
    for portion in body.chunks(size) {
        items.push(portion).expect("it is short");
        while let Some(item) = items.next() {
            list_type = list_type.or_else(|| items.type_so_far());
            texts.push(item);
        }
        again.push(portion).expect("it is short");
        page.take(&mut again, &mut encoder);
    }
    let told = |page: &Page| -> Vec<String> {
        let objects = page.objects.iter().map(|object| serde_json::to_string(object).expect("JSON"));
        objects.chain(page.bad.iter().map(|bad| format!("{bad:?}"))).collect()
    };
    let mut alone = Page::default();
    for text in &texts {
        let mut encoder = Encoder::new();
        if let Some((api_version, kind)) = &list_type {
            encoder.set_type_meta(api_version, kind);
        }
        alone.decode(text, &mut encoder);
    }
    assert_eq!(told(&page), told(&alone));
    assert!(page.bad.iter().all(|bad| is_our_reason(&bad.reason)), "{:?}", page.bad);
    Read {
        items: texts.iter().map(|item| String::from_utf8_lossy(item).trim_ascii().to_owned()).collect(),
        envelope: items.finish(),
    }
}

/// A list as `serde_json` reads it.
#[derive(Default)]
struct Model {
    items: Vec<String>,
    others: BTreeMap<String, Value>,
    has_items: bool,
    /// What stands under `items` last is an array, or null, or not there.
    is_list: bool,
    /// `items` is written with escapes, which no server does.
    is_odd: bool,
}

impl Model {
    fn compare(&self, read: &Read) {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let metadata = |name: &str| text(self.others.get("metadata").and_then(|metadata| metadata.get(name)));
        let kind = text(self.others.get("kind"));
        let is_other = !self.has_items && !kind.as_deref().is_some_and(|kind| kind.ends_with("List"));
        if !self.is_list || self.is_odd || is_other {
            let is_empty = self.is_list && self.items.is_empty() && !is_other;
            assert!(is_empty || read.envelope == Err(FrameError::NoList), "{read:?}");
            return;
        }
        let envelope = read.envelope.as_ref().expect("it is a list");
        assert_eq!(read.items, self.items);
        assert_eq!(envelope.api_version, text(self.others.get("apiVersion")));
        assert_eq!(envelope.kind, kind);
        assert_eq!(envelope.resource_version, metadata("resourceVersion").unwrap_or_default());
        assert_eq!(envelope.continue_token, metadata("continue").filter(|token| !token.is_empty()));
    }
}

impl<'de> Deserialize<'de> for Model {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Model;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Model, A::Error> {
                let mut model = Model { is_list: true, ..Model::default() };
                while let Some(Name { text, is_escaped }) = map.next_key()? {
                    if text != "items" {
                        model.others.insert(text, map.next_value()?);
                        continue;
                    }
                    let value = map.next_value::<&RawValue>()?.get();
                    let items = serde_json::from_str::<Vec<&RawValue>>(value);
                    model.has_items = true;
                    model.is_odd |= is_escaped;
                    model.is_list = items.is_ok() || value == "null";
                    model.items.extend(items.into_iter().flatten().map(|item| item.get().to_owned()));
                }
                Ok(model)
            }
        }

        deserializer.deserialize_map(Members)
    }
}

struct Name {
    text: String,
    is_escaped: bool,
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'de> Visitor<'de> for Text {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name, E> {
                Ok(Name { text: text.to_owned(), is_escaped: false })
            }

            fn visit_str<E>(self, text: &str) -> Result<Name, E> {
                Ok(Name { text: text.to_owned(), is_escaped: true })
            }
        }

        deserializer.deserialize_str(Text)
    }
}
