use super::{Parsed, parse};
use crate::error::ExpressionError;

fn error(text: &str) -> ExpressionError {
    match parse(text) {
        Ok(_) => panic!("{text:?} is accepted"),
        Err(error) => error,
    }
}

#[test]
fn only_what_a_path_cannot_say_is_a_query() {
    for (text, query) in [
        ("a.b[0]['c d'].*", false),
        ("$.a.b[0]['c d'].*", false),
        ("a[0:1]", true),
        ("a[0,1]", true),
        ("a..b", true),
        ("a[?(@.b)]", true),
        ("$.a[?@.b && @.c]", true),
        ("$.a[?length(@.b) > 1]", true),
    ] {
        let parsed = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(matches!(parsed, Parsed::Query(_)), query, "{text}");
    }
}

#[test]
fn a_text_that_ends_within_an_escape_is_an_error_and_no_panic() {
    for start in ["$..['", "$..[\"", "$[?@.a=='", "$[?match(@.a, \"", "$['a','"] {
        for escape in ["\\", "\\u", "\\uD", "\\u00", "\\uD83d", "\\uD83d\\u", "\\uD83d\\uD", "\\'\\u"] {
            let text = format!("{start}{escape}");
            let expected = format!("unclosed quote at column {}", start.len());
            assert_eq!(error(&text).to_string(), expected, "{text}");
        }
    }
    assert!(parse("$..['it\\'s',\"\\\"'\"]").is_ok());
}

#[test]
fn wrong_brackets_say_what_and_where() {
    for (text, expected) in [
        ("a[0:1", "unclosed '[' at column 2"),
        ("a[0:1:2:3]", "slice with more than three parts at column 8"),
        ("a[0:x]", "expected ',' or ']', found 'x' at column 5"),
        ("a[0:-]", "digits missing after '-' at column 5"),
        ("a[0,]", "selector missing in brackets at column 5"),
        ("a[0,b]", "name without quotes in brackets at column 5: write ['name']"),
        ("a['b','c]", "unclosed quote at column 7"),
        ("a[0,?(@.b)]", "filter in a union at column 5"),
        ("a[?(@.b),0]", "filter in a union at column 9"),
        ("a[0:1][b]", "name without quotes in brackets at column 8: write ['name']"),
        ("ä['ö','ü'][0:1].b.", "name missing after '.' at column 19"),
    ] {
        assert_eq!(error(text).to_string(), expected, "{text:?}");
    }
}

#[test]
fn wrong_filters_say_what_and_where() {
    for (text, expected) in [
        ("a[?@.b]", "expected '(' in a filter at column 4: write [?(@.name==\"value\")]"),
        ("a[?(]", "expected '@', a quoted text, a number, true, false or null at column 5"),
        ("a[?(@.b", "unclosed '(' at column 4"),
        ("a[?(@.b)", "unclosed '[' at column 2"),
        ("a[?(@.b==)]", "expected '@', a quoted text, a number, true, false or null at column 10"),
        ("a[?(@.b=1)]", "unknown operator at column 8: write == for equality"),
        ("a[?(@.b==\"c)]", "unclosed quote at column 10"),
        ("a[?(@.b==1.2.3)]", "invalid number \"1.2.3\" at column 10"),
        ("a[?(@.b in 1)]", "unexpected 'i' in a filter at column 9"),
        ("a[?('b')]", "filter without a path at column 3"),
        (
            "a[?(@.b[*]==1)]",
            "comparison with more than one value at column 3: a wildcard can only be asked for existence",
        ),
        ("a[?(@..b==1)]", "recursive descent in a plain path at column 6"),
        (
            "a[?($.b==1)]",
            "'$' in a filter at column 5: \
             kubectl takes it for the item: write '@', or begin the whole expression with '$'",
        ),
        (
            "a[?(@.b==1 && @.c==2)]",
            "more than one condition in a filter at column 12: \
             begin the expression with '$' (RFC 9535), which has && and ||",
        ),
    ] {
        assert_eq!(error(text).to_string(), expected, "{text:?}");
    }
}

#[test]
fn wrong_rfc_9535_says_where() {
    for (text, expected) in [
        ("$..", "invalid JSONPath (RFC 9535) at column 3"),
        ("$.a[?@.b==]", "in long-hand segment, expected closing ']' at column 8"),
        ("$.a[?@.b", "in long-hand segment, expected closing ']' at column 8"),
    ] {
        assert_eq!(error(text).to_string(), expected, "{text:?}");
    }
}

#[test]
fn hostile_texts_are_refused_before_they_cost_much() {
    for text in [
        format!("$[?{}@.a{}]", "@[?".repeat(40), "]".repeat(40)),
        format!("$[?{}@.a{}]", "(".repeat(2000), ")".repeat(2000)),
        format!("a[?({}", "@[?(".repeat(1000)),
    ] {
        assert_eq!(error(&text).message(), "brackets nested too deep");
    }
    assert_eq!(error(&"a.".repeat(4000)).message(), "expression longer than 4096 bytes");
}
