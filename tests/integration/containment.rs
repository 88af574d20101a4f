//! Nothing survives (SPEC 3): asserted on the descendants themselves, not on what the host says.
//!
//! Every process of a test carries the path of its temporary directory in its command line, so
//! that survivors can be counted in `/proc`. State Z is dead: it only waits for its parent.

use crate::common::{Ran, fixtures, host, script};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A shell engine that can play every part: `$0 PART` starts itself in another part.
const ENGINE: &str = r#"#!/bin/sh
hold="$(dirname "$0")/hold"
ok() { cat >/dev/null; printf '%s\n' '{"version":1,"ok":true,"code":"OK","message":""}'; }
# Reads from a pipe that nobody writes to: waits for ever without another program.
wait_forever() { read -r x <>"$hold"; }
ready() { : >"$(dirname "$0")/ready"; }
case "$1" in
  wait) wait_forever ;;
  stubborn) trap '' TERM HUP INT; while :; do wait_forever; done ;;
  deep) [ "$2" = 0 ] && { ready; wait_forever; }; "$0" deep $(($2 - 1)) & wait ;;
  daemon) setsid "$0" wait </dev/null >/dev/null 2>&1 & ;;
  reforker) setsid "$0" reforker </dev/null >/dev/null 2>&1 & ;;
  tidy) trap ': >"$(dirname "$0")/tidied"; exit' TERM; ready; while :; do wait_forever; done ;;
  stopped) kill -STOP $$ ;;
  protocol) PROTOCOL ;;
esac
"#;

/// A directory with an engine in it whose `protocol` is the given text.
struct Stage {
    dir: TempDir,
    engine: PathBuf,
}

