//! From text to tokens: YAML 1.1 chapters 5 to 9.
//!
//! A key without `?` is only known by the `:` behind it. So where one may start, the scanner puts
//! an undecided token into the queue and remembers it; the `:` turns it into a key, and a line
//! break, 1024 characters or any other end of the chance turn it into nothing.

use super::chars::{
    BOM, END, char_at, is_break, is_break_or_end, is_uri, is_white, is_word, normal_break,
};
use super::terms::{Error, MAX_DIGITS, QUOTE};
use std::borrow::Cow;
use std::collections::VecDeque;

/// A key without `?` is at most this long, in characters (YAML 1.1 section 9.3.1).
const MAX_SIMPLE_KEY: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Quoted,
    Block,
}

#[derive(Debug)]
pub(super) enum Kind<'a> {
    /// A key may start here; the `:` has not come yet.
    Undecided,
    /// No key started here after all.
    Nothing,
    /// A block mapping starts here, and in it a key: taken, it leaves a `Key`.
    MappingStartAndKey,
    StreamEnd,
    DocumentStart,
    DocumentEnd,
    YamlDirective {
        major: &'a str,
    },
    TagDirective {
        handle: &'a str,
        prefix: Cow<'a, str>,
    },
    OtherDirective,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(&'a str),
    Anchor(&'a str),
    /// Without a handle the suffix is the whole tag.
    Tag {
        handle: Option<&'a str>,
        suffix: Cow<'a, str>,
    },
    Scalar {
        value: Cow<'a, str>,
        style: Style,
    },
}

#[derive(Debug)]
pub(super) struct Token<'a> {
    pub kind: Kind<'a>,
    /// Byte offsets of the token in the text.
    pub start: usize,
    pub end: usize,
}

impl Token<'_> {
    pub(super) fn is_directive(&self) -> bool {
        matches!(
            self.kind,
            Kind::YamlDirective { .. } | Kind::TagDirective { .. } | Kind::OtherDirective
        )
    }
}

/// A place where a key without `?` may have started.
struct SimpleKey {
    /// Which token, counted from the first of the text.
    token: usize,
    flow_level: usize,
    at: usize,
    index: usize,
    line: usize,
    column: usize,
    /// It stands where a block mapping can only go on with a key.
    required: bool,
}

