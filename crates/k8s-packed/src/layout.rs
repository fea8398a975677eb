//! The byte layout of a packed value: tags, lengths, numbers. The only file that knows it.
//!
//! A value is a tag byte and what the tag says. Small integers, short strings, short containers and the
//! first 16,384 symbols carry their payload in the tag, because they are what objects are made of:
//!
//! | tag | meaning |
//! |---|---|
//! | `00` `01` `02` | null, false, true |
//! | `03` | integer, zigzag varint |
//! | `04` | integer above `i64::MAX`, varint |
//! | `05` | float, 8 bytes little endian |
//! | `06` | string, varint length and bytes |
//! | `07` `08` | array, map: varint length of the contents in bytes, contents |
//! | `09` | symbol, varint number |
//! | `0a` | the string at another place of the same object: two bytes little endian, counted from the object's first |
//! | `0b`–`1f` | integers 0 to 20 |
//! | `20`–`4f` | strings of 0 to 47 bytes |
//! | `50`–`67` | arrays with contents of 0 to 23 bytes |
//! | `68`–`7f` | maps with contents of 0 to 23 bytes |
//! | `80`–`bf` | symbol: six bits of the tag and the next byte |
//! | `c0`–`ff` | symbol 16,384 and up: six bits of the tag and the next two bytes |
//!
//! The contents of a map are pairs of a key and a value. A key is a number in the symbols' table of keys, or
//! a text of its own:
//!
//! | first byte | meaning |
//! |---|---|
//! | `00`–`bf` | keys 0 to 191 |
//! | `c0`–`fe` | keys 192 to 16,319: six bits and the next byte |
//! | `ff` | varint length and bytes |

const NULL: u8 = 0x00;
const FALSE: u8 = 0x01;
const TRUE: u8 = 0x02;
const INT: u8 = 0x03;
const UINT: u8 = 0x04;
const FLOAT: u8 = 0x05;
const STRING: u8 = 0x06;
const ARRAY: u8 = 0x07;
const MAP: u8 = 0x08;
const SYMBOL: u8 = 0x09;
const REPEAT: u8 = 0x0a;
const SMALL_INT: u8 = 0x0b;
const SHORT_STRING: u8 = 0x20;
const SHORT_ARRAY: u8 = 0x50;
const SHORT_MAP: u8 = 0x68;
const SHORT_SYMBOL: u8 = 0x80;
const WIDE_SYMBOL: u8 = 0xc0;

const SMALL_INTS: i64 = (SHORT_STRING - SMALL_INT) as i64;
const SHORT_STRINGS: usize = (SHORT_ARRAY - SHORT_STRING) as usize;
const SHORT_CONTENTS: usize = (SHORT_MAP - SHORT_ARRAY) as usize;
const SHORT_SYMBOLS: u32 = 1 << 14;
const WIDE_SYMBOLS: u32 = SHORT_SYMBOLS + (1 << 22);

const ONE_BYTE_KEYS: u32 = 0xc0;
const INLINE_KEY: u8 = 0xff;

/// How many keys the key table can number; more are written inline.
pub(crate) const MAX_KEYS: u32 = ONE_BYTE_KEYS + 63 * 256;

/// Bytes that a reference to a symbol takes while there are few of them; a shorter value is never worth one.
pub(crate) const SYMBOL_BYTES: usize = 2;

/// Bytes that a reference to a string of the same object takes.
pub(crate) const REPEAT_BYTES: usize = 3;

