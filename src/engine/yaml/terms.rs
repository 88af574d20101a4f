//! What the steps of the reader share: tags, faults, and the bounds of a document.

use super::chars::is_break;

/// Collections may nest this deep inside the root.
pub const MAX_DEPTH: usize = 250;

/// The reference converts no more decimal digits than this.
pub(super) const MAX_DIGITS: usize = 4300;

/// A tag, resolved. YAML 1.1 section 3.2.1.2 and the tag repository at yaml.org/type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Tag {
    Null,
    Bool,
    Int,
    Float,
    Timestamp,
    Binary,
    Str,
    Merge,
    Value,
    Seq,
    Map,
    Set,
    Omap,
    Pairs,
    /// A tag the safe loader does not construct.
    Unknown,
}

/// Why a text is not one YAML document, and the byte offset where that shows.
#[derive(Debug)]
pub(in crate::engine) struct Error {
    pub what: String,
    pub at: usize,
    /// What the author can do about it, if there is something usual.
    pub remedy: Option<&'static str>,
}

impl Error {
    pub(super) fn new(what: impl Into<String>, at: usize) -> Self {
        Error { what: what.into(), at, remedy: None }
    }

    pub(super) fn with_remedy(what: impl Into<String>, at: usize, remedy: &'static str) -> Self {
        Error { what: what.into(), at, remedy: Some(remedy) }
    }
}

/// The start of a part of the text, as a message can bear it: at most 40 characters, in one line.
pub(in crate::engine) fn short(text: &str) -> String {
    let mut short = String::new();
    for c in text.chars().take(40) {
        if c.is_control() || is_break(c) {
            short.extend(c.escape_debug());
        } else {
            short.push(c);
        }
    }
    short + if text.chars().nth(40).is_some() { "..." } else { "" }
}

/// The text up to the first white space.
pub(in crate::engine) fn word(text: &str) -> &str {
    text.split(char::is_whitespace).next().unwrap_or_default()
}

pub(super) const QUOTE: &str = "quote the value";
