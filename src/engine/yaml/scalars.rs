//! The scalar styles: YAML 1.1 chapter 9. What needs no folding or unescaping is borrowed.

use super::chars::{END, char_at, is_break, is_break_or_end, is_white, normal_break};
use super::scanner::{Scanner, shown};
use super::terms::{Error, QUOTE};
use std::borrow::Cow;

impl<'a> Scanner<'a> {
    /// YAML 1.1 section 9.1.3. Returns the value and the byte offset of its end; white space behind
    /// it is taken too, because only what follows tells whether the value goes on.
    pub(super) fn plain_scalar(&mut self) -> (Cow<'a, str>, usize) {
        let start = self.at;
        let mut end = start;
        let mut folded: Option<String> = None;
        loop {
            let run_start = self.at;
            self.advance_to(run_start + self.plain_run());
            if self.at == run_start {
                break;
            }
            // Most values end before a line break, which then is no part of them.
            let gap = &self.text[end..run_start];
            if folded.is_some() || gap.contains(is_break) {
                let folded = folded.get_or_insert_with(|| self.text[start..end].to_owned());
                fold_gap(gap, folded);
                folded.push_str(&self.text[run_start..self.at]);
            }
            end = self.at;
            let spaces = self.take_while(|c| c == ' ');
            if is_break(self.look()) {
                self.plain_breaks();
                if self.column == 0 && self.at_document_marker() {
                    break;
                }
                if self.flow.is_empty() && self.column < self.indent {
                    break;
                }
            } else if spaces.is_empty() {
                break;
            }
            if self.look() == '#' {
                break;
            }
        }
        let value = folded.map_or(Cow::Borrowed(&self.text[start..end]), Cow::Owned);
        (value, end)
    }

    /// Bytes up to white space, `: ` or, in a flow collection, one of its indicators.
    fn plain_run(&self) -> usize {
        let in_flow = !self.flow.is_empty();
        let mut at = self.at;
        while at < self.text.len() {
            if self.text.as_bytes()[at].is_ascii_alphanumeric() {
                at += 1;
                continue;
            }
            let c = char_at(self.text, at);
            let ends = match c {
                ':' => {
                    let next = char_at(self.text, at + 1);
                    is_white(next) || in_flow && ",[]{}".contains(next)
                }
                ',' | '?' | '[' | ']' | '{' | '}' => in_flow,
                _ => is_white(c),
            };
            if ends {
                break;
            }
            at += c.len_utf8();
        }
        at - self.at
    }

    /// Line breaks and the spaces before the next text.
    fn plain_breaks(&mut self) {
        while self.take_break().is_some() && !self.at_document_marker() {
            self.take_while(|c| c == ' ');
        }
        self.key_allowed = true;
    }

