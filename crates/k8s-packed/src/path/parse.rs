//! The two text forms of a path: kubectl's dialect, and RFC 9535 for texts that begin with `$`.

mod rfc9535;

use super::{Path, PathError, Step};

/// Indexes beyond this are not exact in JSON; RFC 9535 refuses them, so both dialects do.
const MAX_INDEX: i64 = (1 << 53) - 1;

/// Members whose values are maps from free keys, in the kinds of Kubernetes; a key with a prefix (`example.com/x`)
/// is expected below them, so dotted names with a slash are a key whose dots were not escaped.
const MAPS_OF_KEYS: [&str; 14] = [
    "labels",
    "annotations",
    "matchLabels",
    "nodeSelector",
    "capacity",
    "allocatable",
    "limits",
    "requests",
    "hard",
    "used",
    "data",
    "stringData",
    "binaryData",
    "overhead",
];

pub(super) fn parse(text: &str) -> Result<Vec<Step>, PathError> {
    let parsed = if text.starts_with('$') { rfc9535::parse(text) } else { kubectl(text) };
    let checked = parsed.and_then(|parts| check_label_keys(&parts).map(|()| parts));
    match checked {
        Ok(parts) => Ok(parts.into_iter().map(|part| part.step).collect()),
        // Down here errors carry byte offsets: columns are counted once, for the one that is reported.
        Err(mut error) => {
            error.column = text[..error.column].chars().count() + 1;
            Err(error)
        }
    }
}

/// A step with what must be known of its spelling to recognise a key whose dots were not escaped.
struct Part {
    step: Step,
    dotted: bool,
    /// Byte offset of the step's text.
    offset: usize,
}

impl Part {
    fn name(&self) -> Option<&str> {
        match &self.step {
            Step::Member(name) => Some(name),
            _ => None,
        }
    }
}

// === kubectl ===

fn kubectl(text: &str) -> Result<Vec<Part>, PathError> {
    let mut at = Cursor { text, pos: 0 };
    let braces = at.eat('{');
    if braces {
        at.skip_spaces();
    }
    // Inside braces kubectl reads both root signs; `$` outside braces chose the other dialect.
    let rooted = at.eat('@') || (braces && at.eat('$'));
    let mut parts = Vec::new();
    loop {
        let offset = at.here();
        match at.peek() {
            None if braces => return Err(PathError::new("unclosed '{'", 0)),
            None => break,
            Some('}') if braces => {
                at.bump();
                check_after_braces(&at)?;
                break;
            }
            Some(c) if braces && c.is_whitespace() => {
                at.skip_spaces();
                if at.peek() != Some('}') {
                    return Err(space_in(&parts, offset));
                }
            }
            Some('[') => parts.push(Part { step: bracket(&mut at)?, dotted: false, offset }),
            Some('.') => {
                at.bump();
                match at.peek() {
                    Some('.') => return Err(PathError::unsupported("recursive descent", offset)),
                    Some('[') => {
                        return Err(PathError::new("'.' before '['", offset).hint("leave the dot away"));
                    }
                    _ => parts.push(dotted(&mut at, parts.is_empty())?),
                }
            }
            // Only the first name may stand without its dot.
            Some(_) if parts.is_empty() && !rooted => parts.push(dotted(&mut at, true)?),
            Some(c) if c.is_whitespace() => return Err(space_in(&parts, offset)),
            Some(c) => return Err(unexpected(c, offset)),
        }
    }
    if parts.is_empty() {
        // What is there is at most a root sign or empty braces.
        return Err(PathError::new("empty path", 0));
    }
    Ok(parts)
}

fn check_after_braces(at: &Cursor<'_>) -> Result<(), PathError> {
    match at.peek() {
        None => Ok(()),
        Some('{') => Err(PathError::new("second group of braces", at.here()).hint("a path is one expression")),
        Some(_) => Err(PathError::new("text after '}'", at.here()).hint("a path is one expression")),
    }
}

fn space_in(parts: &[Part], offset: usize) -> PathError {
    match parts {
        [only] if only.name() == Some("range") => {
            PathError::new("template command 'range'", only.offset).hint("a path is one expression, use [*]")
        }
        _ => PathError::new("unexpected space", offset),
    }
}

fn unexpected(c: char, offset: usize) -> PathError {
    match c {
        '{' => PathError::new("text before '{'", 0).hint("a path is one expression"),
        ']' | '}' => PathError::new(format!("'{c}' without its counterpart"), offset),
        _ => PathError::new(format!("unexpected {c:?}"), offset)
            .hint("write such a name in brackets and quotes, or put a backslash before the character"),
    }
}

/// A name after a dot, or the first one; the cursor stands on its first character.
fn dotted(at: &mut Cursor<'_>, first: bool) -> Result<Part, PathError> {
    let offset = at.here();
    let mut name = String::new();
    let mut escaped = false;
    while let Some(c) = at.peek() {
        match c {
            '.' | '[' | '}' => break,
            '\\' => {
                let backslash = at.here();
                at.bump();
                escaped = true;
                match at.bump() {
                    Some(next) => name.push(next),
                    None => return Err(PathError::new("backslash at the end", backslash)),
                }
            }
            c if c.is_whitespace() => break,
            '*' if name.is_empty() && !escaped => {
                at.bump();
                return match at.peek() {
                    None | Some('.' | '[' | '}') => Ok(Part { step: Step::Wildcard, dotted: true, offset }),
                    Some(c) if c.is_whitespace() => Ok(Part { step: Step::Wildcard, dotted: true, offset }),
                    Some(_) => Err(unexpected('*', offset)),
                };
            }
            ']' | '{' | '(' | ')' | ',' | '$' | '@' | '\'' | '"' | '*' | '?' => {
                return Err(unexpected(c, at.here()));
            }
            c => {
                name.push(c);
                at.bump();
            }
        }
    }
    if name.is_empty() {
        return Err(match at.peek() {
            None | Some('}') if first => PathError::new("empty path", offset.saturating_sub(1)),
            None | Some('}') => PathError::new("name missing after '.'", offset),
            Some(c) if c.is_whitespace() => PathError::new("unexpected space", offset),
            Some(c) => unexpected(c, offset),
        });
    }
    Ok(Part { step: Step::Member(name.into()), dotted: true, offset })
}

