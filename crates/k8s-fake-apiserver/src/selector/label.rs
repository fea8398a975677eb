//! `app=cart,tier in (front, back),!canary`.

/// Requirements that must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Exists,
    Missing,
    In(Vec<String>),
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token<'a> {
    End,
    Word(&'a str),
    Sign(&'static str),
}

impl LabelSelector {
    /// The error is the text of the answer.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = Tokens { text, rest: text };
        let mut requirements: Vec<Requirement> = Vec::new();
        loop {
            match tokens.peek() {
                Token::End => break,
                Token::Word(_) | Token::Sign("!") => requirements.push(requirement(&mut tokens)?),
                other => return Err(expected(&other, "!, identifier, or 'end of string'")),
            }
            match tokens.next() {
                Token::End => break,
                Token::Sign(",") => match tokens.peek() {
                    Token::Word(_) | Token::Sign("!") => {}
                    other => return Err(format!("found '{}', expected: identifier after ','", show(&other))),
                },
                other => return Err(format!("found '{}', expected: ',' or 'end of string'", show(&other))),
            }
        }
        Ok(Self { requirements })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    pub(crate) fn matches(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        self.requirements.iter().all(|r| {
            let value = labels.iter().find(|(k, _)| **k == *r.key).map(|(_, v)| &**v);
            match (&r.test, value) {
                (Test::Exists, value) => value.is_some(),
                (Test::Missing, value) => value.is_none(),
                (Test::In(values), Some(value)) => values.iter().any(|v| v == value),
                (Test::NotIn(values), Some(value)) => values.iter().all(|v| v != value),
                (Test::Greater(limit), Some(value)) => value.parse::<i64>().is_ok_and(|v| v > *limit),
                (Test::Less(limit), Some(value)) => value.parse::<i64>().is_ok_and(|v| v < *limit),
                (Test::NotIn(_), None) => true,
                (Test::In(_) | Test::Greater(_) | Test::Less(_), None) => false,
            }
        })
    }
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, String> {
    let missing = tokens.peek() == Token::Sign("!");
    if missing {
        tokens.next();
    }
    let key = match tokens.next() {
        Token::Word(word) => word.to_owned(),
        other => return Err(unable(&expected(&other, "identifier"))),
    };
    check_key(&key)?;
    let at_end = |token: &Token<'_>| matches!(token, Token::End | Token::Sign(","));
    if missing {
        return Ok(Requirement { key, test: Test::Missing });
    }
    if at_end(&tokens.peek()) {
        return Ok(Requirement { key, test: Test::Exists });
    }
    let operator = tokens.next();
    let test = match operator {
        Token::Sign("=" | "==") => Test::In(vec![value(tokens)?]),
        Token::Sign("!=") => Test::NotIn(vec![value(tokens)?]),
        Token::Word("in") => Test::In(values(tokens)?),
        Token::Word("notin") => Test::NotIn(values(tokens)?),
        Token::Sign(sign @ (">" | "<")) => {
            let text = value(tokens)?;
            let number = text.parse().map_err(|_| {
                format!("unable to parse requirement: values[0]: Invalid value: {text:?}: for 'Gt', 'Lt' operators, the value must be an integer")
            })?;
            if sign == ">" { Test::Greater(number) } else { Test::Less(number) }
        }
        other => return Err(unable(&expected(&other, "in, notin, =, ==, !=, gt, lt"))),
    };
    if let Test::In(values) | Test::NotIn(values) = &test {
        for value in values {
            check_value(&key, value)?;
        }
    }
    Ok(Requirement { key, test })
}

/// One value; nothing before a comma or the end is the empty value.
fn value(tokens: &mut Tokens<'_>) -> Result<String, String> {
    match tokens.peek() {
        Token::End | Token::Sign(",") => Ok(String::new()),
        Token::Word(word) => {
            tokens.next();
            Ok(word.to_owned())
        }
        other => Err(unable(&expected(&other, "identifier"))),
    }
}

fn values(tokens: &mut Tokens<'_>) -> Result<Vec<String>, String> {
    match tokens.next() {
        Token::Sign("(") => {}
        other => return Err(unable(&expected(&other, "'('"))),
    }
    let mut values = Vec::new();
    let mut after_comma = true;
    loop {
        match tokens.next() {
            Token::Word(word) if after_comma => {
                values.push(word.to_owned());
                after_comma = false;
            }
            Token::Sign(",") => {
                if after_comma {
                    values.push(String::new());
                }
                after_comma = true;
            }
            Token::Sign(")") => {
                if after_comma {
                    values.push(String::new());
                }
                return Ok(values);
            }
            other => {
                let wanted = if after_comma { "',', ')' or identifier" } else { "',' or ')'" };
                return Err(unable(&expected(&other, wanted)));
            }
        }
    }
}

struct Tokens<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Token<'a> {
        let (token, rest) = split(self.rest);
        self.rest = rest;
        debug_assert!(self.text.len() >= rest.len());
        token
    }

    fn peek(&self) -> Token<'a> {
        split(self.rest).0
    }
}

