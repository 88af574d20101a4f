//! The house's rules that no lint can keep, checked on the text of the sources.

use std::path::{Path, PathBuf};

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

#[test]
fn every_package_has_the_crates_version() {
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/packages/engine/package.json");
    assert!(std::fs::read_to_string(manifest).unwrap().contains(&version), "{version}");
}

#[test]
fn every_source_keeps_to_its_room() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    assert!(files.len() > 10);
    for file in files {
        let name = file.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(breaches(&name, &text), Vec::<String>::new());
    }
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