/// What stands at a place in the bytes, before references are resolved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    String(&'a [u8]),
    Array(&'a [u8]),
    Map(&'a [u8]),
    Symbol(u32),
    /// Where in the object's bytes the string stands.
    Repeat(u16),
}

/// A map's key, before symbols are resolved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum KeyToken<'a> {
    Symbol(u32),
    Inline(&'a [u8]),
}

// === reading ===

/// Reads the value at the start of `bytes` and gives it with the bytes behind it.
///
/// Only bytes made by the writers below come here; anything else reads as null rather than panic.
#[inline]
pub(crate) fn read_value(bytes: &[u8]) -> (Token<'_>, &[u8]) {
    let Some((&tag, rest)) = bytes.split_first() else {
        return (Token::Null, &[]);
    };
    match tag {
        SHORT_SYMBOL.. => {
            let high = u32::from(tag & 0x3f);
            if tag < WIDE_SYMBOL {
                let Some((&low, rest)) = rest.split_first() else {
                    return (Token::Null, &[]);
                };
                (Token::Symbol(high << 8 | u32::from(low)), rest)
            } else {
                let [a, b, rest @ ..] = rest else {
                    return (Token::Null, &[]);
                };
                let id = high << 16 | u32::from(*a) << 8 | u32::from(*b);
                (Token::Symbol(SHORT_SYMBOLS + id), rest)
            }
        }
        SHORT_MAP.. => {
            let (contents, rest) = split(rest, usize::from(tag - SHORT_MAP));
            (Token::Map(contents), rest)
        }
        SHORT_ARRAY.. => {
            let (contents, rest) = split(rest, usize::from(tag - SHORT_ARRAY));
            (Token::Array(contents), rest)
        }
        SHORT_STRING.. => {
            let (text, rest) = split(rest, usize::from(tag - SHORT_STRING));
            (Token::String(text), rest)
        }
        SMALL_INT.. => (Token::Int(i64::from(tag - SMALL_INT)), rest),
        NULL => (Token::Null, rest),
        FALSE => (Token::Bool(false), rest),
        TRUE => (Token::Bool(true), rest),
        INT => {
            let (n, rest) = read_varint(rest);
            (Token::Int((n >> 1) as i64 ^ -((n & 1) as i64)), rest)
        }
        UINT => {
            let (n, rest) = read_varint(rest);
            (Token::Uint(n), rest)
        }
        FLOAT => match rest.split_first_chunk() {
            Some((bits, rest)) => (Token::Float(f64::from_le_bytes(*bits)), rest),
            None => (Token::Null, &[]),
        },
        STRING => {
            let (text, rest) = read_run(rest);
            (Token::String(text), rest)
        }
        ARRAY => {
            let (contents, rest) = read_run(rest);
            (Token::Array(contents), rest)
        }
        MAP => {
            let (contents, rest) = read_run(rest);
            (Token::Map(contents), rest)
        }
        SYMBOL => {
            let (n, rest) = read_varint(rest);
            (Token::Symbol(n as u32), rest)
        }
        REPEAT => match rest.split_first_chunk() {
            Some((at, rest)) => (Token::Repeat(u16::from_le_bytes(*at)), rest),
            None => (Token::Null, &[]),
        },
    }
}

/// Reads the key at the start of `bytes` and gives it with the bytes behind it (the member's value).
#[inline]
pub(crate) fn read_key(bytes: &[u8]) -> (KeyToken<'_>, &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else {
        return (KeyToken::Inline(&[]), &[]);
    };
    if u32::from(first) < ONE_BYTE_KEYS {
        (KeyToken::Symbol(u32::from(first)), rest)
    } else if first == INLINE_KEY {
        let (text, rest) = read_run(rest);
        (KeyToken::Inline(text), rest)
    } else if let Some((&low, rest)) = rest.split_first() {
        let id = (u32::from(first) - ONE_BYTE_KEYS) << 8 | u32::from(low);
        (KeyToken::Symbol(ONE_BYTE_KEYS + id), rest)
    } else {
        (KeyToken::Inline(&[]), &[])
    }
}

#[inline]
fn split(bytes: &[u8], at: usize) -> (&[u8], &[u8]) {
    bytes.split_at_checked(at).unwrap_or((bytes, &[]))
}

#[inline]
fn read_run(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (len, rest) = read_varint(bytes);
    split(rest, len as usize)
}

#[inline]
fn read_varint(bytes: &[u8]) -> (u64, &[u8]) {
    let mut value = 0;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return (value, &bytes[i + 1..]);
        }
    }
    (value, &[])
}

// === writing ===

pub(crate) fn write_null(out: &mut Vec<u8>) {
    out.push(NULL);
}

pub(crate) fn write_bool(out: &mut Vec<u8>, value: bool) {
    out.push(if value { TRUE } else { FALSE });
}

pub(crate) fn write_int(out: &mut Vec<u8>, value: i64) {
    if (0..SMALL_INTS).contains(&value) {
        out.push(SMALL_INT + value as u8);
    } else {
        out.push(INT);
        write_varint(out, (value << 1 ^ value >> 63) as u64);
    }
}

/// Writes an unsigned integer; one that fits `i64` is written as such, so that equal numbers have equal bytes.
pub(crate) fn write_uint(out: &mut Vec<u8>, value: u64) {
    if let Ok(value) = i64::try_from(value) {
        write_int(out, value);
    } else {
        out.push(UINT);
        write_varint(out, value);
    }
}

pub(crate) fn write_float(out: &mut Vec<u8>, value: f64) {
    out.push(FLOAT);
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    write_head(out, SHORT_STRING, SHORT_STRINGS, STRING, text.len());
    out.extend_from_slice(text);
}

pub(crate) fn write_symbol(out: &mut Vec<u8>, id: u32) {
    if id < SHORT_SYMBOLS {
        out.extend_from_slice(&[SHORT_SYMBOL | (id >> 8) as u8, id as u8]);
    } else if id < WIDE_SYMBOLS {
        let id = id - SHORT_SYMBOLS;
        out.extend_from_slice(&[WIDE_SYMBOL | (id >> 16) as u8, (id >> 8) as u8, id as u8]);
    } else {
        out.push(SYMBOL);
        write_varint(out, u64::from(id));
    }
}

pub(crate) fn write_repeat(out: &mut Vec<u8>, at: u16) {
    let [low, high] = at.to_le_bytes();
    out.extend_from_slice(&[REPEAT, low, high]);
}

/// Lets the reference to a string that begins at `place` point elsewhere.
pub(crate) fn move_repeat(out: &mut [u8], place: usize, at: u16) {
    if let Some(bytes) = out.get_mut(place + 1..place + REPEAT_BYTES) {
        bytes.copy_from_slice(&at.to_le_bytes());
    }
}

