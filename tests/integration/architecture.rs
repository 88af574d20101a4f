//! The house's rules that no lint can keep, checked on the text of the sources.

use std::path::{Path, PathBuf};

use crate::imports::{arrows, circles};

/// Who may use what. Each rule: a text, and the files that may hold it.
const RULES: &[(&str, &[&str])] = &[
    ("crate::host", &["src/host/", "src/bin/"]),
    ("satyrn::host", &["src/bin/"]),
    ("crate::engine", &["src/engine/", "src/bin/"]),
    ("tokio::", &["src/host/process/", "src/host/exchange/"]),
    ("clap::", &["src/host/cli/", "src/engine/cli.rs"]),
    ("Command::new(", &["src/host/process/"]),
    ("std::process::exit", &["src/host/process/unix/launch.rs"]),
];

/// Doors that are shut, by the imports: whoever stands in the first room uses nothing of the second
/// ones, but for what is named third.
const DOORS: &[(&str, &[&str], &[&str])] = &[
    // The lowest room of the host knows what it is to start, and nothing of who wants it.
    (
        "src/host/process/",
        &["src/host/"],
        &[
            "src/host/process/",
            "src/host/exchange/launch.rs",
            "src/host/exchange/observation.rs",
            "src/host/exchange/cancel.rs",
            "src/host/program.rs",
        ],
    ),
    // One exchange serves all commands, so it knows none.
    (
        "src/host/exchange/",
        &[
            "src/host/implement/",
            "src/host/call/",
            "src/host/spawn/",
            "src/host/drill/",
            "src/host/doctor/",
            "src/host/cli/",
            "src/host/report.rs",
        ],
        &[],
    ),
    // Each command has words of its own.
    ("src/host/implement/", &["src/host/call/", "src/host/spawn/"], &[]),
    ("src/host/call/", &["src/host/implement/", "src/host/spawn/"], &[]),
    ("src/host/spawn/", &["src/host/implement/", "src/host/call/"], &[]),
    // What tries a command stands above it.
    ("src/host/implement/", &["src/host/drill/", "src/host/doctor/"], &[]),
    ("src/json.rs", &["src/host/", "src/engine/"], &[]),
    ("src/line.rs", &["src/host/", "src/engine/"], &[]),
    ("src/duration.rs", &["src/host/", "src/engine/"], &[]),
    ("src/protocol.rs", &["src/host/", "src/engine/"], &[]),
];

/// Arrows that are there all the same, each with its reason. One that is gone has to go here too.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// The page that describes the house.
fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md");
    std::fs::read_to_string(path).unwrap()
}

/// What stands between backticks in a text.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The floors of the page's table of rooms: the beginning of a name, and the floor.
fn floors(page: &str) -> Vec<(&str, u8)> {
    let mut floors = Vec::new();
    for row in page.lines().filter(|line| line.starts_with("| `src/")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        if let [rooms, _, floor] = cells[..] {
            let floor = floor.parse().unwrap();
            floors.extend(quoted(rooms).map(|room| (room, floor)));
        }
    }
    floors
}

/// The floor of a file: of several rooms, the one with the longest name counts.
fn floor(name: &str, floors: &[(&str, u8)]) -> Option<u8> {
    let rooms = floors.iter().filter(|(room, _)| name.starts_with(room));
    rooms.max_by_key(|(room, _)| room.len()).map(|(_, floor)| *floor)
}

/// Files without a floor, and those that use one of a higher floor.
fn climbs<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
    floors: &[(&str, u8)],
) -> Vec<String> {
    let mut found = Vec::new();
    for (from, to) in arrows(files).unwrap() {
        let Some(own) = floor(&from, floors) else {
            found.push(format!("no floor: {from}"));
            continue;
        };
        let above = to.iter().filter(|to| floor(to, floors).is_some_and(|floor| floor > own));
        found.extend(above.map(|to| format!("up: {from} -> {to}")));
    }
    found
}

/// Every source below a directory.
pub fn sources(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            into.push(path);
        }
    }
}

fn breaches(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (what, homes) in RULES {
        let at_home = homes.iter().any(|home| name.starts_with(home));
        if text.contains(what) && !at_home {
            found.push(format!("{name}: {what}"));
        }
    }
    found
}

