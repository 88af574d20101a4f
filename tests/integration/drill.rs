//! `satyrn-host drill`, and drills in the place of an engine.

use crate::common::{Ran, fixtures, host, run};
#[cfg(target_os = "linux")]
use crate::common::{await_until, running_in, runs_in};
use crate::schema::validator;
use satyrn::host::implement::report::Report;
use serde::Deserialize;
use serde_json::Value;
use std::path::{MAIN_SEPARATOR, Path};
use std::time::{Duration, Instant};

fn drill(dir: &Path, words: &[&str]) -> Ran {
    run(host().current_dir(dir).arg("drill").args(words))
}

fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), text).unwrap();
}

const GOOD: &str = "about: It accepts.\nengine: [{read: all}, {answer: OK}]\n\
                    expect: {code: OK, exit: 0}\n";

/// Under wine the start of a process takes some tenths of a second, and the process behind a console
/// is as slow to leave, so that a drill which starts many says nothing there.
fn is_late_by_wine(row: &Value) -> bool {
    let wine = cfg!(windows) && std::env::var_os("WINEPREFIX").is_some();
    let late = |what: &Value| what == "time" || what == "process.orphaned";
    wine && row["mismatches"].as_array().unwrap().iter().any(|mismatch| late(&mismatch["what"]))
}

#[test]
fn every_built_in_drill_holds() {
    let began = Instant::now();
    let ran = drill(&fixtures(), &["--format", "json"]);
    let took = began.elapsed();
    let results: Value = serde_json::from_str(&ran.stdout).unwrap();
    if let Err(fault) = validator("drill-results-1").validate(&results) {
        panic!("{}: {fault}", fault.instance_path());
    }
    let rows = results["results"].as_array().unwrap();
    let (late, failed): (Vec<_>, Vec<_>) =
        rows.iter().filter(|row| row["status"] == "failed").partition(|row| is_late_by_wine(row));
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(i32::from(!late.is_empty())), ""));
    for row in late {
        eprintln!("too slow here: {}: {}", row["name"], row["mismatches"]);
    }
    assert!(rows.len() >= 70, "{}", rows.len());
    assert!(took < Duration::from_mins(1), "{took:?}");
    for row in rows {
        let (name, about) = (row["name"].as_str().unwrap(), row["about"].as_str().unwrap());
        assert!(about.ends_with('.') && about.len() > 20, "{name}: {about}");
        if row["status"] == "skipped" {
            eprintln!("not tried: {name}: {}", row["reason"]);
        }
    }
    // What was really reported is what the schema says.
    let schema = std::fs::read_to_string(fixtures().join("../schemas/report-1.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let report_1 = validator("report-1");
    let read_back = |report: &Value| serde_json::to_value(Report::deserialize(report).unwrap());
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let members = [&schema["properties"], &schema["properties"]["process"]["properties"]].map(keys);
    for row in rows.iter().filter(|row| row["report"].is_object()) {
        let report = &row["report"];
        if let Err(fault) = report_1.validate(report) {
            panic!("{}: {fault}: {report}", row["name"]);
        }
        assert_eq!([report, &report["process"]].map(keys), members, "{}", row["name"]);
        // And nothing of it is lost on those who read it back.
        assert_eq!(read_back(report).unwrap(), *report, "{}", row["name"]);
    }
    // Each refusal that can come of an engine, and each reason, is met by at least one drill.
    let met = |member: &str, word: &str| rows.iter().any(|row| row["report"][member] == word);
    for code in [
        "OK",
        "USAGE",
        "HOST_FAILED",
        "ENGINE_START_FAILED",
        "ENGINE_CANCELLED",
        "ENGINE_TIMEOUT",
        "ENGINE_MALFORMED_RESPONSE",
        "ENGINE_CRASHED",
        "CONTRACT_UNREADABLE",
        "LEDGER_LOCKED",
    ] {
        // The host is one process on Windows, so that nobody could say that it was killed.
        assert!(met("code", code) || cfg!(windows) && code == "HOST_FAILED", "{code}");
    }
    for reason in [
        "bare-name",
        "byte-order-mark",
        "cut-short",
        "deadline",
        "empty",
        "empty-setting",
        "exit",
        "exit-disagrees",
        "invalid-json",
        "invalid-utf-8",
        "leash",
        "no-checkout",
        "no-drill",
        "no-interpreter",
        "no-program",
        "no-pyproject",
        "no-uv",
        "not-runnable",
        "output-limit",
        "shape",
        "signal",
        "text-after",
        "text-before",
    ] {
        let unix = ["no-interpreter", "signal"].contains(&reason);
        assert!(met("reason", reason) || cfg!(windows) && unix, "{reason}");
    }
}

#[test]
fn every_file_is_built_in_and_every_built_in_one_is_shown() {
    let mut files: Vec<String> = std::fs::read_dir(fixtures().join("drills"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    let listed = drill(&fixtures(), &["--list"]);
    let names: Vec<_> = listed.stdout.lines().collect();
    assert_eq!(names, files, "after adding a file: touch src/host/drill/set.rs");
    for name in names {
        let shown = drill(&fixtures(), &["--show", name]);
        let text = std::fs::read_to_string(fixtures().join(format!("drills/{name}.yaml")));
        let text = text.unwrap();
        assert_eq!((shown.exit, shown.stdout), (Some(0), text), "{name}");
    }
}

#[test]
fn files_directories_and_names_can_be_mixed_and_filtered() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("more")).unwrap();
    write(dir.path(), "mine.yaml", GOOD);
    write(dir.path(), "more/b.yaml", GOOD);
    write(dir.path(), "more/a.yaml", GOOD);
    write(dir.path(), "more/notes.txt", "no drill");
    let words = ["refuses", "mine.yaml", "more"];
    let listed = drill(dir.path(), &[&words[..], &["--list"]].concat());
    assert_eq!((listed.exit, listed.stdout.as_str()), (Some(0), "refuses\nmine\na\nb\n"));
    let listed = drill(dir.path(), &[&words[..], &["--list", "--filter", "in"]].concat());
    assert_eq!(listed.stdout, "mine\n");
    let ran = drill(dir.path(), &[&words[..], &["--repeat", "3", "--format", "json"]].concat());
    let results: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.exit, &results["passed"]), (Some(0), &4.into()), "{ran:?}");
    assert_eq!(results["results"][0]["runs"], 3);
}

