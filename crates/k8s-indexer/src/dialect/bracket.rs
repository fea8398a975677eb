//! Brackets of kubectl's dialect that are no single step: slices, unions and filters.

use std::fmt::Write;

use k8s_packed::{Path, Step};

use super::{Translation, cursor::Cursor, filter, write_string};
use crate::error::ExpressionError;

/// Translates a bracket; the cursor stands on `[` and ends behind `]`.
pub(super) fn translate(at: &mut Cursor<'_>, out: &mut Translation, descend: bool) -> Result<(), ExpressionError> {
    let open = at.pos();
    at.bump();
    let mut selectors = String::new();
    if at.peek() == Some('?') {
        let reads = filter::translate(at, &mut selectors)?;
        if !out.lost {
            out.reads.extend(reads.iter().map(|path| below_items(&out.trail, path)));
        }
        at.skip_spaces();
        match at.bump() {
            Some(']') => {}
            Some(',') => return Err(at.error_at(at.pos() - 1, "filter in a union")),
            _ => return Err(at.error_at(open, "unclosed '['")),
        }
        out.selectors(&selectors, descend);
        return Ok(());
    }
    loop {
        at.skip_spaces();
        selector(at, open, &mut selectors)?;
        at.skip_spaces();
        match at.bump() {
            Some(']') => break,
            Some(',') => selectors.push(','),
            None => return Err(at.error_at(open, "unclosed '['")),
            Some(c) => {
                let offset = at.pos() - c.len_utf8();
                return Err(at.error_at(offset, format!("expected ',' or ']', found {c:?}")));
            }
        }
    }
    out.selectors(&selectors, descend);
    Ok(())
}

fn below_items(trail: &[Step], path: &Path) -> Path {
    let items = trail.iter().cloned().chain([Step::Wildcard]);
    Path::from_steps(items.chain(path.steps().iter().cloned()))
}

/// One selector of a union, or a slice.
fn selector(at: &mut Cursor<'_>, open: usize, out: &mut String) -> Result<(), ExpressionError> {
    match at.peek() {
        Some('\'' | '"') => {
            let name = at.quoted()?;
            write_string(out, &name);
            Ok(())
        }
        Some('*') => {
            at.bump();
            out.push('*');
            Ok(())
        }
        Some('-' | ':' | '0'..='9') => slice_or_index(at, out),
        Some('?') => Err(at.error("filter in a union")),
        Some(']' | ',') => Err(at.error("selector missing in brackets")),
        None => Err(at.error_at(open, "unclosed '['")),
        Some(_) => Err(at.error("name without quotes in brackets").hint("write ['name']")),
    }
}

/// `a`, `a:b` or `a:b:c`, where each part of a slice may be missing.
fn slice_or_index(at: &mut Cursor<'_>, out: &mut String) -> Result<(), ExpressionError> {
    for part in 0..3 {
        let start = at.pos();
        if let Some(number) = integer(at)? {
            if part == 2 && number < 1 {
                let error = at.error_at(start, "slice with a step below 1");
                return Err(error.hint("an expression that begins with '$' may count backwards"));
            }
            let _ = write!(out, "{number}");
        }
        if !at.eat(":") {
            return Ok(());
        }
        if part == 2 {
            return Err(at.error_at(at.pos() - 1, "slice with more than three parts"));
        }
        out.push(':');
    }
    Ok(())
}

fn integer(at: &mut Cursor<'_>) -> Result<Option<i64>, ExpressionError> {
    let rest = at.rest();
    let digits = rest.trim_start_matches('-');
    let sign = rest.len() - digits.len();
    let count = digits.len() - digits.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if sign == 0 && count == 0 {
        return Ok(None);
    }
    // The path's own rule for indexes, with its messages.
    let text = &rest[..sign + count];
    let path = format!("[{text}]").parse::<Path>().map_err(|error| at.error(error.message()))?;
    at.advance(text.len());
    match path.steps() {
        [Step::Index(index)] => Ok(Some(*index)),
        _ => Ok(None),
    }
}
