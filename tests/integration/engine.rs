//! `satyrn-engine` as a program: every protocol case, and the command line.

use crate::common::{Ran, base64, fixtures, program, run};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn engine() -> Command {
    program(env!("CARGO_BIN_EXE_satyrn-engine"))
}

/// Sends bytes to a program's stdin and collects what comes back.
fn send(command: &mut Command, bytes: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    Ran {
        exit: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The placeholders of a fixture, filled in as JSON text.
fn fill(text: &str) -> String {
    let contracts = fixtures().join("contracts");
    let json = |path: &Path| {
        let quoted = serde_json::to_string(path.to_str().unwrap()).unwrap();
        quoted[1..quoted.len() - 1].to_owned()
    };
    text.replace("{repo}", &json(&contracts))
        .replace("{contract}", &json(&contracts.join("good.yaml")))
}

fn request(case: &Value) -> Vec<u8> {
    let request = &case["request"];
    if let Some(text) = request["text"].as_str() {
        return fill(text).into_bytes();
    }
    if let Some(file) = request["file"].as_str() {
        let text = std::fs::read_to_string(fixtures().join("protocol").join(file)).unwrap();
        return fill(&text).into_bytes();
    }
    base64(request["base64"].as_str().unwrap())
}

#[test]
fn every_protocol_case_is_answered_as_it_says() {
    let text = std::fs::read_to_string(fixtures().join("protocol/cases.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(cases.len() >= 50, "{}", cases.len());
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        for mut command in [engine(), program(env!("CARGO_BIN_EXE_satyrn-host"))] {
            let ran = send(command.arg("protocol"), &request(case));
            assert_eq!(ran.exit.map(i64::from), case["exit"].as_i64(), "{name}: {ran:?}");
            assert_eq!(ran.stderr, "", "{name}");
            assert!(ran.stdout.ends_with('\n'), "{name}");
            let response: Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!(response["code"], case["code"], "{name}: {}", ran.stdout);
            if let Some(file) = case["response"].as_str() {
                let text = std::fs::read_to_string(fixtures().join("protocol").join(file)).unwrap();
                // Where the system's own words follow, the fixture has the start of the message.
                let expected = fill(text.trim_end());
                let expected = expected.strip_suffix(": \"}").unwrap_or(&expected);
                assert!(ran.stdout.starts_with(expected), "{name}: {}", ran.stdout);
            }
        }
    }
}

#[test]
fn every_protocol_fixture_is_read_by_a_case() {
    let text = std::fs::read_to_string(fixtures().join("protocol/cases.json")).unwrap();
    for entry in std::fs::read_dir(fixtures().join("protocol")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "cases.json" || text.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[test]
fn a_request_above_the_bound_is_refused_and_not_echoed() {
    let ran = send(engine().arg("protocol"), &vec![b'x'; 3 << 20]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(7), ""));
    assert!(ran.stdout.len() < 300, "{}", ran.stdout);
}

#[test]
fn check_is_silent_on_success_and_says_one_line_otherwise() {
    let contracts = fixtures().join("contracts");
    let check = |repo: &Path, contract: &Path| {
        run(engine().args(["check", "--repo"]).arg(repo).arg(contract))
    };
    let ran = check(&contracts, &contracts.join("good.yaml"));
    assert_eq!((ran.exit, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", ""));
    for (repo, contract, exit, code) in [
        (".", "missing.yaml", 3, "CONTRACT_UNREADABLE"),
        (".", "not-utf-8.yaml", 3, "CONTRACT_UNREADABLE"),
        (".", "invalid.yaml", 4, "CONTRACT_INVALID_YAML"),
        (".", "list.yaml", 5, "CONTRACT_MISSING_FIELD"),
        ("missing", "good.yaml", 6, "REPO_UNAVAILABLE"),
        (".", "new\nline\u{1b}[2K", 3, "CONTRACT_UNREADABLE"),
    ] {
        let ran = check(&contracts.join(repo), &contracts.join(contract));
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(exit), ""), "{contract}");
        assert!(ran.stderr.starts_with(&format!("satyrn-engine: {code}: ")), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert!(!ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
    }
}

#[test]
fn many_contracts_in_one_call() {
    let contracts = fixtures().join("contracts");
    let check = |words: &[&str]| {
        run(engine().current_dir(&contracts).args(["check", "--repo", "."]).args(words))
    };
    let ran = check(&["good.yaml", "good.yaml"]);
    assert_eq!((ran.exit, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", ""));
    let ran = check(&["no-fields.yaml", "good.yaml", "missing.yaml", "list.yaml"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(5), ""));
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{}", ran.stderr);
    let first =
        "satyrn-engine: CONTRACT_MISSING_FIELD: no-fields.yaml: missing required field 'id'";
    assert!(lines[0].starts_with(first), "{}", lines[0]);
    let second =
        "satyrn-engine: CONTRACT_UNREADABLE: missing.yaml: cannot read contract missing.yaml: ";
    assert!(lines[1].starts_with(second), "{}", lines[1]);

    let ran = check(&["--format", "json", "good.yaml", "list.yaml"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(5), ""));
    let rows: Vec<Value> =
        ran.stdout.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    assert_eq!((&rows[0]["contract"], &rows[0]["ok"]), (&"good.yaml".into(), &true.into()));
    assert_eq!((&rows[1]["code"], rows.len()), (&"CONTRACT_MISSING_FIELD".into(), 2));
}

#[test]
fn a_contract_on_stdin_and_its_warnings() {
    let check = |words: &[&str], text: &[u8]| {
        send(engine().args(["check", "--repo", "."]).args(words), text)
    };
    let cut = b"id: a\ntask: fix #12\n";
    let ran = check(&["-"], cut);
    assert_eq!((ran.exit, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", ""));
    let ran = check(&["-v", "-"], cut);
    assert_eq!((ran.exit, ran.stderr.lines().count()), (Some(0), 1));
    assert!(ran.stderr.contains("'#12' is read as a comment"), "{}", ran.stderr);
    let ran = check(&["--format=json", "-"], cut);
    let row: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&row["contract"], row["warnings"].as_array().unwrap().len()), (&"-".into(), 1));
    let ran = check(&["-"], b"id: a\n");
    assert_eq!(ran.exit, Some(5));
    let ran = check(&["-"], &vec![b'#'; (1 << 20) + 1]);
    assert_eq!(ran.exit, Some(3));
    assert!(ran.stderr.contains("cannot read contract -: larger than"), "{}", ran.stderr);
}

#[test]
fn the_command_line() {
    for (words, exit) in [
        (&[][..], 2),
        (&["check"], 2),
        (&["check", "--repo", "."], 2),
        (&["protocol", "extra"], 2),
        (&["nope"], 2),
        (&["--help"], 0),
        (&["check", "--help"], 0),
        (&["--version"], 0),
    ] {
        let ran = run(engine().args(words));
        assert_eq!(ran.exit, Some(exit), "{words:?}");
        assert_eq!(ran.stdout.is_empty(), exit == 2, "{words:?}");
        assert_eq!(ran.stderr.is_empty(), exit == 0, "{words:?}");
    }
    let ran = run(engine().args(["check", "--\u{1b}[2J\nsatyrn-engine: OK"]));
    assert!(!ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
    assert_eq!(ran.exit, Some(2));
}
