//! From tokens to events: the grammar of YAML 1.1, without recursion.
//!
//! The events are those of YAML 1.1 section 3.1; tags come resolved to what the reference knows.

use super::scanner::{Kind, Scanner, Style, Token};
use super::terms::{Error, QUOTE, Tag, short};
use std::borrow::Cow;
use std::collections::HashMap;

/// What may stand before a node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Properties<'a> {
    pub anchor: Option<&'a str>,
    /// The tag that decides; `!` decides nothing.
    pub tag: Option<Tag>,
    tagged: bool,
}

impl Properties<'_> {
    /// `!` alone: the reference resolves also a quoted scalar behind it by its form.
    pub(super) fn resolves_as_plain(&self) -> bool {
        self.tagged && self.tag.is_none()
    }
}

#[derive(Debug)]
pub(super) enum Content<'a> {
    Alias(&'a str),
    /// `at` is where the value, or its quote, starts in the text.
    Scalar {
        value: Cow<'a, str>,
        style: Style,
        at: usize,
    },
    SequenceStart,
    MappingStart,
    /// The end of the innermost collection.
    End,
}

#[derive(Debug)]
pub(super) struct Event<'a> {
    pub content: Content<'a>,
    pub properties: Properties<'a>,
    /// Byte offsets in the text.
    pub start: usize,
    pub end: usize,
}

/// What an open collection waits for.
#[derive(Clone, Copy)]
enum State {
    BlockEntry,
    /// A list at the column of the mapping it stands in.
    IndentlessEntry,
    BlockKey,
    BlockValue,
    FlowEntry {
        first: bool,
    },
    /// `[a: b]`: a mapping of one pair without braces.
    PairKey,
    PairValue,
    PairEnd,
    FlowKey {
        first: bool,
    },
    FlowValue,
    /// `{a, b}`: a key without a value.
    FlowNoValue,
}

pub(super) struct Parser<'a> {
    scanner: Scanner<'a>,
    states: Vec<State>,
    handles: HashMap<&'a str, Cow<'a, str>>,
}

