//! Whether an error's text repeats a part of the value that it is about.

use crate::value::ValueRef;

/// How many bytes in common are no accident. Shorter values must be in the text as a word.
const PIECE: usize = 6;
/// Nobody writes an error this long; what does come this long quotes something.
const LONGEST: usize = 1024;

/// Whether the message repeats any text or number of the value, or a part of one.
///
/// Only failures come here, so the walk over the whole value may cost what it costs.
pub(crate) fn quotes(message: &str, value: ValueRef<'_>) -> bool {
    if message.len() > LONGEST {
        return true;
    }
    let pieces = message.as_bytes().windows(PIECE).collect();
    quotes_any(message, &pieces, value)
}

fn quotes_any(message: &str, pieces: &hashbrown::HashSet<&[u8]>, value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Null | ValueRef::Bool(_) => false,
        ValueRef::Number(n) => has_word(message, &n.to_string()),
        ValueRef::String(s) if s.len() < PIECE => has_word(message, s),
        ValueRef::String(s) => s.as_bytes().windows(PIECE).any(|piece| pieces.contains(piece)),
        ValueRef::Array(items) => items.iter().any(|v| quotes_any(message, pieces, v)),
        ValueRef::Map(map) => map.iter().any(|(_, v)| quotes_any(message, pieces, v)),
    }
}

/// Whether the word stands in the text with nothing like it on either side.
fn has_word(text: &str, word: &str) -> bool {
    let outside = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    !word.is_empty()
        && text
            .match_indices(word)
            .any(|(at, _)| outside(text[..at].chars().next_back()) && outside(text[at + word.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[track_caller]
    fn check(message: &str, expected: bool) {
        let value = object!({"a": ["hunter2-and-more", 8080, "no"], "b": {"c": "", "d": null, "e": true}});
        assert_eq!(quotes(message, value.root_value()), expected, "{message}");
    }

    #[test]
    fn texts_that_repeat_a_value_are_found() {
        check("invalid year: \"hunter2-and-more\"", true);
        check("invalid year: \"hunter\"", true);
        check("8080 is no port", true);
        check("no", true);
        check("not `no`", true);
        check(&"x".repeat(2000), true);
    }

    #[test]
    fn texts_that_share_nothing_but_words_pass() {
        check("not a port: 80801", false);
        check("null and true are none", false);
        check("", false);
    }
}
