//! `satyrn-host doctor`: what would run is told with its cause, and tried.

use crate::common::{Ran, host, run};
use serde_json::Value;

fn doctor(words: &[&str], vars: &[(&str, &str)]) -> Ran {
    run(host().arg("doctor").args(words).envs(vars.iter().copied()))
}

/// The fact behind a label.
fn fact<'a>(ran: &'a Ran, label: &str) -> &'a str {
    let line = ran.stdout.lines().find(|line| line.starts_with(&format!("{label}  ")));
    line.unwrap_or_else(|| panic!("no {label}: {ran:?}"))[label.len()..].trim_start()
}

/// Where descendants can be kept but are not, that needs attention too.
fn contained(ran: &Ran) -> bool {
    !fact(ran, "contained").starts_with("no,") || cfg!(target_os = "macos")
}

#[test]
fn a_good_engine_needs_no_attention() {
    let engine = env!("CARGO_BIN_EXE_satyrn-engine");
    let missing = [("SATYRN_ENGINE", "/missing")];
    for (words, vars, kind, by) in [
        (&[][..], &[][..], "embedded", "default: no flag and no variable chooses one"),
        (&["--engine", engine], &missing, "program", "--engine"),
        (&[], &[("SATYRN_ENGINE", engine)], "program", "SATYRN_ENGINE"),
        (&[], &[("SATYRN_DRILL", "accepts")], "drill", "SATYRN_DRILL"),
    ] {
        let ran = doctor(words, vars);
        assert_eq!((fact(&ran, "engine"), fact(&ran, "chosen by")), (kind, by));
        assert_eq!(fact(&ran, "self-check"), "satyrn-engine: OK", "{ran:?}");
        assert!(fact(&ran, "took").ends_with(" ms"));
        assert_eq!(ran.stderr, "");
        assert_eq!(ran.exit, Some(i32::from(!contained(&ran))), "{ran:?}");
        // The facts begin in one column.
        assert!(ran.stdout.lines().all(|line| line.find("  ").is_some_and(|at| at <= 10)));
        assert!(ran.stdout.lines().all(|line| line.chars().nth(11) == Some(' ')), "{ran:?}");
    }
}

#[test]
fn what_does_not_work_is_named() {
    for (words, vars, part) in [
        (&[][..], &[("SATYRN_ENGINE", "/missing")][..], "no such program: "),
        (&["--engine", "engine"], &[], "must be a path, not the bare name engine"),
        (&["--engine-repo", "./missing"], &[], "engine checkout is not a directory: "),
        (&["--drill", "crash-exit-5"], &[], "ENGINE_CRASHED: exit code 5"),
        (&[], &[("SATYRN_ENGINE", "/a"), ("SATYRN_DRILL", "b")], "are both set"),
        (&[], &[("SATYRN_DEADLINE", "soon")], "USAGE: SATYRN_DEADLINE needs"),
        (&[], &[("SATYRN_LOG", "a=b=c")], "USAGE: SATYRN_LOG cannot be read"),
        (&["--drill", "hangs"], &[("SATYRN_DEADLINE", "100ms")], "ENGINE_TIMEOUT: no answer"),
    ] {
        let ran = doctor(words, vars);
        assert_eq!((ran.exit, ran.stderr.as_str()), (Some(1), ""), "{ran:?}");
        let line = fact(&ran, "self-check");
        assert!(line.starts_with("satyrn-engine: ") && line.contains(part), "{line}");
        assert_eq!(fact(&ran, "attention"), format!("the self-check: {line}"));
        if let [(name, value)] = vars {
            assert_eq!(fact(&ran, "variable"), format!("{name}={value}"));
        }
    }
    for words in [&["--engine", "/a", "--drill", "b"][..], &["extra"], &["--format", "xml"]] {
        let ran = doctor(words, &[]);
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(2), ""), "{words:?}");
        assert!(!ran.stderr.is_empty());
    }
}