impl Stage {
    fn new(protocol: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let hold = dir.path().join("hold");
        rustix::fs::mknodat(rustix::fs::CWD, &hold, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let engine = script(dir.path(), "engine", &ENGINE.replace("PROTOCOL", protocol));
        Self { dir, engine }
    }

    fn host(&self, options: &[&str]) -> Command {
        let mut command = host();
        command
            .args(["implement", "--format", "json", "--engine"])
            .arg(&self.engine)
            .args(options)
            .arg(fixtures().join("contracts/good.yaml"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, options: &[&str]) -> (Ran, Value) {
        finish(self.host(options).spawn().unwrap())
    }

    /// Until the tree stands, which its last member says by making a file.
    fn await_ready(&self) {
        await_until("the tree stands", || self.dir.path().join("ready").exists());
    }

    /// The command lines of everything of this stage that runs, the host's own processes too.
    fn running(&self) -> Vec<String> {
        running(self.dir.path())
    }
}

fn running(token: &Path) -> Vec<String> {
    let token = token.to_str().unwrap();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap() {
        let path = entry.unwrap().path();
        let Ok(line) = std::fs::read(path.join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let Ok(stat) = std::fs::read_to_string(path.join("stat")) else { continue };
        let dead = stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']));
        if line.contains(token) && !dead {
            found.push(line);
        }
    }
    found
}

/// Spins until something holds. Five seconds are far above anything that is promised.
fn await_until(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(5);
    while !holds() {
        assert!(Instant::now() < until, "never happened: {what}");
        std::thread::yield_now();
    }
}

fn finish(child: Child) -> (Ran, Value) {
    let output = child.wait_with_output().unwrap();
    let ran = Ran {
        exit: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    let report = serde_json::from_str(&ran.stdout).unwrap_or(Value::Null);
    (ran, report)
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// The inner host: the guard's only child.
fn inner(guard: &Child) -> Pid {
    let list = format!("/proc/{0}/task/{0}/children", guard.id());
    let read =
        || std::fs::read_to_string(&list).unwrap().trim().parse().ok().and_then(Pid::from_raw);
    await_until("the inner host runs", || read().is_some());
    read().unwrap()
}

#[test]
fn no_descendant_survives_an_answer() {
    for (protocol, orphaned) in [
        ("ok", false),
        (r#""$0" wait </dev/null >/dev/null 2>&1 & ok"#, true),
        (r#""$0" wait >/dev/null & ok"#, true),
        (r#""$0" wait 2>/dev/null & ok"#, true),
        (r#""$0" stubborn & ok"#, true),
        (r#""$0" stopped & ok"#, true),
        (r#""$0" daemon; ok"#, true),
        (r#""$0" reforker; ok"#, true),
        (
            r#""$0" deep 4 >/dev/null 2>&1 & while ! [ -e "$(dirname "$0")/ready" ]; do :; done; ok"#,
            true,
        ),
    ] {
        let stage = Stage::new(protocol);
        let began = Instant::now();
        let (ran, report) = stage.run(&[]);
        assert_eq!(stage.running(), Vec::<String>::new(), "{protocol}");
        assert_eq!((ran.exit, &report["line"]), (Some(0), &"satyrn-engine: OK".into()), "{ran:?}");
        let process = &report["process"];
        assert_eq!(process["contained"], true, "{protocol}");
        assert_eq!(process["survivors"], 0, "{protocol}");
        assert_eq!(process["orphaned"], orphaned, "{protocol}");
        assert!(began.elapsed() < Duration::from_secs(2), "{protocol}: {:?}", began.elapsed());
    }
}

#[test]
fn no_descendant_survives_the_deadline() {
    for protocol in [
        "wait_forever",
        "trap '' TERM; while :; do wait_forever; done",
        r#""$0" stubborn & wait"#,
        r#""$0" stopped & wait_forever"#,
        "kill -STOP $$",
        r#""$0" daemon; wait_forever"#,
        r#""$0" reforker; wait_forever"#,
        r#""$0" deep 4"#,
        r"ok; exec 1>&-; wait_forever",
    ] {
        let stage = Stage::new(protocol);
        let began = Instant::now();
        let (ran, report) = stage.run(&["--deadline", "200ms"]);
        assert_eq!(stage.running(), Vec::<String>::new(), "{protocol}");
        assert_eq!(
            (ran.exit, &report["code"]),
            (Some(124), &"ENGINE_TIMEOUT".into()),
            "{protocol}"
        );
        assert_eq!(report["process"]["survivors"], 0, "{protocol}");
        assert!(began.elapsed() < Duration::from_millis(1200), "{protocol}: {:?}", began.elapsed());
    }
}

#[test]
fn no_descendant_survives_a_cancellation() {
    for (signal, exit, name) in
        [(Signal::INT, 130, "SIGINT"), (Signal::TERM, 143, "SIGTERM"), (Signal::HUP, 129, "SIGHUP")]
    {
        for twice in [false, true] {
            let stage = Stage::new(r#"trap '' TERM INT HUP; "$0" deep 4 & "$0" daemon; wait"#);
            let host = stage.host(&[]).spawn().unwrap();
            stage.await_ready();
            let began = Instant::now();
            kill_process(pid(&host), signal).unwrap();
            if twice {
                kill_process(pid(&host), signal).unwrap();
            }
            let (ran, report) = finish(host);
            assert_eq!(stage.running(), Vec::<String>::new(), "{name}");
            assert_eq!(ran.exit, Some(exit), "{name}");
            let line = format!("satyrn-engine: ENGINE_CANCELLED: cancelled by {name}");
            assert_eq!(report["line"], line);
            assert_eq!(report["launch"], "incomplete");
            assert!(began.elapsed() < Duration::from_secs(1), "{name}: {:?}", began.elapsed());
        }
    }
}

#[test]
fn the_whole_group_is_given_time_to_end_by_itself() {
    // The leader ends at once, as `uv` does; its child still has something to tidy up.
    let stage = Stage::new(r#"trap 'exit 0' TERM; "$0" tidy & wait; wait"#);
    let host = stage.host(&[]).spawn().unwrap();
    stage.await_ready();
    kill_process(pid(&host), Signal::TERM).unwrap();
    let (ran, report) = finish(host);
    assert_eq!((ran.exit, &report["code"]), (Some(143), &"ENGINE_CANCELLED".into()), "{ran:?}");
    assert!(stage.dir.path().join("tidied").exists());
    assert_eq!(stage.running(), Vec::<String>::new());
}

#[test]
fn a_long_exchange_collects_no_zombies() {
    // Each of these ends at once as an orphan, so it comes to the inner host, our parent.
    let stage = Stage::new(
        r#"for i in 1 2 3 4 5 6 7 8 9 10; do (true & true) & done; wait
           while [ "$(wc -w <"/proc/$PPID/task/$PPID/children")" -gt 1 ]; do :; done; ok"#,
    );
    let (ran, report) = stage.run(&["--deadline", "5s"]);
    assert_eq!((ran.exit, &report["line"]), (Some(0), &"satyrn-engine: OK".into()), "{ran:?}");
    assert_eq!(report["process"]["orphaned"], false);
}

#[test]
fn a_signal_that_was_ignored_at_the_start_does_not_cancel() {
    let stage = Stage::new(r"ready; wait_forever");
    let mut shell = Command::new("/bin/sh");
    let shell = shell
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_satyrn-host")])
        .args(["implement", "--format", "json", "--deadline", "1s", "--engine"])
        .arg(&stage.engine)
        .arg(fixtures().join("contracts/good.yaml"));
    let child = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    stage.await_ready();
    kill_process(pid(&child), Signal::HUP).unwrap();
    let (ran, report) = finish(child);
    assert_eq!((ran.exit, &report["code"]), (Some(124), &"ENGINE_TIMEOUT".into()), "{ran:?}");
    assert_eq!(stage.running(), Vec::<String>::new());
}

#[test]
fn the_end_of_the_leash_cancels_and_an_open_one_does_not() {
    let stage = Stage::new(r#""$0" deep 4"#);
    let mut host = stage.host(&["--leash"]).stdin(Stdio::piped()).spawn().unwrap();
    stage.await_ready();
    drop(host.stdin.take());
    let (ran, report) = finish(host);
    assert_eq!((ran.exit, &report["reason"]), (Some(143), &"leash".into()), "{ran:?}");
    assert_eq!(report["code"], "ENGINE_CANCELLED");
    assert_eq!(stage.running(), Vec::<String>::new());

    let stage = Stage::new("ok");
    let mut host = stage.host(&["--leash"]).stdin(Stdio::piped()).spawn().unwrap();
    let leash = host.stdin.take();
    let (ran, _) = finish(host);
    drop(leash);
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    // Without the option stdin is nobody's business.
    assert_eq!(Stage::new("ok").run(&[]).0.exit, Some(0));
}

#[test]
fn killing_the_guard_leaves_nothing_and_says_nothing() {
    let stage = Stage::new(r#"trap '' TERM; "$0" deep 4 & "$0" daemon; "$0" stubborn & wait"#);
    let mut host = stage.host(&[]).spawn().unwrap();
    stage.await_ready();
    kill_process(pid(&host), Signal::KILL).unwrap();
    host.wait().unwrap();
    await_until("nothing runs", || stage.running().is_empty());
    let mut said = String::new();
    host.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
}

#[test]
fn killing_the_guard_ends_a_host_that_waits_for_a_disk() {
    // With all signals ignored too, since the kernel tells it by one.
    for before in ["", "trap '' USR1 USR2; "] {
        let stage = Stage::new("ok");
        let mut shell = Command::new("/bin/sh");
        let mut host = shell
            .args(["-c", &format!("{before}exec \"$@\""), "sh", env!("CARGO_BIN_EXE_satyrn-host")])
            .args(["implement", "--engine"])
            .arg(&stage.engine)
            // Nobody writes to it: to open it takes for ever.
            .arg("--request")
            .arg(stage.dir.path().join("hold"))
            .arg(fixtures().join("contracts/good.yaml"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let inner = inner(&host);
        await_until("it waits", || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", inner.as_raw_nonzero()));
            stat.is_ok_and(|stat| stat.contains(") S "))
        });
        host.kill().unwrap();
        host.wait().unwrap();
        await_until("nothing runs", || stage.running().is_empty());
    }
}

#[test]
fn killing_the_inner_host_leaves_nothing_and_is_named() {
    let stage = Stage::new(r#"trap '' TERM; "$0" deep 4 & "$0" daemon; "$0" stubborn & wait"#);
    let host = stage.host(&[]).spawn().unwrap();
    stage.await_ready();
    kill_process(inner(&host), Signal::KILL).unwrap();
    let (ran, report) = finish(host);
    assert_eq!(stage.running(), Vec::<String>::new());
    assert_eq!(ran.exit, Some(1));
    let line = "satyrn-engine: HOST_FAILED: its own process was killed by SIGKILL";
    assert_eq!((&report["line"], &report["launch"]), (&line.into(), &"incomplete".into()));
}

#[test]
fn an_engine_that_stops_or_kills_the_host_gets_no_ok() {
    for (signal, exit) in [("KILL", 1), ("STOP", 1)] {
        // The engine's parent is the inner host.
        let stage = Stage::new(&format!("kill -{signal} $PPID; ok"));
        let began = Instant::now();
        let (ran, report) = stage.run(&["--deadline", "300ms"]);
        assert_eq!((ran.exit, &report["code"]), (Some(exit), &"HOST_FAILED".into()), "{ran:?}");
        assert_eq!(stage.running(), Vec::<String>::new());
        assert!(began.elapsed() < Duration::from_millis(1300), "{:?}", began.elapsed());
    }
}

#[test]
fn a_signal_that_is_the_hosts_own_is_no_leash() {
    let stage = Stage::new("kill -USR1 $PPID; ok");
    let (ran, report) = stage.run(&[]);
    assert_eq!((ran.exit, &report["line"]), (Some(0), &"satyrn-engine: OK".into()), "{ran:?}");
}

/// A name is cut at 15 bytes, wherever a character ends.
#[test]
fn a_descendant_with_any_name_is_seen() {
    let stage = Stage::new(
        "\"$(dirname \"$0\")\"/abcdefghijklmn\u{f6}p wait </dev/null >/dev/null 2>&1 & ok",
    );
    script(stage.dir.path(), "abcdefghijklmn\u{f6}p", &ENGINE.replace("PROTOCOL", ":"));
    let (ran, report) = stage.run(&[]);
    assert_eq!((ran.exit, &report["process"]["orphaned"]), (Some(0), &true.into()), "{ran:?}");
    assert_eq!(stage.running(), Vec::<String>::new());
}

#[test]
fn killed_at_any_moment_nothing_is_left_and_nothing_reads_as_ok() {
    for step in 0..80 {
        let stage = Stage::new(r#""$0" deep 4"#);
        let mut host = stage.host(&[]).spawn().unwrap();
        let moment = Instant::now() + Duration::from_micros(100 * (step / 2));
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        // Every other time it is the inner host.
        let guard = step % 2 == 0;
        kill_process(if guard { pid(&host) } else { inner(&host) }, Signal::KILL).unwrap();
        let status = host.wait().unwrap();
        await_until("nothing runs", || stage.running().is_empty());
        let mut said = String::new();
        host.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        if guard {
            assert_eq!(said, "");
        } else {
            assert_eq!(status.code(), Some(1), "{said}");
            assert!(said.contains("HOST_FAILED"), "{said}");
        }
    }
}

/// By a signal, which a caller may have ignored, the system tells the inner host that its guard has
/// gone.
#[test]
fn a_caller_that_ignores_every_signal_keeps_nothing_alive() {
    for _ in 0..40 {
        let stage = Stage::new(r#""$0" deep 4"#);
        let direct = stage.host(&[]);
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", "trap '' HUP INT QUIT USR1 USR2 PIPE ALRM TERM CHLD; exec \"$@\"", "sh"])
            .arg(direct.get_program())
            .args(direct.get_args())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut host = shell.spawn().unwrap();
        // There is one, that is all that is known of it.
        inner(&host);
        kill_process(pid(&host), Signal::KILL).unwrap();
        host.wait().unwrap();
        await_until("nothing runs", || stage.running().is_empty());
    }
}

/// As when a service manager, or `killall`, asks all processes at once.
#[test]
fn an_engine_that_is_asked_to_stop_with_its_host_has_not_crashed() {
    for signal in ["TERM", "INT", "HUP"] {
        for _ in 0..10 {
            let stage = Stage::new(&format!("kill -{signal} $PPID; kill -{signal} $$"));
            let (ran, report) = stage.run(&[]);
            assert_eq!(report["code"], "ENGINE_CANCELLED", "{signal}: {ran:?}");
        }
    }
    // Nobody but itself asked this one.
    let (ran, report) = Stage::new("kill -TERM $$").run(&[]);
    assert_eq!((ran.exit, &report["code"]), (Some(70), &"ENGINE_CRASHED".into()));
}

#[test]
fn an_engine_that_finishes_while_the_host_is_frozen_past_the_deadline_counts() {
    for finishes in [true, false] {
        let go = r#"ready; while ! [ -e "$(dirname "$0")/go" ]; do :; done; ok"#;
        let stage = Stage::new(go);
        let began = Instant::now();
        let host = stage.host(&["--deadline", "500ms"]).spawn().unwrap();
        stage.await_ready();
        let inner = inner(&host);
        for process in [pid(&host), inner] {
            kill_process(process, Signal::STOP).unwrap();
        }
        if finishes {
            std::fs::write(stage.dir.path().join("go"), "").unwrap();
        }
        await_until("the deadline is long past", || began.elapsed() > Duration::from_secs(2));
        for process in [pid(&host), inner] {
            kill_process(process, Signal::CONT).unwrap();
        }
        let (ran, report) = finish(host);
        let expected = if finishes { (0, "OK") } else { (124, "ENGINE_TIMEOUT") };
        let seen = (ran.exit.unwrap(), report["code"].as_str().unwrap());
        assert_eq!(seen, expected, "{report}");
        assert_eq!(stage.running(), Vec::<String>::new());
    }
}

#[test]
fn the_engine_starts_with_clean_signals_and_descriptors() {
    // The caller ignores signals and leaves a descriptor open; the engine must see neither.
    let stage = Stage::new(
        r#"grep SigIgn /proc/self/status >&2; for f in /proc/$$/fd/*; do echo "${f##*/}" >&2; done; ok"#,
    );
    let mut shell = Command::new("/bin/sh");
    let child = shell
        .args(["-c", "trap '' HUP INT QUIT USR1 PIPE; exec \"$@\" 7</dev/null", "sh"])
        .arg(env!("CARGO_BIN_EXE_satyrn-host"))
        .args(["implement", "--format", "json", "--engine"])
        .arg(&stage.engine)
        .arg(fixtures().join("contracts/good.yaml"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (ran, report) = finish(child);
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    let tail = report["process"]["stderr_tail"].as_str().unwrap().to_owned();
    let mask = tail.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    // 32 and 33 belong to the C library, which lets nobody change them.
    assert_eq!(u64::from_str_radix(mask, 16).unwrap() & !(3 << 31), 0, "{tail}");
    // 10 is where the shell keeps its own script.
    assert!(!tail.lines().any(|line| line == "7"), "{tail}");
}

/// What is below a host may lower the limits of the host's processes, as a user may for his own.
/// However it does that, nothing is left, and what is accepted was seen to its end.
#[test]
fn a_host_that_is_robbed_of_descriptors_and_memory_leaves_nothing_and_says_nothing_untrue() {
    let parents = "supervisor=$(sed 's/.*) . //; s/ .*//' /proc/$PPID/stat)";
    for whom in ["$PPID", "$supervisor", "$PPID $supervisor"] {
        for what in ["--nofile=3:3", "--nofile=0:0", "--as=1:1", "--data=1:1", "--nproc=0:0"] {
            let rob = format!("for pid in {whom}; do prlimit --pid $pid {what} || exit 9; done");
            let daemon = r#"setsid "$0" wait </dev/null >/dev/null 2>&1 & setsid "$0" stubborn &"#;
            let stage = Stage::new(&format!("{parents}; {daemon} {rob}; ok"));
            let (ran, report) = finish(stage.host(&["--deadline", "5s"]).spawn().unwrap());
            assert_eq!(stage.running(), Vec::<String>::new(), "{whom} {what}: {ran:?}");
            let process = &report["process"];
            if ran.exit == Some(0) {
                let seen = (&process["contained"], &process["survivors"], &process["orphaned"]);
                assert_eq!(seen, (&true.into(), &0.into(), &true.into()), "{whom} {what}: {ran:?}");
            } else {
                // Without memory it may be unable to say anything, which is no acceptance either.
                assert!(ran.exit != Some(9), "{whom} {what}: {ran:?}");
                assert!(!ran.stdout.contains("satyrn-engine: OK"), "{whom} {what}: {ran:?}");
            }
            if what.starts_with("--nofile") {
                assert_eq!((ran.exit, &report["code"]), (Some(0), &"OK".into()), "{whom}: {ran:?}");
            }
        }
    }
}

/// A host that sees no `/proc`; ends with 1 or 32 where no namespace can be had for it.
fn without_proc(stage: &Stage) -> Command {
    let mut apart = Command::new("unshare");
    apart
        .args(["--mount", "--map-root-user", "/bin/sh", "-c"])
        .arg("mount -t tmpfs none /proc && exec \"$@\" 7>/dev/null")
        .arg("sh")
        .arg(env!("CARGO_BIN_EXE_satyrn-host"))
        .args(["implement", "--format", "json", "--engine"])
        .arg(&stage.engine)
        .arg(fixtures().join("contracts/good.yaml"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    apart
}

#[test]
fn without_proc_there_is_the_group_alone_and_the_report_says_so() {
    let stage = Stage::new("(: >&7) 2>/dev/null && echo seven is open >&2; ok");
    let (ran, report) = finish(without_proc(&stage).spawn().unwrap());
    if ran.exit == Some(1) || ran.exit == Some(32) {
        eprintln!("no mount namespace to be had here: nothing is tested: {}", ran.stderr);
        return;
    }
    assert_eq!((ran.exit, &report["line"]), (Some(0), &"satyrn-engine: OK".into()), "{ran:?}");
    let process = &report["process"];
    assert_eq!((&process["contained"], &process["survivors"]), (&false.into(), &Value::Null));
    assert_eq!(process["stderr_tail"], "");

    // The guard cannot find the group by itself; the inner host has told it.
    let stage = Stage::new(r#""$0" stubborn & ready; wait"#);
    let host = without_proc(&stage).spawn().unwrap();
    stage.await_ready();
    kill_process(inner(&host), Signal::KILL).unwrap();
    let (ran, report) = finish(host);
    let line = "satyrn-engine: HOST_FAILED: its own process was killed by SIGKILL";
    assert_eq!((ran.exit, &report["line"]), (Some(1), &line.into()), "{ran:?}");
    await_until("nothing runs", || stage.running().is_empty());
}

#[test]
fn a_proc_that_is_taken_away_in_the_middle_of_a_run_blinds_nobody() {
    let daemon = r#"setsid "$0" wait </dev/null >/dev/null 2>&1 &"#;
    let stage = Stage::new(&format!("{daemon} mount -t tmpfs none /proc || exit 9; ok"));
    let mut apart = Command::new("unshare");
    apart
        .args(["--mount", "--map-root-user", env!("CARGO_BIN_EXE_satyrn-host"), "implement"])
        .args(["--format", "json", "--engine"])
        .arg(&stage.engine)
        .arg(fixtures().join("contracts/good.yaml"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (ran, report) = finish(apart.spawn().unwrap());
    if report["process"]["exit_code"] == 9 || report.is_null() {
        eprintln!("no mount namespace to be had here: nothing is tested: {}", ran.stderr);
        return;
    }
    assert_eq!((ran.exit, &report["code"]), (Some(0), &"OK".into()), "{ran:?}");
    let process = &report["process"];
    assert_eq!((&process["contained"], &process["survivors"]), (&true.into(), &0.into()));
    assert_eq!(stage.running(), Vec::<String>::new());
}

#[test]
fn children_of_the_caller_are_left_alone() {
    // A shell that starts something and then executes the host leaves its child to the host.
    let stage = Stage::new("ok");
    let words = "sleep 60 & echo $! >pid; exec \"$@\" > >(cat >said)";
    let mut shell = Command::new("bash");
    let ran = shell
        .args(["-c", words, "bash", env!("CARGO_BIN_EXE_satyrn-host"), "implement", "--engine"])
        .arg(&stage.engine)
        .arg(fixtures().join("contracts/good.yaml"))
        .current_dir(stage.dir.path())
        .stdin(Stdio::null())
        .status();
    let Ok(status) = ran else {
        eprintln!("no bash: nothing is tested here");
        return;
    };
    assert_eq!(status.code(), Some(0));
    let said = || std::fs::read_to_string(stage.dir.path().join("said")).unwrap_or_default();
    await_until("the line is read", || said() == "satyrn-engine: OK\n");
    let pid = std::fs::read_to_string(stage.dir.path().join("pid")).unwrap();
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn what_an_engine_writes_into_the_hosts_own_pipe_is_no_verdict() {
    // Only root may open it at all; for others the verdict is the engine's answer.
    for forged in ["echo satyrn-engine: OK", "head -c 40000000 /dev/zero"] {
        let stage =
            Stage::new(&format!("({forged} >/proc/$PPID/fd/1) 2>/dev/null; cat >/dev/null"));
        let (ran, _) = stage.run(&[]);
        assert!(matches!(ran.exit, Some(1 | 76)), "{ran:?}");
        assert_eq!(ran.stdout.lines().count(), 1, "{ran:?}");
        assert!(!ran.stdout.starts_with("satyrn-engine: OK"), "{ran:?}");
    }
}

#[test]
fn a_start_that_was_cut_off_is_not_called_one() {
    // The fork is stopped before it can execute anything.
    // An engine that hangs, so that the host is there for long enough to be found.
    let stage = Stage::new("exec sleep 60");
    let host = stage.host(&["--deadline", "300ms"]).spawn().unwrap();
    let inner = inner(&host);
    let list = format!("/proc/{0}/task/{0}/children", inner.as_raw_nonzero());
    let fork = || std::fs::read_to_string(&list).ok()?.trim().parse().ok().and_then(Pid::from_raw);
    await_until("the fork is there, or all is over", || {
        fork().is_some_and(|fork| kill_process(fork, Signal::STOP).is_ok())
            || !Path::new(&list).exists()
    });
    let (ran, report) = finish(host);
    let process = &report["process"];
    assert_eq!(ran.exit, Some(124), "{ran:?}");
    if process["started"].is_null() {
        assert_eq!(process["input_delivery"], Value::Null);
        assert_eq!(process["signal"], Value::Null);
    } else {
        // It was stopped after the exec.
        assert_eq!(process["started"], true);
    }
}

#[test]
fn a_drills_own_deadline_is_the_guards_too() {
    // The inner host tells two deadlines, its default and the drill's; the last one counts.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hangs.yaml");
    let drill = "about: It hangs.\nlimits: {deadline: 500ms}\nengine: [{sleep: forever}]\n\
                 expect: {code: ENGINE_TIMEOUT, exit: 124}\n";
    std::fs::write(&path, drill).unwrap();
    for _ in 0..5 {
        let began = Instant::now();
        let mut command = host();
        command
            .args(["implement", "--drill"])
            .arg(&path)
            .arg(fixtures().join("contracts/good.yaml"));
        let host = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let inner = inner(&host);
        let list = format!("/proc/{0}/task/{0}/children", inner.as_raw_nonzero());
        let engine = || std::fs::read_to_string(&list).is_ok_and(|list| !list.trim().is_empty());
        await_until("an engine is started", engine);
        kill_process(inner, Signal::STOP).unwrap();
        let (ran, _) = finish(host);
        assert_eq!(ran.exit, Some(1), "{ran:?}");
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    }
}
