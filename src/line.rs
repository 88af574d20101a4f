//! The one line a person reads: how it is built, escaped and cut (SPEC 2, "The line").
//!
//! Floor 0. Both the host and the engine print through here, so neither can be made to forge a
//! second line or to move the cursor.

use std::ffi::OsString;

/// The longest line, in characters, its line feed not counted.
pub const MAX_CHARS: usize = 4096;

/// The word every line starts with, whichever program prints it.
pub const PREFIX: &str = "satyrn-engine: ";

/// Builds `satyrn-engine: OK`, or `satyrn-engine: CODE: detail` for anything else.
///
/// The result has no line feed, holds only printable text and at most [`MAX_CHARS`] characters;
/// what is cut off is replaced by `…`. An empty detail is said to be empty, since a line without
/// one could not be told from an acceptance by its form.
#[must_use]
pub fn line(code: &str, detail: &str) -> String {
    if code == "OK" {
        return format!("{PREFIX}OK");
    }
    let detail = if detail.trim().is_empty() { "(no message)" } else { detail };
    let mut out = Bounded::default();
    for part in [PREFIX, code, ": ", detail] {
        part.chars().for_each(|c| out.push(c));
    }
    out.finish()
}

/// Text of unknown origin made safe to print inside a line, not cut.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        push_escaped(&mut out, c);
    }
    out
}

/// A command line as it may be quoted in a message.
#[must_use]
pub fn escape_args(args: &[OsString]) -> Vec<OsString> {
    args.iter().map(|arg| escape(&arg.to_string_lossy()).into()).collect()
}

/// At most `max` characters of `text`, ending in `…` where something was cut.
#[must_use]
pub fn shorten(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(max.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[derive(Default)]
struct Bounded {
    text: String,
    chars: usize,
    /// Length in bytes of the longest prefix that still leaves room for `…`.
    last_fit: usize,
    full: bool,
}

impl Bounded {
    fn push(&mut self, c: char) {
        if self.full {
            return;
        }
        let mut piece = String::new();
        push_escaped(&mut piece, c);
        self.chars += piece.chars().count();
        self.text.push_str(&piece);
        if self.chars < MAX_CHARS {
            self.last_fit = self.text.len();
        }
        self.full = self.chars > MAX_CHARS;
    }

    fn finish(mut self) -> String {
        if self.full {
            self.text.truncate(self.last_fit);
            self.text.push('…');
        }
        self.text
    }
}

fn push_escaped(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ if is_unprintable(c) => out.extend(c.escape_unicode()),
        _ => out.push(c),
    }
}

/// Controls, line breaks and the invisible characters that reorder or hide text.
#[must_use]
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines() {
        let cases = [
            ("OK", "", "satyrn-engine: OK"),
            ("OK", "ignored", "satyrn-engine: OK"),
            ("X", "plain", "satyrn-engine: X: plain"),
            ("X", "", "satyrn-engine: X: (no message)"),
            ("X", "a\nsatyrn-engine: OK", "satyrn-engine: X: a\\nsatyrn-engine: OK"),
            ("X", "\u{1b}[2K\rOK", "satyrn-engine: X: \\u{1b}[2K\\rOK"),
            ("X", "a\u{2028}b\u{85}c\u{202e}d", "satyrn-engine: X: a\\u{2028}b\\u{85}c\\u{202e}d"),
            ("X", "größe 漢字", "satyrn-engine: X: größe 漢字"),
        ];
        for (code, detail, expected) in cases {
            assert_eq!(line(code, detail), expected);
        }
    }

    #[test]
    fn a_line_at_the_bound_is_whole_and_one_more_is_cut() {
        let room = MAX_CHARS - "satyrn-engine: X: ".len();
        let whole = line("X", &"ä".repeat(room));
        assert_eq!((whole.chars().count(), whole.ends_with('ä')), (MAX_CHARS, true));
        let cut = line("X", &"ä".repeat(room + 1));
        assert_eq!((cut.chars().count(), cut.ends_with("ä…")), (MAX_CHARS, true));
        // An escape is never cut in half.
        let cut = line("X", &"\u{1b}".repeat(room));
        assert!(cut.chars().count() <= MAX_CHARS && cut.ends_with("\\u{1b}…"), "{cut}");
    }

    #[test]
    fn shortening() {
        assert_eq!(shorten("abc", 3), "abc");
        assert_eq!(shorten("abcd", 3), "ab…");
    }

    proptest! {
        #[test]
        fn always_one_printable_line_below_its_bound(code in "[A-Z_]{1,20}", detail in any::<String>()) {
            let line = line(&code, &detail);
            prop_assert!(line.chars().count() <= MAX_CHARS);
            prop_assert!(!line.chars().any(is_unprintable));
            prop_assert!(line.starts_with(PREFIX));
        }
    }
}
