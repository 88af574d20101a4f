//! What the sources cite of the specification stands there: "SPEC 2, row 7" is row 7 in the table of
//! section 2 of the page.

use std::path::{Path, PathBuf};

use crate::architecture::sources;
use regex_lite::{Captures, Regex};

/// The word that a citation begins with, and the page that it cites.
const PAGES: &[(&str, &str)] = &[("SPEC", "docs/spec/implement.md")];

/// How many citations a text has, and those that lead nowhere, each with the reason.
fn check(text: &str, pages: &[(&str, String)]) -> (usize, Vec<String>) {
    // A citation may go on in the next line of a comment.
    let text = Regex::new(r"\n\s*//[/!]? ?").unwrap().replace_all(text, " ");
    let part = r#"(?:, rows? ([0-9]+(?:(?:,? and |, | to )[0-9]+)*)|, "([^"]+)")?"#;
    let citation = Regex::new(&format!(r"\b(SPEC(?:-[A-Z]+)?)\b(?: ([0-9]+[a-z]?)\b{part})?"));
    let (mut cited, mut faults) = (0, Vec::new());
    for found in citation.unwrap().captures_iter(&text) {
        cited += 1;
        if let Err(why) = resolve(&found, pages) {
            faults.push(format!("{}: {why}", &found[0]));
        }
    }
    (cited, faults)
}

fn resolve(found: &Captures<'_>, pages: &[(&str, String)]) -> Result<(), String> {
    let (_, page) = pages.iter().find(|(prefix, _)| *prefix == &found[1]).ok_or("no such page")?;
    let number = found.get(2).ok_or("no number")?.as_str();
    let section = section(page, number).ok_or("no such section")?;
    for row in found.get(3).map_or_else(Vec::new, |rows| numbers(rows.as_str())) {
        let start = format!("| {row} |");
        if !section.lines().any(|line| line.starts_with(&start)) {
            return Err(format!("no row {row}"));
        }
    }
    let named = found.get(4).map_or("", |name| name.as_str());
    if section.contains(named) { Ok(()) } else { Err("no such words".to_owned()) }
}

/// The text below the heading of that number.
fn section<'a>(page: &'a str, number: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("\n## {number}. "))?;
    rest.split("\n## ").next()
}

/// The numbers of `1`, `1 and 2`, `1, 2 and 3` or `1 to 3`.
fn numbers(rows: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> = Vec::new();
    let mut span = false;
    for word in rows.replace(',', " ").split_whitespace() {
        match word.parse::<u32>() {
            Ok(number) => {
                let first = numbers.last().filter(|_| span).map_or(number, |last| last + 1);
                numbers.extend(first..=number);
                span = false;
            }
            Err(_) => span = word == "to",
        }
    }
    numbers
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn pages() -> Vec<(&'static str, String)> {
    let text = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    PAGES.iter().map(|(prefix, path)| (*prefix, text(path))).collect()
}

#[test]
fn every_citation_of_the_specification_resolves() {
    let pages = pages();
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    sources(&root().join("tests"), &mut files);
    // What is planted below leads nowhere.
    files.retain(|file: &PathBuf| !file.ends_with("integration/spec.rs"));
    let (mut cited, mut faults) = (0, Vec::new());
    for file in files {
        let (here, wrong) = check(&std::fs::read_to_string(&file).unwrap(), &pages);
        cited += here;
        faults.extend(wrong.into_iter().map(|fault| format!("{}: {fault}", file.display())));
    }
    assert_eq!(faults, Vec::<String>::new());
    assert!(cited > 15, "{cited}");
}

#[test]
fn a_planted_citation_is_found() {
    let pages = pages();
    for text in [
        "SPEC 1",
        "(SPEC 6b).",
        "(SPEC 2, row 7)",
        "(SPEC 2, rows 1 and 2)",
        "SPEC 2, rows 1, 2, and 11",
        "SPEC 2, rows 1 to 11",
        "(SPEC 2, the table)",
        "(SPEC 2, \"The line\")",
        "//! a line that ends in SPEC\n//! 2, row 11",
    ] {
        assert_eq!(check(text, &pages), (1, Vec::new()), "{text}");
    }
    for (text, fault) in [
        ("SPEC 8", "SPEC 8: no such section"),
        ("SPEC 6c", "SPEC 6c: no such section"),
        ("(SPEC 2, row 12)", "SPEC 2, row 12: no row 12"),
        ("SPEC 2, rows 1, 2, and 13", "SPEC 2, rows 1, 2, and 13: no row 13"),
        ("(SPEC 2, rows 10 to 13)", "SPEC 2, rows 10 to 13: no row 12"),
        ("SPEC 3, row 1", "SPEC 3, row 1: no row 1"),
        ("SPEC 2, \"No such words\"", "SPEC 2, \"No such words\": no such words"),
        ("/// as SPEC 2, rows 1\n    /// and 99", "SPEC 2, rows 1 and 99: no row 99"),
        ("as the SPEC says", "SPEC: no number"),
        ("SPEC-NONE 1", "SPEC-NONE 1: no such page"),
    ] {
        let (_, faults) = check(text, &pages);
        assert_eq!(faults, [fault], "{text}");
    }
    assert_eq!(check("COMSPEC", &pages), (0, Vec::new()));
    assert_eq!(numbers("1, 3 and 6 to 8"), [1, 3, 6, 7, 8]);
}
