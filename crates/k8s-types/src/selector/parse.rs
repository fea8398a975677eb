//! The text form of label selectors.

use std::str::FromStr;

use super::{LabelOperator, LabelRequirement, LabelSelector};
use crate::{
    error::ParseError,
    names::{is_label_key, is_label_value},
};

impl FromStr for LabelSelector {
    type Err = ParseError;

    /// Parses the grammar of `kubectl -l`: requirements joined by commas, each one of `key=value`, `key==value`,
    /// `key!=value`, `key in (a,b)`, `key notin (a,b)`, `key`, `!key`, `key>1`, `key<1`. Blanks are free between
    /// the parts, and a value may be empty. The empty text selects everything, as in the API.
    ///
    /// # Errors
    ///
    /// A [`ParseError`] with the column of the first thing that is wrong, an invalid key or value included.
    fn from_str(text: &str) -> Result<LabelSelector, ParseError> {
        let mut tokens = Tokens { text, pos: 0 };
        let mut selector = LabelSelector::default();
        if tokens.peek().1 == Token::End {
            return Ok(selector);
        }
        loop {
            requirement(&mut tokens, &mut selector)?;
            match tokens.next() {
                (_, Token::End) => return Ok(selector),
                (_, Token::Symbol(",")) => {}
                (at, found) => {
                    return Err(ParseError::at(
                        text,
                        at,
                        format!("expected ',' or the end, found {}", found.describe()),
                    ));
                }
            }
        }
    }
}

fn requirement(tokens: &mut Tokens<'_>, selector: &mut LabelSelector) -> Result<(), ParseError> {
    let text = tokens.text;
    if tokens.peek().1 == Token::Symbol("!") {
        tokens.next();
        let key = key(tokens)?;
        let absent = LabelRequirement::new(key, LabelOperator::DoesNotExist, NO_VALUES);
        selector.match_expressions.push(absent);
        return Ok(());
    }
    let key = key(tokens)?;
    let (at, token) = tokens.peek();
    let (operator, values) = match token {
        Token::End | Token::Symbol(",") => (LabelOperator::Exists, Vec::new()),
        Token::Symbol("=" | "==") => {
            tokens.next();
            selector.add_equal(key.to_owned(), value(tokens)?.to_owned());
            return Ok(());
        }
        Token::Symbol("!=") => {
            tokens.next();
            (LabelOperator::NotIn, vec![value(tokens)?])
        }
        Token::Symbol(sign @ (">" | "<")) => {
            tokens.next();
            let at = tokens.peek().0;
            let bound = value(tokens)?;
            if bound.parse::<i64>().is_err() {
                return Err(ParseError::at(text, at, format!("expected an integer, found {bound:?}")));
            }
            let greater = sign == ">";
            let operator = if greater { LabelOperator::Gt } else { LabelOperator::Lt };
            (operator, vec![bound])
        }
        Token::Word("in") => {
            tokens.next();
            (LabelOperator::In, values(tokens)?)
        }
        Token::Word("notin") => {
            tokens.next();
            (LabelOperator::NotIn, values(tokens)?)
        }
        found => {
            return Err(ParseError::at(text, at, format!("expected an operator, found {}", found.describe()))
                .hint("one of =, ==, !=, in, notin, >, <"));
        }
    };
    let requirement = LabelRequirement::new(key, operator, values);
    selector.match_expressions.push(requirement);
    Ok(())
}

const NO_VALUES: [&str; 0] = [];

fn key<'a>(tokens: &mut Tokens<'a>) -> Result<&'a str, ParseError> {
    let text = tokens.text;
    match tokens.next() {
        (_, Token::Word(key)) if is_label_key(key) => Ok(key),
        (at, Token::Word(key)) => Err(ParseError::at(text, at, format!("invalid label key {key:?}"))),
        (at, found) => Err(ParseError::at(text, at, format!("expected a label key, found {}", found.describe()))),
    }
}

/// A value, which may be empty: then the next token is none of a value.
fn value<'a>(tokens: &mut Tokens<'a>) -> Result<&'a str, ParseError> {
    let text = tokens.text;
    match tokens.peek() {
        (_, Token::Word(value)) if is_label_value(value) => {
            tokens.next();
            Ok(value)
        }
        (at, Token::Word(value)) => Err(ParseError::at(text, at, format!("invalid label value {value:?}"))),
        (_, Token::End | Token::Symbol("," | ")")) => Ok(""),
        (at, found) => Err(ParseError::at(text, at, format!("expected a label value, found {}", found.describe()))),
    }
}

/// `(a,b)`; empty parts are empty values, and so is `()`.
fn values<'a>(tokens: &mut Tokens<'a>) -> Result<Vec<&'a str>, ParseError> {
    let text = tokens.text;
    let (at, open) = tokens.next();
    if open != Token::Symbol("(") {
        return Err(ParseError::at(text, at, format!("expected '(', found {}", open.describe())));
    }
    let mut values = Vec::new();
    loop {
        let value = value(tokens)?;
        if !values.contains(&value) {
            values.push(value);
        }
        match tokens.next() {
            (_, Token::Symbol(")")) => return Ok(values),
            (_, Token::Symbol(",")) => {}
            (_, Token::End) => return Err(ParseError::at(text, at, "unclosed '('")),
            (at, found) => {
                return Err(ParseError::at(text, at, format!("expected ',' or ')', found {}", found.describe())));
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
    End,
}

impl Token<'_> {
    fn describe(self) -> String {
        match self {
            Token::Word(text) => format!("{text:?}"),
            Token::Symbol(text) => format!("'{text}'"),
            Token::End => "the end".to_owned(),
        }
    }
}

const SYMBOLS: [char; 7] = ['=', '!', '(', ')', ',', '>', '<'];

struct Tokens<'a> {
    text: &'a str,
    pos: usize,
}

impl<'a> Tokens<'a> {
    fn peek(&self) -> (usize, Token<'a>) {
        let rest = &self.text[self.pos..];
        let trimmed = rest.trim_start();
        let at = self.text.len() - trimmed.len();
        let Some(first) = trimmed.chars().next() else {
            return (at, Token::End);
        };
        if SYMBOLS.contains(&first) {
            let two = trimmed.get(..2).filter(|two| matches!(*two, "==" | "!="));
            return (at, Token::Symbol(two.unwrap_or(&trimmed[..1])));
        }
        let end = trimmed.find(|c: char| c.is_whitespace() || SYMBOLS.contains(&c)).unwrap_or(trimmed.len());
        (at, Token::Word(&trimmed[..end]))
    }

    fn next(&mut self) -> (usize, Token<'a>) {
        let (at, token) = self.peek();
        self.pos = at
            + match token {
                Token::Word(text) | Token::Symbol(text) => text.len(),
                Token::End => 0,
            };
        (at, token)
    }
}
