use super::*;
use crate::host::exchange::observation::{Captured, Stop, Stream};
use proptest::prelude::*;

const TERMS: Terms = Terms { deadline: Duration::from_secs(30), stdout: 1 << 20, uv: false };
const OK: &str = r#"{"version":1,"ok":true,"code":"OK","message":""}"#;
const NO: &str = r#"{"version":1,"ok":false,"code":"CONTRACT_UNREADABLE","message":"why"}"#;

fn seen(stdout: impl AsRef<[u8]>, ended: Ended) -> Observation {
    let bytes = stdout.as_ref().to_vec();
    let total = bytes.len() as u64;
    Observation {
        pid: Some(7),
        stdout: Captured { bytes, total, complete: true, fault: None },
        ended: Some(ended),
        ..Observation::default()
    }
}

fn exit(code: i64) -> Ended {
    Ended::Exit(code)
}

fn killed() -> Ended {
    Ended::Signal("SIGKILL".into())
}

fn stopped(stop: Stop, observation: Observation) -> Observation {
    Observation { stop: Some(stop), ..observation }
}

fn stderr(text: &str, observation: Observation) -> Observation {
    let stderr =
        Captured { bytes: text.into(), total: text.len() as u64, complete: true, fault: None };
    Observation { stderr, ..observation }
}