#[test]
fn no_value_of_a_variable_that_is_not_ours() {
    let vars = [("FOO_TOKEN", "hunter2"), ("LC_SECRET", "hunter2"), ("SATYRN_OTHER", "hunter2")];
    for words in [&[][..], &["--format", "json"], &["--engine", "/missing"]] {
        let ran = doctor(words, &vars);
        assert!(ran.exit.is_some_and(|exit| exit < 2), "{ran:?}");
        for secret in ["hunter2", "FOO_TOKEN", "LC_SECRET"] {
            assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{ran:?}");
        }
        assert!(ran.stdout.contains("SATYRN_OTHER"), "{ran:?}");
    }
}

#[test]
fn one_object_with_json() {
    let ran = doctor(&["--format", "json"], &[("SATYRN_DEADLINE", "20s")]);
    assert_eq!((ran.stdout.matches('\n').count(), ran.stderr.as_str()), (1, ""));
    let object: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&object["doctor"], &object["protocol"]), (&1.into(), &1.into()));
    assert_eq!(object["ok"], object["attention"].as_array().unwrap().is_empty());
    assert_eq!(object["engine"]["kind"], "embedded");
    assert_eq!(object["engine"]["deadline_ms"], 20_000);
    assert_eq!(object["variables"][0]["value"], "20s");
    assert_eq!(object["check"]["line"], "satyrn-engine: OK");
    assert!(object["check"]["elapsed_ms"].is_u64());
    let names = object["environment"]["passed"].as_array().unwrap();
    assert!(names.contains(&"PATH".into()), "{names:?}");
}

/// `uv` and `pi` are looked for, never run; and nothing stays on the disk.
#[cfg(unix)]
#[test]
fn nothing_but_the_engine_is_started() {
    use crate::common::script;
    let dir = tempfile::tempdir().unwrap();
    let (bin, tmp) = (dir.path().join("bin"), dir.path().join("tmp"));
    std::fs::create_dir(&bin).unwrap();
    std::fs::create_dir(&tmp).unwrap();
    let ran = dir.path().join("ran");
    for name in ["uv", "pi"] {
        script(&bin, name, &format!("#!/bin/sh\necho {name} >>'{}'\n", ran.display()));
    }
    let path = format!(":bin:{}", bin.display());
    let seen = run(host().arg("doctor").env("PATH", &path).env("TMPDIR", &tmp).current_dir(&dir));
    assert_eq!(fact(&seen, "uv"), bin.join("uv").to_str().unwrap());
    assert_eq!(fact(&seen, "pi"), bin.join("pi").to_str().unwrap());
    let entries: Vec<_> = seen.stdout.lines().filter(|line| line.starts_with("PATH ")).collect();
    let skipped = "skipped: it would mean the working directory";
    let expected = [
        format!("PATH        : {skipped}"),
        format!("PATH        bin: {skipped}"),
        format!("PATH        {}: uv is there", bin.display()),
    ];
    assert_eq!(entries, expected);
    assert!(!ran.exists());
    assert_eq!(std::fs::read_dir(&tmp).unwrap().count(), 0);
}

/// Asked to stop, it ends the engine, clears up and judges nothing.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_stops_it_and_nothing_is_left() {
    use crate::common::{await_until, runs_in, script};
    use rustix::process::{Pid, Signal, kill_process};
    use std::process::Stdio;
    let dir = tempfile::tempdir().unwrap();
    let (ready, tmp) = (dir.path().join("ready"), dir.path().join("tmp"));
    std::fs::create_dir(&tmp).unwrap();
    let engine = script(dir.path(), "engine", "#!/bin/sh\n: >ready\nexec sleep 600\n");
    let mut doctor = host();
    doctor.args(["doctor", "--engine"]).arg(&engine).env("TMPDIR", &tmp).current_dir(&dir);
    let doctor = doctor.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let doctor = doctor.spawn().unwrap();
    await_until("the engine runs", || ready.exists());
    kill_process(Pid::from_child(&doctor), Signal::TERM).unwrap();
    let ended = doctor.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(143), &b""[..]));
    assert_eq!(ended.stderr, b"stopped by signal 15; nothing is judged\n");
    assert!(!runs_in(&dir.path().canonicalize().unwrap()));
    assert_eq!(std::fs::read_dir(&tmp).unwrap().count(), 0);
}
