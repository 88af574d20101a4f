//! The imports of a source tree, read as text: which file uses what of which other one.
//!
//! - An arrow leads from a file to the file that defines what it names, in a `use` or in a path.
//! - A name that comes through a `pub use` means the file that it comes from; the `pub use` itself is
//!   a signpost and no arrow, unless its own file uses the name too.
//! - A `mod x;` is no arrow, and neither is anything in a test module or in a file of tests.

use std::collections::{BTreeMap, BTreeSet};

/// From each file to those that it uses.
pub type Arrows = BTreeMap<String, BTreeSet<String>>;

type Path = Vec<String>;

/// A file, as far as it is of interest here.
#[derive(Default)]
struct Source {
    name: String,
    uses: Vec<Use>,
    /// Paths outside of `use`, each with the module that it stands in.
    paths: Vec<(Path, Path)>,
    /// Words that stand alone.
    words: BTreeSet<String>,
}

/// One name of a `use`.
struct Use {
    module: Path,
    path: Path,
    /// The name here; `*` for all.
    bound: String,
    public: bool,
}

/// Whether a file holds nothing but tests.
fn is_test(name: &str) -> bool {
    name.ends_with("/tests.rs") || name.ends_with("_tests.rs")
}

/// All arrows between these files, each of them a name that begins with `src/` and a text.
///
/// # Errors
/// A path into the crate leads nowhere: the reader is blind there.
pub fn arrows<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Arrows, Vec<String>> {
    let files = files.into_iter().filter(|(name, _)| !is_test(name));
    let house = House(files.map(|(name, text)| (module(name), read(name, text))).collect());
    let (mut arrows, mut lost) = (Arrows::new(), Vec::new());
    for source in house.0.values() {
        let mut to = BTreeSet::new();
        let signpost = |found: &&Use| !found.public || source.words.contains(&found.bound);
        let uses = source.uses.iter().filter(signpost).map(|found| (&found.module, &found.path));
        for (module, path) in uses.chain(source.paths.iter().map(|(module, path)| (module, path))) {
            match house.resolve(source, module, path, 0) {
                Some(found) => to.extend(found),
                None => lost.push(format!("{}: {}", source.name, path.join("::"))),
            }
        }
        to.remove(&source.name);
        arrows.insert(source.name.clone(), to);
    }
    if lost.is_empty() { Ok(arrows) } else { Err(lost) }
}

/// Every circle, as the files on it; one for each arrow that closes one.
pub fn circles(arrows: &Arrows) -> Vec<Vec<String>> {
    fn walk<'a>(
        at: &'a str,
        arrows: &'a Arrows,
        trail: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
        found: &mut Vec<Vec<String>>,
    ) {
        if let Some(start) = trail.iter().position(|passed| *passed == at) {
            found.push(trail[start..].iter().copied().map(str::to_owned).collect());
        } else if !done.contains(at) {
            trail.push(at);
            for next in arrows.get(at).into_iter().flatten() {
                walk(next, arrows, trail, done, found);
            }
            trail.pop();
            done.insert(at);
        }
    }
    let (mut done, mut found) = (BTreeSet::new(), Vec::new());
    for name in arrows.keys() {
        walk(name, arrows, &mut Vec::new(), &mut done, &mut found);
    }
    found
}

/// The module that a file is: `src/a/mod.rs` and `src/a.rs` are both `a`.
fn module(name: &str) -> Path {
    let path = name.trim_start_matches("src/").trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path == "lib" { Path::new() } else { path.split('/').map(str::to_owned).collect() }
}

/// All files by their modules.
struct House(BTreeMap<Path, Source>);

impl House {
    /// The files that a path means, as it stands in `module`: none for another crate, and several
    /// where each system has its own. `None` where it leads nowhere.
    fn resolve(
        &self,
        source: &Source,
        module: &[String],
        path: &[String],
        depth: usize,
    ) -> Option<Vec<String>> {
        // A name that only leads to itself is not ours.
        if depth > 16 {
            return Some(Vec::new());
        }
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" | "satyrn" => self.walk(Path::new(), rest, depth),
            "self" => self.walk(module.to_vec(), rest, depth),
            "super" => {
                let above = rest.iter().take_while(|word| *word == "super").count();
                let base = module.len().checked_sub(1 + above)?;
                self.walk(module[..base].to_vec(), &rest[above..], depth)
            }
            _ => {
                let child = [module, std::slice::from_ref(first)].concat();
                if self.0.contains_key(&child) {
                    return self.walk(child, rest, depth);
                }
                let bound = source.uses.iter().filter(|found| found.bound == *first);
                self.all(source, bound, rest, depth)
            }
        }
    }

    /// What several `use` mean together, with the rest of a path behind each.
    fn all<'a>(
        &self,
        source: &Source,
        uses: impl Iterator<Item = &'a Use>,
        rest: &[String],
        depth: usize,
    ) -> Option<Vec<String>> {
        let mut files = Vec::new();
        for found in uses {
            let path = [&found.path, rest].concat();
            files.extend(self.resolve(source, &found.module, &path, depth + 1)?);
        }
        Some(files)
    }

    /// From a module down a path, as far as there are modules; then to what is defined there.
    fn walk(&self, mut at: Path, path: &[String], depth: usize) -> Option<Vec<String>> {
        // A module that stands within a file.
        while !self.0.contains_key(&at) {
            at.pop()?;
        }
        for (index, word) in path.iter().enumerate() {
            at.push(word.clone());
            if self.0.contains_key(&at) {
                continue;
            }
            at.pop();
            let source = self.0.get(&at)?;
            let through = source.uses.iter().filter(|found| found.public && found.bound == *word);
            let files = self.all(source, through, &path[index + 1..], depth)?;
            return Some(if files.is_empty() { vec![source.name.clone()] } else { files });
        }
        Some(vec![self.0.get(&at)?.name.clone()])
    }
}