    /// YAML 1.1 section 9.1.1 and 9.1.2.
    pub(super) fn quoted_scalar(&mut self) -> Result<Cow<'a, str>, Error> {
        let (start, quote) = (self.at, self.look());
        self.bump();
        let content = self.at;
        let mut owned: Option<String> = None;
        loop {
            let run = self.take_while(|c| c != quote && c != '\\' && !is_white(c));
            let run_end = self.at;
            if let Some(owned) = &mut owned {
                owned.push_str(run);
            }
            let so_far = || self.text[content..run_end].to_owned();
            match self.look() {
                END => return Err(self.unclosed(start)),
                '\\' if quote == '"' => {
                    owned.get_or_insert_with(so_far);
                    let escaped = self.escape()?;
                    owned.get_or_insert_default().push_str(&escaped);
                }
                '\\' => {
                    self.bump();
                    if let Some(owned) = &mut owned {
                        owned.push('\\');
                    }
                }
                c if c == quote => {
                    self.bump();
                    if quote == '"' || self.look() != quote {
                        let borrowed = &self.text[content..run_end];
                        return Ok(owned.map_or(Cow::Borrowed(borrowed), Cow::Owned));
                    }
                    self.bump();
                    owned.get_or_insert_with(|| self.text[content..run_end].to_owned()).push(quote);
                }
                _ => {
                    let blanks = self.take_while(|c| c == ' ' || c == '\t');
                    if is_break(self.look()) {
                        let fold = fold(&self.quoted_breaks(start)?);
                        owned
                            .get_or_insert_with(|| self.text[content..run_end].to_owned())
                            .push_str(&fold);
                    } else if let Some(owned) = &mut owned {
                        owned.push_str(blanks);
                    }
                }
            }
        }
    }

    fn unclosed(&self, start: usize) -> Error {
        let quote = if self.text[start..].starts_with('"') { '"' } else { '\'' };
        Error::with_remedy(format!("a {quote} that is never closed"), start, "close the quote")
    }

    /// Line breaks and the white space before the next text.
    fn quoted_breaks(&mut self, start: usize) -> Result<String, Error> {
        let mut breaks = String::new();
        while let Some(c) = self.take_break() {
            breaks.push(c);
            if self.at_document_marker() {
                let what = "a document marker inside quotes";
                let remedy = "close the quote, or indent the line";
                return Err(Error::with_remedy(what, start, remedy));
            }
            self.take_while(|c| c == ' ' || c == '\t');
        }
        Ok(breaks)
    }

    /// YAML 1.1 section 4.1.6, the escapes of double quotes.
    fn escape(&mut self) -> Result<String, Error> {
        const REMEDY: &str = "write '\\\\' for a backslash, or use single quotes";
        let start = self.at;
        self.bump();
        let c = self.look();
        if is_break(c) {
            return self.quoted_breaks(start).map(|breaks| breaks.chars().skip(1).collect());
        }
        self.bump();
        let meaning = match c {
            '0' => '\0',
            'a' => '\u{7}',
            'b' => '\u{8}',
            't' | '\t' => '\t',
            'n' => '\n',
            'v' => '\u{b}',
            'f' => '\u{c}',
            'r' => '\r',
            'e' => '\u{1b}',
            ' ' | '"' | '/' | '\\' => c,
            'N' => '\u{85}',
            '_' => '\u{a0}',
            'L' => '\u{2028}',
            'P' => '\u{2029}',
            'x' | 'u' | 'U' => {
                let length = match c {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let digits =
                    self.rest().get(..length).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
                let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                let Some(code) = code.filter(|code| *code <= 0x10_ffff) else {
                    let what =
                        format!("'\\{c}' without the {length} hexadecimal digits of a character");
                    return Err(Error::with_remedy(what, start, REMEDY));
                };
                self.skip(length);
                // The reference keeps half a surrogate pair; Rust has no character for it.
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => {
                let what = format!("'\\' and {} are no escape in double quotes", shown(c));
                return Err(Error::with_remedy(what, start, REMEDY));
            }
        };
        Ok(meaning.to_string())
    }

    /// YAML 1.1 section 9.2.
    pub(super) fn block_scalar(&mut self) -> Result<Cow<'a, str>, Error> {
        let folds = self.look() == '>';
        self.bump();
        let (chomping, indicator) = self.block_header()?;
        self.finish_line("the block scalar's header")?;
        let least = self.indent.max(1);
        let mut breaks = String::new();
        let indent = match indicator {
            Some(indicator) => least + indicator - 1,
            None => self.detect_indent(&mut breaks).max(least),
        };
        self.block_breaks(indent, &mut breaks);
        let mut value = String::new();
        let mut last_break = None;
        while self.column == indent && self.look() != END {
            let more_indented = matches!(self.look(), ' ' | '\t');
            if let Some(last_break) = last_break.take() {
                // Folding: one break between two lines of text becomes a space.
                let (c, after_text) = last_break;
                if folds && c == '\n' && after_text && !more_indented {
                    value.push_str(if breaks.is_empty() { " " } else { "" });
                } else {
                    value.push(c);
                }
            }
            value.push_str(&breaks);
            breaks.clear();
            value.push_str(self.take_while(|c| !is_break_or_end(c)));
            last_break = self.take_break().map(|c| (c, !more_indented));
            self.block_breaks(indent, &mut breaks);
        }
        if chomping != Some('-') {
            value.extend(last_break.map(|(c, _)| c));
        }
        if chomping == Some('+') {
            value.push_str(&breaks);
        }
        Ok(Cow::Owned(value))
    }

    /// The chomping and indentation indicators, in either order.
    fn block_header(&mut self) -> Result<(Option<char>, Option<usize>), Error> {
        let (mut chomping, mut indent) = (None, None);
        loop {
            match self.look() {
                c @ ('+' | '-') if chomping.is_none() => chomping = Some(c),
                c @ '1'..='9' if indent.is_none() => {
                    indent = c.to_digit(10).and_then(|digit| usize::try_from(digit).ok());
                }
                c if c == ' ' || is_break_or_end(c) => return Ok((chomping, indent)),
                c => {
                    let what =
                        format!("{} behind '|' or '>', which start a block scalar", shown(c));
                    return Err(Error::with_remedy(what, self.at, QUOTE));
                }
            }
            self.bump();
        }
    }

    /// The greatest indent of the leading empty lines and the first line of text.
    fn detect_indent(&mut self, breaks: &mut String) -> usize {
        let mut greatest = 0;
        loop {
            self.take_while(|c| c == ' ');
            greatest = greatest.max(self.column);
            match self.take_break() {
                Some(c) => breaks.push(c),
                None => return greatest,
            }
        }
    }

    /// Empty lines, and the indent of the next line, up to `indent` columns of it.
    fn block_breaks(&mut self, indent: usize, breaks: &mut String) {
        loop {
            let room = indent.saturating_sub(self.column);
            let spaces = self.rest().bytes().take(room).take_while(|b| *b == b' ').count();
            self.advance_to(self.at + spaces);
            match self.take_break() {
                Some(c) => breaks.push(c),
                None => return,
            }
        }
    }
}

