//! Any bytes as what an engine left: judged in one line, and an OK only for an agreed one.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use satyrn::host::exchange::observation::{Captured, Ended, Observation};
use satyrn::host::implement::judge::{Terms, judge};
use satyrn::host::implement::report::Report;
use satyrn::line::MAX_CHARS;

fuzz_target!(|input: (u8, bool, Vec<u8>, Vec<u8>)| {
    let (exit, uv, stdout, stderr) = input;
    let ended = match exit {
        255 => Ended::Signal("SIGKILL".to_owned()),
        exit => Ended::Exit(i64::from(exit)),
    };
    let capture = |bytes: Vec<u8>| Captured {
        total: bytes.len() as u64,
        complete: true,
        fault: None,
        bytes,
    };
    let observation = Observation {
        ended: Some(ended.clone()),
        stdout: capture(stdout),
        stderr: capture(stderr),
        ..Observation::default()
    };
    let terms = Terms { deadline: Duration::from_secs(30), stdout: 1 << 20, uv };
    let outcome = judge(terms, &observation);
    let line = outcome.line();
    assert!(line.chars().count() <= MAX_CHARS && !line.chars().any(char::is_control));
    assert_eq!(outcome.ok(), outcome.exit == 0);
    assert!(!outcome.ok() || ended == Ended::Exit(0));
    assert!(!Report::new(&outcome, None).json().contains('\n'));
});
