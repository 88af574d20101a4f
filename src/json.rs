//! JSON as it is read from other programs: strict, and nothing of it built that nobody asked for.
//!
//! Floor 0, pure and total: no input panics.

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// JSON nested this deep, or deeper, is refused in a request and in a response.
pub const MAX_DEPTH: usize = 128;

/// Why some bytes are not one JSON value, and at which byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {offset}")]
pub struct NotJson {
    /// What was found there.
    pub what: Found,
    /// Offset from the first byte of the output.
    pub offset: usize,
}

/// What stands where JSON should (SPEC 2, row 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Found {
    /// Nothing but white space.
    #[error("empty")]
    Empty,
    /// A UTF-8 byte order mark.
    #[error("byte order mark")]
    ByteOrderMark,
    /// A byte that is not part of UTF-8 text.
    #[error("invalid UTF-8")]
    InvalidUtf8,
    /// Something before the value.
    #[error("text before")]
    TextBefore,
    /// Something after the value, a second value too.
    #[error("text after")]
    TextAfter,
    /// A value that has no end.
    #[error("cut short")]
    CutShort,
    /// A value with a mistake inside.
    #[error("invalid JSON")]
    Syntax,
}

/// Checks that `bytes` are one JSON value over valid UTF-8, by the grammar of RFC 8259 alone, with
/// white space around it; depth, number range, lone surrogates and duplicates do not matter here.
///
/// # Errors
/// What was found instead, and where.
pub fn json(bytes: &[u8]) -> Result<&str, NotJson> {
    let fault = |what, offset| Err(NotJson { what, offset });
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return fault(Found::ByteOrderMark, 0);
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return fault(Found::InvalidUtf8, error.valid_up_to()),
    };
    let start = text.len() - text.trim_start_matches(WHITE_SPACE).len();
    if start == text.len() {
        return fault(Found::Empty, 0);
    }
    let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => {}
        Some(Err(error)) if error.is_eof() => return fault(Found::CutShort, text.len()),
        Some(Err(_)) if is_noise(text, start) => return fault(Found::TextBefore, start),
        Some(Err(error)) => return fault(Found::Syntax, offset_of(text, start, &error)),
        None => return fault(Found::Empty, 0),
    }
    let end = start + values.byte_offset();
    let rest = &text[end..];
    match rest.find(|c| !WHITE_SPACE.contains(&c)) {
        None => Ok(text),
        Some(gap) => fault(Found::TextAfter, end + gap),
    }
}

const WHITE_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// Tells noise in front of a value from a value with a mistake inside: noise cannot start a value,
/// or is followed by an object that reads to the end. Only a few places are tried, so that the
/// cost stays linear.
fn is_noise(text: &str, start: usize) -> bool {
    let starts_a_value = |c: char| matches!(c, '{' | '[' | '"' | '-' | '0'..='9');
    let reads_to_the_end = |at: usize| serde_json::from_str::<IgnoredAny>(&text[at..]).is_ok();
    !text[start..].starts_with(starts_a_value)
        || text[start..].match_indices('{').take(8).any(|(at, _)| reads_to_the_end(start + at))
}

/// The byte that a `serde_json` error speaks of: it counts lines and bytes from 1.
fn offset_of(text: &str, start: usize, error: &serde_json::Error) -> usize {
    let before: usize = text[start..]
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    (start + before + error.column().saturating_sub(1)).min(text.len())
}

