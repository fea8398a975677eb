//! Makes answers comparable: identities, times and versions get names, in the order in which they appear.

use serde_json::{Map, Value};

/// What has been seen; equal values get equal names.
#[derive(Debug, Default)]
pub(super) struct Normal {
    uids: Vec<String>,
    versions: Vec<String>,
}

impl Normal {
    pub(super) fn normalise(&mut self, value: &mut Value) {
        self.object(value, false);
        *value = sorted(std::mem::take(value));
    }

    /// Objects have versions that can be told apart. Those of lists and bookmarks move with everything that happens
    /// on a server.
    fn object(&mut self, value: &mut Value, is_bookmark: bool) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.object(item, false)),
            Value::Object(map) => {
                let is_list = map.contains_key("items");
                let is_event = map.get("type").is_some_and(|t| t == "BOOKMARK");
                if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
                    self.metadata(metadata, is_list || is_bookmark);
                }
                for (name, value) in map.iter_mut() {
                    match (name.as_str(), &mut *value) {
                        ("message", Value::String(text)) => *text = message(text),
                        ("uid", Value::String(text)) if !text.is_empty() => *text = label("uid", &mut self.uids, text),
                        ("metadata", _) => {}
                        ("object", object) => self.object(object, is_event),
                        (_, value) => self.object(value, false),
                    }
                }
            }
            _ => {}
        }
    }

    fn metadata(&mut self, metadata: &mut Map<String, Value>, moves: bool) {
        metadata.remove("managedFields");
        let prefix = metadata.get("generateName").and_then(Value::as_str).unwrap_or_default().to_owned();
        for (name, value) in metadata.iter_mut() {
            let Value::String(text) = value else { continue };
            match name.as_str() {
                _ if text.is_empty() => {}
                "uid" => *text = label("uid", &mut self.uids, text),
                "resourceVersion" if moves => "<version>".clone_into(text),
                "resourceVersion" => *text = label("version", &mut self.versions, text),
                "continue" => "<token>".clone_into(text),
                "name" if !prefix.is_empty() && text.len() == prefix.len() + 5 && text.starts_with(&prefix) => {
                    *text = format!("{prefix}<suffix>");
                }
                _ if name.ends_with("Timestamp") => "<time>".clone_into(text),
                _ => {}
            }
        }
    }
}

fn label(what: &str, seen: &mut Vec<String>, text: &str) -> String {
    let at = seen.iter().position(|s| s == text).unwrap_or_else(|| {
        seen.push(text.to_owned());
        seen.len() - 1
    });
    format!("<{what} {}>", at + 1)
}

/// Numbers of versions and identities in a text for people.
fn message(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_hexdigit()) {
        let (before, from) = rest.split_at(at);
        out += before;
        let end = from.find(|c: char| !c.is_ascii_hexdigit() && c != '-').unwrap_or(from.len());
        let word = &from[..end];
        let is_uid = word.len() == 36 && word.matches('-').count() == 4;
        let after = ["version: ", "current: ", "version (", "record (", " ("].iter().any(|w| out.ends_with(w));
        let is_version = after && word.chars().all(|c| c.is_ascii_digit());
        match (is_uid, is_version) {
            (true, _) => out += "<uid>",
            (_, true) => out += "<version>",
            _ => out += word,
        }
        rest = &from[end..];
    }
    out + rest
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut members: Vec<_> = map.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            members.into_iter().collect()
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}