/// What is wrong with the imports of a tree.
fn shut_doors<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut arrows = match arrows(files) {
        Ok(arrows) => arrows,
        Err(lost) => return lost,
    };
    let mut found = Vec::new();
    for (from, to) in arrows.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to))) {
        let goes = |rooms: &[&str]| rooms.iter().any(|room| to.starts_with(room));
        let through = DOORS
            .iter()
            .any(|(room, shut, open)| from.starts_with(room) && goes(shut) && !goes(open));
        if through {
            found.push(format!("door: {from} -> {to}"));
        }
    }
    for (from, to, _) in EXCEPTIONS {
        // In a planted tree there is none of them.
        if arrows.get_mut(*from).is_some_and(|targets| !targets.remove(*to)) {
            found.push(format!("no exception any more: {from} -> {to}"));
        }
    }
    found.extend(circles(&arrows).iter().map(|files| format!("circle: {}", files.join(" -> "))));
    found
}

#[test]
fn every_package_has_the_crates_version() {
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/packages/engine/package.json");
    assert!(std::fs::read_to_string(manifest).unwrap().contains(&version), "{version}");
}

#[test]
fn every_source_keeps_to_its_room() {
    for (name, text) in tree() {
        assert_eq!(breaches(&name, &text), Vec::<String>::new());
    }
}

/// Every source of ours, by its name, with its text.
fn tree() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    assert!(files.len() > 10);
    let read = |file: PathBuf| {
        let name = file.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
        (name, std::fs::read_to_string(&file).unwrap())
    };
    files.into_iter().map(read).collect()
}

#[test]
fn no_import_goes_through_a_shut_door_or_round_in_a_circle() {
    let tree = tree();
    let files = tree.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    assert_eq!(shut_doors(files), Vec::<String>::new());
}

#[test]
fn no_file_uses_one_of_a_higher_floor_of_the_page() {
    let (page, tree) = (page(), tree());
    let floors = floors(&page);
    assert!(floors.len() > 10);
    let files = || tree.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    assert_eq!(climbs(files(), &floors), Vec::<String>::new());
    let planted = [
        ("src/host/env.rs", "use crate::host::cli::parse; use crate::line;"),
        ("src/host/new.rs", "use crate::line;"),
    ];
    let others = files().filter(|(name, _)| *name != planted[0].0);
    let found = climbs(others.chain(planted), &floors);
    assert_eq!(found, ["up: src/host/env.rs -> src/host/cli/mod.rs", "no floor: src/host/new.rs"]);
}

#[test]
fn every_file_that_the_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = page();
    let is_path = |word: &&str| {
        let tops = ["src/", "tests/", "docs/", "fixtures/", "packages/", ".cargo/"];
        tops.iter().any(|top| word.starts_with(top)) && !word.contains(' ')
    };
    let named: Vec<&str> = page.lines().flat_map(quoted).filter(is_path).collect();
    assert!(named.len() > 50);
    let missing: Vec<_> = named.into_iter().filter(|path| !root.join(path).exists()).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// A small house in which all is well.
const HOUSE: [(&str, &str); 13] = [
    ("src/lib.rs", "pub mod host; pub mod json; pub mod engine;"),
    ("src/json.rs", "use serde::de::Visitor;"),
    ("src/engine/mod.rs", "use crate::json::json;"),
    ("src/host/mod.rs", "mod implement; use implement::run; fn main() { drill::drill(); }"),
    ("src/host/program.rs", "pub fn find() {}"),
    ("src/host/process/mod.rs", "mod unix; use unix as system; pub(super) use system::spawn;"),
    ("src/host/process/unix/mod.rs", "mod child; pub(in crate::host) use child::spawn;"),
    (
        "src/host/process/unix/child.rs",
        "use crate::host::{exchange::launch::Launch, process::{self, Tree as T}, program};",
    ),
    (
        "src/host/exchange/mod.rs",
        "pub mod launch; mod stdio; use super::process; use stdio::Pump; fn f() { process::spawn() }",
    ),
    ("src/host/exchange/stdio.rs", "use super::launch::{Launch, Limits}; mod a { use super::f; }"),
    ("src/host/exchange/launch.rs", "pub struct Launch;"),
    ("src/host/implement/mod.rs", "use crate::host::exchange::{exchange, launch::*};"),
    ("src/host/drill/mod.rs", "use super::implement; fn f() -> super::implement::Engine {}"),
];

