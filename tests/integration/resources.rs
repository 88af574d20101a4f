//! Whatever the caller left behind and whatever runs short: a named line, and nothing left over.

use crate::common::{Ran, await_until, fixtures, host, run, script};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const OK: &str = "satyrn-engine: OK\n";
const ANSWER: &str = r#"{"version":1,"ok":true,"code":"OK","message":""}"#;

fn good() -> PathBuf {
    fixtures().join("contracts/good.yaml")
}

/// The host below a shell that first does something to itself.
fn after(preparation: &str, options: &[&str]) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", &format!("{preparation}; exec \"$@\""), "sh"])
        .arg(env!("CARGO_BIN_EXE_satyrn-host"))
        .arg("implement")
        .args(options)
        .arg(good());
    shell
}

#[test]
fn what_the_caller_left_behind_changes_nothing() {
    for preparation in
        ["trap '' CHLD", "trap '' CHLD HUP INT QUIT TERM PIPE", "exec <&-", "exec 2>&-"]
    {
        let ran = run(&mut after(preparation, &[]));
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(0), OK), "{preparation}: {ran:?}");
    }
    // A fault's signal that is ignored cannot be reset, and hinders no engine of either kind.
    for engine in [&[][..], &["--engine", env!("CARGO_BIN_EXE_satyrn-engine")]] {
        let ran = run(&mut after("trap '' SEGV FPE ILL BUS", engine));
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(0), OK), "{engine:?}: {ran:?}");
    }
    for preparation in ["exec >&-", "exec <&- >&- 2>&-", "exec >/dev/full"] {
        let ran = run(&mut after(preparation, &[]));
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(0), ""), "{preparation}: {ran:?}");
    }
    // The refusal keeps its exit code too.
    let ran = run(after("exec >&-", &["--repo", "/missing"]).stdin(Stdio::null()));
    assert_eq!(ran.exit, Some(6));
}

#[test]
fn no_engine_reads_what_the_caller_left_open() {
    let good = good();
    let command = format!("exec 7<'{}'; \"$@\" /dev/fd/7", good.display());
    for engine in [&[][..], &["--engine", env!("CARGO_BIN_EXE_satyrn-engine")]] {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &command, "sh", env!("CARGO_BIN_EXE_satyrn-host"), "implement"]);
        let ran = run(shell.args(engine));
        assert_eq!(ran.exit, Some(3), "{engine:?}: {ran:?}");
    }
}

#[test]
fn blocked_signals_are_unblocked() {
    // The mask is inherited by the host; it belongs to this thread alone.
    nix::sys::signal::SigSet::all().thread_block().unwrap();
    let ran = run(host().arg("implement").arg(good()));
    nix::sys::signal::SigSet::all().thread_unblock().unwrap();
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(0), OK));
}

/// Both ends of a pipe that has no room, non-blocking or not.
fn full_pipe(blocking: bool) -> (OwnedFd, OwnedFd) {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    rustix::fs::fcntl_setfl(&write, OFlags::NONBLOCK).unwrap();
    while rustix::io::write(&write, &[b'x'; 4096]).is_ok() {}
    if blocking {
        rustix::fs::fcntl_setfl(&write, OFlags::empty()).unwrap();
    }
    (read, write)
}

#[test]
fn a_full_stdout_is_waited_for_within_the_deadline() {
    for blocking in [true, false] {
        let (read, write) = full_pipe(blocking);
        let began = Instant::now();
        let status = host()
            .args(["implement", "--deadline", "300ms", "--repo", "/missing"])
            .arg(good())
            .stdout(write)
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(6));
        assert!(began.elapsed() < Duration::from_millis(1300), "{:?}", began.elapsed());
        drop(read);

        // A reader that comes in time gets the line.
        let (read, write) = full_pipe(blocking);
        let mut child = host().arg("implement").arg(good()).stdout(write).spawn().unwrap();
        let mut all = Vec::new();
        std::io::Read::read_to_end(&mut std::fs::File::from(read), &mut all).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert!(all.ends_with(OK.as_bytes()));
    }
    let (read, write) = full_pipe(false);
    drop(read);
    let status = host().arg("implement").arg(good()).stdout(write).status().unwrap();
    assert_eq!(status.code(), Some(0), "a reader that has gone");
}

