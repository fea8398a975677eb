//! Bytes of a list in any portions → its items one by one, and at the end what stands around them.

use bytes::{Bytes, BytesMut};
use k8s_packed::ValueRef;

use super::{FrameError, MAX_FRAME};

/// Cuts the items out of a list as its bytes come, without a buffer for the whole list.
///
/// Knows just enough JSON for that: strings, escapes and how deep brackets are nested. Whether an item is
/// sound is for the encoder to say, so that one bad item does not spoil the others.
#[derive(Debug)]
pub(crate) struct Items {
    buffer: BytesMut,
    /// How far the buffer was looked at.
    at: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
    place: Place,
    /// The list without its items.
    envelope: Vec<u8>,
    /// Where the key that was read last stands in the envelope.
    key: std::ops::Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// Around the items. The buffer is copied to the envelope as it is looked at.
    Around,
    /// Between the items, or before the first.
    Between,
    /// In an item, which begins at the start of the buffer.
    Item,
    /// Behind something that is no list.
    Broken,
}

/// What a list says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Envelope {
    pub(crate) api_version: Option<String>,
    /// The kind of the list, such as `PodList`.
    pub(crate) kind: Option<String>,
    pub(crate) resource_version: String,
    pub(crate) continue_token: Option<String>,
}

impl Default for Items {
    fn default() -> Self {
        Self {
            buffer: BytesMut::new(),
            at: 0,
            depth: 0,
            in_string: false,
            escaped: false,
            place: Place::Around,
            envelope: vec![],
            key: 0..0,
        }
    }
}