/// Reads one file.
fn read(name: &str, text: &str) -> Source {
    let tokens = tokens(text);
    let at = |index: usize| tokens.get(index).map_or("", String::as_str);
    let mut source = Source { name: name.to_owned(), ..Source::default() };
    let mut module = module(name);
    let (mut index, mut depth, mut testing, mut public) = (0, 0, false, false);
    // At which depth each module within this file began.
    let mut inner = Vec::new();
    while index < tokens.len() {
        match at(index) {
            "#" => {
                let start = index + if at(index + 1) == "!" { 2 } else { 1 };
                testing |=
                    tokens[start..].starts_with(&["[", "cfg", "(", "test", ")"].map(Into::into));
                index = after(&tokens, start, "[", "]");
                continue;
            }
            // A visibility is no use of what it names.
            "pub" => {
                public = true;
                let restricted = at(index + 1) == "(";
                index = if restricted { after(&tokens, index + 1, "(", ")") } else { index + 1 };
                continue;
            }
            "mod" if at(index + 2) == "{" && testing => {
                index = after(&tokens, index + 2, "{", "}") - 1;
            }
            "mod" if at(index + 2) == "{" => {
                module.push(at(index + 1).to_owned());
                inner.push(depth);
                depth += 1;
                index += 2;
            }
            "mod" => index += 1,
            // Not the `use<'a>` of a return type.
            "use" if at(index + 1) != "<" => {
                let mut names = Vec::new();
                index = tree(&tokens, index + 1, &Path::new(), &mut names);
                let used = names.into_iter().map(|(path, bound)| Use {
                    module: module.clone(),
                    path,
                    bound,
                    public,
                });
                source.uses.extend(used.filter(|_| !testing));
            }
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                if inner.last() == Some(&depth) {
                    inner.pop();
                    module.pop();
                }
            }
            word if is_word(word) && !(index > 0 && [".", "::"].contains(&at(index - 1))) => {
                let mut path = vec![word.to_owned()];
                while at(index + 1) == "::" && is_word(at(index + 2)) {
                    path.push(at(index + 2).to_owned());
                    index += 2;
                }
                if path.len() > 1 {
                    source.paths.push((module.clone(), path));
                } else {
                    source.words.extend(path);
                }
            }
            _ => {}
        }
        (testing, public) = (false, false);
        index += 1;
    }
    source
}

/// Reads one tree of a `use`; returns where it ends.
fn tree(
    tokens: &[String],
    mut index: usize,
    prefix: &Path,
    into: &mut Vec<(Path, String)>,
) -> usize {
    let mut path = prefix.clone();
    loop {
        match tokens[index].as_str() {
            "{" => {
                while tokens[index] != "}" {
                    index += 1;
                    if tokens[index] != "}" {
                        index = tree(tokens, index, &path, into);
                    }
                }
                return index + 1;
            }
            "*" => into.push((path.clone(), "*".to_owned())),
            "self" if !path.is_empty() => {}
            "::" => {}
            "as" => {
                into.push((path, tokens[index + 1].clone()));
                return index + 2;
            }
            word if is_word(word) => path.push(word.to_owned()),
            _ => {
                let bound = path.last().cloned().unwrap_or_default();
                if tokens[index - 1] != "*" {
                    into.push((path, bound));
                }
                return index;
            }
        }
        index += 1;
    }
}

/// Where the bracket that opens at `index` has been closed.
fn after(tokens: &[String], index: usize, open: &str, close: &str) -> usize {
    let mut depth = 0;
    for (offset, token) in tokens[index..].iter().enumerate() {
        depth += i32::from(token == open) - i32::from(token == close);
        if depth == 0 {
            return index + offset + 1;
        }
    }
    tokens.len()
}

fn is_word(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// The words and signs of a text, without comments, strings and characters.
fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            quoted(rest, '"')
        } else if let Some(length) = raw(rest) {
            length
        } else if first == '\'' {
            let mut next = rest[1..].chars();
            match (next.next(), next.next()) {
                (Some('\\'), _) | (_, Some('\'')) => quoted(rest, '\''),
                // A lifetime.
                _ => 1 + word(&rest[1..]),
            }
        } else {
            let length = match word(rest) {
                0 if rest.starts_with("::") => 2,
                0 => first.len_utf8(),
                length => length,
            };
            if !first.is_whitespace() {
                found.push(rest[..length].to_owned());
            }
            length
        };
        rest = &rest[length..];
    }
    found
}

fn word(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// The length of a string or character with escapes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        if c == quote && !escaped {
            return index + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

/// The length of a raw string, if one begins here.
fn raw(text: &str) -> Option<usize> {
    let start = text.strip_prefix('b').unwrap_or(text).strip_prefix('r')?;
    let marks = start.len() - start.trim_start_matches('#').len();
    let body = start[marks..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(marks));
    let before = text.len() - body.len();
    Some(before + body.find(&end).map_or(body.len(), |at| at + end.len()))
}