/// What the guard waits for then is room, no longer its own process.
#[test]
fn who_cancels_while_stdout_is_full_is_heard() {
    // An engine that is there until it is told to answer, so that nobody has to be quick to see it.
    let dir = tempfile::tempdir().unwrap();
    let go = dir.path().join("go");
    let text = format!(
        "#!/bin/sh\ncat >/dev/null; while [ ! -e '{}' ]; do :; done\nprintf '%s' '{ANSWER}'\n",
        go.display()
    );
    let engine = script(dir.path(), "engine", &text);
    let waits = |host: &std::process::Child| {
        let children = format!("/proc/{0}/task/{0}/children", host.id());
        let none = || std::fs::read_to_string(&children).unwrap().is_empty();
        await_until("the exchange runs", || !none());
        std::fs::write(&go, "").unwrap();
        await_until("the exchange is over", none);
        std::fs::remove_file(&go).unwrap();
    };
    for (signal, exit) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let (_read, write) = full_pipe(true);
        let mut host = host();
        host.args(["implement", "--engine"]).arg(&engine).arg(good()).stdout(write);
        let mut child = host.spawn().unwrap();
        drop(host);
        waits(&child);
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(exit));
    }
    let (_read, write) = full_pipe(true);
    let mut leashed = host();
    leashed.args(["implement", "--leash", "--engine"]).arg(&engine).arg(good());
    leashed.stdin(Stdio::piped()).stdout(write);
    let mut child = leashed.spawn().unwrap();
    drop(leashed);
    waits(&child);
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

/// What one of them finds there may be gone when it reads.
#[test]
fn hosts_that_share_a_leash_are_all_back_in_time() {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let began = Instant::now();
    let mut hosts: Vec<_> = (0..4)
        .map(|_| {
            let mut host = host();
            host.args(["implement", "--leash", "--drill", "hangs", "--deadline", "500ms"]);
            host.arg(good()).stdin(read.try_clone().unwrap()).stdout(Stdio::null());
            host.spawn().unwrap()
        })
        .collect();
    while hosts.iter_mut().any(|host| host.try_wait().unwrap().is_none()) {
        assert!(began.elapsed() < Duration::from_secs(3));
        rustix::io::write(&write, b"x").unwrap();
        std::thread::yield_now();
    }
    assert!(hosts.iter_mut().all(|host| host.wait().unwrap().code() == Some(124)));
}

#[test]
fn few_descriptors_end_in_a_named_refusal_or_an_answer() {
    let mut answered = false;
    for limit in 4..40 {
        let ran = run(&mut after(&format!("ulimit -n {limit}"), &[]));
        if ran.exit == Some(0) {
            assert_eq!(ran.stdout, OK, "{limit}");
            answered = true;
        } else if ran.exit != Some(127) {
            // 127: the system's loader itself could not open a library.
            assert_eq!(ran.exit, Some(69), "{limit}: {ran:?}");
            let start = "satyrn-engine: ENGINE_START_FAILED: ";
            assert!(ran.stdout.starts_with(start), "{limit}: {ran:?}");
            // Each C library has its own words for it.
            let words = ["Too many open files", "No file descriptors available"];
            assert!(words.iter().any(|words| ran.stdout.contains(words)), "{limit}: {ran:?}");
            assert!(!answered, "{limit}: {ran:?}");
        }
        assert!(!ran.stderr.contains("panicked"), "{limit}: {ran:?}");
    }
    assert!(answered);
}

#[test]
fn an_engine_for_which_there_are_too_few_descriptors_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let text =
        format!("#!/bin/sh\necho here >'{}'\ncat >/dev/null\necho '{ANSWER}'\n", trace.display());
    let engine = script(dir.path(), "engine", &text);
    let mut answered = false;
    for limit in 4..40 {
        let _ = std::fs::remove_file(&trace);
        let ran =
            run(&mut after(&format!("ulimit -n {limit}"), &["--engine", engine.to_str().unwrap()]));
        match ran.exit {
            Some(69) => assert!(!trace.exists(), "{limit}: {ran:?}"),
            Some(0) => answered = true,
            // The system's loader, or the engine's own, could not open a library.
            Some(127 | 70) => {}
            _ => panic!("{limit}: {ran:?}"),
        }
    }
    assert!(answered && trace.exists());
}