#[test]
fn a_planted_door_or_circle_is_found() {
    let planted = |name: &str, text: &str| {
        let house = HOUSE.into_iter().filter(|(other, _)| *other != name);
        shut_doors(house.chain([(name, text)]))
    };
    assert_eq!(shut_doors(HOUSE), Vec::<String>::new());
    for (name, text, expected) in [
        // Up from the system.
        ("process/unix/x.rs", "use crate::host::exchange::exchange;", "door: N -> exchange/mod.rs"),
        (
            "process/unix/x.rs",
            "fn f() { super::super::super::drill::f() }",
            "door: N -> drill/mod.rs",
        ),
        ("process/unix/x.rs", "use crate::host::{program, exchange::launch::{Launch}};", ""),
        // Up from the exchange.
        (
            "exchange/sink.rs",
            "use super::super::implement::{self, Plan};",
            "door: N -> implement/mod.rs",
        ),
        (
            "exchange/sink.rs",
            "use crate::{json, host::{drill::Script}};",
            "door: N -> drill/mod.rs",
        ),
        ("exchange/sink.rs", "use super::super::process::spawn; use crate::json;", ""),
        // Between commands, and from a command to what tries it.
        ("call/mod.rs", "use super::implement::judge;", "door: N -> implement/mod.rs"),
        ("implement/plan.rs", "crate::host::drill::drilled()", "door: N -> drill/mod.rs"),
        ("call/mod.rs", "use super::exchange::exchange;", ""),
        // A test may look at anything, and words in comments and strings say nothing.
        ("call/mod.rs", "#[cfg(test)] mod tests { use crate::host::implement::judge; }", ""),
        ("call/mod_tests.rs", "use crate::host::implement::judge;", ""),
        (
            "call/mod.rs",
            "// use super::implement::a;\nconst A: &str = \"super::implement::b\";",
            "",
        ),
        (
            "call/mod.rs",
            "const A: &str = r#\"\"crate::host::implement::b\"#; const B: char = '\"';",
            "",
        ),
        // Through a signpost, which is none where its own file goes that way.
        (
            "exchange/launch.rs",
            "use crate::host::process::spawn;",
            "circle: N -> process/unix/child.rs",
        ),
        (
            "process/mod.rs",
            "mod unix; use unix as system; pub(super) use system::spawn; fn f() { spawn() }",
            "circle: N -> process/unix/child.rs",
        ),
        // Circles of two and of one parent and its child.
        ("program.rs", "use super::process::Tree;", ""),
        ("program.rs", "use crate::json;", ""),
        ("program.rs", "use super::process::spawn;", "circle: process/unix/child.rs -> N"),
        ("exchange/stdio.rs", "use super::f;", "circle: exchange/mod.rs -> N"),
        // Nowhere.
        (
            "call/mod.rs",
            "use super::super::super::nothing::a;",
            "N: super::super::super::nothing::a",
        ),
    ] {
        let name = format!("src/host/{name}");
        let found = planted(&name, text).join("\n").replace(&name, "N").replace("src/host/", "");
        assert_eq!(found, expected, "{name}: {text}");
    }
    for name in ["src/json.rs", "src/line.rs", "src/duration.rs", "src/protocol.rs"] {
        let found = planted(name, "use crate::host::program::find;");
        assert_eq!(found, [format!("door: {name} -> src/host/program.rs")]);
        assert_eq!(planted(name, "use crate::nothing_of_ours;").len(), 0);
    }
    let found = planted("src/line.rs", "use crate::engine;");
    assert_eq!(found, ["door: src/line.rs -> src/engine/mod.rs"]);
}

#[test]
fn a_planted_breach_is_found() {
    for (name, text, count) in [
        ("src/host/implement/judge.rs", "std::process::Command::new(\"true\").spawn()", 1),
        ("src/host/process/unix/child.rs", "Command::new(\"true\").spawn()", 0),
        ("src/engine/mod.rs", "use crate::host::plan; use tokio::time;", 2),
        ("src/host/implement/plan.rs", "use crate::engine::check;", 1),
        ("src/host/cli/mod.rs", "use clap::Parser;", 0),
    ] {
        assert_eq!(breaches(name, text).len(), count, "{name}: {text}");
    }
}

/// A start that is planted anywhere but in the process room does not get past clippy either.
#[test]
fn clippy_knows_the_starts() {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("clippy.toml")).unwrap();
    for start in ["std::process::Command::new", "tokio::process::Command::new"] {
        assert!(text.contains(&format!("path = \"{start}\"")), "{start}");
    }
}
