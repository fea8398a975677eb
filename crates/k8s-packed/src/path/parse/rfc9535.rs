//! The plain paths of RFC 9535.

use super::{Cursor, Part, check_label_keys, close, integer};
use crate::path::{Path, PathError, Step};

pub(super) fn parse(text: &str) -> Result<Vec<Part>, PathError> {
    let mut at = Cursor { text, pos: 1 };
    let mut parts = Vec::new();
    loop {
        let before_spaces = at.here();
        at.skip_spaces();
        let offset = at.here();
        match at.peek() {
            None if offset > before_spaces => {
                return Err(PathError::new("unexpected space", before_spaces));
            }
            None if parts.is_empty() => return Err(PathError::new("empty path", 0)),
            None => return Ok(parts),
            Some('[') => parts.push(Part { step: bracket(&mut at)?, dotted: false, offset }),
            Some('.') => {
                at.bump();
                parts.push(dotted(&mut at, offset, &parts)?);
            }
            Some('{') => {
                return Err(PathError::new("text before '{'", 0).hint("a path is one expression"));
            }
            Some(c) => {
                return Err(PathError::new(format!("unexpected {c:?}"), offset).hint("expected '.' or '['"));
            }
        }
    }
}

fn dotted(at: &mut Cursor<'_>, dot: usize, before: &[Part]) -> Result<Part, PathError> {
    let offset = at.here();
    let start = at.pos;
    match at.peek() {
        Some('.') => return Err(PathError::unsupported("recursive descent", dot)),
        Some('*') => {
            at.bump();
            return Ok(Part { step: Step::Wildcard, dotted: true, offset });
        }
        Some('[') => return Err(PathError::new("'.' before '['", dot).hint("leave the dot away")),
        None => return Err(PathError::new("name missing after '.'", offset)),
        Some(c) if !is_name(c) || c.is_ascii_digit() => {
            return Err(name_error(c, offset));
        }
        Some(_) => {}
    }
    while at.peek().is_some_and(is_name) {
        at.bump();
    }
    let name = &at.text[start..at.pos];
    match at.peek() {
        // Most likely a key that would be accepted in the other dialect, or one that needs its brackets.
        Some(c @ ('-' | '/' | ':' | '\\')) => Err(key_error(c, at, before, name, offset)),
        _ => Ok(Part { step: Step::Member(name.into()), dotted: true, offset }),
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}

fn name_error(c: char, offset: usize) -> PathError {
    PathError::new(format!("unexpected {c:?}"), offset)
        .hint("after '$', a name with such a character is written in brackets and quotes")
}

/// For a character that RFC 9535 refuses in a dotted name: shows the bracketed form of the whole key.
fn key_error(c: char, at: &Cursor<'_>, before: &[Part], name: &str, offset: usize) -> PathError {
    let rest = &at.text[at.pos..];
    let end = rest.find(['.', '[', ' ']).unwrap_or(rest.len());
    let mut parts: Vec<Part> = before.iter().map(|p| Part { step: p.step.clone(), ..*p }).collect();
    let whole = format!("{name}{}", rest[..end].replace('\\', ""));
    parts.push(Part { step: Step::Member(whole.into()), dotted: true, offset });
    if let Err(error) = check_label_keys(&parts) {
        return error;
    }
    let path = Path::from_steps(parts.into_iter().map(|p| p.step));
    PathError::new(format!("unexpected {c:?}"), at.here()).hint(format!("write {path}"))
}

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
        Some('-' | '0'..='9') => {
            let start = at.pos;
            let index = integer(at)?;
            let digits = at.text[start..at.pos].trim_start_matches('-');
            if (digits.len() > 1 && digits.starts_with('0')) || (index == 0 && at.text[start..].starts_with('-')) {
                return Err(PathError::new("index with a leading zero", offset));
            }
            Step::Index(index)
        }
        Some(':') => return Err(PathError::unsupported("slice", open)),
        Some('?') => return Err(PathError::unsupported("filter", open)),
        None => return Err(PathError::new("unclosed '['", open)),
        Some(']') => return Err(PathError::new("empty brackets", open)),
        Some(_) => {
            return Err(PathError::new("name without quotes in brackets", offset).hint("write ['name']"));
        }
    };
    at.skip_spaces();
    close(at, open, step)
}

/// A string literal of RFC 9535: JSON escapes, and the quote in use.
fn quoted(at: &mut Cursor<'_>, quote: char) -> Result<String, PathError> {
    let open = at.here();
    at.bump();
    let mut name = String::new();
    loop {
        let offset = at.here();
        match at.bump() {
            None => return Err(PathError::new("unclosed quote", open)),
            Some(c) if c == quote => return Ok(name),
            Some('\\') => match at.bump() {
                None => return Err(PathError::new("unclosed quote", open)),
                Some('b') => name.push('\u{8}'),
                Some('f') => name.push('\u{c}'),
                Some('n') => name.push('\n'),
                Some('r') => name.push('\r'),
                Some('t') => name.push('\t'),
                Some(c @ ('/' | '\\')) => name.push(c),
                Some(c) if c == quote => name.push(c),
                Some('u') => name.push(unicode_escape(at, offset)?),
                Some(_) => {
                    return Err(
                        PathError::new("unknown escape", offset).hint("after '$', dots in quotes need no backslash")
                    );
                }
            },
            Some(c) if c < ' ' => {
                return Err(PathError::new("control character in quotes", offset));
            }
            Some(c) => name.push(c),
        }
    }
}

/// The character of `\u` and four digits, or of a surrogate pair; the cursor is behind the `u`.
fn unicode_escape(at: &mut Cursor<'_>, offset: usize) -> Result<char, PathError> {
    let wrong = || PathError::new("invalid unicode escape", offset);
    let unit = hex4(at).ok_or_else(wrong)?;
    if let Some(c) = char::from_u32(unit) {
        return Ok(c);
    }
    if !(0xD800..0xDC00).contains(&unit) || !at.eat('\\') || !at.eat('u') {
        return Err(wrong());
    }
    let low = hex4(at).filter(|low| (0xDC00..0xE000).contains(low)).ok_or_else(wrong)?;
    char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)).ok_or_else(wrong)
}

fn hex4(at: &mut Cursor<'_>) -> Option<u32> {
    let mut value = 0;
    for _ in 0..4 {
        value = value * 16 + at.bump()?.to_digit(16)?;
    }
    Some(value)
}
