//! The two dialects of expressions: what is a plain path, and what the query engine must evaluate.
//!
//! Names, indexes and their mistakes are the business of [`Path`]; here is what a path cannot say. An expression that
//! begins with `$` is RFC 9535 and goes to the query engine as it is; any other is kubectl's and is translated.

mod bracket;
mod cursor;
mod filter;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use k8s_packed::{Path, Step};
use serde_json_path::JsonPath;

use self::cursor::Cursor;
pub(crate) use self::cursor::unquoted;
use crate::{error::ExpressionError, query::Query};

/// Longer texts and deeper brackets are refused: the query engine's parser takes time exponential in the nesting of
/// filters.
const MAX_LENGTH: usize = 4096;
const MAX_BRACKETS: usize = 8;
const MAX_PARENTHESES: usize = 64;

/// A parsed expression.
pub(crate) enum Parsed {
    Path(Path),
    Query(Query),
}

pub(crate) fn parse(text: &str) -> Result<Parsed, ExpressionError> {
    if text.len() > MAX_LENGTH {
        let message = format!("expression longer than {MAX_LENGTH} bytes");
        return Err(ExpressionError::at(text, text.len(), message));
    }
    match text.parse::<Path>() {
        Ok(path) => Ok(Parsed::Path(path)),
        Err(error) if !error.needs_query() => Err(ExpressionError::within(text, 0, &error)),
        Err(_) => {
            check_nesting(text)?;
            let query = if text.starts_with('$') { rfc9535(text) } else { kubectl(text) };
            query.map(Parsed::Query)
        }
    }
}

// === RFC 9535 ===

fn rfc9535(text: &str) -> Result<Query, ExpressionError> {
    // The engine panics at a text that ends within an escape.
    if let Some(offset) = cursor::unclosed_quote(text) {
        return Err(ExpressionError::at(text, offset, "unclosed quote"));
    }
    let query = JsonPath::parse(text).map_err(|error| {
        let message = match error.message() {
            // The engine's words for "nothing fits here".
            "parser error" => "invalid JSONPath (RFC 9535)",
            message if message.starts_with("must start with") => "invalid JSONPath (RFC 9535)",
            message => message,
        };
        let offset = text.char_indices().nth(error.position().saturating_sub(1)).map_or(text.len(), |(i, _)| i);
        ExpressionError::at(text, offset, message)
    })?;
    if let Some(offset) = cursor::zero_step(text) {
        return Err(ExpressionError::at(text, offset, "slice with step 0, which selects nothing"));
    }
    let (prefix, rest) = split_prefix(text);
    // Only a part without references to the root means the same below the prefix.
    if !rest.contains('$')
        && let Ok(query) = JsonPath::parse(&format!("${rest}"))
    {
        return Ok(Query::new(prefix.clone(), query, vec![prefix]));
    }
    Ok(Query::new(Path::from_steps([]), query, vec![prefix]))
}

/// The longest plain path at the start of an expression, and the rest of its text.
fn split_prefix(text: &str) -> (Path, &str) {
    let end = match text.parse::<Path>() {
        Ok(path) => return (path, ""),
        Err(error) => offset_of(text, error.column()),
    };
    match text[..end].trim_end().parse::<Path>() {
        Ok(path) => (path, &text[end..]),
        Err(_) => (Path::from_steps([]), text.strip_prefix('$').unwrap_or(text)),
    }
}

fn offset_of(text: &str, column: usize) -> usize {
    text.char_indices().nth(column - 1).map_or(text.len(), |(i, _)| i)
}

fn check_nesting(text: &str) -> Result<(), ExpressionError> {
    let (mut brackets, mut parentheses) = (0_usize, 0_usize);
    for (offset, c) in cursor::unquoted(text) {
        match c {
            '[' => brackets += 1,
            ']' => brackets = brackets.saturating_sub(1),
            '(' => parentheses += 1,
            ')' => parentheses = parentheses.saturating_sub(1),
            _ => {}
        }
        if brackets > MAX_BRACKETS || parentheses > MAX_PARENTHESES {
            return Err(ExpressionError::at(text, offset, "brackets nested too deep"));
        }
    }
    Ok(())
}

