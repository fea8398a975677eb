//! A position in an expression.

use crate::error::ExpressionError;

/// A position in an expression, up to the end of what lies in its braces.
pub(super) struct Cursor<'a> {
    text: &'a str,
    pos: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// The cursor at the start of an expression, inside its braces if it has some.
    pub(super) fn inside_braces(text: &'a str) -> Result<Cursor<'a>, ExpressionError> {
        let Some(inner) = text.strip_prefix('{') else {
            return Ok(Cursor { text, pos: 0, end: text.len() });
        };
        let Some(inner) = inner.strip_suffix('}') else {
            // The closing brace is missing or something stands behind it.
            let mut depth = 0_usize;
            for (offset, c) in unquoted(text) {
                match c {
                    '{' => depth += 1,
                    '}' => depth = depth.saturating_sub(1),
                    _ if depth == 0 => {
                        let error = ExpressionError::at(text, offset, "text after '}'");
                        return Err(error.hint("a path is one expression"));
                    }
                    _ => {}
                }
            }
            return Err(ExpressionError::at(text, 0, "unclosed '{'"));
        };
        let pos = text.len() - 1 - inner.trim_start().len();
        let end = 1 + inner.trim_end().len();
        Ok(Cursor { text, pos: pos.min(end), end })
    }

    /// Skips the sign of the root that may stand in front; `$` only gets here inside braces.
    pub(super) fn skip_root(&mut self) {
        let _ = self.eat("@") || self.eat("$");
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.pos..self.end]
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    pub(super) fn pos(&self) -> usize {
        self.pos
    }

    pub(super) fn is_end(&self) -> bool {
        self.pos >= self.end
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        Some(c)
    }

    /// Goes on by a number of bytes of [`rest`](Self::rest).
    pub(super) fn advance(&mut self, bytes: usize) {
        self.pos = (self.pos + bytes).min(self.end);
    }

    pub(super) fn eat(&mut self, expected: &str) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            self.pos += expected.len();
        }
        found
    }

    pub(super) fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.bump();
        }
    }

    pub(super) fn error(&self, message: impl Into<Box<str>>) -> ExpressionError {
        ExpressionError::at(self.text, self.pos, message)
    }

    pub(super) fn error_at(&self, offset: usize, message: impl Into<Box<str>>) -> ExpressionError {
        ExpressionError::at(self.text, offset, message)
    }

    /// The text of a quoted string, in which a backslash takes the next character as it is.
    pub(super) fn quoted(&mut self) -> Result<String, ExpressionError> {
        let open = self.pos;
        let unclosed = |cursor: &Cursor<'_>| cursor.error_at(open, "unclosed quote");
        let quote = self.bump();
        let mut text = String::new();
        loop {
            match self.bump() {
                None => return Err(unclosed(self)),
                Some('\\') => match self.bump() {
                    None => return Err(unclosed(self)),
                    Some(c) => text.push(c),
                },
                found if found == quote => return Ok(text),
                Some(c) => text.push(c),
            }
        }
    }
}

/// The characters of an expression outside quotes, with their offsets. Quotes count inside brackets only, since a
/// dotted name may have an escaped one.
pub(crate) fn unquoted(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut brackets = 0_usize;
    let mut quote = None;
    let mut escaped = false;
    text.char_indices().filter(move |&(_, c)| {
        if escaped {
            escaped = false;
            return false;
        }
        if c == '\\' {
            escaped = true;
            return false;
        }
        if let Some(open) = quote {
            if c == open {
                quote = None;
            }
            return false;
        }
        match c {
            '\'' | '"' if brackets > 0 => {
                quote = Some(c);
                return false;
            }
            '[' => brackets += 1,
            ']' => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        true
    })
}

/// Where the string begins that an RFC 9535 expression does not end.
pub(super) fn unclosed_quote(text: &str) -> Option<usize> {
    let mut open = None;
    let mut chars = text.char_indices();
    while let Some((offset, c)) = chars.next() {
        match open {
            // Whatever is escaped does not end the string.
            Some(_) if c == '\\' => drop(chars.next()),
            Some((_, quote)) if c == quote => open = None,
            None if matches!(c, '\'' | '"') => open = Some((offset, c)),
            _ => {}
        }
    }
    open.map(|(offset, _)| offset)
}

/// Where a slice with step 0 stands in a valid expression: two colons, blanks apart, and a zero.
pub(super) fn zero_step(text: &str) -> Option<usize> {
    let mut colons = 0;
    let mut step: Option<(usize, String)> = None;
    for (offset, c) in unquoted(text) {
        match c {
            ':' => {
                colons += 1;
                step = (colons == 2).then(|| (offset, String::new()));
            }
            ']' | ',' | '[' | '?' => {
                if step.as_ref().is_some_and(|(_, digits)| digits == "0") {
                    return step.map(|(offset, _)| offset);
                }
                colons = 0;
                step = None;
            }
            c if c.is_whitespace() => {}
            c => {
                if let Some((_, digits)) = &mut step {
                    digits.push(c);
                }
            }
        }
    }
    None
}
