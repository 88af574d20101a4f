//! Character classes of YAML 1.1, chapter 4 and 5, as the reference applies them.

/// The end of the text. NUL is not printable, so it never occurs inside.
pub(super) const END: char = '\0';

/// The byte order mark, which takes no column.
pub(super) const BOM: char = '\u{feff}';

/// The character at a byte offset that is a boundary. Most are ASCII, which needs no decoding.
pub(super) fn char_at(text: &str, at: usize) -> char {
    match text.as_bytes().get(at) {
        None => END,
        Some(byte) if byte.is_ascii() => char::from(*byte),
        Some(_) => text[at..].chars().next().unwrap_or(END),
    }
}

/// The first character that is not printable, and its byte offset.
pub(super) fn first_unprintable(text: &str) -> Option<(usize, char)> {
    let plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t' | b'\r');
    if text.bytes().fold(true, |all, byte| all & plain(byte)) {
        return None;
    }
    text.char_indices().find(|(_, c)| !is_printable(*c))
}

/// YAML 1.1 section 4.1, `c-printable`.
fn is_printable(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}'
        | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
}

/// YAML 1.1 section 4.1.4, `b-char`.
pub(in crate::engine) fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// A line break, normalised (YAML 1.1 section 5.4): LS and PS keep their meaning, all others are a
/// line feed.
pub(super) fn normal_break(c: char) -> char {
    if matches!(c, '\u{2028}' | '\u{2029}') { c } else { '\n' }
}

/// A line break or the end of the text.
pub(super) fn is_break_or_end(c: char) -> bool {
    c == END || is_break(c)
}

/// Space, tab, line break or the end of the text.
pub(super) fn is_white(c: char) -> bool {
    c == ' ' || c == '\t' || is_break_or_end(c)
}

/// What anchors, directive names and tag handles are made of (observed of the reference: ASCII).
pub(super) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// YAML 1.1 section 4.1.6, `ns-uri-char`; the `%` opens an escape.
pub(super) fn is_uri(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-;/?:@&=+$,_.!~*'()[]%".contains(c)
}

/// What Python's `str.strip()` takes for white space: Unicode white space and U+001C to U+001F. Its
/// `int()` and `float()` take the former alone.
pub(in crate::engine) fn is_python_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// Line and column of a byte offset, both from 1, the column in characters.
pub(in crate::engine) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let (mut line, mut column) = (1, 1);
    for (at, c) in text.char_indices().take_while(|(at, _)| *at < offset) {
        let inside_crlf = c == '\r' && text[at..].starts_with("\r\n");
        if is_break(c) && !inside_crlf {
            (line, column) = (line + 1, 1);
        } else if !(at == 0 && c == BOM) {
            column += 1;
        }
    }
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::line_and_column;

    #[test]
    fn positions_count_characters_and_any_line_break() {
        let text = "\u{feff}aé🙂\r\nb\rc\u{2028}d";
        let at = |c: char| line_and_column(text, text.find(c).unwrap_or(0));
        assert_eq!(at('a'), (1, 1));
        assert_eq!(at('🙂'), (1, 3));
        assert_eq!(at('b'), (2, 1));
        assert_eq!(at('c'), (3, 1));
        assert_eq!(at('d'), (4, 1));
        assert_eq!(line_and_column(text, text.len()), (4, 2));
    }
}