#[test]
fn a_drill_that_does_not_hold_is_told_so_that_it_can_be_understood() {
    let dir = tempfile::tempdir().unwrap();
    let bad = GOOD.replace("code: OK, exit: 0", "code: REPO_UNAVAILABLE, exit: 6, within: 5s");
    write(dir.path(), "wrong.yaml", &bad);
    write(dir.path(), "right.yaml", GOOD);
    let ran = drill(dir.path(), &["right.yaml", "wrong.yaml"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(1), ""));
    let again = format!("again   satyrn-host drill {}", dir.path().display());
    for part in [
        "ok    right",
        "FAIL  wrong",
        "It accepts.",
        "exit\n    expected  6\n    seen      0\n",
        "code\n    expected  REPO_UNAVAILABLE\n    seen      OK\n",
        "report  {\"report\":1,\"line\":\"satyrn-engine: OK\"",
        again.as_str(),
        "1 passed, 1 failed, 0 skipped in ",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    for (format, part) in [
        ("json", "\"passed\":1,\"failed\":1,\"skipped\":0"),
        ("junit", "tests=\"2\" failures=\"1\" skipped=\"0\""),
        ("tap", "\nnot ok 2 - wrong\n"),
    ] {
        let ran = drill(dir.path(), &["right.yaml", "wrong.yaml", "--format", format]);
        assert_eq!((ran.exit, ran.stderr.as_str()), (Some(1), ""), "{format}");
        assert!(ran.stdout.contains(part), "{}", ran.stdout);
    }
}

/// Every kind of expectation can fail.
#[test]
fn each_expectation_is_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    for (name, expect) in [
        ("exit", "{code: OK, exit: 1}"),
        ("exit", "{code: OK, exit: KILL}"),
        ("code", "{code: /^ENGINE_/, exit: 0}"),
        ("line", "{line: 'satyrn-engine: ok', exit: 0}"),
        ("message", "{code: OK, message: /./, exit: 0}"),
        ("reason", "{code: OK, reason: deadline, exit: 0}"),
        ("launch", "{code: OK, launch: incomplete, exit: 0}"),
        ("time", "{code: OK, exit: 0, within: 1ms}"),
        ("survivors", "{code: OK, exit: 0, survivors: 1}"),
        ("warnings", "{code: OK, exit: 0, warnings: [one]}"),
        ("process.exit_code", "{code: OK, exit: 0, report: {process.exit_code: 1}}"),
        ("process.stderr_tail", "{code: OK, exit: 0, report: {process.stderr_tail: /x/}}"),
        ("process.nope", "{code: OK, exit: 0, report: {process.nope: 1}}"),
    ] {
        let text = GOOD.replace("{code: OK, exit: 0}", expect);
        write(dir.path(), "wrong.yaml", &text);
        let ran = drill(dir.path(), &["wrong.yaml", "--format", "json"]);
        let results: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(ran.exit, Some(1), "{expect}");
        assert_eq!(results["results"][0]["mismatches"][0]["what"], name, "{expect}");
    }
}

