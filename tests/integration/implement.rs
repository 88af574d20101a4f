//! `satyrn-host implement` as a program, over real engines.

#[cfg(unix)]
use crate::common::{Ran, script};
use crate::common::{fixtures, host, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::time::{Duration, Instant};

#[cfg(unix)]
const OK: &str = r#"{"version":1,"ok":true,"code":"OK","message":""}"#;

fn good() -> PathBuf {
    fixtures().join("contracts/good.yaml")
}

/// Runs the host on a good contract with a shell script as the engine.
#[cfg(unix)]
fn with_engine(text: &str, options: &[&str]) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    let engine = script(dir.path(), "engine", &format!("#!/bin/sh\n{text}\n"));
    run(host().arg("implement").arg("--engine").arg(engine).args(options).arg(good()))
}

/// A shell command that reads the request and prints a line.
#[cfg(unix)]
fn answer(text: &str) -> String {
    format!("cat >/dev/null; printf '%s\\n' '{text}'")
}

#[test]
fn the_embedded_engine_accepts_and_refuses() {
    let contracts = fixtures().join("contracts");
    let implement = |repo: &str, contract: &str| {
        run(host().current_dir(&contracts).args(["implement", "--repo", repo, contract]))
    };
    let ran = implement(".", "good.yaml");
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(0), "satyrn-engine: OK\n"));
    let here = contracts.display();
    for (repo, contract, exit, start) in [
        (".", "missing.yaml", 3, format!("CONTRACT_UNREADABLE: cannot read contract {here}")),
        (".", "invalid.yaml", 4, format!("CONTRACT_INVALID_YAML: invalid YAML in {here}")),
        (
            ".",
            "no-fields.yaml",
            5,
            "CONTRACT_MISSING_FIELD: missing required field 'id'; missing".to_owned(),
        ),
        ("missing", "good.yaml", 6, format!("REPO_UNAVAILABLE: repo is not a directory: {here}")),
    ] {
        let ran = implement(repo, contract);
        assert_eq!((ran.exit, ran.stderr.as_str()), (Some(exit), ""), "{contract}: {ran:?}");
        assert!(ran.stdout.starts_with(&format!("satyrn-engine: {start}")), "{}", ran.stdout);
        assert_eq!(ran.stdout.lines().count(), 1);
    }
}

#[cfg(unix)]
#[test]
fn every_row_of_the_table_from_a_shell() {
    let no = r#"{"version":1,"ok":false,"code":"CONTRACT_UNREADABLE","message":"why"}"#;
    let own = r#"{"version":1,"ok":false,"code":"LEDGER_LOCKED","message":"by you"}"#;
    for (engine, exit, line) in [
        (answer(OK), 0, "OK"),
        (
            format!("{}; exit 6", answer(OK)),
            76,
            "ENGINE_MALFORMED_RESPONSE: it answered OK, but its exit code is 6",
        ),
        (
            format!("{}; kill -9 $$", answer(OK)),
            70,
            "ENGINE_CRASHED: it answered OK, but was killed by SIGKILL",
        ),
        (format!("{}; exit 3", answer(no)), 3, "CONTRACT_UNREADABLE: why"),
        (answer(no), 3, "CONTRACT_UNREADABLE: why"),
        (format!("{}; exit 9", answer(own)), 9, "LEDGER_LOCKED: by you"),
        (answer(own), 65, "LEDGER_LOCKED: by you"),
        ("exit 1".into(), 70, "ENGINE_CRASHED: exit code 1; no answer on stdout: empty at byte 0"),
        (
            "echo why >&2; exit 5".into(),
            70,
            "ENGINE_CRASHED: exit code 5 (CONTRACT_MISSING_FIELD); no answer on stdout: empty at byte 0; last line of stderr: why",
        ),
        (
            "kill -SEGV $$".into(),
            70,
            "ENGINE_CRASHED: killed by SIGSEGV; no answer on stdout: empty at byte 0",
        ),
        (
            "cat >/dev/null".into(),
            76,
            "ENGINE_MALFORMED_RESPONSE: stdout is not one JSON value: empty at byte 0",
        ),
        (answer("null"), 76, "ENGINE_MALFORMED_RESPONSE: response must be a JSON object, not null"),
        (
            format!("echo Building; {}", answer(OK)),
            76,
            "ENGINE_MALFORMED_RESPONSE: stdout is not one JSON value: text before at byte 0",
        ),
        (format!("exec 0<&-; printf '%s' '{OK}'"), 0, "OK"),
        ("yes".into(), 76, "ENGINE_MALFORMED_RESPONSE: stdout grew above 1048576 bytes"),
        (format!("yes | head -c 300000 >&2; {}", answer(OK)), 0, "OK"),
    ] {
        let ran = with_engine(&engine, &[]);
        assert_eq!(ran.stdout, format!("satyrn-engine: {line}\n"), "{engine}");
        assert_eq!((ran.exit, ran.stderr.as_str()), (Some(exit), ""), "{engine}");
    }
}