pub(super) struct Scanner<'a> {
    pub(super) text: &'a str,
    /// Byte offset of the next character.
    pub(super) at: usize,
    /// Characters before it.
    index: usize,
    line: usize,
    /// Characters before it in its line; a byte order mark takes no column.
    pub(super) column: usize,
    tokens: VecDeque<Token<'a>>,
    /// Whether nothing can change the front of the queue any more.
    settled: bool,
    taken: usize,
    keys: VecDeque<SimpleKey>,
    pub(super) key_allowed: bool,
    /// Byte offsets of the open brackets.
    pub(super) flow: Vec<usize>,
    /// 1 + the column of the innermost block collection, 0 outside all of them: the least column of
    /// what stands in it.
    pub(super) indent: usize,
    indents: Vec<usize>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Scanner {
            text,
            at: 0,
            index: 0,
            line: 0,
            column: 0,
            tokens: VecDeque::new(),
            settled: false,
            taken: 0,
            keys: VecDeque::new(),
            key_allowed: true,
            flow: Vec::new(),
            indent: 0,
            indents: Vec::new(),
        }
    }

    /// The next token; after `StreamEnd`, `StreamEnd` again.
    pub(super) fn peek(&mut self) -> Result<&Token<'a>, Error> {
        if !self.settled {
            self.settle()?;
        }
        self.tokens.front().ok_or_else(|| Error::new("no more tokens", self.at))
    }

    /// Until the front of the queue is a token that nothing can change any more.
    fn settle(&mut self) -> Result<(), Error> {
        while !self.settled {
            match self.tokens.front().map(|token| &token.kind) {
                Some(Kind::Nothing) => {
                    self.tokens.pop_front();
                    self.taken += 1;
                }
                Some(Kind::Undecided) => {
                    self.drop_stale_keys()?;
                    if matches!(self.tokens.front(), Some(Token { kind: Kind::Undecided, .. })) {
                        self.fetch()?;
                    }
                }
                Some(_) => self.settled = true,
                None => self.fetch()?,
            }
        }
        Ok(())
    }

    pub(super) fn take(&mut self) -> Result<Token<'a>, Error> {
        if !self.settled {
            self.settle()?;
        }
        if let Some(front) = self.tokens.front_mut()
            && matches!(front.kind, Kind::MappingStartAndKey)
        {
            front.kind = Kind::Key;
            return Ok(Token { kind: Kind::BlockMappingStart, start: front.start, end: front.end });
        }
        self.settled = false;
        let token = self.tokens.pop_front().ok_or_else(|| Error::new("no more tokens", self.at))?;
        // The end of the stream stays: whoever asks again gets it again.
        if matches!(token.kind, Kind::StreamEnd) {
            self.push(Kind::StreamEnd, self.at);
        } else {
            self.taken += 1;
        }
        Ok(token)
    }

    fn fetch(&mut self) -> Result<(), Error> {
        self.skip_to_token();
        self.drop_stale_keys()?;
        self.unwind_indent(self.column + 1);
        let c = self.look();
        if c == END {
            return self.fetch_end();
        }
        if self.column == 0 && c == '%' {
            return self.fetch_directive();
        }
        if self.column == 0 && self.at_document_marker() {
            let kind = if c == '-' { Kind::DocumentStart } else { Kind::DocumentEnd };
            self.end_of_document()?;
            self.push_indicator(kind, 3);
            return Ok(());
        }
        let in_flow = !self.flow.is_empty();
        let white_follows = || is_white(self.look_at(1));
        match c {
            '[' | '{' => self.fetch_flow_start(c),
            ']' | '}' => self.fetch_flow_end(c),
            ',' => self.fetch_flow_entry(),
            '-' if white_follows() => self.fetch_block_entry(),
            '?' if in_flow || white_follows() => self.fetch_key(),
            ':' if in_flow || white_follows() => self.fetch_value(),
            '*' | '&' => self.fetch_anchor(c),
            '!' => self.fetch_tag(),
            '|' | '>' if !in_flow => self.fetch_block_scalar(),
            '\'' | '"' => self.fetch_quoted(),
            '\t' | '#' | '|' | '>' | '%' | '@' | '`' => Err(self.cannot_start(c)),
            _ => self.fetch_plain(),
        }
    }

    fn cannot_start(&self, c: char) -> Error {
        if c != '\t' {
            let what = format!("a plain value cannot start with '{c}'");
            return Error::with_remedy(what, self.at, QUOTE);
        }
        let before = &self.text[..self.at];
        let line_start = before.rfind(is_break).map_or(0, |at| at + 1);
        let indents = self.text[..self.at].get(line_start..).is_none_or(|s| s.trim().is_empty());
        if indents {
            Error::with_remedy("a tab used for indentation", self.at, "indent with spaces")
        } else {
            Error::with_remedy("a tab between tokens", self.at, "use spaces, or quote the value")
        }
    }

    fn fetch_end(&mut self) -> Result<(), Error> {
        self.end_of_document()?;
        while let Some(key) = self.keys.pop_front() {
            self.give_up(&key)?;
        }
        self.push(Kind::StreamEnd, self.at);
        Ok(())
    }

    fn end_of_document(&mut self) -> Result<(), Error> {
        self.unwind_indent(0);
        self.drop_key()?;
        self.key_allowed = false;
        Ok(())
    }

    fn fetch_flow_start(&mut self, c: char) -> Result<(), Error> {
        self.save_key()?;
        self.flow.push(self.at);
        self.key_allowed = true;
        let kind = if c == '[' { Kind::FlowSequenceStart } else { Kind::FlowMappingStart };
        self.push_indicator(kind, 1);
        Ok(())
    }

    fn fetch_flow_end(&mut self, c: char) -> Result<(), Error> {
        self.drop_key()?;
        if self.flow.pop().is_none() {
            let what = format!("a '{c}' that closes nothing");
            return Err(Error::with_remedy(what, self.at, QUOTE));
        }
        self.key_allowed = false;
        let kind = if c == ']' { Kind::FlowSequenceEnd } else { Kind::FlowMappingEnd };
        self.push_indicator(kind, 1);
        Ok(())
    }

    fn fetch_flow_entry(&mut self) -> Result<(), Error> {
        self.key_allowed = true;
        self.drop_key()?;
        self.push_indicator(Kind::FlowEntry, 1);
        Ok(())
    }

    fn fetch_block_entry(&mut self) -> Result<(), Error> {
        if self.flow.is_empty() {
            if !self.key_allowed {
                let what = "a list item ('- ') cannot stand here";
                return Err(Error::with_remedy(
                    what,
                    self.at,
                    "quote the value, or start a new line",
                ));
            }
            self.start_block(Kind::BlockSequenceStart);
        }
        self.key_allowed = true;
        self.drop_key()?;
        self.push_indicator(Kind::BlockEntry, 1);
        Ok(())
    }

    fn fetch_key(&mut self) -> Result<(), Error> {
        if self.flow.is_empty() {
            if !self.key_allowed {
                return Err(Error::with_remedy("a key ('? ') cannot stand here", self.at, QUOTE));
            }
            self.start_block(Kind::BlockMappingStart);
        }
        self.key_allowed = self.flow.is_empty();
        self.drop_key()?;
        self.push_indicator(Kind::Key, 1);
        Ok(())
    }

    fn fetch_value(&mut self) -> Result<(), Error> {
        let in_flow = !self.flow.is_empty();
        if let Some(key) = self.keys.pop_back_if(|key| key.flow_level == self.flow.len()) {
            let starts = !in_flow && self.add_indent(key.column);
            let kind = if starts { Kind::MappingStartAndKey } else { Kind::Key };
            if let Some(token) = self.tokens.get_mut(key.token - self.taken) {
                token.kind = kind;
            }
            self.key_allowed = false;
        } else {
            if !in_flow {
                if !self.key_allowed {
                    return Err(self.value_not_allowed());
                }
                self.start_block(Kind::BlockMappingStart);
            }
            self.key_allowed = !in_flow;
            self.drop_key()?;
        }
        self.push_indicator(Kind::Value, 1);
        Ok(())
    }

    fn value_not_allowed(&self) -> Error {
        let before = &self.text[..self.at];
        let line = before.rsplit(is_break).next().unwrap_or_default();
        if line.contains(": ") {
            Error::with_remedy("a second ': ' in one line", self.at, QUOTE)
        } else {
            Error::with_remedy(
                "a ':' where no key can stand",
                self.at,
                "check the indentation, or quote the value",
            )
        }
    }

    fn fetch_anchor(&mut self, c: char) -> Result<(), Error> {
        self.save_key()?;
        self.key_allowed = false;
        let start = self.at;
        self.bump();
        let name = self.take_while(is_word);
        let next = self.look();
        if name.is_empty() || !(is_white(next) || "?:,]}%@`".contains(next)) {
            let noun = if c == '*' { "an alias" } else { "an anchor" };
            let what = format!("'{c}' starts {noun}, and {} cannot stand in its name", shown(next));
            return Err(Error::with_remedy(what, self.at, QUOTE));
        }
        let kind = if c == '*' { Kind::Alias(name) } else { Kind::Anchor(name) };
        self.push(kind, start);
        Ok(())
    }

    /// YAML 1.1 section 6.8.2 and 8.2: `!<verbatim>`, `!suffix`, `!!suffix`, `!handle!suffix`, `!`.
    fn fetch_tag(&mut self) -> Result<(), Error> {
        self.save_key()?;
        self.key_allowed = false;
        let start = self.at;
        let (handle, suffix) = if self.look_at(1) == '<' {
            self.skip(2);
            let suffix = self.take_uri()?;
            if self.look() != '>' {
                return Err(Error::new("a tag '!<' without its '>'", start));
            }
            self.bump();
            (None, suffix)
        } else if is_white(self.look_at(1)) {
            self.bump();
            (None, Cow::Borrowed("!"))
        } else {
            (Some(self.take_tag_handle()), self.take_uri()?)
        };
        let next = self.look();
        if next != ' ' && !is_break_or_end(next) {
            let what = format!("'!' starts a tag, and {} cannot stand in it", shown(next));
            return Err(Error::with_remedy(what, self.at, QUOTE));
        }
        self.push(Kind::Tag { handle, suffix }, start);
        Ok(())
    }

    /// `!`, or `!word!` where a second `!` follows.
    fn take_tag_handle(&mut self) -> &'a str {
        let start = self.at;
        let rest = &self.text[start + 1..];
        let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let long = rest[word..].starts_with('!');
        self.advance_to(if long { start + word + 2 } else { start + 1 });
        &self.text[start..self.at]
    }

    /// YAML 1.1 section 4.1.6: URI characters, the escapes decoded; they must give UTF-8.
    fn take_uri(&mut self) -> Result<Cow<'a, str>, Error> {
        let start = self.at;
        let raw = self.take_while(is_uri);
        if raw.is_empty() {
            let what = format!("'!' starts a tag, and {} cannot stand in it", shown(self.look()));
            return Err(Error::with_remedy(what, self.at, QUOTE));
        }
        if !raw.contains('%') {
            return Ok(Cow::Borrowed(raw));
        }
        let bad = || Error::new("a broken '%' escape in a tag", start);
        let mut bytes = Vec::with_capacity(raw.len());
        let mut rest = raw.as_bytes();
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            if byte != b'%' {
                bytes.push(byte);
                continue;
            }
            let [high, low, tail @ ..] = rest else { return Err(bad()) };
            let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
            let (Some(high), Some(low)) = (digit(*high), digit(*low)) else { return Err(bad()) };
            bytes.push(high * 16 + low);
            rest = tail;
        }
        String::from_utf8(bytes).map(Cow::Owned).map_err(|_| bad())
    }

    fn fetch_block_scalar(&mut self) -> Result<(), Error> {
        self.key_allowed = true;
        self.drop_key()?;
        let start = self.at;
        let value = self.block_scalar()?;
        self.push(Kind::Scalar { value, style: Style::Block }, start);
        Ok(())
    }

    fn fetch_quoted(&mut self) -> Result<(), Error> {
        self.save_key()?;
        self.key_allowed = false;
        let start = self.at;
        let value = self.quoted_scalar()?;
        self.push(Kind::Scalar { value, style: Style::Quoted }, start);
        Ok(())
    }

    fn fetch_plain(&mut self) -> Result<(), Error> {
        self.save_key()?;
        self.key_allowed = false;
        let start = self.at;
        let (value, end) = self.plain_scalar();
        self.tokens.push_back(Token {
            kind: Kind::Scalar { value, style: Style::Plain },
            start,
            end,
        });
        Ok(())
    }

    /// YAML 1.1 section 7.1.
    fn fetch_directive(&mut self) -> Result<(), Error> {
        self.end_of_document()?;
        let start = self.at;
        self.bump();
        let bad = |at: usize| Error::with_remedy("a broken directive ('%')", at, QUOTE);
        let name = self.take_while(is_word);
        if name.is_empty() || !(self.look() == ' ' || is_break_or_end(self.look())) {
            return Err(bad(self.at));
        }
        let kind = match name {
            "YAML" => {
                self.take_while(|c| c == ' ');
                let major = self.take_while(|c| c.is_ascii_digit());
                let dot = self.take_while(|c| c == '.');
                let minor = self.take_while(|c| c.is_ascii_digit());
                let is_number = |digits: &str| (1..=MAX_DIGITS).contains(&digits.len());
                if !is_number(major) || dot != "." || !is_number(minor) {
                    return Err(bad(self.at));
                }
                Kind::YamlDirective { major }
            }
            "TAG" => {
                self.take_while(|c| c == ' ');
                if self.look() != '!' {
                    return Err(bad(self.at));
                }
                let handle = self.take_tag_handle();
                if self.look() != ' ' {
                    return Err(bad(self.at));
                }
                self.take_while(|c| c == ' ');
                Kind::TagDirective { handle, prefix: self.take_uri()? }
            }
            _ => {
                self.take_while(|c| !is_break_or_end(c));
                Kind::OtherDirective
            }
        };
        if self.look() != ' ' && !is_break_or_end(self.look()) {
            return Err(bad(self.at));
        }
        self.push(kind, start);
        self.finish_line("a directive")
    }

    /// Spaces and a comment, then the end of the line: nothing else may follow `what`.
    pub(super) fn finish_line(&mut self, what: &str) -> Result<(), Error> {
        self.take_while(|c| c == ' ');
        if self.look() == '#' {
            self.take_while(|c| !is_break_or_end(c));
        }
        if !is_break_or_end(self.look()) {
            let what = format!("{} in the line of {what}", shown(self.look()));
            return Err(Error::with_remedy(what, self.at, QUOTE));
        }
        self.take_break();
        Ok(())
    }

    /// Spaces, comments and line breaks. Tabs are no separation (observed of the reference).
    fn skip_to_token(&mut self) {
        if self.at == 0 && self.look() == BOM {
            self.bump();
        }
        loop {
            self.take_while(|c| c == ' ');
            if self.look() == '#' {
                self.take_while(|c| !is_break_or_end(c));
            }
            if self.take_break().is_none() {
                return;
            }
            if self.flow.is_empty() {
                self.key_allowed = true;
            }
        }
    }

    // Keys without `?`.

    fn save_key(&mut self) -> Result<(), Error> {
        if !self.key_allowed {
            return Ok(());
        }
        self.drop_key()?;
        self.keys.push_back(SimpleKey {
            token: self.taken + self.tokens.len(),
            flow_level: self.flow.len(),
            at: self.at,
            index: self.index,
            line: self.line,
            column: self.column,
            required: self.flow.is_empty() && self.indent == self.column + 1,
        });
        self.push(Kind::Undecided, self.at);
        Ok(())
    }

    /// Gives up the key of this flow level, if one is waiting.
    fn drop_key(&mut self) -> Result<(), Error> {
        let level = self.flow.len();
        match self.keys.pop_back_if(|key| key.flow_level == level) {
            Some(key) => self.give_up(&key),
            None => Ok(()),
        }
    }

    /// YAML 1.1 section 9.3.1: one line, at most 1024 characters.
    fn drop_stale_keys(&mut self) -> Result<(), Error> {
        let (line, index) = (self.line, self.index);
        // Keys of outer levels started earlier, so the stale ones are at the front.
        while let Some(key) =
            self.keys.pop_front_if(|k| k.line != line || index - k.index > MAX_SIMPLE_KEY)
        {
            self.give_up(&key)?;
        }
        Ok(())
    }

    fn give_up(&mut self, key: &SimpleKey) -> Result<(), Error> {
        if key.required {
            let what = "a key without a ': ' behind it in its line";
            return Err(Error::with_remedy(
                what,
                key.at,
                "write 'key: value', or indent the line if it goes on the one before",
            ));
        }
        if let Some(token) = self.tokens.get_mut(key.token - self.taken) {
            token.kind = Kind::Nothing;
        }
        Ok(())
    }

    // Indentation.

    /// Ends the block collections that need a greater indent.
    fn unwind_indent(&mut self, indent: usize) {
        while self.flow.is_empty() && self.indent > indent {
            self.indent = self.indents.pop().unwrap_or(0);
            self.push(Kind::BlockEnd, self.at);
        }
    }

    fn add_indent(&mut self, column: usize) -> bool {
        let deeper = self.indent < column + 1;
        if deeper {
            self.indents.push(self.indent);
            self.indent = column + 1;
        }
        deeper
    }

    fn start_block(&mut self, kind: Kind<'a>) {
        if self.add_indent(self.column) {
            self.push(kind, self.at);
        }
    }

    // Tokens and characters.

    fn push(&mut self, kind: Kind<'a>, start: usize) {
        self.tokens.push_back(Token { kind, start, end: self.at });
    }

    fn push_indicator(&mut self, kind: Kind<'a>, characters: usize) {
        let start = self.at;
        self.skip(characters);
        self.push(kind, start);
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn look(&self) -> char {
        char_at(self.text, self.at)
    }

    pub(super) fn look_at(&self, n: usize) -> char {
        let passed = self.text.as_bytes().get(self.at..self.at + n);
        if passed.is_some_and(<[u8]>::is_ascii) {
            return char_at(self.text, self.at + n);
        }
        self.rest().chars().nth(n).unwrap_or(END)
    }

    /// `---` or `...` and then white space; the caller knows that the column is 0.
    pub(super) fn at_document_marker(&self) -> bool {
        let rest = self.rest();
        (rest.starts_with("---") || rest.starts_with("...")) && is_white(self.look_at(3))
    }

    /// Moves over one character that is no line break.
    pub(super) fn bump(&mut self) {
        let c = self.look();
        self.at += if self.at < self.text.len() { c.len_utf8() } else { 0 };
        self.index += 1;
        self.column += usize::from(c != BOM);
    }

    pub(super) fn skip(&mut self, characters: usize) {
        for _ in 0..characters {
            self.bump();
        }
    }

    /// Moves to a byte offset further on in the same line.
    pub(super) fn advance_to(&mut self, end: usize) {
        let passed = &self.text[self.at..end];
        self.at = end;
        if passed.is_ascii() {
            self.index += passed.len();
            self.column += passed.len();
            return;
        }
        let characters = passed.chars().count();
        self.index += characters;
        self.column += characters - passed.matches(BOM).count();
    }

    pub(super) fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.advance_to(self.at + length);
        &rest[..length]
    }

    /// Takes one line break and returns it, normalised.
    pub(super) fn take_break(&mut self) -> Option<char> {
        let c = self.look();
        if !is_break(c) {
            return None;
        }
        let crlf = self.rest().starts_with("\r\n");
        self.at += if crlf { 2 } else { c.len_utf8() };
        self.index += if crlf { 2 } else { 1 };
        self.line += 1;
        self.column = 0;
        Some(normal_break(c))
    }
}

/// A character for a message; the end of a line has no glyph.
pub(super) fn shown(c: char) -> String {
    match c {
        END => "the end of the file".to_owned(),
        '\t' => "a tab".to_owned(),
        _ if is_break(c) => "the end of the line".to_owned(),
        _ => format!("'{c}'"),
    }
}