/// Every row of the table of SPEC 2: observation, line, exit, reason.
#[test]
#[expect(clippy::too_many_lines, reason = "one table, one row a line")]
fn the_table() {
    let own = NO.replace("CONTRACT_UNREADABLE", "LEDGER_LOCKED");
    let start = |fault| Observation { start_fault: Some(fault), ..Observation::default() };
    let int = Stop::Cancelled(CancelledBy::Signal(2, "SIGINT"));
    let big = Observation {
        stdout: Captured {
            bytes: vec![b' '; 1 << 20],
            total: (1 << 20) + 1,
            complete: false,
            fault: None,
        },
        ..Observation::default()
    };
    let rows: Vec<(Observation, &str, u8, Option<&str>)> = vec![
        // Row 2: never started.
        (
            start(StartFault::NoProgram("/x".into())),
            "ENGINE_START_FAILED: no such program: /x",
            69,
            Some("no-program"),
        ),
        (
            start(StartFault::NotRunnable("/x".into(), "Permission denied".into())),
            "ENGINE_START_FAILED: cannot run /x: Permission denied",
            69,
            Some("not-runnable"),
        ),
        // Row 3: cancelled, whatever else was seen.
        (
            stopped(int.clone(), seen(OK, exit(0))),
            "ENGINE_CANCELLED: cancelled by SIGINT",
            130,
            Some("signal"),
        ),
        (
            stopped(Stop::Cancelled(CancelledBy::Signal(1, "SIGHUP")), seen("", killed())),
            "ENGINE_CANCELLED: cancelled by SIGHUP",
            129,
            Some("signal"),
        ),
        (
            stopped(Stop::Cancelled(CancelledBy::Lifeline), seen("", killed())),
            "ENGINE_CANCELLED: cancelled: the caller closed the leash",
            143,
            Some("leash"),
        ),
        // Row 4: the deadline.
        (
            stopped(Stop::Deadline, seen(OK, killed())),
            "ENGINE_TIMEOUT: no answer within 30s: stdout was closed, but the process had not exited",
            124,
            Some("deadline"),
        ),
        (
            stopped(Stop::Deadline, Observation::default()),
            "ENGINE_TIMEOUT: no answer within 30s: nothing on stdout",
            124,
            Some("deadline"),
        ),
        (
            stderr("Building wheel\n", stopped(Stop::Deadline, Observation::default())),
            "ENGINE_TIMEOUT: no answer within 30s: nothing on stdout; last line of stderr: Building wheel",
            124,
            Some("deadline"),
        ),
        // Row 5: too much.
        (
            stopped(Stop::OutputLimit(Stream::Stdout), big),
            "ENGINE_MALFORMED_RESPONSE: stdout grew above 1048576 bytes",
            76,
            Some("output-limit"),
        ),
        // Row 6: no answer, bad end.
        (
            seen("", exit(1)),
            "ENGINE_CRASHED: exit code 1; no answer on stdout: empty at byte 0",
            70,
            Some("exit"),
        ),
        (
            seen("", exit(5)),
            "ENGINE_CRASHED: exit code 5 (CONTRACT_MISSING_FIELD); no answer on stdout: empty at byte 0",
            70,
            Some("exit"),
        ),
        (
            seen("", exit(2)),
            "ENGINE_CRASHED: exit code 2; no answer on stdout: empty at byte 0",
            70,
            Some("exit"),
        ),
        (
            seen("", exit(0xC000_0005)),
            "ENGINE_CRASHED: exit code 0xC0000005; no answer on stdout: empty at byte 0",
            70,
            Some("exit"),
        ),
        (
            seen(&OK[..20], killed()),
            "ENGINE_CRASHED: killed by SIGKILL; no answer on stdout: cut short at byte 20",
            70,
            Some("signal"),
        ),
        (
            stderr("Traceback\nValueError: x\n\n", seen("", exit(1))),
            "ENGINE_CRASHED: exit code 1; no answer on stdout: empty at byte 0; last line of stderr: ValueError: x",
            70,
            Some("exit"),
        ),
        // Row 7: no answer, good end.
        (
            seen("", exit(0)),
            "ENGINE_MALFORMED_RESPONSE: stdout is not one JSON value: empty at byte 0",
            76,
            Some("empty"),
        ),
        (
            seen(format!("\u{feff}{OK}"), exit(0)),
            "ENGINE_MALFORMED_RESPONSE: stdout is not one JSON value: byte order mark at byte 0",
            76,
            Some("byte-order-mark"),
        ),
        (
            seen(b"\xff", exit(0)),
            "ENGINE_MALFORMED_RESPONSE: stdout is not one JSON value: invalid UTF-8 at byte 0",
            76,
            Some("invalid-utf-8"),
        ),
        (
            seen(format!("Building...\n{OK}"), exit(0)),
            "ENGINE_MALFORMED_RESPONSE: stdout is not one JSON value: text before at byte 0",
            76,
            Some("text-before"),
        ),
        (
            seen(format!("{OK}\n{OK}"), exit(0)),
            "ENGINE_MALFORMED_RESPONSE: stdout is not one JSON value: text after at byte 49",
            76,
            Some("text-after"),
        ),
        (
            seen(&OK[..20], exit(0)),
            "ENGINE_MALFORMED_RESPONSE: stdout is not one JSON value: cut short at byte 20",
            76,
            Some("cut-short"),
        ),
        (
            seen(format!("{{{}", " ".repeat(8191)), exit(0)),
            "ENGINE_MALFORMED_RESPONSE: stdout is not one JSON value: cut short at byte 8192; cut at 8192 bytes: the engine may leave before its output is read",
            76,
            Some("cut-short"),
        ),
        (
            seen("{'a':1}", exit(0)),
            "ENGINE_MALFORMED_RESPONSE: stdout is not one JSON value: invalid JSON at byte 1",
            76,
            Some("invalid-json"),
        ),
        // Row 8: another shape, at any exit.
        (
            seen("null", exit(0)),
            "ENGINE_MALFORMED_RESPONSE: response must be a JSON object, not null",
            76,
            Some("shape"),
        ),
        (
            seen("[1,true,\"OK\",\"\"]", exit(3)),
            "ENGINE_MALFORMED_RESPONSE: response must be a JSON object, not an array",
            76,
            Some("shape"),
        ),
        (
            seen("{}", killed()),
            "ENGINE_MALFORMED_RESPONSE: member 'version' is missing",
            76,
            Some("shape"),
        ),
        (
            seen("[".repeat(200_000) + &"]".repeat(200_000), exit(0)),
            "ENGINE_MALFORMED_RESPONSE: response is nested 128 levels or deeper",
            76,
            Some("shape"),
        ),
        // Row 9: an acceptance that does not agree.
        (
            seen(OK, killed()),
            "ENGINE_CRASHED: it answered OK, but was killed by SIGKILL",
            70,
            Some("signal"),
        ),
        (
            seen(OK, exit(6)),
            "ENGINE_MALFORMED_RESPONSE: it answered OK, but its exit code is 6",
            76,
            Some("exit-disagrees"),
        ),
        // Row 10: a refusal, on its own word.
        (seen(NO, exit(3)), "CONTRACT_UNREADABLE: why", 3, None),
        (seen(NO, exit(0)), "CONTRACT_UNREADABLE: why", 3, None),
        (seen(NO, killed()), "CONTRACT_UNREADABLE: why", 3, None),
        (seen(&own, exit(8)), "LEDGER_LOCKED: why", 8, None),
        (seen(&own, exit(63)), "LEDGER_LOCKED: why", 63, None),
        (seen(&own, exit(64)), "LEDGER_LOCKED: why", 65, None),
        (seen(&own, exit(7)), "LEDGER_LOCKED: why", 65, None),
        (seen(&own, exit(0)), "LEDGER_LOCKED: why", 65, None),
        (seen(&own, killed()), "LEDGER_LOCKED: why", 65, None),
        // Row 11: an acceptance; white space context it and CRLF are fine.
        (seen(OK, exit(0)), "OK", 0, None),
        (seen(format!("\r\n {OK}\r\n"), exit(0)), "OK", 0, None),
    ];
    for (observation, line, exit, reason) in rows {
        let outcome = judge(TERMS, &observation);
        assert_eq!(outcome.line(), format!("satyrn-engine: {line}"));
        assert_eq!((outcome.exit, outcome.reason), (exit, reason), "{line}");
        assert_eq!(outcome.ok(), exit == 0, "{line}");
    }
    let shown = [(0xffff, "65535"), (0x1_0000, "0x00010000"), (0xC000_0005, "0xC0000005")];
    assert_eq!(shown.map(|(exit, _)| exit_shown(exit)), shown.map(|(_, text)| text));
    let outcome = refused(&Refusal::Usage("what".into())); // row 1
    assert_eq!((outcome.line(), outcome.exit), ("satyrn-engine: USAGE: what".into(), 2));
    assert_eq!(outcome.launch, LaunchState::LaunchFailed);
    let outcome = refused(&Refusal::HostFailed("what".into()));
    assert_eq!((outcome.line(), outcome.exit), ("satyrn-engine: HOST_FAILED: what".into(), 1));
    assert_eq!(outcome.launch, LaunchState::Incomplete, "an engine may have run");
}