#[cfg(unix)]
#[test]
fn the_deadline_ends_an_engine_that_ignores_termination() {
    let began = Instant::now();
    let ran = with_engine("trap '' TERM; while :; do sleep 1; done", &["--deadline", "200ms"]);
    assert_eq!(ran.exit, Some(124));
    let expected = "satyrn-engine: ENGINE_TIMEOUT: no answer within 200ms: nothing on stdout\n";
    assert_eq!(ran.stdout, expected);
    assert!(began.elapsed() < Duration::from_millis(1200), "{:?}", began.elapsed());
}

/// Programs that cannot be started, each with a part of the words for it.
#[cfg(unix)]
fn not_runnable(here: &Path) -> Vec<(&'static str, &'static str)> {
    script(here, "no-interpreter", "#!/missing/interpreter\n");
    std::fs::write(here.join("no-permission"), "#!/bin/sh\n").unwrap();
    script(here, "no-format", "echo this has no interpreter line\n");
    vec![
        ("./no-interpreter", "its interpreter is missing: /missing/interpreter"),
        ("./no-permission", "Permission denied"),
        ("./no-format", "Exec format error"),
    ]
}

#[cfg(windows)]
fn not_runnable(here: &Path) -> Vec<(&'static str, &'static str)> {
    for name in ["engine.bat", "engine.cmd", "engine.exe", "engine.txt"] {
        std::fs::write(here.join(name), "@echo this must never run\r\n").unwrap();
    }
    let batch = "a .bat or .cmd file is never run";
    vec![
        ("./engine.bat", batch),
        ("./ENGINE.CMD", batch),
        (r".\engine.cmd::$DATA", batch),
        (r".\engine.bat. .", "cannot run "),
        ("./engine.exe", "cannot run "),
        ("./engine.txt", "only an .exe is run"),
        (r"\\.\NUL", "cannot run "),
        ("C:engine.exe", "--engine must be a path, not the bare name C:engine.exe"),
    ]
}

#[test]
fn what_never_started_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path();
    std::fs::create_dir(here.join("checkout")).unwrap();
    let cases = [
        ("--engine", "missing", "--engine must be a path, not the bare name missing"),
        ("--engine", "./missing", "no such program: "),
        ("--engine", "./checkout", "it is a directory"),
        ("--engine-repo", "./missing", "engine checkout is not a directory: "),
        ("--engine-repo", "./checkout", "engine checkout has no pyproject.toml: "),
    ];
    let programs = not_runnable(here).into_iter().map(|(value, part)| ("--engine", value, part));
    for (option, value, part) in cases.into_iter().chain(programs) {
        let ran = run(host().current_dir(here).args(["implement", option, value]).arg(good()));
        assert_eq!(ran.exit, Some(69), "{value}: {ran:?}");
        let start = "satyrn-engine: ENGINE_START_FAILED: ";
        assert!(ran.stdout.starts_with(start) && ran.stdout.contains(part), "{}", ran.stdout);
        assert_eq!((ran.stdout.lines().count(), ran.stderr.as_str()), (1, ""));
    }
    std::fs::write(here.join("checkout/pyproject.toml"), "").unwrap();
    let ran = run(host()
        .current_dir(here)
        .env("PATH", ":.")
        .args(["implement", "--engine-repo", "checkout"])
        .arg(good()));
    assert_eq!(ran.exit, Some(69));
    assert!(ran.stdout.contains("uv is not on PATH"), "{}", ran.stdout);
}