#[test]
fn a_bad_script_is_refused_with_its_place_and_nothing_runs() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "right.yaml", GOOD);
    write(dir.path(), "bad.yaml", &GOOD.replace("read: all", "raed: all"));
    write(dir.path(), "worse.yaml", &GOOD.replace("expect", "expects"));
    std::fs::write(dir.path().join("not-utf-8.yaml"), b"about: x\n# \xc3\xb6 \xff\n").unwrap();
    let ran = drill(dir.path(), &["right.yaml", "bad.yaml", "worse.yaml"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(2), ""));
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ran.stderr);
    let bad = format!("{MAIN_SEPARATOR}bad.yaml:2:11: engine[0]: unknown variant `raed`");
    assert!(lines[0].contains(&bad), "{}", lines[0]);
    let worse = format!("{MAIN_SEPARATOR}worse.yaml:3:1: unknown field `expects`");
    assert!(lines[1].contains(&worse), "{}", lines[1]);
    let ran = drill(dir.path(), &["not-utf-8.yaml"]);
    assert!(ran.stderr.ends_with("not-utf-8.yaml:2:5: not UTF-8\n"), "{}", ran.stderr);
    for words in [
        &["no-such-drill"][..],
        &["./missing.yaml"],
        &["."],
        &["not-utf-8.yaml"],
        &["--filter", "no name has this"],
        &["--show", "nope"],
        &["--jobs", "0"],
        &["--nope"],
    ] {
        let ran = drill(dir.path(), words);
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(2), ""), "{words:?}");
        assert!(!ran.stderr.is_empty(), "{words:?}");
    }
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    assert_eq!(drill(&empty, &["."]).exit, Some(2));
}

#[test]
fn a_drill_that_cannot_run_here_is_skipped_and_not_passed() {
    let dir = tempfile::tempdir().unwrap();
    let (need, shown) = if cfg!(windows) { ("unix", "Unix") } else { ("windows", "Windows") };
    write(dir.path(), "elsewhere.yaml", &format!("needs: [{need}]\n{GOOD}"));
    let ran = drill(dir.path(), &["elsewhere.yaml"]);
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    let expected = format!("skip  elsewhere  needs {shown}\n");
    assert!(ran.stdout.starts_with(&expected), "{}", ran.stdout);
    assert!(ran.stdout.contains("0 passed, 0 failed, 1 skipped"), "{}", ran.stdout);
    let ran = drill(dir.path(), &["elsewhere.yaml", "--format", "tap"]);
    let expected = format!("ok 1 - elsewhere # SKIP needs {shown}\n");
    assert!(ran.stdout.ends_with(&expected), "{}", ran.stdout);
}

