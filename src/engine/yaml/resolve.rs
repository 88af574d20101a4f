//! What an untagged plain scalar is: the types of yaml.org/type as the reference resolves them.

use super::terms::Tag;

/// One type, the characters its scalars can start with (which only saves time), and their form.
struct Row(Tag, &'static str, Form);

enum Form {
    /// One of these.
    Words(&'static [&'static str]),
    /// In the notation below.
    Pattern(&'static str),
}
use Form::{Pattern, Words};

/// A scalar has the tag of the first row whose form is the whole of it, and is a string if none is.
///
/// The patterns are those of the YAML 1.1 type repository as observed of the reference, which
/// differs: `y` and `n` are strings, a float's exponent needs a sign and its mantissa a dot, a float
/// without digits before the dot takes no sign.
/// Notation: `[a-z]` one of these, `(a|b)` alternatives, and `?`, `*`, `+` behind either or behind
/// a single character. A step takes as much as it can and never gives back.
const ROWS: &[Row] = &[
    Row(Tag::Null, "~nN", Words(&["~", "null", "Null", "NULL"])),
    Row(Tag::Bool, "yYnN", Words(&["yes", "Yes", "YES", "no", "No", "NO"])),
    Row(Tag::Bool, "tTfF", Words(&["true", "True", "TRUE", "false", "False", "FALSE"])),
    Row(Tag::Bool, "oO", Words(&["on", "On", "ON", "off", "Off", "OFF"])),
    Row(Tag::Int, "-+0", Pattern("[-+]?0b[01_]+")),
    Row(Tag::Int, "-+0", Pattern("[-+]?0x[0-9a-fA-F_]+")),
    Row(Tag::Int, "-+0", Pattern("[-+]?0[0-7_]*")),
    Row(Tag::Int, "-+123456789", Pattern("[-+]?[1-9][0-9_]*")),
    Row(Tag::Int, "-+123456789", Pattern("[-+]?[1-9][0-9_]*(:([0-5][0-9]|[0-9]))+")),
    Row(Tag::Float, "-+0123456789", Pattern("[-+]?[0-9][0-9_]*[.][0-9_]*([eE][-+][0-9]+)?")),
    Row(Tag::Float, ".", Pattern("[.][0-9][0-9_]*([eE][-+][0-9]+)?")),
    Row(Tag::Float, "-+0123456789", Pattern("[-+]?[0-9][0-9_]*(:([0-5][0-9]|[0-9]))+[.][0-9_]*")),
    Row(Tag::Float, "-+.", Pattern("[-+]?[.](inf|Inf|INF)")),
    Row(Tag::Float, ".", Pattern("[.](nan|NaN|NAN)")),
    Row(Tag::Timestamp, "0123456789", Pattern("[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]")),
    Row(Tag::Timestamp, "0123456789", Pattern(TIMESTAMP)),
    Row(Tag::Merge, "<", Words(&["<<"])),
    Row(Tag::Value, "=", Words(&["="])),
    // yaml.org/type/yaml, which has no constructor; only a quoted scalar behind `!` can be this.
    Row(Tag::Unknown, "!&*", Words(&["!", "&", "*"])),
];

/// A date with a time (yaml.org/type/timestamp).
pub(super) const TIMESTAMP: &str = "[0-9][0-9][0-9][0-9]-[0-9][0-9]?-[0-9][0-9]?([Tt]|[ \t]+)\
    [0-9][0-9]?:[0-9][0-9]:[0-9][0-9]([.][0-9]*)?([ \t]*(Z|[-+][0-9][0-9]?(:[0-9][0-9])?))?";

/// The tag of an untagged plain scalar. An empty one is null.
pub(super) fn plain(value: &str) -> Tag {
    let Some(first) = value.bytes().next() else {
        return Tag::Null;
    };
    let mut left = CANDIDATES[usize::from(first)];
    while left != 0 {
        let row = &ROWS[left.trailing_zeros() as usize];
        let is_it = match row.2 {
            Words(words) => words.contains(&value),
            Pattern(pattern) => matches(pattern, value),
        };
        if is_it {
            return row.0;
        }
        left &= left - 1;
    }
    Tag::Str
}

/// For each first byte, the rows that can match, one bit each. Most scalars have none.
const CANDIDATES: [u32; 256] = {
    let mut table = [0; 256];
    let mut row = 0;
    while row < ROWS.len() {
        let firsts = ROWS[row].1.as_bytes();
        let mut at = 0;
        while at < firsts.len() {
            table[firsts[at] as usize] |= 1 << row;
            at += 1;
        }
        row += 1;
    }
    table
};

/// Is `value` as a whole what `pattern` describes?
pub(super) fn matches(pattern: &str, value: &str) -> bool {
    run(pattern.as_bytes(), value.as_bytes()) == Some(value.len())
}

/// How much of the start of `value` the pattern takes; `None` where it does not match.
fn run(mut pattern: &[u8], value: &[u8]) -> Option<usize> {
    let mut at = 0;
    while !pattern.is_empty() {
        let (step, rest) = pattern.split_at(step_length(pattern));
        let (repeat, rest) = match rest.split_first() {
            Some((c @ (b'?' | b'*' | b'+'), rest)) => (Some(*c), rest),
            _ => (None, rest),
        };
        pattern = rest;
        let mut times = 0;
        while (times == 0 || matches!(repeat, Some(b'*' | b'+')))
            && let Some(length) = once(step, value.get(at..)?)
        {
            at += length;
            times += 1;
        }
        if times == 0 && !matches!(repeat, Some(b'?' | b'*')) {
            return None;
        }
    }
    Some(at)
}

/// One step of a pattern, once. Steps that repeat are never empty.
fn once(step: &[u8], value: &[u8]) -> Option<usize> {
    match step {
        [b'(', inner @ .., b')'] => alternatives(inner).find_map(|pattern| run(pattern, value)),
        [b'[', class @ .., b']'] => value.first().filter(|c| in_class(class, **c)).map(|_| 1),
        [c] => value.first().filter(|v| *v == c).map(|_| 1),
        _ => None,
    }
}

fn step_length(pattern: &[u8]) -> usize {
    let mut depth = 0_usize;
    for (at, c) in pattern.iter().enumerate() {
        depth = match c {
            b'(' | b'[' => depth + 1,
            b')' | b']' => depth.saturating_sub(1),
            _ => depth,
        };
        if depth == 0 {
            return at + 1;
        }
    }
    pattern.len()
}

fn alternatives(inner: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut depth = 0_usize;
    inner.split(move |c| {
        match c {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        *c == b'|' && depth == 0
    })
}

fn in_class(class: &[u8], c: u8) -> bool {
    match class {
        [low, b'-', high, rest @ ..] => (*low..=*high).contains(&c) || in_class(rest, c),
        [first, rest @ ..] => *first == c || in_class(rest, c),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_have_the_types_observed_of_the_reference() {
        let table: &[(Tag, &[&str])] = &[
            (Tag::Null, &["", "~", "null", "Null", "NULL"]),
            (Tag::Bool, &["yes", "No", "ON", "off", "true", "False", "TRUE"]),
            (
                Tag::Int,
                &["0", "-0", "+12", "1_000", "1_", "017", "0_7", "0b1_0", "0x_", "0xfF", "-0x1"],
            ),
            (Tag::Int, &["1:30", "12:30:45", "-1:0", "190:20:30"]),
            (Tag::Float, &["1.", "1.5", "-1_0.5", "08.5", "1.0e+3", "1.e-3", ".5", ".5e+1"]),
            (Tag::Float, &["1:30.5", "0:1.", ".inf", "-.INF", "+.Inf", ".nan", ".NaN"]),
            (
                Tag::Timestamp,
                &["2026-08-16", "2026-99-99", "2026-8-1 1:02:03", "2026-08-16T10:00:00Z"],
            ),
            (Tag::Timestamp, &["2026-08-16\t10:00:00.5 +1", "2026-08-16t10:00:00-05:30"]),
            (Tag::Merge, &["<<"]),
            (Tag::Value, &["="]),
            (Tag::Unknown, &["!", "&", "*"]),
            (
                Tag::Str,
                &["y", "N", "yES", "nULL", "~~", "tRue", "_1", "08", "0o7", "0b2", "0xg", "1,0"],
            ),
            (
                Tag::Str,
                &["1:60", "0:30", "1e3", "1.0e3", "+.5", "-.5", ".", "-.nan", "inf", "1.5x"],
            ),
            (
                Tag::Str,
                &["2026-8-1", "2026-08", "2026-08-16T10:00", "2026-08-16T10:00:00z", "<<<", "=="],
            ),
        ];
        for (tag, values) in table {
            for value in *values {
                assert_eq!(plain(value), *tag, "{value:?}");
            }
        }
    }
}