const TAG_REPOSITORY: &str = "tag:yaml.org,2002:";

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Parser { scanner: Scanner::new(text), states: Vec::new(), handles: HashMap::new() }
    }

    /// The first event of the document's root; `None` where the text holds no document at all.
    pub(super) fn start(&mut self) -> Result<Option<Event<'a>>, Error> {
        let mut directives = false;
        let mut version_seen = false;
        while self.scanner.peek()?.is_directive() {
            let token = self.scanner.take()?;
            match token.kind {
                Kind::YamlDirective { major } => {
                    if version_seen || major.trim_start_matches('0') != "1" {
                        return Err(Error::new(
                            "a %YAML directive that is not a single '1.x'",
                            token.start,
                        ));
                    }
                    version_seen = true;
                }
                Kind::TagDirective { handle, .. } if self.handles.contains_key(handle) => {
                    return Err(Error::new(
                        format!("a second %TAG for '{}'", short(handle)),
                        token.start,
                    ));
                }
                Kind::TagDirective { handle, prefix } => {
                    self.handles.insert(handle, prefix);
                }
                _ => {}
            }
            directives = true;
        }
        let next = self.scanner.peek()?;
        match next.kind {
            Kind::DocumentStart => {
                self.scanner.take()?;
                let next = self.scanner.peek()?;
                match next.kind {
                    Kind::DocumentStart | Kind::DocumentEnd | Kind::StreamEnd => {
                        Ok(Some(empty(next.start)))
                    }
                    _ if next.is_directive() => Ok(Some(empty(next.start))),
                    _ => self.node(true, false).map(Some),
                }
            }
            _ if directives => Err(Error::with_remedy(
                "a directive ('%') without '---' behind it",
                next.start,
                QUOTE,
            )),
            Kind::StreamEnd => Ok(None),
            _ => self.node(true, false).map(Some),
        }
    }

    /// Checks that the text ends where the root has ended.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        while let Kind::DocumentEnd = self.scanner.peek()?.kind {
            self.scanner.take()?;
        }
        let next = self.scanner.peek()?;
        match next.kind {
            Kind::StreamEnd => Ok(()),
            Kind::DocumentStart => {
                let remedy = "a contract is one document: remove the other";
                Err(Error::with_remedy("a second document", next.start, remedy))
            }
            _ => Err(unexpected(next, "the end of the document")),
        }
    }

    /// The next event inside the root collection.
    pub(super) fn next(&mut self) -> Result<Event<'a>, Error> {
        match self.states.pop() {
            Some(State::BlockEntry) => self.block_entry(),
            Some(State::IndentlessEntry) => self.indentless_entry(),
            Some(State::BlockKey) => self.block_key(),
            Some(State::BlockValue) => self.block_value(),
            Some(State::FlowEntry { first }) => self.flow_entry(first),
            Some(State::PairKey) => self.flow_part(State::PairValue),
            Some(State::PairValue) => self.flow_value(State::PairEnd),
            Some(State::FlowKey { first }) => self.flow_key(first),
            Some(State::FlowValue) => self.flow_value(State::FlowKey { first: false }),
            Some(State::FlowNoValue) => {
                self.states.push(State::FlowKey { first: false });
                Ok(empty(self.scanner.peek()?.start))
            }
            Some(State::PairEnd) | None => {
                let at = self.scanner.peek()?.start;
                Ok(Event {
                    content: Content::End,
                    properties: Properties::default(),
                    start: at,
                    end: at,
                })
            }
        }
    }

    fn block_entry(&mut self) -> Result<Event<'a>, Error> {
        let token = self.scanner.take()?;
        match token.kind {
            Kind::BlockEntry => {
                self.states.push(State::BlockEntry);
                let next = self.scanner.peek()?;
                match next.kind {
                    Kind::BlockEntry | Kind::BlockEnd => Ok(empty(next.start)),
                    _ => self.node(true, false),
                }
            }
            Kind::BlockEnd => Ok(end(&token)),
            _ => Err(unexpected(&token, "the next '- ' of the list")),
        }
    }

    fn indentless_entry(&mut self) -> Result<Event<'a>, Error> {
        let next = self.scanner.peek()?;
        if !matches!(next.kind, Kind::BlockEntry) {
            return Ok(end(next));
        }
        self.scanner.take()?;
        self.states.push(State::IndentlessEntry);
        let next = self.scanner.peek()?;
        match next.kind {
            Kind::BlockEntry | Kind::Key | Kind::Value | Kind::BlockEnd => Ok(empty(next.start)),
            _ => self.node(true, false),
        }
    }

    fn block_key(&mut self) -> Result<Event<'a>, Error> {
        let token = self.scanner.take()?;
        match token.kind {
            Kind::Key => self.block_part(State::BlockValue),
            Kind::BlockEnd => Ok(end(&token)),
            Kind::BlockMappingStart => {
                let what = "a key with too much indentation, or a ': ' inside a value";
                let remedy = "check the indentation, or quote the value";
                Err(Error::with_remedy(what, token.start, remedy))
            }
            Kind::Scalar { .. } | Kind::FlowSequenceStart | Kind::FlowMappingStart => {
                let remedy = "quote the whole value, or check the indentation";
                Err(Error::with_remedy("text behind a complete value", token.start, remedy))
            }
            _ => Err(unexpected(&token, "the next key of the mapping")),
        }
    }

    fn block_value(&mut self) -> Result<Event<'a>, Error> {
        let next = self.scanner.peek()?;
        if !matches!(next.kind, Kind::Value) {
            self.states.push(State::BlockKey);
            return Ok(empty(next.start));
        }
        self.scanner.take()?;
        self.block_part(State::BlockKey)
    }

    /// A key or a value of a block mapping, which may be left out.
    fn block_part(&mut self, then: State) -> Result<Event<'a>, Error> {
        self.states.push(then);
        let next = self.scanner.peek()?;
        match next.kind {
            Kind::Key | Kind::Value | Kind::BlockEnd => Ok(empty(next.start)),
            _ => self.node(true, true),
        }
    }

    /// Takes the comma between two entries.
    fn comma(&mut self, first: bool, close: char) -> Result<(), Error> {
        if first {
            return Ok(());
        }
        let token = self.scanner.take()?;
        match token.kind {
            Kind::FlowEntry => Ok(()),
            Kind::StreamEnd => Err(self.unclosed(token.start)),
            _ => Err(unexpected(&token, &format!("',' or '{close}'"))),
        }
    }

    fn unclosed(&self, at: usize) -> Error {
        let Some(&at) = self.scanner.flow.last() else {
            return Error::new("the end of the file instead of a value", at);
        };
        let bracket = self.scanner.text[at..].chars().next().unwrap_or('[');
        Error::with_remedy(
            format!("a '{bracket}' that is never closed"),
            at,
            "close it, or quote the value",
        )
    }

    fn flow_entry(&mut self, first: bool) -> Result<Event<'a>, Error> {
        if !matches!(self.scanner.peek()?.kind, Kind::FlowSequenceEnd) {
            self.comma(first, ']')?;
        }
        match self.scanner.peek()?.kind {
            Kind::FlowSequenceEnd => Ok(end(&self.scanner.take()?)),
            Kind::Key => {
                let key = self.scanner.take()?;
                self.states.extend([State::FlowEntry { first: false }, State::PairKey]);
                let properties = Properties::default();
                Ok(Event {
                    content: Content::MappingStart,
                    properties,
                    start: key.start,
                    end: key.end,
                })
            }
            _ => {
                self.states.push(State::FlowEntry { first: false });
                self.node(false, false)
            }
        }
    }

    fn flow_key(&mut self, first: bool) -> Result<Event<'a>, Error> {
        if !matches!(self.scanner.peek()?.kind, Kind::FlowMappingEnd) {
            self.comma(first, '}')?;
        }
        match self.scanner.peek()?.kind {
            Kind::FlowMappingEnd => Ok(end(&self.scanner.take()?)),
            Kind::Key => {
                self.scanner.take()?;
                self.flow_part(State::FlowValue)
            }
            _ => {
                self.states.push(State::FlowNoValue);
                self.node(false, false)
            }
        }
    }

    fn flow_value(&mut self, then: State) -> Result<Event<'a>, Error> {
        let next = self.scanner.peek()?;
        if !matches!(next.kind, Kind::Value) {
            self.states.push(then);
            return Ok(empty(next.start));
        }
        self.scanner.take()?;
        self.flow_part(then)
    }

    /// A key or a value of a flow mapping, which may be left out.
    fn flow_part(&mut self, then: State) -> Result<Event<'a>, Error> {
        let value_may_follow = matches!(then, State::FlowValue | State::PairValue);
        let in_pair = matches!(then, State::PairValue | State::PairEnd);
        self.states.push(then);
        let next = self.scanner.peek()?;
        let left_out = match next.kind {
            Kind::FlowEntry => true,
            Kind::Value => value_may_follow,
            Kind::FlowSequenceEnd => in_pair,
            Kind::FlowMappingEnd => !in_pair,
            _ => false,
        };
        if left_out { Ok(empty(next.start)) } else { self.node(false, false) }
    }

    /// Properties and the start of a node. Block collections only where `block`; a list at the
    /// column of its mapping only where `indentless`.
    fn node(&mut self, block: bool, indentless: bool) -> Result<Event<'a>, Error> {
        let first = self.scanner.peek()?;
        let start = first.start;
        if let Kind::Alias(name) = first.kind {
            let end = self.scanner.take()?.end;
            return Ok(Event {
                content: Content::Alias(name),
                properties: Properties::default(),
                start,
                end,
            });
        }
        let properties = self.properties()?;
        let next = self.scanner.peek()?;
        let end = next.end;
        let (content, state) = match next.kind {
            Kind::BlockEntry if indentless => {
                self.states.push(State::IndentlessEntry);
                return Ok(Event { content: Content::SequenceStart, properties, start, end });
            }
            Kind::Scalar { .. } => (Content::End, None),
            Kind::FlowSequenceStart => {
                (Content::SequenceStart, Some(State::FlowEntry { first: true }))
            }
            Kind::FlowMappingStart => (Content::MappingStart, Some(State::FlowKey { first: true })),
            Kind::BlockSequenceStart if block => (Content::SequenceStart, Some(State::BlockEntry)),
            Kind::BlockMappingStart | Kind::MappingStartAndKey if block => {
                (Content::MappingStart, Some(State::BlockKey))
            }
            _ if properties.anchor.is_some() || properties.tagged => {
                return Ok(Event { properties, ..empty(start) });
            }
            Kind::StreamEnd => return Err(self.unclosed(end)),
            _ => return Err(unexpected(next, "a value")),
        };
        self.states.extend(state);
        let token = self.scanner.take()?;
        let content = match token.kind {
            Kind::Scalar { value, style } => Content::Scalar { value, style, at: token.start },
            _ => content,
        };
        Ok(Event { content, properties, start, end })
    }

    /// An anchor and a tag, in either order, each at most once.
    fn properties(&mut self) -> Result<Properties<'a>, Error> {
        let mut properties = Properties::default();
        loop {
            match self.scanner.peek()?.kind {
                Kind::Anchor(_) if properties.anchor.is_none() => {}
                Kind::Tag { .. } if !properties.tagged => {}
                _ => return Ok(properties),
            }
            let token = self.scanner.take()?;
            match token.kind {
                Kind::Anchor(name) => properties.anchor = Some(name),
                Kind::Tag { handle, suffix } => {
                    properties.tagged = true;
                    properties.tag = self.resolve_tag(handle, &suffix, token.start)?;
                }
                _ => {}
            }
        }
    }

    /// YAML 1.1 section 8.2. The reference takes `!` for no tag, also on a quoted scalar.
    fn resolve_tag(
        &self,
        handle: Option<&str>,
        suffix: &str,
        at: usize,
    ) -> Result<Option<Tag>, Error> {
        let prefix = match handle {
            None => "",
            Some(handle) => match (self.handles.get(handle), handle) {
                (Some(prefix), _) => prefix,
                (None, "!") => "!",
                (None, "!!") => TAG_REPOSITORY,
                (None, _) => {
                    let what = format!("the tag handle '{}', which no %TAG defines", short(handle));
                    return Err(Error::with_remedy(what, at, QUOTE));
                }
            },
        };
        // A prefix may be long and used often, so the two are never joined before this check.
        if prefix.len() + suffix.len() > 64 {
            return Ok(Some(Tag::Unknown));
        }
        Ok(tag_of(&format!("{prefix}{suffix}")))
    }
}