fn split(text: &str) -> (Token<'_>, &str) {
    let text = text.trim_start_matches([' ', '\t', '\r', '\n']);
    if text.is_empty() {
        return (Token::End, text);
    }
    for sign in ["==", "!=", "=", "!", "(", ")", ",", ">", "<"] {
        if let Some(rest) = text.strip_prefix(sign) {
            return (Token::Sign(sign), rest);
        }
    }
    let end = text.find([' ', '\t', '\r', '\n', '=', '!', '(', ')', ',', '>', '<']).unwrap_or(text.len());
    (Token::Word(&text[..end]), &text[end..])
}

fn show<'a>(token: &Token<'a>) -> &'a str {
    match token {
        Token::End => "",
        Token::Word(word) => word,
        Token::Sign(sign) => sign,
    }
}

fn expected(found: &Token<'_>, wanted: &str) -> String {
    format!("found '{}', expected: {wanted}", show(found))
}

fn unable(why: &str) -> String {
    format!("unable to parse requirement: {why}")
}

fn check_key(key: &str) -> Result<(), String> {
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(p, n)| (Some(p), n));
    let prefix_ok = prefix.is_none_or(|p| !p.contains('/') && crate::names::is_subdomain(p));
    if prefix_ok && !name.is_empty() && is_label_text(name) {
        return Ok(());
    }
    Err(format!(
        "unable to parse requirement: <nil>: Invalid value: {key:?}: name part must consist of alphanumeric characters, \
         '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
         '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    ))
}

fn check_value(key: &str, value: &str) -> Result<(), String> {
    if value.is_empty() || is_label_text(value) {
        return Ok(());
    }
    Err(format!(
        "unable to parse requirement: values[0][{key}]: Invalid value: {value:?}: a valid label must be an empty string or \
         consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
         'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    ))
}

fn is_label_text(text: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels: Vec<(Box<str>, Box<str>)> = labels.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        LabelSelector::parse(selector).unwrap_or_else(|e| panic!("{selector}: {e}")).matches(&labels)
    }

    #[test]
    fn grammar() {
        let labels = [("app", "cart"), ("tier", "front"), ("example.com/n", "7"), ("empty", "")];
        for (selector, expected) in [
            ("", true),
            ("  ", true),
            ("app", true),
            ("!app", false),
            ("!other", true),
            ("app=cart", true),
            ("app == cart , tier != back", true),
            ("app in (cart,search),tier notin (back)", true),
            ("app in (search)", false),
            ("other notin (x)", true),
            ("other!=x", true),
            ("empty=", true),
            ("empty in (,x)", true),
            ("app=", false),
            ("example.com/n>6", true),
            ("example.com/n > 7", false),
            ("example.com/n<8", true),
            ("app<8", false),
            ("in=x", false),
            ("notin", false),
        ] {
            assert_eq!(matches(selector, &labels), expected, "{selector}");
        }
    }

    #[test]
    fn refused_with_the_text_of_the_real_server() {
        for (selector, message) in [
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("a!!", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"),
            ("a,", "found '', expected: identifier after ','"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ] {
            assert_eq!(LabelSelector::parse(selector).unwrap_err(), message);
        }
        for selector in ["=a", "a=b=c", "a in b", "a>x", "-a", "a/b/c=d", "a=%%", ",a", "()", "a in (b,c"] {
            assert!(LabelSelector::parse(selector).is_err(), "{selector}");
        }
    }
}