// === kubectl ===

/// What an expression of kubectl's dialect is translated into.
#[derive(Default)]
struct Translation {
    /// The steps before anything that needs the query engine.
    prefix: Vec<Step>,
    /// What comes after them, as RFC 9535 without the root.
    query: String,
    /// The steps so far as far as they can be written as a path: slices, unions and filters are wildcards.
    trail: Vec<Step>,
    /// Whether a recursive descent ended the trail.
    lost: bool,
    /// The paths whose values the expression reads, for comparison with ignored fields.
    reads: Vec<Path>,
}

impl Translation {
    fn step(&mut self, step: Step, descend: bool) {
        if !self.lost {
            self.trail.push(step.clone());
        }
        if self.query.is_empty() && !descend {
            self.prefix.push(step);
            return;
        }
        if descend {
            self.query.push_str("..");
        }
        write_step(&mut self.query, &step);
    }

    /// Selectors in brackets that are no single step.
    fn selectors(&mut self, selectors: &str, descend: bool) {
        if descend {
            self.query.push_str("..");
        }
        self.query.push('[');
        self.query.push_str(selectors);
        self.query.push(']');
        if !self.lost {
            self.trail.push(Step::Wildcard);
        }
    }

    fn lose_trail(&mut self) {
        if !self.lost {
            self.reads.push(Path::from_steps(self.trail.clone()));
            self.lost = true;
        }
    }
}

fn kubectl(text: &str) -> Result<Query, ExpressionError> {
    let mut at = Cursor::inside_braces(text)?;
    at.skip_root();
    let mut out = Translation::default();
    let mut descend = false;
    let mut first = true;
    while !at.is_end() {
        if !first && !descend && !matches!(at.peek(), Some('.' | '[')) {
            return Err(at.error("expected '.' or '['"));
        }
        let rest = at.rest();
        if rest == "." && !first {
            at.advance(1);
            return Err(at.error("name missing after '.'"));
        }
        let error = match rest.parse::<Path>() {
            Ok(path) => {
                push_path(&mut out, &path, &mut descend);
                break;
            }
            Err(error) if error.needs_query() => error,
            Err(error) => return Err(ExpressionError::within(text, at.pos(), &error)),
        };
        let plain = &rest[..offset_of(rest, error.column())];
        if !plain.is_empty() {
            let path = plain.parse::<Path>().map_err(|error| ExpressionError::within(text, at.pos(), &error))?;
            push_path(&mut out, &path, &mut descend);
            at.advance(plain.len());
        }
        if at.eat("..") {
            if descend || matches!(at.peek(), None | Some('.')) {
                return Err(at.error("name missing after '..'"));
            }
            out.lose_trail();
            descend = true;
        } else {
            bracket::translate(&mut at, &mut out, descend)?;
            descend = false;
        }
        first = false;
    }
    if descend {
        return Err(at.error("name missing after '..'"));
    }
    out.lose_trail();
    let rfc = format!("${}", out.query);
    // The translation is valid by construction; a failure is still an error and no panic.
    let query = JsonPath::parse(&rfc)
        .map_err(|error| ExpressionError::at(text, 0, format!("no equivalent in RFC 9535 ({})", error.message())))?;
    Ok(Query::new(Path::from_steps(out.prefix), query, out.reads))
}

fn push_path(out: &mut Translation, path: &Path, descend: &mut bool) {
    for step in path.steps() {
        out.step(step.clone(), std::mem::take(descend));
    }
}

/// A step as a bracketed segment of RFC 9535.
fn write_step(out: &mut String, step: &Step) {
    out.push('[');
    match step {
        Step::Member(name) => write_string(out, name),
        Step::Index(index) => {
            // Writing to a string cannot fail.
            let _ = write!(out, "{index}");
        }
        Step::Wildcard => out.push('*'),
    }
    out.push(']');
}

/// A string literal of RFC 9535.
fn write_string(out: &mut String, text: &str) {
    out.push('\'');
    for c in text.chars() {
        match c {
            '\'' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('\'');
}
