//! The help against the code: a variable that is read stands in a table.

use clap::Command;
use std::collections::BTreeSet;
use std::path::Path;

/// The names at the starts of the rows below `Environment`.
fn told(command: &Command, into: &mut BTreeSet<String>) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    for row in help.lines().skip_while(|line| !line.starts_with("Environment")).skip(1) {
        let (name, _) = row.trim_start().split_once("  ").unwrap();
        into.insert(name.to_owned());
    }
    command.get_subcommands().for_each(|command| told(command, into));
}

/// The names that the code asks for, and those that are our own. What follows the first test of a
/// file is no part of the program.
fn read(dir: &Path, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, into);
            continue;
        }
        let tests = path.file_stem().unwrap().to_str().unwrap().ends_with("_tests");
        let text = std::fs::read_to_string(&path).unwrap();
        let program = text.split("#[cfg(test)]").next().filter(|_| !tests).unwrap_or_default();
        if program.contains("tempfile::") {
            into.insert("TMPDIR".to_owned());
        }
        for start in ["var(\"", "var_os(\"", "\"SATYRN_"] {
            for (at, _) in program.match_indices(start) {
                let name = &program[at + start.find('"').unwrap() + 1..];
                let name: String =
                    name.chars().take_while(|c| c.is_ascii_uppercase() || *c == '_').collect();
                // `SATYRN_` alone is how all of ours begin.
                if name != "SATYRN_" {
                    into.insert(name);
                }
            }
        }
    }
}

#[test]
fn every_variable_that_is_read_stands_in_a_table_and_no_other() {
    let (mut found, mut expected) = (BTreeSet::new(), BTreeSet::new());
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    told(&satyrn::host::cli::command(), &mut expected);
    assert!(expected.contains("SATYRN_LOG"), "{expected:?}");
    assert_eq!(found, expected);
    assert!(satyrn::host::env::HOST.iter().all(|name| expected.contains(*name)));
    let ours = expected.iter().filter(|name| name.starts_with("SATYRN_")).count();
    // And the one that the Pi extension reads, which doctor shows.
    assert_eq!(ours, satyrn::host::env::HOST.len() + 1);
}
