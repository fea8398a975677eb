//! The text of a value in a key: one form for each value, however the JSON wrote it.

use std::fmt::{self, Write};

use k8s_packed::{Number, ValueRef};
use serde_json::Value;

/// A value as keys see it. Null is not among them: it is as if the value were not there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scalar<'a> {
    Text(&'a str),
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    /// An array or a map, which is no key.
    Composite,
}

impl<'a> Scalar<'a> {
    pub(crate) fn of_packed(value: ValueRef<'a>) -> Option<Scalar<'a>> {
        Some(match value {
            ValueRef::Null => return None,
            ValueRef::Bool(b) => Scalar::Bool(b),
            ValueRef::Number(Number::Int(n)) => Scalar::Int(n),
            ValueRef::Number(Number::Uint(n)) => Scalar::Uint(n),
            ValueRef::Number(Number::Float(n)) => Scalar::Float(n),
            ValueRef::String(text) => Scalar::Text(text),
            ValueRef::Array(_) | ValueRef::Map(_) => Scalar::Composite,
        })
    }

    pub(crate) fn of_value(value: &'a Value) -> Option<Scalar<'a>> {
        Some(match value {
            Value::Null => return None,
            Value::Bool(b) => Scalar::Bool(*b),
            Value::Number(n) => match (n.as_i64(), n.as_u64(), n.as_f64()) {
                (Some(n), ..) => Scalar::Int(n),
                (_, Some(n), _) => Scalar::Uint(n),
                (.., Some(n)) => Scalar::Float(n),
                // Beyond every type; the packed form has no such number.
                _ => return None,
            },
            Value::String(text) => Scalar::Text(text),
            Value::Array(_) | Value::Object(_) => Scalar::Composite,
        })
    }

    /// The text; none for arrays and maps. Texts are borrowed, all else is written into the buffer: no allocation.
    pub(crate) fn text<'b>(self, buffer: &'b mut Buffer) -> Option<&'b str>
    where
        'a: 'b,
    {
        buffer.clear();
        // The buffer is large enough for each of these.
        let _ = match self {
            Scalar::Text(text) => return Some(text),
            Scalar::Composite => return None,
            Scalar::Bool(b) => return Some(if b { "true" } else { "false" }),
            Scalar::Int(n) => write!(buffer, "{n}"),
            Scalar::Uint(n) => write!(buffer, "{n}"),
            Scalar::Float(0.0) => buffer.write_str("0"),
            Scalar::Float(n) if (1e-7..1e21).contains(&n.abs()) => write!(buffer, "{n}"),
            Scalar::Float(n) => write!(buffer, "{n:e}"),
        };
        Some(buffer.as_str())
    }
}

/// Room for the text of a number: 20 characters for an integer, at most 28 for a float.
pub(crate) struct Buffer {
    bytes: [u8; 40],
    len: usize,
}

impl Buffer {
    pub(crate) fn new() -> Buffer {
        Buffer { bytes: [0; 40], len: 0 }
    }

    fn clear(&mut self) {
        self.len = 0;
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl fmt::Write for Buffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Buffer, Scalar};

    fn text(scalar: Scalar<'_>) -> Option<String> {
        scalar.text(&mut Buffer::new()).map(str::to_owned)
    }

    #[test]
    fn numbers_have_one_text() {
        for (scalar, expected) in [
            (Scalar::Int(8080), "8080"),
            (Scalar::Float(8080.0), "8080"),
            (Scalar::Float(1e3), "1000"),
            (Scalar::Float(-0.0), "0"),
            (Scalar::Int(9_007_199_254_740_993), "9007199254740993"),
            (Scalar::Int(i64::MIN), "-9223372036854775808"),
            (Scalar::Uint(u64::MAX), "18446744073709551615"),
            (Scalar::Float(1e20), "100000000000000000000"),
            (Scalar::Float(1e21), "1e21"),
            (Scalar::Float(0.1), "0.1"),
            (Scalar::Float(-1.5), "-1.5"),
            (Scalar::Float(1e-7), "0.0000001"),
            (Scalar::Float(1.5e-9), "1.5e-9"),
            (Scalar::Float(f64::MAX), "1.7976931348623157e308"),
            (Scalar::Bool(true), "true"),
            (Scalar::Text("8080.0"), "8080.0"),
        ] {
            assert_eq!(text(scalar).as_deref(), Some(expected), "{scalar:?}");
        }
        assert_eq!(text(Scalar::Composite), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_text_of_a_float_reads_back(n in any::<f64>()) {
            let text = text(Scalar::Float(n)).unwrap_or_default();
            prop_assert_eq!(text.parse::<f64>(), Ok(if n == 0.0 { 0.0 } else { n }));
        }

        #[test]
        fn a_whole_float_reads_like_its_integer(n in any::<i32>()) {
            prop_assert_eq!(text(Scalar::Float(f64::from(n))), text(Scalar::Int(i64::from(n))));
        }
    }
}
