//! The contract: a YAML mapping that names at least an `id` and a `task`.
//!
//! Pure: from text to a verdict. The verdicts are those of the reference engine; the messages are ours.

use super::yaml::{
    self, Document, NodeId, Shape, Tag, is_break, is_python_space, line_and_column, short, word,
};
use std::collections::HashSet;

/// What an accepted contract states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Not blank. Half a surrogate pair, which only an escape can write, has become U+FFFD.
    pub id: String,
    /// Not blank, as `id`.
    pub task: String,
    /// What is accepted and yet likely not meant, one sentence each.
    pub warnings: Vec<String>,
}

/// Why a text is no contract: the complete message, one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not one YAML document that the reference loads.
    InvalidYaml(String),
    /// No mapping, or a mapping without one of the fields.
    MissingField(String),
}

/// Judges the text of a contract; `path` is only for the messages. Lines and columns count from 1,
/// columns in characters.
///
/// # Errors
/// [`Fault::InvalidYaml`] for what is not one YAML 1.1 document that the reference loads, or nests
/// deeper than [`yaml::MAX_DEPTH`]; [`Fault::MissingField`] for a root that is no mapping, and for an
/// `id` or `task` that is absent, null, not a string or blank.
pub fn parse(path: &str, text: &str) -> Result<Contract, Fault> {
    let document = yaml::read(text).map_err(|error| {
        let (line, column) = line_and_column(text, error.at);
        let remedy = error.remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default();
        Fault::InvalidYaml(format!(
            "invalid YAML in {path}: {}, line {line}, column {column}{remedy}",
            error.what
        ))
    })?;
    let not_mapping =
        |noun| Fault::MissingField(format!("top level of {path} must be a mapping, not {noun}"));
    let root = document.root().ok_or_else(|| not_mapping("null"))?;
    if document.tag(root) != Tag::Map {
        return Err(not_mapping(noun(&document, root)));
    }
    match (field(&document, root, "id"), field(&document, root, "task")) {
        (Ok(id), Ok(task)) => {
            let warnings =
                ["id", "task"].iter().flat_map(|name| warnings(&document, root, name)).collect();
            Ok(Contract { id, task, warnings })
        }
        (id, task) => {
            let problems: Vec<String> = id.err().into_iter().chain(task.err()).collect();
            Err(Fault::MissingField(problems.join("; ")))
        }
    }
}

fn field(document: &Document<'_>, root: NodeId, name: &str) -> Result<String, String> {
    let Some((key, value)) = find(document, root, name) else {
        return Err(format!("missing required field '{name}'{}", other_case(document, root, name)));
    };
    match document.scalar(value) {
        Ok((_, text)) if document.tag(value) == Tag::Str && !is_blank(text) => Ok(text.to_owned()),
        _ => {
            let hint = read_as(document, key, value).map(|hint| format!(" ({hint})"));
            let hint = hint.unwrap_or_default();
            Err(format!("required field '{name}' must be a non-empty string{hint}"))
        }
    }
}

fn is_blank(text: &str) -> bool {
    text.chars().all(is_python_space)
}

/// A key that is the name but for its case.
fn other_case(document: &Document<'_>, root: NodeId, name: &str) -> String {
    document
        .pairs(root)
        .filter_map(|(key, _)| key_of(document, key))
        .find(|key| key.eq_ignore_ascii_case(name))
        .map(|key| format!(" (found '{key}'; field names are lower case)"))
        .unwrap_or_default()
}

/// The pair that counts for a key: the last one in the mapping itself, or else in what is merged
/// into it; a later `<<` goes before an earlier one, and in its list the first mapping goes first (as
/// yaml.org/type/merge says, and the reference up to version 6.0.3; 6.0.4 takes the last).
fn find(document: &Document<'_>, root: NodeId, name: &str) -> Option<(NodeId, NodeId)> {
    let mut visited = HashSet::new();
    let mut stack = vec![root];
    while let Some(id) = stack.pop() {
        if !visited.insert(id) {
            continue;
        }
        // The stack is taken from its end: there what has precedence has to stand.
        let start = stack.len();
        if document.shape(id) == Shape::Sequence {
            stack.extend(document.children(id));
            stack[start..].reverse();
            continue;
        }
        if let Some(pair) = own_pairs(document, id, name).last() {
            return Some(pair);
        }
        let merges = document.pairs(id).filter(|(key, _)| document.tag(*key) == Tag::Merge);
        stack.extend(merges.map(|(_, value)| value));
    }
    None
}