fn tag_of(name: &str) -> Option<Tag> {
    if name == "!" {
        return None;
    }
    Some(match name.strip_prefix(TAG_REPOSITORY).unwrap_or_default() {
        "null" => Tag::Null,
        "bool" => Tag::Bool,
        "int" => Tag::Int,
        "float" => Tag::Float,
        "timestamp" => Tag::Timestamp,
        "binary" => Tag::Binary,
        "str" => Tag::Str,
        "merge" => Tag::Merge,
        "value" => Tag::Value,
        "seq" => Tag::Seq,
        "map" => Tag::Map,
        "set" => Tag::Set,
        "omap" => Tag::Omap,
        "pairs" => Tag::Pairs,
        _ => Tag::Unknown,
    })
}

fn empty<'a>(at: usize) -> Event<'a> {
    let content = Content::Scalar { value: Cow::Borrowed(""), style: Style::Plain, at };
    Event { content, properties: Properties::default(), start: at, end: at }
}

fn end<'a>(token: &Token<'a>) -> Event<'a> {
    let properties = Properties::default();
    Event { content: Content::End, properties, start: token.start, end: token.end }
}

fn unexpected(token: &Token<'_>, wanted: &str) -> Error {
    let found = match &token.kind {
        Kind::Undecided | Kind::Nothing | Kind::StreamEnd => "the end of the file",
        Kind::DocumentStart => "a document marker ('---')",
        Kind::DocumentEnd => "a document marker ('...')",
        Kind::YamlDirective { .. } | Kind::TagDirective { .. } | Kind::OtherDirective => {
            "a directive ('%')"
        }
        Kind::BlockSequenceStart | Kind::BlockEntry => "a list item ('- ')",
        Kind::MappingStartAndKey | Kind::BlockMappingStart | Kind::Key => "a key",
        Kind::BlockEnd => "a line with less indentation",
        Kind::FlowSequenceStart => "a '['",
        Kind::FlowSequenceEnd => "a ']'",
        Kind::FlowMappingStart => "a '{'",
        Kind::FlowMappingEnd => "a '}'",
        Kind::FlowEntry => "a ','",
        Kind::Value => "a ':'",
        Kind::Alias(_) => "an alias ('*')",
        Kind::Anchor(_) => "an anchor ('&')",
        Kind::Tag { .. } => "a tag ('!')",
        Kind::Scalar { .. } => "a value",
    };
    let remedy = "check the indentation, or quote the value";
    Error::with_remedy(format!("{found} instead of {wanted}"), token.start, remedy)
}