/// A process that is nobody's descendant enters the directory of the drill, and is found there:
/// so would one be that a host had let go.
#[cfg(target_os = "linux")]
#[test]
fn a_process_that_is_left_fails_the_drill_whatever_the_host_says() {
    use crate::common::script;
    use std::process::Command;
    let dir = tempfile::tempdir().unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    for name in ["there", "back"] {
        let path = dir.path().join(name);
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }
    let here = dir.path().display();
    let mut visitor = Command::new("/bin/sh")
        .arg("-c")
        .arg(format!("read d <{here}/there; cd \"$d\"; echo >{here}/back; read x <>{here}/there"))
        .stdin(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let engine = format!(
        "#!/bin/sh\ncat >/dev/null\npwd >{here}/there\nread x <{here}/back\n\
         echo '{{\"version\":1,\"ok\":true,\"code\":\"OK\",\"message\":\"\"}}'\n"
    );
    let engine = script(dir.path(), "engine", &engine);
    let text = format!(
        "about: Somebody is left.\nstart: {{program: {}}}\nexpect: {{code: OK, exit: 0}}\n",
        engine.display()
    );
    write(dir.path(), "left.yaml", &text);
    let ran = drill(dir.path(), &["left.yaml"]);
    visitor.kill().unwrap();
    visitor.wait().unwrap();
    assert_eq!(ran.exit, Some(1), "{}", ran.stdout);
    let expected = format!("survivors\n    expected  0\n    seen      {} /bin/sh -c", visitor.id());
    assert!(ran.stdout.contains(&expected), "{}", ran.stdout);
}

#[test]
fn a_drill_takes_the_place_of_an_engine() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "mine.yaml", &GOOD.replace("answer: OK", "exit: 9"));
    write(dir.path(), "bad.yaml", "about: x\n");
    let good = fixtures().join("contracts/good.yaml");
    let implement = |words: &[&str], vars: &[(&str, &str)]| {
        let mut command = host();
        command.current_dir(dir.path()).envs(vars.iter().copied());
        let ran = run(command.arg("implement").args(words).arg(&good));
        assert_eq!(ran.stdout.lines().count(), 1, "{ran:?}");
        (ran.exit.unwrap(), ran.stdout)
    };
    for (words, vars, exit, part) in [
        (&["--drill", "accepts"][..], &[][..], 0, ": OK"),
        (&["--drill", "./mine.yaml"], &[], 70, "ENGINE_CRASHED: exit code 9"),
        (&["--drill", "mine.yaml"], &[], 70, "ENGINE_CRASHED: exit code 9"),
        (&[], &[("SATYRN_DRILL", "shape-null")], 76, "not null"),
        (&["--drill", "accepts"], &[("SATYRN_DRILL", "")], 0, ": OK"),
        (&["--drill", "accepts"], &[("SATYRN_ENGINE", "/nope"), ("SATYRN_DRILL", "x")], 0, ": OK"),
        (&[], &[("SATYRN_DRILL", "")], 69, "ENGINE_START_FAILED: SATYRN_DRILL is empty"),
        (&["--drill", "nope"], &[], 69, "no such drill: nope"),
        (&["--drill", "./nope.yaml"], &[], 69, "cannot read the drill "),
        (&["--drill", "."], &[], 69, "no such drill: ."),
        (&["--drill", "/"], &[], 69, "not a regular file"),
        (&["--drill", "./bad.yaml"], &[], 69, "bad.yaml:1:1: missing field `expect`"),
        (&[], &[("SATYRN_DRILL", "x"), ("SATYRN_ENGINE_REPO", "y")], 2, "are both set"),
        (&["--drill", "accepts", "--engine", "./x"], &[], 2, "cannot be used with"),
        // The drill's own deadline is the default, and no more than that.
        (&["--drill", "hangs"], &[], 124, "within 300ms"),
        (&["--drill", "hangs", "--deadline", "50ms"], &[], 124, "within 50ms"),
        (&["--drill", "hangs"], &[("SATYRN_DEADLINE", "60ms")], 124, "within 60ms"),
        // What a drill has in the place of its engine is met here as well.
        (
            &["--drill", "start-bare-name"],
            &[],
            69,
            "START_FAILED: the drill's start must be a path",
        ),
    ] {
        let (code, line) = implement(words, vars);
        assert_eq!(code, exit, "{words:?} {vars:?}: {line}");
        assert!(line.contains(part), "{words:?} {vars:?}: {line}");
    }
    // Nobody's directory gets the file with which an engine says that it is ready.
    let mut here: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    here.sort();
    assert_eq!(here, ["bad.yaml", "mine.yaml"]);
}

#[test]
fn the_role_of_the_engine_refuses_what_it_cannot_play() {
    for words in [&["__drill"][..], &["__drill", "nope"], &["__drill", "accepts", "7", "0"]] {
        let ran = run(host().args(words));
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(1), ""), "{words:?}");
        assert!(ran.stderr.starts_with("satyrn-host: drill: "), "{}", ran.stderr);
    }
}