/// What stands in brackets; the cursor is on `[` and ends behind `]`.
fn bracket(at: &mut Cursor<'_>) -> Result<Step, PathError> {
    let open = at.here();
    at.bump();
    at.skip_spaces();
    let offset = at.here();
    let step = match at.peek() {
        Some(quote @ ('\'' | '"')) => Step::Member(quoted(at, quote)?.into()),
        Some('*') => {
            at.bump();
            Step::Wildcard
        }
        Some('-' | '0'..='9') => Step::Index(integer(at)?),
        Some(':') => return Err(PathError::unsupported("slice", open)),
        Some('?') => return Err(PathError::unsupported("filter", open)),
        None => return Err(PathError::new("unclosed '['", open)),
        Some(']') => return Err(PathError::new("empty brackets", open)),
        Some('(') => {
            return Err(PathError::new("script expression", offset).hint("use a filter, [?(…)]"));
        }
        Some(_) => {
            return Err(PathError::new("name without quotes in brackets", offset).hint("write ['name']"));
        }
    };
    at.skip_spaces();
    close(at, open, step)
}

/// The end of a bracket in either dialect; commas and colons make it a union or a slice.
fn close(at: &mut Cursor<'_>, open: usize, step: Step) -> Result<Step, PathError> {
    let offset = at.here();
    match at.bump() {
        Some(']') => Ok(step),
        Some(',') => Err(PathError::unsupported("union", open)),
        Some(':') if matches!(step, Step::Index(_)) => Err(PathError::unsupported("slice", open)),
        None => Err(PathError::new("unclosed '['", open)),
        Some(c) => Err(PathError::new(format!("expected ']', found {c:?}"), offset)),
    }
}

/// A quoted name: a backslash takes the next character as it is, as kubectl wants it for dots.
fn quoted(at: &mut Cursor<'_>, quote: char) -> Result<String, PathError> {
    let open = at.here();
    at.bump();
    let mut name = String::new();
    loop {
        match at.bump() {
            None => return Err(PathError::new("unclosed quote", open)),
            Some('\\') => match at.bump() {
                None => return Err(PathError::new("unclosed quote", open)),
                Some(c) => name.push(c),
            },
            Some(c) if c == quote => return Ok(name),
            Some(c) => name.push(c),
        }
    }
}

fn integer(at: &mut Cursor<'_>) -> Result<i64, PathError> {
    let offset = at.here();
    let start = at.pos;
    at.eat('-');
    while matches!(at.peek(), Some('0'..='9')) {
        at.bump();
    }
    let text = &at.text[start..at.pos];
    if text == "-" {
        return Err(PathError::new("digits missing after '-'", at.here()));
    }
    match text.parse::<i64>() {
        Ok(index) if (-MAX_INDEX..=MAX_INDEX).contains(&index) => Ok(index),
        _ => Err(PathError::new("index out of range", offset)),
    }
}

// === keys with unescaped dots ===

/// Refuses dotted names that can only be one key: below `metadata.labels` and `metadata.annotations` values are
/// text, so nothing can follow the key; below other maps of free keys a slash gives it away.
fn check_label_keys(parts: &[Part]) -> Result<(), PathError> {
    for (i, part) in parts.iter().enumerate() {
        let Some(map) = part.name().filter(|name| MAPS_OF_KEYS.contains(name)) else {
            continue;
        };
        let key: Vec<&str> = parts[i + 1..].iter().take_while(|p| p.dotted).map_while(Part::name).collect();
        let text_values = holds_texts(i.checked_sub(1).and_then(|parent| parts[parent].name()), map);
        let slash = key.iter().skip(1).any(|name| name.contains('/'));
        if key.len() < 2 || !(slash || text_values) {
            continue;
        }
        let what = match map {
            "labels" | "matchLabels" => "a label key",
            "annotations" => "an annotation key",
            _ => "a key",
        };
        let whole = Step::Member(key.join(".").into());
        let steps = parts[..=i].iter().chain(&parts[i + 1 + key.len()..]);
        let mut steps: Vec<Step> = steps.map(|p| p.step.clone()).collect();
        steps.insert(i + 1, whole);
        return Err(PathError::new(format!("unescaped dots in {what}"), parts[i + 1].offset)
            .hint(format!("write {}", Path::from_steps(steps))));
    }
    Ok(())
}

/// Whether the member `map` of `parent` is a map whose values are text, so that nothing can follow one of its keys.
pub(super) fn holds_texts(parent: Option<&str>, map: &str) -> bool {
    matches!(map, "labels" | "annotations") && parent == Some("metadata")
}

// === cursor ===

struct Cursor<'a> {
    text: &'a str,
    /// Byte offset, always on a character boundary.
    pos: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.pos..].chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        if found {
            self.pos += expected.len_utf8();
        }
        found
    }

    /// Skips the four blank characters of JSON.
    fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.bump();
        }
    }

    fn here(&self) -> usize {
        self.pos
    }
}