/// The members of one JSON object, in order, each still as text, so that an unknown one is
/// neither judged nor built.
pub struct Members<'a>(pub Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Reads one object. `text` must be one JSON value (see [`json`]).
    ///
    /// # Errors
    /// It is no object, too deep, or has a member that cannot be read; for a sentence that begins
    /// with what it is.
    pub fn read(text: &'a str) -> Result<Self, String> {
        if depth(text) >= MAX_DEPTH {
            return Err(format!("is nested {MAX_DEPTH} levels or deeper"));
        }
        if !text.trim_start_matches(WHITE_SPACE).starts_with('{') {
            return Err(format!("must be a JSON object, not {}", kind(text)));
        }
        serde_json::from_str(text)
            .map_err(|error| format!("has a member that cannot be read: {}", reason(&error)))
    }

    /// How often a member of this name stands there.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        self.0.iter().filter(|(found, _)| found == name).count()
    }

    /// The first member of this name, as text.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, raw)| raw.get())
    }

    /// The first member of this name, if it is a string.
    #[must_use]
    pub fn string(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.raw(name)?).ok()
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// Any JSON value that can be read: its numbers have a range, its strings are whole. Nothing of it
/// is kept, so that a large value costs no memory.
pub struct Readable;

impl<'de> Deserialize<'de> for Readable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Drop;
        impl<'de> Visitor<'de> for Drop {
            type Value = Readable;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_str<E>(self, _: &str) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Readable, A::Error> {
                while seq.next_element::<Readable>()?.is_some() {}
                Ok(Readable)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Readable, A::Error> {
                while map.next_entry::<Readable, Readable>()?.is_some() {}
                Ok(Readable)
            }
        }
        deserializer.deserialize_any(Drop)
    }
}

/// How deep the brackets of a JSON text go; strings are skipped.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn kind(text: &str) -> &'static str {
    match text.trim_start_matches(WHITE_SPACE).chars().next() {
        Some('[') => "an array",
        Some('"') => "a string",
        Some('n') => "null",
        Some('t' | 'f') => "a boolean",
        _ => "a number",
    }
}

/// A `serde_json` error without its position, which would count within one member.
#[must_use]
pub fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depth_is_that_of_the_brackets_outside_strings() {
        for (text, expected) in [
            ("0", 0),
            ("[[]]", 2),
            ("[[],[],{}]", 2),
            (r#"["[[[[",{"]":"}}"},[]]"#, 2),
            (r#"["\\",[[]]]"#, 3),
            (r#"["\"[[",[]]"#, 2),
            (r#"["]]",[["}"]]]"#, 3),
        ] {
            assert_eq!(depth(text), expected, "{text}");
        }
    }

    #[test]
    fn what_stands_where_json_should() {
        use Found::{ByteOrderMark, CutShort, Empty, InvalidUtf8, Syntax, TextAfter, TextBefore};
        let cases: [(&[u8], Found, usize); 17] = [
            (b"", Empty, 0),
            (b"\r\n", Empty, 0),
            (b"\xef\xbb\xbf{}", ByteOrderMark, 0),
            (b"{}\xff", InvalidUtf8, 2),
            (b"\xc3", InvalidUtf8, 0),
            (b"Building...\n{}", TextBefore, 0),
            (b"[INFO] x\n{}", TextBefore, 0),
            (b"\x1b[1m{}", TextBefore, 0),
            (b" nope", TextBefore, 1),
            (b"{} {}", TextAfter, 3),
            (b"{}\nDone", TextAfter, 3),
            (b"1 2", TextAfter, 2),
            (b"{\"a\":", CutShort, 5),
            (b"[[", CutShort, 2),
            (b"\"\\u12", CutShort, 5),
            (b"{\"a\":1,}", Syntax, 7),
            (b"{\n'a':1}", Syntax, 2),
        ];
        for (bytes, what, offset) in cases {
            let shown = String::from_utf8_lossy(bytes);
            assert_eq!(json(bytes), Err(NotJson { what, offset }), "{shown}");
        }
        for text in ["{}", " [1e999] \r\n", "\"\\ud800\"", "{\"a\":1,\"a\":2}", "-0", "null"] {
            assert_eq!(json(text.as_bytes()), Ok(text));
        }
        let deep = "[".repeat(200_000) + &"]".repeat(200_000);
        assert_eq!(json(deep.as_bytes()).map(str::len), Ok(400_000));
    }
}