/// What stands between two lines or words of a plain scalar: spaces, or line breaks with spaces
/// around them, which are left out.
fn fold_gap(gap: &str, into: &mut String) {
    if !gap.contains(is_break) {
        into.push_str(gap);
        return;
    }
    let mut breaks = String::new();
    let mut rest = gap.chars().peekable();
    while let Some(c) = rest.next() {
        if c == '\r' {
            rest.next_if_eq(&'\n');
        }
        if is_break(c) {
            breaks.push(normal_break(c));
        }
    }
    into.push_str(&fold(&breaks));
}

/// YAML 1.1 section 5.4 and 9.1: a single line feed becomes a space, the first of several goes.
fn fold(breaks: &str) -> String {
    match breaks.strip_prefix('\n') {
        Some("") => " ".to_owned(),
        Some(more) => more.to_owned(),
        None => breaks.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;

    fn value(text: &str) -> Option<String> {
        let document = read(text).ok()?;
        let (_, value) = document.scalar(document.root()?).ok()?;
        Some(value.to_owned())
    }

    #[test]
    fn scalars_are_folded_and_unescaped() {
        let table = [
            ("a b", "a b"),
            ("a\n b\n\n\n c # d\n", "a b\n\nc"),
            ("a#b:c", "a#b:c"),
            ("a\r\n  b\rc\u{85}d", "a b c d"),
            ("a\u{2028}  b", "a\u{2028}b"),
            ("'it''s'", "it's"),
            ("'a \t\n\t b\n\n c'", "a b\nc"),
            ("'a\\b'", "a\\b"),
            ("\"a\\tb\\x41\\u00e9\\U0001F642\"", "a\tbAé🙂"),
            ("\"a\\\n   b\\\n\n c\"", "ab\nc"),
            ("\"\\ud800\"", "\u{fffd}"),
            ("|\n a\n  b\n\n", "a\n b\n"),
            ("|-\n a\n\n", "a"),
            ("|+\n a\n\n", "a\n\n"),
            ("|\n a", "a"),
            ("|2\n   a\n", " a\n"),
            ("|\n\n a\n", "\na\n"),
            (">\n a\n b\n\n c\n  d\n e\n", "a b\nc\n d\ne\n"),
            (">-\r\n a\r\n b\r\n", "a b"),
            (">+ # note\n a\n\n", "a\n\n"),
        ];
        for (text, expected) in table {
            assert_eq!(value(text).as_deref(), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn broken_scalars_are_refused() {
        let table = [
            "'a",
            "\"a",
            "\"a\\",
            "\"\\q\"",
            "\"\\x4\"",
            "\"\\ué041\"",
            "\"\\U00110000\"",
            "'a\n--- b'",
            "\"a\n...\nb\"",
            "|0\n a",
            "|11\n a",
            "|--\n a",
            "| x\n a",
            "|#\n a",
            "|\n  \n a",
            "a\tb",
            "@a",
            "%",
        ];
        for text in table {
            assert!(read(text).is_err(), "{text:?}");
        }
    }
}