#[test]
fn usage_is_a_line_on_stdout_and_a_hint_on_stderr() {
    for words in [&["implement"][..], &["implement", "--nope", "c"], &["implement", "a", "b"]] {
        let ran = run(host().args(words));
        assert_eq!(ran.exit, Some(2));
        assert!(ran.stdout.starts_with("satyrn-engine: USAGE: "), "{}", ran.stdout);
        assert_eq!(ran.stdout.lines().count(), 1);
        assert!(ran.stderr.contains("--help"), "{}", ran.stderr);
    }
    for (name, value) in [("SATYRN_DEADLINE", "soon"), ("SATYRN_LOG", "satyrn=loud")] {
        let ran = run(host().env(name, value).arg("implement").arg(good()));
        assert_eq!(ran.exit, Some(2), "{name}");
        assert!(ran.stdout.contains(name), "{}", ran.stdout);
    }
    let ran = run(host()
        .env("SATYRN_ENGINE", "/a")
        .env("SATYRN_ENGINE_REPO", "/b")
        .arg("implement")
        .arg(good()));
    assert_eq!(ran.exit, Some(2));
    let ran = run(host().args(["implement", "--format", "json", "--nope"]));
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["code"], &report["launch"]), (&"USAGE".into(), &"launch-failed".into()));
    assert!(report["process"]["pid"].is_null());
    #[cfg(unix)]
    {
        let ran = run(host().arg("implement").arg(not_utf8()));
        assert_eq!(ran.exit, Some(2));
        assert!(ran.stdout.contains("not UTF-8"), "{}", ran.stdout);
    }
    for words in [&["--help"][..], &["implement", "--help"], &["--version"]] {
        let ran = run(host().args(words));
        assert_eq!((ran.exit, ran.stderr.as_str(), ran.stdout.is_empty()), (Some(0), "", false));
    }
    for words in [&[][..], &["nope"]] {
        let ran = run(host().args(words));
        assert_eq!((ran.exit, ran.stdout.as_str(), ran.stderr.is_empty()), (Some(2), "", false));
    }
}

#[cfg(unix)]
fn not_utf8() -> &'static Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(b"c\xff.yaml"))
}