fn own_pairs(
    document: &Document<'_>,
    mapping: NodeId,
    name: &str,
) -> impl Iterator<Item = (NodeId, NodeId)> {
    document.pairs(mapping).filter(move |(key, _)| key_of(document, *key) == Some(name))
}

/// The string that a key is, if it is one.
fn key_of<'d>(document: &'d Document<'_>, key: NodeId) -> Option<&'d str> {
    let (_, text) = document.scalar(key).ok()?;
    Some(text).filter(|_| document.tag(key) == Tag::Str)
}

/// What a node is, for `not <noun>` and `read as <noun>`.
fn noun(document: &Document<'_>, id: NodeId) -> &'static str {
    let text = document.scalar(id).map(|(_, text)| text).unwrap_or_default();
    match document.tag(id) {
        Tag::Null => "null",
        Tag::Bool => "a boolean",
        Tag::Int if text.contains(':') => "a sexagesimal integer",
        Tag::Int => "an integer",
        Tag::Float => "a float",
        Tag::Timestamp if text.contains(':') => "a date and time",
        Tag::Timestamp => "a date",
        Tag::Binary => "binary data",
        Tag::Str => "a string",
        Tag::Seq | Tag::Omap | Tag::Pairs => "a list",
        Tag::Set => "a set",
        Tag::Map => "a mapping",
        Tag::Merge | Tag::Value | Tag::Unknown => "a special value",
    }
}

/// What the value of a field was read as, and what to do, where the value does not show it.
fn read_as(document: &Document<'_>, key: NodeId, id: NodeId) -> Option<String> {
    let source = &document.text()[document.span(id).start..];
    let blank = document.scalar(id).is_ok_and(|(_, text)| is_blank(text));
    match document.tag(id) {
        Tag::Str => None,
        Tag::Null if blank && source.starts_with('&') => {
            let anchor = short(word(source));
            Some(format!("read as the anchor '{anchor}' of an empty value; quote it"))
        }
        Tag::Null if blank => comment_behind(document, document.span(key).end + 1).map(|comment| {
            format!("it is empty, because '{comment}' is read as a comment; quote it")
        }),
        _ => {
            let quote = document.shape(id) == Shape::Plain || source.starts_with(['[', '{']);
            let remedy = if quote { "; quote it" } else { "" };
            Some(format!("read as {}{remedy}", noun(document, id)))
        }
    }
}

/// The comment that follows in the same line after nothing but spaces.
fn comment_behind(document: &Document<'_>, end: usize) -> Option<String> {
    let rest = document.text().get(end..)?.split(is_break).next()?;
    let comment = rest.trim_start_matches(' ');
    let is_comment = comment.starts_with('#') && comment.len() < rest.len();
    is_comment.then(|| short(comment.trim_end()))
}

fn warnings(document: &Document<'_>, root: NodeId, name: &str) -> Vec<String> {
    let text = document.text();
    let line = |id| line_and_column(text, document.span(id).start).0;
    let mut found = Vec::new();
    let given: Vec<_> = own_pairs(document, root, name).collect();
    if let [(first, _), .., (last, _)] = given[..] {
        let (first, last) = (line(first), line(last));
        found.push(format!(
            "field '{name}' is given more than once (lines {first} and {last}); the last one counts"
        ));
    }
    let value = find(document, root, name).map(|(_, value)| value);
    if let Some(value) = value.filter(|value| document.shape(*value) == Shape::Plain) {
        let std::ops::Range { start, end } = document.span(value);
        let anchor = word(&text[start..end]);
        if anchor.starts_with('&') && !text.contains(&anchor.replacen('&', "*", 1)) {
            let line = line_and_column(text, start).0;
            let anchor = short(anchor);
            found.push(format!(
                "field '{name}', line {line}: '{anchor}' is read as an anchor and cut off; \
                 quote the value to keep it"
            ));
        }
        found.extend(comment_behind(document, end).map(|cut| {
            let line = line_and_column(text, end).0;
            format!(
                "field '{name}', line {line}: '{cut}' is read as a comment and cut off; \
                 quote the value to keep it"
            )
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(text: &str) -> String {
        match parse("c.yaml", text) {
            Ok(contract) => format!("OK {}", contract.warnings.join(" | ")),
            Err(Fault::InvalidYaml(message) | Fault::MissingField(message)) => message,
        }
    }

    #[test]
    fn a_contract_states_id_and_task() {
        let contract = parse("c.yaml", "id: i\ntask: |\n  fix\n  it\n").unwrap();
        assert_eq!((contract.id.as_str(), contract.task.as_str()), ("i", "fix\nit\n"));
        assert!(contract.warnings.is_empty());
    }

    #[test]
    fn messages_name_the_problem_the_place_and_the_remedy() {
        let table = [
            ("", "top level of c.yaml must be a mapping, not null"),
            ("- a", "top level of c.yaml must be a mapping, not a list"),
            ("a", "top level of c.yaml must be a mapping, not a string"),
            ("12", "top level of c.yaml must be a mapping, not an integer"),
            ("!!set {id, task}", "top level of c.yaml must be a mapping, not a set"),
            ("x: y", "missing required field 'id'; missing required field 'task'"),
            (
                "Id: i\ntask: t",
                "missing required field 'id' (found 'Id'; field names are lower case)",
            ),
            ("id: ' '\ntask: t", "required field 'id' must be a non-empty string"),
            ("id:\ntask: t", "required field 'id' must be a non-empty string"),
            (
                "id: #1\ntask: t",
                "required field 'id' must be a non-empty string \
                 (it is empty, because '#1' is read as a comment; quote it)",
            ),
            (
                "id: &x\ntask: t",
                "required field 'id' must be a non-empty string \
                 (read as the anchor '&x' of an empty value; quote it)",
            ),
            (
                "task: [a]\nid: yes",
                "required field 'id' must be a non-empty string (read as a boolean; quote it); \
                 required field 'task' must be a non-empty string (read as a list; quote it)",
            ),
            (
                "id: i\ntask: *important*",
                "invalid YAML in c.yaml: '*' starts an alias, and '*' cannot stand in its name, \
                 line 2, column 17; quote the value",
            ),
            (
                "id: i\n\ttask: t",
                "invalid YAML in c.yaml: a tab used for indentation, line 2, column 1; indent with spaces",
            ),
            (
                "id: é: x",
                "invalid YAML in c.yaml: a second ': ' in one line, line 1, column 6; quote the value",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(message(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_field_read_as_something_else_says_as_what() {
        let table = [
            ("yes", "a boolean"),
            ("1_000", "an integer"),
            ("12:30:45", "a sexagesimal integer"),
            ("1.0e+3", "a float"),
            ("2026-08-16", "a date"),
            ("2026-08-16 10:00:00", "a date and time"),
            ("~", "null"),
            ("{a: b}", "a mapping"),
        ];
        for (value, noun) in table {
            let message = message(&format!("id: {value}\ntask: t\n"));
            assert!(message.ends_with(&format!("(read as {noun}; quote it)")), "{message}");
            assert_eq!(self::message(&format!("id: '{value}'\ntask: t\n")), "OK ");
        }
    }

    #[test]
    fn usual_mistakes_are_named_with_line_column_and_remedy() {
        let table = [
            ("fix: the bug", "column 10; quote the value"),
            ("*bold", "column 7; quote the value"),
            ("@x", "column 7; quote the value"),
            ("%x", "column 7; quote the value"),
            ("`x`", "column 7; quote the value"),
            ("- x", "column 7; quote the value, or start a new line"),
            ("!x", "column 7; quote the value"),
            ("'x", "column 7; close the quote"),
            ("[x", "column 7; close it, or quote the value"),
            ("[x] y", "column 11; quote the whole value, or check the indentation"),
            ("\"C:\\Users\"", "column 10; write '\\\\' for a backslash, or use single quotes"),
        ];
        for (task, end) in table {
            let message = message(&format!("id: i\ntask: {task}\n"));
            assert!(message.ends_with(&format!("line 2, {end}")), "{message}");
        }
        let two = message("id: i\ntask: t\n---\n");
        assert!(
            two.ends_with("line 3, column 1; a contract is one document: remove the other"),
            "{two}"
        );
    }

    #[test]
    fn what_is_likely_not_meant_is_warned_of() {
        let cut = "OK field 'task', line 2: '#12' is read as a comment and cut off; quote the value to keep it";
        assert_eq!(message("id: i\ntask: fix #12\n"), cut);
        assert_eq!(message("id: i\ntask: 'fix #12' # note\n"), "OK ");
        assert_eq!(message("id: i\ntask: fix#12\n"), "OK ");
        let anchor = "OK field 'task', line 2: '&more' is read as an anchor and cut off; quote the value to keep it";
        assert_eq!(message("id: i\ntask: &more tests\n"), anchor);
        assert_eq!(message("id: &x i\ntask: *x\n"), "OK ");
        let twice = "OK field 'id' is given more than once (lines 1 and 3); the last one counts";
        assert_eq!(message("id: i\ntask: t\nid: j\n"), twice);
    }

    #[test]
    fn merge_keys_give_fields_without_expansion() {
        let id = |text| parse("c.yaml", text).map(|contract| contract.id).ok();
        let table = [
            ("<<: {id: a}\ntask: t", Some("a")),
            ("id: b\n<<: {id: a}\ntask: t", Some("b")),
            ("<<: [{id: a}, {id: b}]\ntask: t", Some("a")),
            ("<<: {id: a}\n<<: {id: b}\ntask: t", Some("b")),
            ("<<: {<<: {id: a}}\ntask: t", Some("a")),
            ("<<: {id: 1}\ntask: t", None),
            ("'<<': {id: a}\ntask: t", None),
            ("&r\n<<: *r\nid: a\ntask: t", Some("a")),
        ];
        for (text, expected) in table {
            assert_eq!(id(text).as_deref(), expected, "{text:?}");
        }
    }

    /// A thread of 2 MiB, as the smallest a caller may have.
    fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
        std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
    }

    #[test]
    fn depth_is_bounded() {
        on_a_small_stack(|| {
            let nested =
                |n: usize| format!("id: i\ntask: t\nx: {}{}\n", "[".repeat(n), "]".repeat(n));
            assert_eq!(message(&nested(yaml::MAX_DEPTH)), "OK ");
            assert!(message(&nested(yaml::MAX_DEPTH + 1)).contains("deeper than 250 levels"));
        });
    }

    #[test]
    fn hostile_texts_end_soon() {
        on_a_small_stack(|| {
            let fill = |part: &str| part.repeat((1 << 18) / part.len());
            for part in [
                "[", "{a: ", "- ", "? ", "? - ", "&a ", "a\n ", "\"", "'", "---\n", "[[]]: ",
                "%A\n", "!a", "\\\n",
            ] {
                message(&fill(part));
                message(&format!("id: i\ntask: {}", fill(part)));
            }
            let links = |first: &str, link: &dyn Fn(usize) -> String| {
                (1..20_000).fold(format!("x:\n- &a0 {first}\n"), |text, n| text + &link(n))
            };
            let laughs = links("[x]", &|n| format!("- &a{n} [*a{0},*a{0},*a{0}]\n", n - 1));
            assert_eq!(message(&format!("{laughs}id: i\ntask: t\n")), "OK ");
            let merges = links("{id: i}", &|n| format!("- &a{n} {{<<: [*a{0},*a{0}]}}\n", n - 1));
            assert_eq!(message(&format!("{merges}<<: *a900\ntask: t\n")), "OK ");
            assert!(message(&format!("{merges}<<: *a19999\ntask: t\n")).contains("too deep"));
        });
    }

    proptest! {
        #[test]
        fn any_text_gets_a_verdict(text in any::<String>()) {
            message(&text);
        }

        #[test]
        fn any_text_of_indicators_gets_a_verdict(
            text in "([-?:,\\[\\]{}#&*!|>'\"%@`~=<a1 \t\n\r\u{85}\u{2028}\u{feff}\\\\]|---|: |- |\n  |<<: |&a |\\*a|!!str ){0,60}",
        ) {
            let message = message(&format!("id: i\ntask: {text}"));
            prop_assert!(!message.contains(['\n', '\r']), "{message:?}");
        }
    }
}