#[test]
fn uvs_own_failures_mean_that_the_engine_never_ran() {
    let uv = Terms { uv: true, ..TERMS };
    for (text, code, line) in [
        ("error: No interpreter found\n", 2, "uv: error: No interpreter found"),
        (
            "Using CPython 3.11\n  × No solution found\n  ╰─▶ because\n",
            1,
            "uv: × No solution found",
        ),
    ] {
        let outcome = judge(uv, &stderr(text, seen("", exit(code))));
        assert_eq!(outcome.line(), format!("satyrn-engine: ENGINE_START_FAILED: {line}"));
        assert_eq!(outcome.launch, LaunchState::LaunchFailed);
    }
    let traceback = "Traceback (most recent call last):\n  x\nerror: y\n";
    for (terms, observation) in [
        (uv, stderr(traceback, seen("", exit(1)))),
        (uv, stderr("error: x\n", seen("", exit(3)))),
        (uv, stderr("error: x\n", seen("x", exit(2)))),
        (uv, stderr("warning: x\n", seen("", exit(2)))),
        (TERMS, stderr("error: x\n", seen("", exit(2)))),
    ] {
        assert_eq!(judge(terms, &observation).code, "ENGINE_CRASHED", "{observation:?}");
    }
}

#[test]
fn facts_beside_the_verdict() {
    let agrees = |text: &str, ended| judge(TERMS, &seen(text, ended)).exit_agrees;
    let own = NO.replace("CONTRACT_UNREADABLE", "LEDGER_LOCKED");
    assert_eq!(agrees(OK, exit(0)), Some(true));
    assert_eq!(agrees(OK, exit(6)), Some(false));
    assert_eq!(agrees(NO, exit(3)), Some(true));
    assert_eq!(agrees(NO, exit(4)), Some(false));
    assert_eq!(agrees(NO, killed()), Some(false));
    assert_eq!(agrees(&own, exit(9)), None);
    assert_eq!(agrees(&own, exit(0)), Some(false));
    assert_eq!(agrees("", exit(0)), None);
    let present = |stdout: &str| {
        let outcome = judge(TERMS, &stopped(Stop::Deadline, seen(stdout, killed())));
        (outcome.response_present, outcome.response_valid)
    };
    assert_eq!(present(OK), (Some(true), Some(true)));
    assert_eq!(present("[]"), (Some(true), Some(false)));
    assert_eq!(present(""), (Some(false), Some(false)));
    let launch = |observation| judge(TERMS, &observation).launch;
    assert_eq!(launch(seen(OK, exit(0))), LaunchState::Completed);
    assert_eq!(launch(stopped(Stop::Deadline, seen("", killed()))), LaunchState::Incomplete);
    assert_eq!(launch(Observation { ended: None, ..seen(NO, exit(0)) }), LaunchState::Incomplete);
}

