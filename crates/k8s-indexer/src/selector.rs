//! Field selectors that the client evaluates.

use std::{fmt, str::FromStr};

use k8s_packed::{Object, Path};

use crate::{
    dialect::unquoted,
    error::ExpressionError,
    expression::{Expression, First},
};

/// A field selector `path=value`: matches objects in which the first result of the path has this key text.
///
/// Any expression will do, labels too (`metadata.labels['app']=web`). The sign is the first `=` or `==` outside
/// brackets; what follows is the value, further `=` included. A value with commas or with blanks at its ends stands in
/// quotes (`'a,b'`), in which a backslash takes the next character as it is. An object without the field matches
/// nothing, not even the empty value.
///
/// ```
/// use k8s_indexer::FieldSelector;
/// use k8s_packed::object;
///
/// let selector: FieldSelector = "spec.replicas=3".parse()?;
/// assert!(selector.matches(&object!({"spec": {"replicas": 3}})));
/// assert!(!selector.matches(&object!({"spec": {}})));
///
/// let error = "status.phase!=Running".parse::<FieldSelector>().unwrap_err();
/// assert_eq!(error.message(), "'!=' in a field selector");
/// # Ok::<(), k8s_indexer::ExpressionError>(())
/// ```
#[derive(Debug)]
pub struct FieldSelector {
    expression: Expression,
    value: Box<str>,
}

impl FieldSelector {
    /// Whether the object's value is the selector's. Allocates nothing for a plain path.
    pub fn matches(&self, object: &Object) -> bool {
        self.expression.with_first(object, |first| matches!(first, First::Text(text) if *text == *self.value))
    }

    /// The expression that is compared.
    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    /// The plain path that is compared; none if it needs the query engine.
    pub fn path(&self) -> Option<&Path> {
        self.expression.path()
    }

    /// The value to compare with.
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl FromStr for FieldSelector {
    type Err = ExpressionError;

    /// Parses `path=value` or `path==value`.
    ///
    /// # Errors
    ///
    /// No sign, `!=`, a comma outside quotes (several selectors are not supported), blanks around the value, or
    /// whatever is wrong with the path.
    fn from_str(text: &str) -> Result<FieldSelector, ExpressionError> {
        let mut brackets = 0_usize;
        let mut sign = None;
        for (offset, c) in unquoted(text) {
            match c {
                '[' => brackets += 1,
                ']' => brackets = brackets.saturating_sub(1),
                '=' if brackets == 0 => {
                    sign = Some(offset);
                    break;
                }
                ',' if brackets == 0 => return Err(comma(text, offset)),
                _ => {}
            }
        }
        let Some(sign) = sign else {
            // Something may be wrong with the path that hides the sign.
            text.parse::<Expression>()?;
            let error = ExpressionError::at(text, text.len(), "'=' missing in a field selector");
            return Err(error.hint("write path=value"));
        };
        let path = &text[..sign];
        if path.ends_with('!') {
            let error = ExpressionError::at(text, sign - 1, "'!=' in a field selector");
            return Err(error.hint("the client selects by equality; a server field selector may have !="));
        }
        let expression = path.parse()?;
        let start = if text[sign..].starts_with("==") { sign + 2 } else { sign + 1 };
        let value = value(text, start)?.into();
        Ok(FieldSelector { expression, value })
    }
}

fn comma(text: &str, offset: usize) -> ExpressionError {
    ExpressionError::at(text, offset, "comma in a field selector")
        .hint("one path=value only; put quotes around a value with a comma")
}

fn value(text: &str, start: usize) -> Result<String, ExpressionError> {
    let given = &text[start..];
    if let Some(quote @ ('\'' | '"')) = given.chars().next() {
        return quoted_value(text, start, quote);
    }
    if let Some(offset) = given.find(',') {
        return Err(comma(text, start + offset));
    }
    if given.trim() != given {
        let error = ExpressionError::at(text, start, "blank around the value of a field selector");
        return Err(error.hint("put quotes around it if it is meant"));
    }
    Ok(given.to_owned())
}

fn quoted_value(text: &str, start: usize, quote: char) -> Result<String, ExpressionError> {
    let mut value = String::new();
    let mut chars = text[start..].char_indices().skip(1);
    while let Some((offset, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c if c == quote => {
                return match chars.next() {
                    None => Ok(value),
                    Some((_, ',')) => Err(comma(text, start + offset + 1)),
                    Some(_) => Err(ExpressionError::at(text, start + offset + 1, "text after the quoted value")),
                };
            }
            c => value.push(c),
        }
    }
    Err(ExpressionError::at(text, start, "unclosed quote"))
}

impl fmt::Display for FieldSelector {
    /// Writes a text that parses to an equal selector.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FieldSelector { expression, value } = self;
        // A value that begins with `=` would make the sign `==`, which swallows it.
        if value.starts_with(['\'', '"', '=']) || value.contains(',') || value.trim() != &**value {
            let escaped = value.replace('\\', "\\\\").replace('\'', "\\'");
            return write!(f, "{expression}='{escaped}'");
        }
        write!(f, "{expression}={value}")
    }
}
