//! The items of a list, decoded as they come.

use k8s_packed::{Encoder, Object};

use super::{BadObject, Items};

/// What a page of a list has brought so far: packed objects, so that a page waiting for its end is small.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) objects: Vec<Object>,
    pub(crate) bad: Vec<BadObject>,
}

impl Page {
    /// Decodes the items that are whole.
    pub(crate) fn take(&mut self, items: &mut Items, encoder: &mut Encoder) {
        while let Some(item) = items.next() {
            if self.len() == 0 {
                // Items of built-in kinds carry no type of their own; objects from a watch do.
                if let Some((api_version, kind)) = items.type_so_far() {
                    encoder.set_type_meta(&api_version, &kind);
                }
            }
            self.decode(&item, encoder);
        }
    }

    /// Decodes one item.
    pub(crate) fn decode(&mut self, item: &[u8], encoder: &mut Encoder) {
        match encoder.encode(item) {
            Ok(object) if object.name().is_empty() => self.bad.push(BadObject::nameless(&object)),
            Ok(object) => self.objects.push(object),
            Err(e) => self.bad.push(BadObject::of_json(item, e.to_string())),
        }
    }

    /// How many items there were, bad ones included.
    pub(crate) fn len(&self) -> usize {
        self.objects.len() + self.bad.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c20_one_bad_item_does_not_spoil_the_others() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        let body = format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"7"}},"items":[
                {{"metadata":{{"name":"a"}},"spec":{{"replicas":"many"}}}},
                {{"metadata":{{"name":"b","namespace":"shop"}},"spec":{deep}}},
                {{"metadata":{{}}}}, {{"metadata":{{"name":"c" oops}}}}, 7,
                {{"metadata":{{"name":"d"}},"kind":"Other"}}]}}"#
        );
        let (mut items, mut page, mut encoder) = (Items::default(), Page::default(), Encoder::new());
        for chunk in body.as_bytes().chunks(11) {
            items.push(chunk).unwrap();
            page.take(&mut items, &mut encoder);
        }
        assert_eq!(items.finish().unwrap().resource_version, "7");
        let good: Vec<_> = page.objects.iter().map(|o| (o.name(), o.kind(), o.api_version())).collect();
        assert_eq!(good, [("a", Some("Pod"), Some("v1")), ("d", Some("Other"), Some("v1"))]);
        let bad: Vec<_> = page.bad.iter().map(ToString::to_string).collect();
        assert_eq!(
            bad,
            [
                "shop/b: nested deeper than 127 levels",
                "(unnamed): no metadata.name",
                "(unnamed): invalid JSON at line 1 column 25",
                "(unnamed): not a JSON object",
            ]
        );
        assert_eq!(page.len(), 6);
    }
}