fn any_ended() -> impl Strategy<Value = Option<Ended>> {
    prop_oneof![
        Just(None),
        any::<i64>().prop_map(|code| Some(Ended::Exit(code))),
        (0..9_i64).prop_map(|code| Some(Ended::Exit(code))),
        Just(Some(killed())),
    ]
}

fn any_stdout() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..100),
        Just(OK.into()),
        Just(NO.into()),
        (0..OK.len(), any::<u8>()).prop_map(|(at, byte)| {
            let mut bytes = OK.as_bytes().to_vec();
            bytes[at] = byte;
            bytes
        }),
        any::<String>().prop_map(|text| {
            Response { message: text, ..Response::refused(Code::InvalidRequest, String::new()) }
                .encode()
        }),
    ]
}

proptest! {
    /// An OK is said only if version, ok, code, exit and completeness agree; and there is always
    /// one line.
    #[test]
    fn no_ok_without_full_agreement(
        stdout in any_stdout(),
        ended in any_ended(),
        stop in prop_oneof![Just(None), Just(Some(Stop::Deadline)), Just(Some(Stop::OutputLimit(Stream::Stdout)))],
        uv in any::<bool>(),
        noise in any::<String>(),
    ) {
        let observation = stderr(&noise, Observation {
            ended: ended.clone(),
            stop: stop.clone(),
            ..seen(&stdout, exit(0))
        });
        let outcome = judge(Terms { uv, ..TERMS }, &observation);
        let line = outcome.line();
        prop_assert!(!line.contains('\n') && line.chars().count() <= line::MAX_CHARS);
        prop_assert_eq!(outcome.exit == 0, outcome.ok());
        let agrees = stop.is_none()
            && ended == Some(exit(0))
            && std::str::from_utf8(&stdout)
                .is_ok_and(|text| Response::parse(text).is_ok_and(|response| response.ok));
        prop_assert_eq!(outcome.ok(), agrees);
    }
}

/// What may still run unseen has not answered, whatever it says; a refusal of its own neither.
#[test]
fn an_engine_that_has_blinded_the_host_is_not_believed() {
    for (answer, code) in [(OK, 0), (NO, 3)] {
        let whole =
            Observation { containment: Some(Containment::Whole), ..seen(answer, exit(code)) };
        let believed = judge(TERMS, &whole);
        assert_eq!((believed.source, believed.launch), (Source::Engine, LaunchState::Completed));
        let lost = Observation { containment: Some(Containment::Lost), ..whole };
        let outcome = judge(TERMS, &lost);
        let line = "satyrn-engine: HOST_FAILED: what the engine has left running could not be seen \
                    to its end";
        assert_eq!((outcome.line().as_str(), outcome.exit), (line, 1));
        assert_eq!((outcome.source, outcome.launch), (Source::Host, LaunchState::Incomplete));
    }
    let failed = Observation { host_fault: Some("no room".to_owned()), ..Observation::default() };
    let outcome = judge(TERMS, &failed);
    assert_eq!((outcome.line().as_str(), outcome.exit), ("satyrn-engine: HOST_FAILED: no room", 1));
}