#[test]
fn little_memory_never_reads_as_ok_without_an_answer() {
    for kib in [2000, 4000, 6000, 10_000, 32_768] {
        let ran = run(&mut after(&format!("ulimit -v {kib}"), &[]));
        assert_eq!(ran.exit == Some(0), ran.stdout == OK, "{kib}: {ran:?}");
        assert!(!ran.stderr.contains("panicked"), "{kib}: {ran:?}");
    }
}

#[test]
fn memory_stays_bounded_whatever_the_engine_prints() {
    let dir = tempfile::tempdir().unwrap();
    for (flood, exit) in [
        ("yes", 76),
        ("yes >&2", 124),
        ("head -c 50000000 /dev/zero >&2; cat >/dev/null; echo '{A}'", 0),
        // Members that nobody knows, many of them, and one that is large.
        ("cat >/dev/null; {MANY}", 0),
        ("cat >/dev/null; {LARGE}", 0),
        ("head -c 1048500 /dev/zero | tr '\\0' ' '; cat >/dev/null; echo '{A}'", 0),
    ] {
        let begun = ANSWER.trim_end_matches('}');
        let many = format!(
            "printf '%s' '{begun}'; seq 90000 | sed 's/.*/,\"m&\":0/' | tr -d '\\n'; echo '}}'"
        );
        let large = format!(
            "printf '%s' '{begun},\"x\":[0'; seq 140000 | sed 's/.*/,{{\"\":0}}/' | tr -d '\\n'; echo ']}}'"
        );
        let text = flood.replace("{A}", ANSWER).replace("{MANY}", &many);
        let text = format!("#!/bin/sh\n{}\n", text.replace("{LARGE}", &large));
        let engine = script(dir.path(), "engine", &text);
        let engine = engine.to_str().unwrap();
        let options = ["--deadline", "1s", "--engine", engine];
        // The limit holds for each process, and counts more than what is resident.
        let ran = run(&mut after("ulimit -v 32768", &options));
        assert_eq!(ran.exit, Some(exit), "{flood}: {ran:?}");
    }
}