impl Items {
    /// Adds the next portion of the body.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<(), FrameError> {
        if self.buffer.len() + self.envelope.len() + chunk.len() > MAX_FRAME {
            return Err(FrameError::TooLong);
        }
        self.buffer.extend_from_slice(chunk);
        Ok(())
    }

    /// The next whole item, as JSON text that may or may not be sound.
    pub(crate) fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.place {
                Place::Around => self.around()?,
                Place::Between => self.between()?,
                Place::Item => return self.item(),
                Place::Broken => return None,
            }
        }
    }

    /// The list without its items, as far as it was read.
    fn envelope(&self) -> Option<k8s_packed::Object> {
        k8s_packed::Object::from_slice(&self.envelope).ok()
    }

    /// The type that the list states before its items, as built-in kinds do.
    pub(crate) fn type_so_far(&self) -> Option<(String, String)> {
        let mut text = self.envelope.clone();
        text.extend_from_slice(b"]}");
        let list = k8s_packed::Object::from_slice(&text).ok()?;
        Some((list.api_version()?.to_owned(), list.kind()?.strip_suffix("List")?.to_owned()))
    }

    /// What stands around the items, once the whole body was pushed and all items were taken.
    pub(crate) fn finish(self) -> Result<Envelope, FrameError> {
        if self.place == Place::Broken {
            return Err(FrameError::Malformed);
        }
        if self.depth > 0 || self.in_string || self.place != Place::Around {
            return Err(FrameError::Truncated);
        }
        let list = self.envelope().ok_or(FrameError::Malformed)?;
        // A single object and a Table have a version too: as an empty list they would empty the store.
        let is_list = match list.root().get("items") {
            Some(ValueRef::Array(items)) => items.is_empty(),
            Some(items) => items.is_null(),
            None => list.kind().is_some_and(|kind| kind.ends_with("List")),
        };
        if !is_list {
            return Err(FrameError::NoList);
        }
        let metadata = list.metadata();
        let text = |key: &str| metadata.get(key).and_then(|v| v.as_str()).filter(|v| !v.is_empty());
        Ok(Envelope {
            api_version: list.api_version().map(str::to_owned),
            kind: list.kind().map(str::to_owned),
            resource_version: text("resourceVersion").unwrap_or_default().to_owned(),
            continue_token: text("continue").map(str::to_owned),
        })
    }

    /// Goes on around the items, up to the bracket that opens them; nothing when the buffer ends before.
    fn around(&mut self) -> Option<()> {
        let start = self.envelope.len();
        let mut moved = 0;
        let mut opened = false;
        while let Some(&byte) = self.buffer.get(self.at) {
            self.at += 1;
            if self.in_string {
                self.string_byte(byte);
                if !self.in_string && self.depth == 1 {
                    self.key.end = start + self.at - 1;
                }
                continue;
            }
            match byte {
                b'"' => {
                    self.in_string = true;
                    if self.depth == 1 {
                        self.key.start = start + self.at;
                    }
                }
                b'{' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                b'[' => {
                    self.depth += 1;
                    if self.depth == 2 {
                        // The key may lie in this buffer or in the envelope already.
                        self.envelope.extend_from_slice(&self.buffer[moved..self.at]);
                        moved = self.at;
                        if self.envelope.get(self.key.clone()) == Some(b"items") {
                            opened = true;
                            break;
                        }
                    }
                }
                _ => {}
            }
        }
        self.envelope.extend_from_slice(&self.buffer[moved..self.at]);
        self.forget();
        opened.then(|| self.place = Place::Between)
    }

    /// Goes on to the next item or to the bracket that closes them.
    fn between(&mut self) -> Option<()> {
        while let Some(&byte) = self.buffer.get(self.at) {
            match byte {
                b',' | b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b']' => {
                    self.forget();
                    self.place = Place::Around;
                    return Some(());
                }
                b'}' => {
                    self.place = Place::Broken;
                    return Some(());
                }
                _ => {
                    self.forget();
                    self.place = Place::Item;
                    return Some(());
                }
            }
        }
        self.forget();
        None
    }

    /// The item at the start of the buffer, if all of it is there.
    fn item(&mut self) -> Option<Bytes> {
        while let Some(&byte) = self.buffer.get(self.at) {
            if self.in_string && !self.escaped {
                // Most of an object is text: skip to what may end it.
                let Some(skip) = memchr::memchr2(b'"', b'\\', &self.buffer[self.at..]) else {
                    self.at = self.buffer.len();
                    break;
                };
                self.at += skip;
                self.string_byte(self.buffer[self.at]);
                self.at += 1;
                continue;
            }
            if self.in_string {
                self.string_byte(byte);
                self.at += 1;
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 2 => self.depth -= 1,
                // An item ends at the comma behind it or at the bracket that closes the list.
                b',' | b']' | b'}' if self.depth == 2 => {
                    self.place = Place::Between;
                    let at = std::mem::take(&mut self.at);
                    return Some(self.buffer.split_to(at).freeze());
                }
                _ => {}
            }
            self.at += 1;
        }
        None
    }

    fn string_byte(&mut self, byte: u8) {
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == b'"' {
            self.in_string = false;
        }
    }

    /// Drops what was looked at.
    fn forget(&mut self) {
        let _ = self.buffer.split_to(self.at);
        self.at = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(body: &[u8], size: usize) -> Result<(Vec<String>, Envelope), FrameError> {
        let mut items = Items::default();
        let mut found = vec![];
        for chunk in body.chunks(size.max(1)) {
            items.push(chunk)?;
            while let Some(item) = items.next() {
                found.push(String::from_utf8_lossy(&item).trim().to_owned());
            }
        }
        items.finish().map(|e| (found, e))
    }

    const LIST: &str = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"t\"]"},
        "items":[ {"a":"}],[\\"}, {"b":[{"c":[]}]} ,{}]}