#[cfg(unix)]
#[test]
fn the_report_holds_what_was_measured() {
    let ran = with_engine(&answer(OK), &["--format", "json"]);
    assert_eq!((ran.exit, ran.stdout.lines().count()), (Some(0), 1));
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let process = &report["process"];
    assert_eq!(report["line"], "satyrn-engine: OK");
    assert_eq!(report["launch"], "completed");
    assert_eq!(process["exit_code"], 0);
    assert_eq!(process["stdout_bytes"], OK.len() + 1);
    assert_eq!(process["input_delivery"], "delivered");
    assert_eq!(process["exit_agrees"], true);
    assert!(process["pid"].as_u64().is_some());

    let ran = with_engine("echo x; echo y >&2; kill -9 $$", &["--format=json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let process = &report["process"];
    assert_eq!((ran.exit, &report["code"]), (Some(70), &"ENGINE_CRASHED".into()));
    assert_eq!((&process["signal"], &process["exit_code"]), (&"SIGKILL".into(), &Value::Null));
    assert_eq!(process["stderr_tail"], "y\n");

    let ran = with_engine("sleep 60", &["--format=json", "--deadline=100ms"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["launch"], &report["reason"]), (&"incomplete".into(), &"deadline".into()));
    assert_eq!(report["process"]["timed_out"], true);
}

#[cfg(unix)]
#[test]
fn an_engine_sees_only_allowed_variables() {
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("list");
    let engine = script(dir.path(), "engine", &format!("#!/bin/sh\nenv >'{}'\n", list.display()));
    let seen = |options: &[&str]| {
        run(host()
            .env("MY_API_KEY", "secret-value")
            .env("EDITOR", "vi")
            .env("FORCE_COLOR", "1")
            .arg("implement")
            .arg("--engine")
            .arg(&engine)
            .args(options)
            .arg(good()));
        std::fs::read_to_string(&list).unwrap()
    };
    let plain = seen(&[]);
    assert!(plain.contains("PATH=") && plain.contains("NO_COLOR=1"), "{plain}");
    assert!(plain.contains("GIT_TERMINAL_PROMPT=0"), "{plain}");
    for name in ["secret-value", "EDITOR", "FORCE_COLOR", "CARGO"] {
        assert!(!plain.contains(name), "{name}: {plain}");
    }
    let asked = seen(&["--env", "EDITOR", "--env", "MY_API_KEY=the model needs it"]);
    assert!(asked.contains("secret-value") && asked.contains("EDITOR=vi"), "{asked}");
    let all = seen(&["--inherit-env"]);
    assert!(all.contains("secret-value") && !all.contains("FORCE_COLOR"), "{all}");
}

#[cfg(unix)]
#[test]
fn what_an_engine_says_cannot_forge_a_second_line() {
    let forged =
        r#"{"version":1,"ok":false,"code":"X","message":"a\nsatyrn-engine: OK\u001b[2K\r"}"#;
    let ran = with_engine(&format!("cat >/dev/null\ncat <<'E'\n{forged}\nE"), &[]);
    assert_eq!(ran.stdout, "satyrn-engine: X: a\\nsatyrn-engine: OK\\u{1b}[2K\\r\n");
    assert_eq!(ran.exit, Some(65));
}

/// Blanks, quotes, letters of other scripts, and more than the 260 characters of old Windows.
#[test]
fn contracts_are_found_wherever_they_lie() {
    let dir = tempfile::tempdir().unwrap();
    let long = "a long name ".repeat(8) + "end";
    for part in ["two words", "it's", "größe 計画", "dots.in.it"] {
        let deep = dir.path().join(part).join(&long).join(&long).join(&long);
        std::fs::create_dir_all(&deep).unwrap();
        let contract = deep.join("contract file.yaml");
        std::fs::write(&contract, "id: a\ntask: b\n").unwrap();
        assert!(contract.as_os_str().len() > 260);
        let below = contract.strip_prefix(dir.path()).unwrap();
        for contract in [&contract, below] {
            let ran =
                run(host().current_dir(&dir).args(["implement", "--repo", part]).arg(contract));
            let seen = (ran.exit, ran.stdout.as_str(), ran.stderr.as_str());
            assert_eq!(seen, (Some(0), "satyrn-engine: OK\n", ""), "{}", contract.display());
        }
    }
}

/// The drive's own rules, and the names that are no files.
#[cfg(windows)]
#[test]
fn windows_paths() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("c.yaml"), "id: a\ntask: b\n").unwrap();
    let whole = dir.path().join("c.yaml").to_str().unwrap().to_owned();
    let (drive, rooted) = whole.split_at(2);
    let implement = |contract: &str| {
        let ran = run(host().current_dir(&dir).arg("implement").arg(contract));
        assert_eq!(ran.stdout.matches('\n').count(), 1, "{ran:?}");
        assert!(!ran.stdout.contains('\r'), "{ran:?}");
        (ran.exit, ran.stdout)
    };
    let verbatim = format!(r"\\?\{whole}");
    let (relative, slashes) = (format!("{drive}c.yaml"), whole.replace('\\', "/"));
    for contract in ["c.yaml", r".\c.yaml", &whole, rooted, &verbatim, &relative, &slashes] {
        assert_eq!(implement(contract), (Some(0), "satyrn-engine: OK\n".to_owned()), "{contract}");
    }
    for contract in ["NUL", "con", "COM1", r"\\.\pipe\nobody", r"\\?\pipe\nobody"] {
        let (exit, line) = implement(contract);
        assert_eq!(exit, Some(3), "{contract}: {line}");
        assert!(line.contains("CONTRACT_UNREADABLE") && line.contains("a device"), "{line}");
    }
}