/// A runner whose host waits for an engine that would hang for a minute, and the runner's own
/// directory for what it writes.
#[cfg(target_os = "linux")]
struct Long {
    runner: std::process::Child,
    tmp: std::path::PathBuf,
}

#[cfg(target_os = "linux")]
impl Long {
    /// When guard, inner host, engine and daemon run.
    fn start(dir: &Path, words: &[&str]) -> Self {
        let tmp = dir.canonicalize().unwrap().join("tmp");
        std::fs::create_dir(&tmp).unwrap();
        let mut command = host();
        command.args(words).current_dir(&tmp).env("TMPDIR", &tmp);
        command.stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let long = Self { runner: command.spawn().unwrap(), tmp };
        // The runner itself is there as well.
        await_until("the tree stands", || running_in(&long.tmp) >= 5);
        long
    }
}

#[cfg(target_os = "linux")]
const LONG: &str = "about: It hangs for long and is stubborn.\nlimits: {deadline: 60s}\nengine:\n  \
    - ignore: [TERM]\n  - start: {session: true, orphan: true, ignore: [TERM]}\n  \
    - ready\n  - sleep: forever\nexpect: {code: ENGINE_TIMEOUT, exit: 124}\n";

#[cfg(target_os = "linux")]
#[test]
fn a_runner_that_is_killed_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "long.yaml", LONG);
    let mut long = Long::start(dir.path(), &["drill", "../long.yaml"]);
    long.runner.kill().unwrap();
    long.runner.wait().unwrap();
    await_until("nothing runs", || !runs_in(&long.tmp));
}

#[cfg(target_os = "linux")]
#[test]
fn a_runner_that_is_stopped_leaves_not_even_a_file() {
    let engine = "#!/bin/sh\n(setsid sleep 60 &)\ntrap '' TERM\nsleep 60\n";
    for (number, exit) in [(2, 130), (15, 143), (1, 129)] {
        for words in [
            &["drill", "../long.yaml", "accepts", "--jobs", "1"][..],
            &["conform", "--engine", "../engine"],
        ] {
            let dir = tempfile::tempdir().unwrap();
            write(dir.path(), "long.yaml", LONG);
            crate::common::script(dir.path(), "engine", engine);
            let long = Long::start(dir.path(), words);
            let pid = i32::try_from(long.runner.id()).unwrap();
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            let signal = rustix::process::Signal::from_named_raw(number).unwrap();
            rustix::process::kill_process(pid, signal).unwrap();
            let (tmp, ran) = (long.tmp, long.runner.wait_with_output().unwrap());
            let stderr = String::from_utf8(ran.stderr).unwrap();
            assert_eq!((ran.status.code(), ran.stdout), (Some(exit), vec![]), "{words:?} {stderr}");
            assert_eq!(stderr, format!("stopped by signal {number}; nothing is judged\n"));
            assert_eq!(std::fs::read_dir(&tmp).unwrap().count(), 0, "{words:?}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_printed_is_no_success() {
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    for words in [&["drill", "accepts"][..], &["drill", "--list"], &["schema", "drill-1"]] {
        let ran = host().args(words).stdout(full()).output().unwrap();
        let stderr = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(1), "{words:?}");
        assert!(stderr.starts_with("error: cannot print it: "), "{stderr}");
    }
}

#[cfg(unix)]
#[test]
fn what_to_run_again_can_be_given_to_a_shell() {
    let dir = tempfile::tempdir().unwrap();
    let bad = GOOD.replace("exit: 0", "exit: 6");
    write(dir.path(), "it's wrong.yaml", &bad);
    let ran = drill(dir.path(), &["it's wrong.yaml"]);
    let again = ran.stdout.lines().find_map(|line| line.strip_prefix("  again   ")).unwrap();
    let words = shlex::split(again).unwrap();
    assert_eq!(words[..2], ["satyrn-host", "drill"], "{again}");
    let ran = run(host().current_dir("/").args(&words[1..]));
    assert_eq!(ran.exit, Some(1), "{ran:?}");
    assert!(ran.stdout.starts_with("FAIL  it's wrong  "), "{}", ran.stdout);
}
