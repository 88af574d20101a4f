//! Many exchanges in one process, as a command needs them that runs helper programs before its payload.
//!
//! It has no test harness, which would have threads: a process that forks must not.
#![expect(clippy::print_stdout, reason = "it is its own runner of tests")]

#[cfg(not(unix))]
fn main() {
    println!("not on this system: its exchanges are tried through the host");
}

#[cfg(unix)]
fn main() {
    let tests: [(&str, fn()); 5] = [
        ("each_status_reaches_who_waits_for_it", unix::each_status_reaches_who_waits_for_it),
        ("each_output_is_kept_as_asked_for", unix::each_output_is_kept_as_asked_for),
        ("a_limit_on_stderr_ends_it_too", unix::a_limit_on_stderr_ends_it_too),
        ("a_file_is_read_as_stdin", unix::a_file_is_read_as_stdin),
        ("what_was_asked_for_before_ends_the_next", unix::what_was_asked_for_before_ends_the_next),
    ];
    for (name, test) in tests {
        test();
        println!("test {name} ... ok");
    }
    println!("{} passed, 0 failed", tests.len());
}

#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "these are tests")]
mod unix {
    use std::io::{Read, Seek, Write};
    use std::time::Duration;

    use satyrn::host::exchange::cancel::Cancel;
    use satyrn::host::exchange::exchange;
    use satyrn::host::exchange::launch::{Capture, LAST, Launch, Limits, Program, Stdin};
    use satyrn::host::exchange::observation::{
        CancelledBy, Containment, Ended, Input, Observation, Stop, Stream,
    };
    use satyrn::host::exchange::transport::{Fault, transport};

    fn shell(script: &str) -> Launch {
        Launch {
            program: Program::File("/bin/sh".into()),
            args: vec!["-c".into(), script.into()],
            cwd: "/".into(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            stdin: Stdin::Bytes(Vec::new()),
            stdout: Capture::Head(1 << 20),
            stderr: Capture::Tail(64 << 10),
        }
    }

    fn run(launch: &Launch) -> Observation {
        let limits = Limits { deadline: Duration::from_secs(20), ..Limits::default() };
        exchange(launch, &limits, &Cancel::default())
    }

    /// Orphans end all the time, in one exchange and between two, and nobody takes the helper's status
    /// for theirs.
    pub(super) fn each_status_reaches_who_waits_for_it() {
        for exit in 0..40_i64 {
            let orphans = "for i in 1 2 3 4; do (sh -c 'exit 9' &) ; done; (sleep 60 &)";
            let seen = run(&shell(&format!("{orphans}; echo out; echo err >&2; exit {exit}")));
            assert_eq!(seen.ended, Some(Ended::Exit(exit)), "{seen:?}");
            assert_eq!(
                (&seen.stdout.bytes[..], &seen.stderr.bytes[..]),
                (&b"out\n"[..], &b"err\n"[..])
            );
            if cfg!(target_os = "linux") {
                assert_eq!((seen.containment, seen.survivors), (Some(Containment::Whole), Some(0)));
                assert_eq!((seen.orphaned, transport(&seen)), (Some(true), None));
            }
        }
    }

    pub(super) fn each_output_is_kept_as_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let file = || {
            let mut options = std::fs::File::options();
            options.read(true).write(true).create(true).truncate(true).open(&path).unwrap()
        };
        let limit = 3 * LAST as u64;
        let launch = Launch {
            stdout: Capture::File { file: file(), limit },
            stderr: Capture::Tail(3),
            ..shell("head -c 1000000 /dev/zero; echo end; echo 123456 >&2")
        };
        let seen = run(&launch);
        assert_eq!((seen.stdout.total, seen.stdout.complete), (1_000_004, true));
        assert_eq!(seen.stderr.bytes, b"56\n");
        let mut kept = Vec::new();
        let Capture::File { mut file, .. } = launch.stdout else { unreachable!() };
        file.rewind().unwrap();
        file.read_to_end(&mut kept).unwrap();
        assert!(kept.len() as u64 <= limit && kept.ends_with(b"\0end\n"), "{}", kept.len());
        let text = String::from_utf8(kept).unwrap();
        assert!(text.trim_matches('\0').starts_with("\n["), "one line says what is left out");
    }

    pub(super) fn a_limit_on_stderr_ends_it_too() {
        let limited = |script: &str| {
            let launch = Launch { stderr: Capture::Head(1000), ..shell(script) };
            let seen = run(&launch);
            (seen.stop.clone(), seen.stderr.bytes.len(), seen)
        };
        let (stop, kept, _) = limited("head -c 1000 /dev/zero >&2");
        assert_eq!((stop, kept), (None, 1000));
        let (stop, kept, seen) = limited("trap '' TERM; head -c 1001 /dev/zero >&2; sleep 60");
        assert_eq!((stop, kept), (Some(Stop::OutputLimit(Stream::Stderr)), 1000));
        assert_eq!(transport(&seen), Some(Fault::OutputLimit(Stream::Stderr)));
        assert!(seen.elapsed < Duration::from_secs(5), "{:?}", seen.elapsed);
    }

    pub(super) fn a_file_is_read_as_stdin() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"brief").unwrap();
        file.rewind().unwrap();
        let seen = run(&Launch { stdin: Stdin::File(file), ..shell("cat") });
        assert_eq!((&seen.stdout.bytes[..], seen.input), (&b"brief"[..], None));
        let bytes = vec![b'x'; 300_000];
        let seen = run(&Launch { stdin: Stdin::Bytes(bytes), ..shell("wc -c") });
        let counted = String::from_utf8(seen.stdout.bytes).unwrap();
        assert_eq!((counted.trim(), seen.input), ("300000", Some(Input::Delivered)));
    }

    pub(super) fn what_was_asked_for_before_ends_the_next() {
        let cancel = Cancel::default();
        cancel.ask(CancelledBy::Lifeline);
        let seen = exchange(&shell("sleep 60"), &Limits::default(), &cancel);
        assert_eq!(seen.stop, Some(Stop::Cancelled(CancelledBy::Lifeline)));
        assert!(seen.elapsed < Duration::from_secs(2), "{:?}", seen.elapsed);
        assert_eq!(run(&shell("exit 3")).ended, Some(Ended::Exit(3)));
    }
}
