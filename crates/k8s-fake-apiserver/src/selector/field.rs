//! `metadata.name=a,status.phase!=Running`.

use crate::kind::ResourceKind;
use crate::stored::Stored;

/// Terms that must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    field: Field,
    equal: bool,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
    /// Index into the kind's selectable fields.
    Other(usize),
}

impl FieldSelector {
    /// The error is the text of the answer.
    pub(crate) fn parse(kind: &ResourceKind, text: &str) -> Result<Self, String> {
        let mut terms = Vec::new();
        for part in split_terms(text) {
            if part.is_empty() {
                continue;
            }
            let Some((name, equal, value)) = split_term(part) else {
                return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
            };
            terms.push(Term { field: field(kind, name)?, equal, value: unescape(value)? });
        }
        Ok(Self { terms })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        self.terms.iter().all(|term| {
            let value = match term.field {
                Field::Name => object.name(),
                Field::Namespace => object.namespace().unwrap_or_default(),
                Field::Other(index) => object.fields.get(index).map_or("", |v| v),
            };
            (value == term.value) == term.equal
        })
    }
}

fn field(kind: &ResourceKind, name: &str) -> Result<Field, String> {
    let typed = kind.rules.built_in && !kind.fields.is_empty();
    match name {
        "metadata.name" => return Ok(Field::Name),
        // Nodes and Namespaces of the real server know no namespace; kinds without fields of their own always do.
        "metadata.namespace" if kind.namespaced || !typed => return Ok(Field::Namespace),
        _ => {}
    }
    // An old spelling that the real server still takes.
    let name = if name == "spec.host" && kind.is("v1/pods") { "spec.nodeName" } else { name };
    if let Some(index) = kind.fields.iter().position(|f| f.name == name) {
        return Ok(Field::Other(index));
    }
    if kind.is("batch/v1/jobs") {
        Err(format!("field label \"{name}\" not supported for Job"))
    } else if typed || !kind.rules.built_in {
        Err(format!("field label not supported: {name}"))
    } else {
        Err(format!("\"{name}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""))
    }
}

/// Splits at commas that no backslash precedes.
fn split_terms(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn split_term(part: &str) -> Option<(&str, bool, &str)> {
    for (at, _) in part.char_indices() {
        let rest = &part[at..];
        for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
            if let Some(value) = rest.strip_prefix(operator) {
                return Some((&part[..at], equal, value));
            }
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                Some(c) => return Err(format!("invalid field selector: invalid escape sequence: \\{c}")),
                None => return Err("invalid field selector: invalid escape sequence: \\".to_owned()),
            },
            ',' | '=' => return Err(format!("invalid field selector: unescaped character in value: {}", u32::from(c))),
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::Prepared;
    use serde_json::json;

    fn kind(resource: &str) -> ResourceKind {
        crate::kind::built_in().into_iter().find(|k| k.is(resource)).unwrap()
    }

    #[test]
    fn pods_by_field() {
        let pods = kind("v1/pods");
        let pod = Prepared::new(
            &pods,
            &json!({"metadata": {"name": "a", "namespace": "n"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}),
        )
        .finish(1);
        for (text, expected) in [
            ("", true),
            ("metadata.name=a", true),
            ("metadata.name==a,metadata.namespace=n", true),
            ("metadata.name!=a", false),
            ("status.phase=Running,spec.nodeName!=n2", true),
            ("spec.host=n1", true),
            ("spec.hostNetwork=false", true),
            ("status.podIP=", true),
            (r"metadata.name=a\,b", false),
        ] {
            assert_eq!(FieldSelector::parse(&pods, text).unwrap().matches(&pod), expected, "{text}");
        }
    }

    #[test]
    fn refused_with_the_text_of_the_real_server() {
        let check = |resource: &str, text: &str, message: &str| {
            assert_eq!(FieldSelector::parse(&kind(resource), text).unwrap_err(), message);
        };
        check("v1/pods", "spec.foo=x", "field label not supported: spec.foo");
        check(
            "v1/configmaps",
            "spec.foo=x",
            r#""spec.foo" is not a known field selector: only "metadata.name", "metadata.namespace""#,
        );
        check("v1/configmaps", "foo", "invalid selector: 'foo'; can't understand 'foo'");
        check("v1/nodes", "metadata.namespace=x", "field label not supported: metadata.namespace");
    }
}