#[test]
fn a_thousand_hosts_leave_their_caller_nothing() {
    // A caller of its own, so that other tests' children and descriptors do not count.
    let tmp = tempfile::tempdir().unwrap();
    let caller = r#"
        fds() { set -- /proc/$$/fd/*; count=$#; }
        fds; before=$count; i=0
        while [ $i -lt 1000 ]; do
            "$@" >/dev/null || exit 9
            i=$((i + 1))
        done
        fds; [ "$before" = "$count" ] || exit 8
        # The one child is the reader of the list.
        [ "$(wc -w <"/proc/$$/task/$$/children")" -le 1 ] || exit 7
    "#;
    let ran = run(Command::new("/bin/sh")
        .args(["-c", caller, "sh", env!("CARGO_BIN_EXE_satyrn-host"), "implement"])
        .arg(good())
        .env("TMPDIR", tmp.path()));
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    assert_eq!(std::fs::read_dir(tmp.path()).unwrap().count(), 0);
}

#[test]
fn of_many_at_once_only_the_hanging_one_is_late() {
    let dir = tempfile::tempdir().unwrap();
    let hanging =
        script(dir.path(), "hanging", "#!/bin/sh\nwhile :; do read x <>\"$0.hold\"; done\n");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let hold = dir.path().join("hanging.hold");
    rustix::fs::mknodat(rustix::fs::CWD, &hold, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let began = Instant::now();
    let start = |engine: Option<&Path>| {
        let mut command = host();
        command.args(["implement", "--deadline", "5s"]);
        if let Some(engine) = engine {
            command.arg("--engine").arg(engine);
        }
        command.arg(good()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let late = start(Some(&hanging));
    let prompt: Vec<_> = (0..31).map(|_| start(None)).collect();
    for child in prompt {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.stdout, OK.as_bytes());
    }
    let took = began.elapsed();
    assert!(took < Duration::from_secs(4), "{took:?}");
    let output = late.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(124));
}

#[test]
fn a_program_that_is_just_being_written_is_tried_again_for_a_moment() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("#!/bin/sh\ncat >/dev/null; echo '{ANSWER}'\n");
    let engine = script(dir.path(), "engine", &text);
    let implement = || run(host().arg("implement").arg("--engine").arg(&engine).arg(good()));
    // Closed while the host tries.
    let open = std::fs::OpenOptions::new().write(true).open(&engine).unwrap();
    let child = host()
        .args(["implement", "--engine"])
        .arg(&engine)
        .arg(good())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let moment = Instant::now() + Duration::from_millis(40);
    while Instant::now() < moment {
        std::thread::yield_now();
    }
    drop(open);
    assert_eq!(child.wait_with_output().unwrap().stdout, OK.as_bytes());
    // Never closed.
    let open = std::fs::OpenOptions::new().write(true).open(&engine).unwrap();
    let began = Instant::now();
    let ran = implement();
    assert_eq!(ran.exit, Some(69), "{ran:?}");
    assert!(ran.stdout.contains("Text file busy"), "{}", ran.stdout);
    assert!(began.elapsed() < Duration::from_secs(1));
    drop(open);
    assert_eq!(implement().stdout, OK);
}

#[test]
fn a_start_that_blocks_in_the_kernel_is_a_timeout_and_never_happens_later() {
    // A lease makes whoever executes the file wait for its holder.
    let holder = r#"
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
lease = os.open(sys.argv[1], os.O_RDONLY)
fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
sys.stdin.read()
"#;
    let dir = tempfile::tempdir().unwrap();
    let text = format!("#!/bin/sh\n: >'{}/started'\n", dir.path().display());
    let engine = script(dir.path(), "engine", &text);
    let holder = Command::new("python3")
        .args(["-c", holder])
        .arg(&engine)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut holder) = holder else {
        assert!(!crate::common::is_ci(), "python3 is not there");
        eprintln!("python3 is not there: nothing is tested here");
        return;
    };
    let mut held = [0; 5];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut held).unwrap();
    let began = Instant::now();
    let ran =
        run(host().args(["implement", "--deadline", "300ms", "--engine"]).arg(&engine).arg(good()));
    assert_eq!(ran.exit, Some(124), "{ran:?}");
    assert!(began.elapsed() < Duration::from_millis(1300), "{:?}", began.elapsed());
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert!(!dir.path().join("started").exists());
}

#[test]
fn a_working_directory_that_is_gone_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let gone = dir.path().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let prepare = format!("cd '{0}' && rmdir '{0}'", gone.display());
    let Ran { exit, stdout, .. } = run(&mut after(&prepare, &[]));
    assert_eq!(exit, Some(69));
    assert!(stdout.contains("the working directory is gone"), "{stdout}");
}

#[test]
fn only_a_person_at_a_terminal_is_told_to_wait() {
    let dir = tempfile::tempdir().unwrap();
    let engine =
        script(dir.path(), "engine", "#!/bin/sh\nwhile :; do read x <>\"$0.hold\"; done\n");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let hold = dir.path().join("engine.hold");
    rustix::fs::mknodat(rustix::fs::CWD, &hold, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let implement = |stderr: Stdio| {
        let mut command = host();
        command.args(["implement", "--deadline", "2200ms", "--engine"]).arg(&engine).arg(good());
        let output = command.stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        output.wait_with_output().unwrap()
    };
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let screen = std::fs::OpenOptions::new().read(true).write(true).open(name).unwrap();
    let output = implement(screen.into());
    assert_eq!(output.status.code(), Some(124));
    assert!(output.stdout.starts_with(b"satyrn-engine: ENGINE_TIMEOUT: "));
    let mut seen = [0; 200];
    let read = rustix::io::read(&terminal, &mut seen).unwrap();
    let notice = "satyrn-host: waiting for the engine; the deadline is 2.2s\r\n";
    assert_eq!(String::from_utf8_lossy(&seen[..read]), notice);

    let output = implement(Stdio::piped());
    assert_eq!((output.status.code(), output.stderr.len()), (Some(124), 0));
}

#[test]
fn a_terminal_that_is_stopped_or_coveted_changes_nothing() {
    // The engine takes the terminal, if it can get at it; the notice finds the terminal stopped.
    let steals = "import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
try:
    terminal = os.open('/dev/tty', os.O_RDWR)
    os.tcsetpgrp(terminal, os.getpgrp())
    print('stolen', file=sys.stderr, flush=True)
except OSError:
    print('refused', file=sys.stderr, flush=True)
signal.pause()
";
    let person = "import fcntl, json, os, pty, subprocess, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    termios.tcflow(2, termios.TCOOFF)
    out = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE)
    termios.tcflow(2, termios.TCOON)
    mine = os.tcgetpgrp(0) == os.getpgrp()
    os.write(2, b'|%d|%r|' % (out.returncode, mine) + out.stdout)
    os._exit(0)
seen = b''
while True:
    try:
        seen += os.read(terminal, 4096)
    except OSError:
        break
os.waitpid(pid, 0)
sys.stdout.write(seen.decode())
";
    let dir = tempfile::tempdir().unwrap();
    let engine = script(dir.path(), "engine", &format!("#!/usr/bin/env python3\n{steals}"));
    let mut python = Command::new("python3");
    python
        .args(["-c", person, env!("CARGO_BIN_EXE_satyrn-host")])
        .args(["implement", "--deadline", "2500ms", "--engine"])
        .arg(&engine)
        .arg(good());
    let began = Instant::now();
    let Ok(output) = python.stdin(Stdio::null()).output() else {
        assert!(!crate::common::is_ci(), "python3 is not there");
        eprintln!("python3 is not there: nothing is tested here");
        return;
    };
    let seen = String::from_utf8_lossy(&output.stdout);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}: {seen}", began.elapsed());
    assert!(seen.contains("|124|True|satyrn-engine: ENGINE_TIMEOUT: "), "{seen}");
    assert!(seen.contains("last line of stderr: refused"), "{seen}");
}

#[test]
fn an_executable_that_cannot_be_read_works() {
    use std::os::unix::fs::PermissionsExt;
    // The system then hides the process's descriptors from everybody, itself not.
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("satyrn-host");
    std::fs::copy(env!("CARGO_BIN_EXE_satyrn-host"), &copy).unwrap();
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o111)).unwrap();
    let ran = run(Command::new(&copy).arg("implement").arg(good()));
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(0), OK), "{ran:?}");
}

/// An engine that leaves at once after a long answer, as those on Node do: what its pipe has no room for
/// is lost, and nothing tells the engine.
#[cfg(target_os = "linux")]
#[test]
fn the_long_answer_of_an_engine_that_leaves_at_once_is_whole_or_said_to_be_cut() {
    let dir = tempfile::tempdir().unwrap();
    let ok = r#"b'{"version":1,"ok":true,"code":"OK","message":""}'"#;
    let leaves = |blanks: usize| {
        let text = format!(
            "#!/usr/bin/env python3\nimport os, sys\nsys.stdin.buffer.read()\n\
             os.set_blocking(1, False)\nos.write(1, b'{{' + b' ' * {blanks} + {ok}[1:])\n"
        );
        let engine = script(dir.path(), "engine", &text);
        run(host().args(["implement", "--engine"]).arg(engine).arg(good()))
    };
    let whole = leaves(300_000);
    if whole.stdout.contains("python3") {
        eprintln!("no Python: nothing is tested here");
        return;
    }
    assert_eq!((whole.exit, &whole.stdout[..]), (Some(0), "satyrn-engine: OK\n"), "{whole:?}");
    let cut = leaves(2_000_000);
    let line = "satyrn-engine: ENGINE_MALFORMED_RESPONSE: stdout is not one JSON value: cut short at \
                byte 1048576; cut at 1048576 bytes: the engine may leave before its output is read\n";
    assert_eq!((cut.exit, &cut.stdout[..]), (Some(76), line), "{cut:?}");
}
