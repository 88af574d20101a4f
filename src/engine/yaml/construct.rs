//! Can every node be constructed? What the reference's safe loader refuses, and what it dies of.
//!
//! Nodes are visited in the reference's order, collections after their parents, each node once.

use super::resolve;
use super::terms::{Error, MAX_DIGITS, QUOTE, Tag, short, word};
use super::tree::{Document, NodeId, Shape};
use std::collections::{HashSet, VecDeque};

/// A chain of merges may be this long; there the reference's stack ends (observed).
const MAX_MERGES: usize = 988;

/// Checks all nodes from the root on, and turns value keys (`=`) into strings as merging does.
pub(super) fn check(document: &mut Document<'_>) -> Result<(), Error> {
    let mut checker = Checker {
        document,
        waiting: VecDeque::new(),
        seen: HashSet::new(),
        merging: Vec::new(),
        pairs: Vec::new(),
    };
    if let Some(root) = checker.document.root() {
        checker.construct(root)?;
    }
    while let Some(id) = checker.waiting.pop_front() {
        checker.construct_collection(id)?;
    }
    Ok(())
}

struct Checker<'d, 'a> {
    document: &'d mut Document<'a>,
    waiting: VecDeque<NodeId>,
    /// Scalars checked through a mapping's value key, with the tag: many mappings can name one.
    seen: HashSet<(NodeId, u8)>,
    /// Room that is used again for each collection: mappings to be merged, with their depth; pairs.
    merging: Vec<(NodeId, usize)>,
    pairs: Vec<(NodeId, NodeId)>,
}

impl Checker<'_, '_> {
    fn construct(&mut self, id: NodeId) -> Result<(), Error> {
        let node = self.document.node_mut(id);
        if std::mem::replace(&mut node.constructed, true) {
            return Ok(());
        }
        let tag = node.tag;
        match tag {
            Tag::Seq | Tag::Omap | Tag::Pairs | Tag::Map | Tag::Set => {
                self.waiting.push_back(id);
                Ok(())
            }
            Tag::Null
            | Tag::Bool
            | Tag::Int
            | Tag::Float
            | Tag::Timestamp
            | Tag::Binary
            | Tag::Str => {
                if self.document.lost_its_value(id) {
                    return Err(Error::new(
                        "a merged collection with the tag of a scalar",
                        self.document.span(id).start,
                    ));
                }
                let (scalar, value) = self.document.scalar(id)?;
                // The reference dies: it takes the time from the node, not from its value.
                if scalar != id && tag == Tag::Timestamp {
                    let what = "a tag that does not fit its value";
                    return Err(Error::new(what, self.document.span(id).start));
                }
                if scalar != id && !self.seen.insert((scalar, tag as u8)) {
                    return Ok(());
                }
                let start = self.document.span(id).start;
                check_scalar(tag, value).map_err(|what| Error::with_remedy(what, start, QUOTE))
            }
            Tag::Merge | Tag::Value | Tag::Unknown => Err(self.no_constructor(id)),
        }
    }

    fn no_constructor(&self, id: NodeId) -> Error {
        let span = self.document.span(id);
        let source = &self.document.text()[span.start..];
        let shown = short(word(source));
        let what = if shown.starts_with(['!', '&']) {
            "an unknown tag"
        } else {
            "a special key as a value"
        };
        Error::with_remedy(format!("{what}, '{shown}'"), span.start, QUOTE)
    }

    fn construct_collection(&mut self, id: NodeId) -> Result<(), Error> {
        let (shape, tag) = (self.document.shape(id), self.document.tag(id));
        let start = self.document.span(id).start;
        match (tag, shape) {
            (Tag::Seq, Shape::Sequence) => {
                let mut next = self.document.first_child(id);
                while let Some(child) = next {
                    self.construct(self.document.target(child))?;
                    next = self.document.sibling(child);
                }
            }
            (Tag::Omap | Tag::Pairs, Shape::Sequence) => {
                for child in self.document.children(id).collect::<Vec<_>>() {
                    let parts: Vec<_> = self.document.children(child).take(3).collect();
                    if self.document.shape(child) != Shape::Mapping || parts.len() != 2 {
                        let what = "an entry of !!omap or !!pairs that is not one 'key: value'";
                        return Err(Error::new(what, self.document.span(child).start));
                    }
                    for part in parts {
                        self.construct(part)?;
                    }
                }
            }
            (Tag::Map | Tag::Set, Shape::Mapping) => {
                self.flatten(id)?;
                for at in 0..self.pairs.len() {
                    let (key, value) = self.pairs[at];
                    self.construct(key)?;
                    if let Tag::Seq | Tag::Map | Tag::Set | Tag::Omap | Tag::Pairs =
                        self.document.tag(key)
                    {
                        let what = "a list or mapping as a key";
                        return Err(Error::with_remedy(what, self.document.span(key).start, QUOTE));
                    }
                    self.construct(value)?;
                }
            }
            _ => return Err(Error::new("a tag that does not fit its value", start)),
        }
        Ok(())
    }