#[cfg(test)]
mod tests {
    use super::super::read;

    #[test]
    fn each_refusal_has_a_sibling_that_is_read() {
        let long = |length| format!("{}: a", "k".repeat(length));
        let (key, too_long) = (long(1024), long(1025));
        let siblings = [
            ("a\n...\n...\n", "...\n"),
            ("--- a", "a\n---\n"),
            ("---\n...", "---\n---"),
            ("%YAML 1.3\n---\na", "%YAML 2.0\n---\na"),
            ("%FOO a\n---\na", "%FOO a\na"),
            ("%TAG !e! tag:yaml.org,2002:\n---\n!e!str a", "!e!str a"),
            ("%TAG !e! b\n---\na", "%TAG !e! b\n%TAG !e! b\n---\na"),
            ("!<tag:yaml.org,2002:st%72> a", "!<tag:yaml.org,2002:st%7> a"),
            ("!!str &a b", "!!str !!str b"),
            ("[!!str , a]", "[!!str, a]"),
            ("a: &a b\nc: *a", "a: *a\nc: &a b"),
            ("&a b: &c d", "&a b: &a d"),
            ("{a, b: c, ? d, e: }", "{a,, b: c}"),
            ("[a, ? b : c, d: e, ?]", "[: a]"),
            ("[a,\nb]", "[a\n, b}"),
            ("{\"a\":b}", "{: a}"),
            ("a:\n- b\n-\n", "a:\n  - b\n - c"),
            ("? a\n: b\n? c", ": a"),
            ("a: 'b'#c", "a: 'b' c"),
            ("a:\n  b: c\nd: e", "a: b\n  c: d"),
            ("a: b\n  c", "a: b\nc"),
            ("- a: b\n  c: d", "- a: b\n c: d"),
            ("a: b", "a: b: c"),
            ("a:\n  - b", "a: - b"),
            ("a: b", "a:\tb"),
            ("\u{feff}a: b", "\u{0}a: b"),
            ("a\u{85}b", "a\u{86}b"),
            (key.as_str(), too_long.as_str()),
        ];
        for (good, bad) in siblings {
            assert!(read(good).is_ok(), "{good:?}");
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
