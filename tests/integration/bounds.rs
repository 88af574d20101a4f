//! One MiB of anything costs the engine less than a second and 64 MiB (SPEC 6).

use crate::common::run;
use std::fmt::Write;
use std::process::Command;

const MIB: usize = 1 << 20;

/// `unit` again and again after `start`, up to 1 MiB.
fn filled(start: &str, unit: &str) -> String {
    let count = (MIB - start.len()) / unit.len();
    format!("{start}{}", unit.repeat(count))
}

/// As [`filled`], each unit with a number of its own in place of `{}`.
fn numbered(start: &str, unit: &str) -> String {
    let mut text = start.to_owned();
    for number in 0.. {
        let next = unit.replace("{}", &number.to_string());
        if text.len() + next.len() > MIB {
            break;
        }
        text.push_str(&next);
    }
    text
}

/// Each level names the one before it ten times: 10 to the power of the depth, if expanded.
fn alias_bomb() -> String {
    let mut text = "id: a\ntask: b\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..60 {
        let items = vec![format!("*a{}", level - 1); 10].join(",");
        writeln!(text, "a{level}: &a{level} [{items}]").unwrap();
    }
    text
}

/// Each level merges the one before it twice.
fn merge_bomb() -> String {
    let mut text = "id: a\ntask: b\nm0: &m0 {k0: v}\n".to_owned();
    for level in 1..900 {
        let below = level - 1;
        writeln!(text, "m{level}: &m{level} {{<<: [*m{below}, *m{below}], k{level}: v}}").unwrap();
    }
    text
}

#[test]
fn a_mebibyte_of_anything_is_judged_in_time_and_memory() {
    let good = "id: a\ntask: b\n";
    let cases = [
        ("[", filled("", "["), 4),
        ("{a: ", filled("", "{a: "), 4),
        ("- ", filled("", "- "), 4),
        ("? ", filled("", "? "), 4),
        ("[?,", filled("[", "?,"), 4),
        ("quotes", filled("", "\""), 4),
        ("colons", filled("", "a:"), 4),
        ("documents", filled("", "---\n"), 4),
        ("blanks", filled("", " "), 5),
        ("alias bomb", alias_bomb(), 0),
        ("merge bomb", merge_bomb(), 0),
        ("aliases", filled("id: a\ntask: b\nx: &x y\nl:\n", "- *x\n"), 0),
        ("anchors", numbered("id: a\ntask: b\nl:\n", "- &a{} x\n"), 0),
        ("keys", numbered(good, "k{}: v\n"), 0),
        ("one key", filled(good, "k: v\n"), 0),
        ("tags", filled("id: a\ntask: b\nl:\n", "- !!str x\n"), 0),
        ("integers", filled("id: a\ntask: b\nl:\n", "- 1234567\n"), 0),
        ("digits", filled("id: a\ntask: b\nx: ", "7"), 4),
        ("sexagesimal", filled("id: a\ntask: b\nx: 1", ":1"), 0),
        ("a plain line", filled("id: a\ntask: ", "word "), 0),
        ("plain lines", filled("id: a\ntask: w\n", " w\n"), 0),
        ("a block", filled("id: a\ntask: |\n", "  some text here\n"), 0),
        ("comments", filled(good, "# x\n"), 0),
        ("empty lines", filled(good, "\n"), 0),
    ];
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("contract.yaml");
    for (name, text, exit) in cases {
        assert!(text.len() <= MIB, "{name}: {}", text.len());
        std::fs::write(&path, text).unwrap();
        // The limits count address space, which is more than what is resident, and seconds of
        // computing, which a busy machine does not stretch.
        let ran = run(Command::new("/bin/sh")
            .args(["-c", "ulimit -v 65536; ulimit -t 1; exec \"$@\"", "sh"])
            .arg(env!("CARGO_BIN_EXE_satyrn-engine"))
            .args(["check", "--repo", "."])
            .arg(&path));
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(exit), ""), "{name}: {ran:?}");
        assert!(ran.stderr.chars().count() < 500, "{name}: {}", ran.stderr);
    }
}