    /// Finds the pairs of a mapping and of all mappings merged into it that were not visited before
    /// (yaml.org/type/merge).
    fn flatten(&mut self, id: NodeId) -> Result<(), Error> {
        self.pairs.clear();
        self.merging.push((id, 0));
        while let Some((id, depth)) = self.merging.pop() {
            if depth > MAX_MERGES {
                let start = self.document.span(id).start;
                return Err(Error::new("merge keys ('<<') nested too deep", start));
            }
            if std::mem::replace(&mut self.document.node_mut(id).flattened, true) {
                continue;
            }
            if self.document.shape(id) == Shape::Sequence {
                for item in self.document.children(id) {
                    self.can_merge(item, false)?;
                    self.merging.push((item, depth));
                }
                continue;
            }
            let mut next = self.document.first_child(id);
            while let Some(key) = next
                && let Some(value) = self.document.sibling(key)
            {
                next = self.document.sibling(value);
                let (key, value) = (self.document.target(key), self.document.target(value));
                match self.document.tag(key) {
                    Tag::Merge => {
                        self.can_merge(value, true)?;
                        self.merging.push((value, depth + 1));
                    }
                    Tag::Value => {
                        self.document.node_mut(key).tag = Tag::Str;
                        self.pairs.push((key, value));
                    }
                    _ => self.pairs.push((key, value)),
                }
            }
        }
        Ok(())
    }

    fn can_merge(&self, id: NodeId, list: bool) -> Result<(), Error> {
        let shape = self.document.shape(id);
        if shape == Shape::Mapping || list && shape == Shape::Sequence {
            return Ok(());
        }
        let what = "a merge key ('<<') takes a mapping or a list of mappings";
        Err(Error::with_remedy(what, self.document.span(id).start, "quote the '<<'"))
    }
}

fn check_scalar(tag: Tag, value: &str) -> Result<(), String> {
    let (noun, good) = match tag {
        Tag::Bool => ("boolean", is_bool(value)),
        Tag::Int => ("integer", is_int(value)),
        Tag::Float => ("float", is_float(value)),
        Tag::Timestamp => ("date or time", is_timestamp(value)),
        Tag::Binary => ("base64 text", is_base64(value)),
        _ => ("", true),
    };
    if good {
        return Ok(());
    }
    Err(format!("an impossible {noun}, '{}'", short(value)))
}

fn is_bool(value: &str) -> bool {
    ["yes", "no", "true", "false", "on", "off"].contains(&value.to_lowercase().as_str())
}

/// An optional sign, then what the reference converts: binary, hexadecimal, octal, sexagesimal or
/// decimal. Untagged scalars of the right form can still fail, as `0x_` does.
fn is_int(value: &str) -> bool {
    let plain;
    let value = if value.contains('_') {
        plain = value.replace('_', "");
        &plain
    } else {
        value
    };
    let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
    if let Some(digits) = digits.strip_prefix("0b") {
        is_python_int(digits, 2, &['b', 'B'])
    } else if let Some(digits) = digits.strip_prefix("0x") {
        is_python_int(digits, 16, &['x', 'X'])
    } else if digits.starts_with('0') {
        is_python_int(digits, 8, &['o', 'O'])
    } else {
        digits.split(':').all(|part| is_python_int(part, 10, &[]))
    }
}

/// Does Python's `int(text, base)` accept this? White space around, a sign, the base's prefix.
fn is_python_int(text: &str, base: u32, prefix: &[char]) -> bool {
    let text = text.trim();
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let prefixed = text.strip_prefix('0').and_then(|text| text.strip_prefix(prefix));
    let digits = prefixed.unwrap_or(text);
    !digits.is_empty()
        && digits.chars().all(|c| c.is_digit(base))
        && (base != 10 || digits.len() <= MAX_DIGITS)
}

fn is_float(value: &str) -> bool {
    let value = value.replace('_', "").to_lowercase();
    let digits = value.strip_prefix(['-', '+']).unwrap_or(&value);
    let parts = digits.split(':').count();
    // 60 to the power of 174 is no float any more: there the reference dies.
    matches!(digits, ".inf" | ".nan") || parts <= 174 && digits.split(':').all(is_python_float)
}

/// Does Python's `float(text)` accept this lower-case text?
fn is_python_float(text: &str) -> bool {
    const FORMS: [&str; 3] = [
        "[-+]?[0-9]+([.][0-9]*)?(e[-+]?[0-9]+)?",
        "[-+]?[.][0-9]+(e[-+]?[0-9]+)?",
        "[-+]?(infinity|inf|nan)",
    ];
    let text = text.trim();
    FORMS.iter().any(|form| resolve::matches(form, text))
}

