//! A reader of YAML 1.1 with the verdicts of the reference engine's safe loader.
//!
//! Text goes through four steps: `scanner` cuts it into tokens (`scalars` holds the five scalar
//! styles), `parser` turns tokens into events, `tree` composes events into nodes of one arena, and
//! `construct` checks that every node can be built. `resolve` is the table of plain scalars,
//! `terms` what all of them speak of. Each step is linear in the text, keeps its own stack instead of recursing, and expands no alias.

mod chars;
mod construct;
mod parser;
mod resolve;
mod scalars;
mod scanner;
mod terms;
mod tree;

pub(super) use chars::{is_break, is_python_space, line_and_column};
pub use terms::MAX_DEPTH;
pub(super) use terms::{Error, Tag, short, word};
pub(super) use tree::{Document, NodeId, Shape};

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