pub(crate) fn write_key_symbol(out: &mut Vec<u8>, id: u32) {
    if id < ONE_BYTE_KEYS {
        out.push(id as u8);
    } else {
        let id = id - ONE_BYTE_KEYS;
        out.extend_from_slice(&[ONE_BYTE_KEYS as u8 + (id >> 8) as u8, id as u8]);
    }
}

pub(crate) fn write_key_inline(out: &mut Vec<u8>, text: &[u8]) {
    out.push(INLINE_KEY);
    write_varint(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Turns everything from `start` on into the contents of an array; gives by how many bytes that moved them.
pub(crate) fn close_array(out: &mut Vec<u8>, start: usize) -> usize {
    close(out, start, SHORT_ARRAY, ARRAY)
}

/// Turns everything from `start` on into the contents of a map; gives by how many bytes that moved them.
pub(crate) fn close_map(out: &mut Vec<u8>, start: usize) -> usize {
    close(out, start, SHORT_MAP, MAP)
}

/// The length is known only now, and most containers are small: moving the contents by a byte or two is
/// cheaper than a first pass that measures.
fn close(out: &mut Vec<u8>, start: usize, short: u8, long: u8) -> usize {
    let len = out.len() - start;
    write_head(out, short, SHORT_CONTENTS, long, len);
    let head = out.len() - start - len;
    out[start..].rotate_right(head);
    head
}

fn write_head(out: &mut Vec<u8>, short: u8, shorts: usize, long: u8, len: usize) {
    if len < shorts {
        out.push(short + len as u8);
    } else {
        out.push(long);
        write_varint(out, len as u64);
    }
}

fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(write: impl Fn(&mut Vec<u8>), expected: Token<'_>, len: usize) {
        let mut out = vec![];
        write(&mut out);
        assert_eq!(out.len(), len);
        out.push(0xee);
        let (token, rest) = read_value(&out);
        assert_eq!(token, expected);
        assert_eq!(rest, [0xee]);
    }

    #[test]
    fn scalars_come_back() {
        check(write_null, Token::Null, 1);
        check(|o| write_bool(o, true), Token::Bool(true), 1);
        for (value, len) in [(0, 1), (20, 1), (21, 2), (-1, 2), (63, 2), (64, 3)] {
            check(|o| write_int(o, value), Token::Int(value), len);
        }
        for value in [i64::MIN, i64::MAX] {
            check(|o| write_int(o, value), Token::Int(value), 11);
        }
        check(|o| write_uint(o, 7), Token::Int(7), 1);
        check(|o| write_uint(o, u64::MAX), Token::Uint(u64::MAX), 11);
        check(|o| write_float(o, -0.5), Token::Float(-0.5), 9);
    }

    #[test]
    fn strings_and_symbols_come_back_at_each_width() {
        for len in [0, 47, 48, 127, 128, 20_000] {
            let text = vec![b'x'; len];
            let head = [1, 2, 3, 4][usize::from(len > 47) + usize::from(len > 127) + usize::from(len > 16_383)];
            check(|o| write_string(o, &text), Token::String(&text), len + head);
        }
        for (id, len) in [(0, 2), (16_383, 2), (16_384, 3), (4_210_687, 3), (4_210_688, 5), (u32::MAX, 6)] {
            check(|o| write_symbol(o, id), Token::Symbol(id), len);
        }
    }

    #[test]
    fn references_to_a_string_come_back_and_can_be_moved() {
        check(|o| write_repeat(o, 0x1234), Token::Repeat(0x1234), REPEAT_BYTES);
        let moved = |o: &mut Vec<u8>| {
            write_repeat(o, 7);
            move_repeat(o, 0, u16::MAX);
        };
        check(moved, Token::Repeat(u16::MAX), REPEAT_BYTES);
    }

    #[test]
    fn keys_come_back_at_each_width() {
        for (id, len) in [(0, 1), (191, 1), (192, 2), (MAX_KEYS - 1, 2)] {
            let mut out = vec![];
            write_key_symbol(&mut out, id);
            assert_eq!(out.len(), len);
            assert_eq!(read_key(&out), (KeyToken::Symbol(id), &[][..]));
        }
        let mut out = vec![];
        write_key_inline(&mut out, "naïve".as_bytes());
        assert_eq!(read_key(&out).0, KeyToken::Inline("naïve".as_bytes()));
    }

    #[test]
    fn containers_close_around_their_contents() {
        for len in [0, 23, 24, 300] {
            let mut out = vec![0x02];
            out.extend(std::iter::repeat_n(NULL, len));
            let head = close_array(&mut out, 1);
            assert_eq!(out.len(), 1 + head + len);
            let (token, rest) = read_value(&out[1..]);
            assert_eq!(token, Token::Array(&vec![NULL; len]));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn bytes_of_no_value_read_without_a_panic() {
        for tag in 0..=255 {
            let _ = read_value(&[tag]);
            let _ = read_value(&[tag, 0xff, 0xff]);
            let _ = read_key(&[tag]);
            let _ = read_key(&[tag, 0xff, 0xff]);
        }
    }
}