/// A real date of the years 1 to 9999, a real time, and a zone of less than a day.
fn is_timestamp(value: &str) -> bool {
    let value = value.strip_suffix('\n').unwrap_or(value);
    let date = "[0-9][0-9][0-9][0-9]-[0-9][0-9]?-[0-9][0-9]?";
    if !resolve::matches(date, value) && !resolve::matches(resolve::TIMESTAMP, value) {
        return false;
    }
    let mut rest = value;
    let mut number = || {
        rest = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
        let (digits, tail) =
            rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
        rest = tail;
        digits.parse::<u32>().unwrap_or(0)
    };
    let (year, month, day) = (number(), number(), number());
    let (hour, minute, second) = (number(), number(), number());
    let days = match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let zone = rest.rsplit_once(['-', '+']).map_or("", |(_, zone)| zone);
    let (hours, minutes) = zone.split_once(':').unwrap_or((zone, "0"));
    let offset = hours.parse().unwrap_or(0) * 60 + minutes.parse().unwrap_or(0);
    let date_exists = year >= 1 && (1..=12).contains(&month) && (1..=days).contains(&day);
    date_exists && hour < 24 && minute < 60 && second < 60 && offset < 24 * 60
}

/// Does the reference decode this? Other characters are skipped; the padding ends the data, and what
/// follows it does not count.
fn is_base64(value: &str) -> bool {
    if !value.is_ascii() {
        return false;
    }
    let (mut place, mut pads) = (0, 0);
    for byte in value.bytes() {
        match byte {
            b'=' if place >= 2 => {
                pads += 1;
                if place + pads >= 4 {
                    return true;
                }
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => {
                place = (place + 1) % 4;
                pads = 0;
            }
            _ => {}
        }
    }
    place == 0
}

#[cfg(test)]
mod tests {
    use super::super::read;

    /// Left a value that is constructed, right a sibling that is not.
    const SIBLINGS: &[(&str, &str)] = &[
        ("2024-02-29", "2023-02-29"),
        ("2000-02-29", "1900-02-29"),
        ("0001-01-01", "0000-01-01"),
        ("2026-04-30", "2026-04-31"),
        ("2026-08-16T23:59:59", "2026-08-16T24:00:00"),
        ("2026-08-16T10:00:00+23:59", "2026-08-16T10:00:00+24:00"),
        ("!!timestamp 2026-8-1", "!!timestamp 2026-8"),
        ("0x_1", "0x_"),
        ("0b_1", "0b_"),
        ("!!int \"0o7\"", "!!int \"0o8\""),
        ("!!int \" +12 \"", "!!int \"1 2\""),
        ("!!int \"1:2\"", "!!int \"1:\""),
        ("!!float 1e5", "!!float e5"),
        ("!!float Infinity", "!!float infinit"),
        ("!!bool \"YES\"", "!!bool y"),
        ("!!binary aGk=", "!!binary aGk"),
        ("!!binary \"a G k = !\"", "!!binary a"),
        ("!!binary aG==aG", "!!binary é"),
        ("!!null x", "!!null [x]"),
        ("!!str {=: x}", "!!str {x: =}"),
        ("!!bool {=: yes}", "!!timestamp {=: 2001-01-01}"),
        ("!!int \"\\x0b6\\u3000\"", "!!int \"\\x1c6\""),
        ("!!float \"\\x851.5\"", "!!float \"1.5\\x1f\""),
        ("!!seq [a]", "!!seq {a: b}"),
        ("!!map {a: b}", "!!map [a]"),
        ("!!set {a, b}", "!!set [a, b]"),
        ("!!omap [a: 1, b: 2]", "!!omap [{a: 1, b: 2}]"),
        ("!!pairs [[a]: 1]", "!!pairs {a: 1}"),
        ("!!str x", "!!python/none x"),
        ("! x", "!x x"),
        ("{a: b}", "{[a]: b}"),
        ("{!!str {=: a}: b}", "{!!set {a}: b}"),
        ("[\"<<\"]", "[<<]"),
        ("{=: a}", "[=]"),
        ("{<<: {a: b}}", "{<<: a}"),
        ("{<<: [{a: b}, {}]}", "{<<: [{a: b}, c]}"),
        ("{<<: !x {a: b}}", "{<<: {a: !x b}}"),
        ("&a [*a]", "&a {*a : b}"),
    ];

    #[test]
    fn each_refusal_has_a_sibling_that_is_constructed() {
        for (good, bad) in SIBLINGS {
            assert!(read(&format!("- {good}\n")).is_ok(), "{good}");
            assert!(read(&format!("- {bad}\n")).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_are_refused_where_the_reference_cannot_convert_them() {
        assert!(read(&"7".repeat(4300)).is_ok());
        assert!(read(&"7".repeat(4301)).is_err());
        assert!(read(&format!("0x{}", "7".repeat(9000))).is_ok());
        assert!(read(&format!("1{}.5", ":1".repeat(173))).is_ok());
        assert!(read(&format!("1{}.5", ":1".repeat(174))).is_err());
        let directive = |zeros: usize| format!("%YAML {}1.1\n---\na", "0".repeat(zeros));
        assert!(read(&directive(4299)).is_ok());
        assert!(read(&directive(4300)).is_err());
    }
}
