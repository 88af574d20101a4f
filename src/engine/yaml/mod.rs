//! A reader of YAML 1.1 with the verdicts of the reference engine's safe loader.
//!
//! Text goes through four steps: `scanner` cuts it into tokens (`scalars` holds the five scalar
//! styles), `parser` turns tokens into events, `tree` composes events into nodes of one arena, and
//! `construct` checks that every node can be built. `resolve` is the table of plain scalars.
//! Each step is linear in the text, keeps its own stack instead of recursing, and expands no alias.

mod chars;
mod construct;
mod parser;
mod resolve;
mod scalars;
mod scanner;
mod tree;

pub(super) use chars::{is_break, is_python_space, line_and_column};
pub(super) use tree::{Document, NodeId, Shape};

/// Collections may nest this deep inside the root.
pub const MAX_DEPTH: usize = 250;

/// The reference converts no more decimal digits than this.
const MAX_DIGITS: usize = 4300;

/// A tag, resolved. YAML 1.1 section 3.2.1.2 and the tag repository at yaml.org/type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
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
pub(super) struct Error {
    pub what: String,
    pub at: usize,
    /// What the author can do about it, if there is something usual.
    pub remedy: Option<&'static str>,
}

impl Error {
    fn new(what: impl Into<String>, at: usize) -> Self {
        Error { what: what.into(), at, remedy: None }
    }

    fn with_remedy(what: impl Into<String>, at: usize, remedy: &'static str) -> Self {
        Error { what: what.into(), at, remedy: Some(remedy) }
    }
}

/// The start of a part of the text, as a message can bear it: at most 40 characters, in one line.
pub(super) fn short(text: &str) -> String {
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
pub(super) fn word(text: &str) -> &str {
    text.split(char::is_whitespace).next().unwrap_or_default()
}

const QUOTE: &str = "quote the value";

/// Reads one document and checks that all of it can be constructed.
///
/// # Errors
/// Everything the reference refuses or dies of, and nesting beyond [`MAX_DEPTH`].
pub(super) fn read(text: &str) -> Result<Document<'_>, Error> {
    if let Some((at, c)) = chars::first_unprintable(text) {
        return Err(Error::new(format!("the character U+{:04X} is not allowed", u32::from(c)), at));
    }
    let mut document = tree::compose(text)?;
    construct::check(&mut document)?;
    Ok(document)
}
