//! Filters of kubectl's dialect: `[?(@.type=="Ready")]`, `[?(@.ports)]`.

use k8s_packed::Path;

use super::{cursor::Cursor, write_step, write_string};
use crate::error::ExpressionError;

/// Longest first.
const OPERATORS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];

enum Operand {
    /// A path from the item.
    Path(Path),
    /// A literal as RFC 9535 writes it.
    Literal(String),
}

/// Translates `?(…)`; the cursor stands on `?` and ends behind `)`. Returns the paths that the filter reads, from the
/// item.
///
/// kubectl skips an item that lacks what is compared, whatever the operator; RFC 9535 would take it for different
/// (`!=`) or, if both sides are missing, for equal. So each path is required to exist besides.
pub(super) fn translate(at: &mut Cursor<'_>, out: &mut String) -> Result<Vec<Path>, ExpressionError> {
    let start = at.pos();
    at.bump();
    at.skip_spaces();
    let open = at.pos();
    if !at.eat("(") {
        return Err(at.error("expected '(' in a filter").hint("write [?(@.name==\"value\")]"));
    }
    at.skip_spaces();
    let left = operand(at, open)?;
    at.skip_spaces();
    let operator_at = at.pos();
    let operator = OPERATORS.into_iter().find(|operator| at.eat(operator));
    let right = match operator {
        None => None,
        Some(_) => {
            at.skip_spaces();
            let right = operand(at, open)?;
            at.skip_spaces();
            Some(right)
        }
    };
    match at.peek() {
        Some(')') => at.bump(),
        Some('&' | '|') => {
            let error = at.error("more than one condition in a filter");
            return Err(error.hint("begin the expression with '$' (RFC 9535), which has && and ||"));
        }
        Some('=') => return Err(at.error_at(operator_at, "unknown operator").hint("write == for equality")),
        Some(c) => return Err(at.error(format!("unexpected {c:?} in a filter"))),
        None => return Err(at.error_at(open, "unclosed '('")),
    };
    out.push('?');
    let sides = [Some(left), right];
    let mut reads = Vec::new();
    let mut comparison = String::new();
    for (i, side) in sides.into_iter().flatten().enumerate() {
        if i == 1 {
            comparison.push_str(operator.unwrap_or(""));
        }
        match side {
            Operand::Literal(literal) if operator.is_some() => comparison.push_str(&literal),
            Operand::Literal(_) => return Err(at.error_at(start, "filter without a path")),
            Operand::Path(path) => {
                if operator.is_some() && path.has_wildcard() {
                    let error = at.error_at(start, "comparison with more than one value");
                    return Err(error.hint("a wildcard can only be asked for existence"));
                }
                let mut text = String::from("@");
                path.steps().iter().for_each(|step| write_step(&mut text, step));
                comparison.push_str(&text);
                if operator.is_some() && !path.steps().is_empty() {
                    out.push_str(&text);
                    out.push_str(" && ");
                }
                reads.push(path);
            }
        }
    }
    out.push_str(&comparison);
    Ok(reads)
}

fn operand(at: &mut Cursor<'_>, open: usize) -> Result<Operand, ExpressionError> {
    match at.peek() {
        Some('\'' | '"') => {
            let text = at.quoted()?;
            let mut literal = String::new();
            write_string(&mut literal, &text);
            Ok(Operand::Literal(literal))
        }
        Some('@') => path(at),
        Some('$') => {
            let error = at.error("'$' in a filter");
            Err(error.hint("kubectl takes it for the item: write '@', or begin the whole expression with '$'"))
        }
        Some('-' | '0'..='9') => number(at),
        None => Err(at.error_at(open, "unclosed '('")),
        Some(_) => {
            for word in ["true", "false", "null"] {
                if at.eat(word) {
                    return Ok(Operand::Literal(word.to_owned()));
                }
            }
            Err(at.error("expected '@', a quoted text, a number, true, false or null"))
        }
    }
}

/// `@`, or `@` and a plain path up to the end of the operand.
fn path(at: &mut Cursor<'_>) -> Result<Operand, ExpressionError> {
    let start = at.pos();
    let rest = at.rest();
    let ends = |c: char| c.is_whitespace() || matches!(c, ')' | '=' | '!' | '<' | '>' | '&' | '|');
    let mut brackets = 0_usize;
    let mut end = rest.len();
    for (offset, c) in super::cursor::unquoted(rest) {
        match c {
            '[' => brackets += 1,
            ']' if brackets == 0 => {
                end = offset;
                break;
            }
            ']' => brackets -= 1,
            c if brackets == 0 && ends(c) => {
                end = offset;
                break;
            }
            _ => {}
        }
    }
    at.advance(end);
    if &rest[..end] == "@" {
        return Ok(Operand::Path(Path::from_steps([])));
    }
    match rest[..end].parse::<Path>() {
        Ok(path) => Ok(Operand::Path(path)),
        Err(error) => Err(ExpressionError::within(at.text(), start, &error)),
    }
}

fn number(at: &mut Cursor<'_>) -> Result<Operand, ExpressionError> {
    let rest = at.rest();
    let end =
        rest.find(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E'))).unwrap_or(rest.len());
    let text = &rest[..end];
    let literal = match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(integer), _) => integer.to_string(),
        (_, Ok(float)) if float.is_finite() => serde_json::Value::from(float).to_string(),
        _ => return Err(at.error(format!("invalid number {text:?}"))),
    };
    at.advance(end);
    Ok(Operand::Literal(literal))
}