"#;

    #[test]
    fn items_come_one_by_one_however_the_body_is_cut() {
        for size in 1..=LIST.len() {
            let (items, envelope) = cut(LIST.as_bytes(), size).unwrap();
            assert_eq!(items, [r#"{"a":"}],[\\"}"#, r#"{"b":[{"c":[]}]}"#, "{}"]);
            assert_eq!(
                envelope,
                Envelope {
                    api_version: Some("v1".into()),
                    kind: Some("PodList".into()),
                    resource_version: "7".into(),
                    continue_token: Some("t\"]".into()),
                }
            );
        }
    }

    #[test]
    fn order_of_members_does_not_matter() {
        // As custom resources are sent; a second array is no list of items.
        let body = br#"{"apiVersion":"example.com/v1","x":[1,2],"items":[{"a":1}],"kind":"WList","metadata":{"resourceVersion":"9"}}"#;
        for size in 1..=body.len() {
            let (items, envelope) = cut(body, size).unwrap();
            assert_eq!((items.len(), &*envelope.resource_version), (1, "9"));
        }
        assert_eq!(cut(br#"{"items":[],"metadata":{}}"#, 5).unwrap(), (vec![], Envelope::default()));
        assert_eq!(cut(br#"{"items":null,"metadata":{}}"#, 5).unwrap(), (vec![], Envelope::default()));
    }

    #[test]
    fn the_type_is_known_before_the_first_item() {
        let mut items = Items::default();
        items.push(LIST.as_bytes()).unwrap();
        items.next();
        assert_eq!(items.type_so_far(), Some(("v1".into(), "Pod".into())));
    }

    #[test]
    fn what_is_no_list_is_an_error_and_not_an_empty_list() {
        let around = |items: &str| format!(r#"{{"kind":"PodList","metadata":{{"resourceVersion":"7"}},{items}}}"#);
        for items in [r#""items":"x""#, r#""items":{"a":{}}"#, r#""items":7"#, r#""it\u0065ms":[{"a":1}]"#] {
            assert_eq!(cut(around(items).as_bytes(), 7), Err(FrameError::NoList), "{items}");
        }
        let status = br#"{"kind":"Status","metadata":{"resourceVersion":"7"},"status":"Failure"}"#;
        assert_eq!(cut(status, 7), Err(FrameError::NoList));
        // A list without items may be without the member, and a resource may name its list as it likes.
        for list in [around(r#""items":null"#), around(r#""x":1"#), around(r#""kind":"Widgets","items":[]"#)] {
            assert!(cut(list.as_bytes(), 7).is_ok(), "{list}");
        }
    }

    #[test]
    fn broken_lists_are_errors() {
        for end in 1..LIST.trim_end().len() {
            assert!(cut(&LIST.as_bytes()[..end], 7).is_err(), "cut at {end}");
        }
        for body in [&br#"{"items":[}"#[..], br#"{"items":[{}}]}"#, br#"{"items":[1}]}"#] {
            assert_eq!(cut(body, 100), Err(FrameError::Malformed));
        }
        assert_eq!(cut(b"not json", 3), Err(FrameError::Malformed));
        let metadata = r#""metadata":{"resourceVersion":"9"}"#;
        for no_list in [
            format!(r#"{{"kind":"Table",{metadata},"rows":[{{}}]}}"#),
            format!(r#"{{"kind":"ConfigMap",{metadata},"data":{{"items":"x"}}}}"#),
            format!(r#"{{{metadata}}}"#),
            format!(r#"{{"kind":"PodList",{metadata},"items":{{}}}}"#),
            format!(r#"{{"kind":"PodList",{metadata},"items":"none"}}"#),
        ] {
            assert_eq!(cut(no_list.as_bytes(), 7), Err(FrameError::NoList), "{no_list}");
        }
        let left_out = format!(r#"{{"kind":"PodList",{metadata}}}"#);
        assert_eq!(cut(left_out.as_bytes(), 7).unwrap().0, [""; 0], "as some servers tell that there is none");
        assert_eq!(cut(b"", 3), Err(FrameError::Malformed));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(body in prop::collection::vec(prop::sample::select(&b"{}[]\",:\\ items1\xff"[..]), 0..200), size in 1usize..20) {
            let _ = cut(&body, size);
            let _ = cut(&[br#"{"items":["#, &body[..]].concat(), size);
        }
    }
}
