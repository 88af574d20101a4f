//! Facts about one process and its environment, as a JSON report has them. Commands write them, and
//! `drill`, `conform` and `doctor` read them back: members are only ever appended, and a reader takes
//! no offence at one that it does not know.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::env::Environment;
use super::exchange::launch::Launch;
use super::exchange::observation::{Containment, Ended, Input, Observation, Stop};

/// Facts about a process; null where they are not known, and so is what a reader misses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The absolute path of what was run.
    pub program: Option<String>,
    /// Its arguments.
    pub args: Option<Vec<String>>,
    /// Its working directory.
    pub cwd: Option<String>,
    /// Its process id.
    pub pid: Option<u32>,
    /// Whether it ran.
    pub started: Option<bool>,
    /// Whether every descendant was within reach of the last kill.
    pub contained: Option<bool>,
    /// Whether descendants had to be killed after its own exit.
    pub orphaned: Option<bool>,
    /// Descendants that still ran when the host gave up on them.
    pub survivors: Option<u32>,
    /// Its exit code.
    pub exit_code: Option<i64>,
    /// The name of the signal that ended it.
    pub signal: Option<String>,
    /// Whether the exit code mirrors the answer.
    pub exit_agrees: Option<bool>,
    /// Whether the deadline ended it.
    pub timed_out: Option<bool>,
    /// What became of what it was to read.
    pub input_delivery: Option<Cow<'static, str>>,
    /// Bytes read.
    pub stdout_bytes: Option<u64>,
    /// Whether the end of the stream was seen.
    pub stdout_complete: Option<bool>,
    /// Bytes read.
    pub stderr_bytes: Option<u64>,
    /// What was kept of it, with replacement characters.
    pub stderr_tail: Option<String>,
    /// Whether stdout was one JSON value.
    pub response_present: Option<bool>,
    /// Whether that value was a response.
    pub response_valid: Option<bool>,
    /// From before the start to after the last kill.
    pub elapsed_ms: Option<u64>,
}

/// What a judge adds to the facts, in the midst of which it stands; `None` where it cannot tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Whether the exit code mirrors the answer.
    pub exit_agrees: Option<bool>,
    /// Whether stdout was one JSON value.
    pub response_present: Option<bool>,
    /// Whether that value was a response.
    pub response_valid: Option<bool>,
}

/// A variable that was passed to the process: its name, never its value, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// Its name.
    pub name: String,
    /// Why it was passed.
    pub why: String,
}

impl Process {
    /// What was asked for and what was seen of it.
    #[must_use]
    pub fn new(launch: &Launch, seen: &Observation, judged: Judged) -> Self {
        // A start that was cut off may have happened or not.
        let started = match (seen.started, &seen.start_fault) {
            (true, _) => Some(true),
            (false, Some(_)) => Some(false),
            (false, None) => None,
        };
        // What was under way when the host itself failed was not seen to its end.
        let ran = seen.start_fault.is_none() && seen.host_fault.is_none();
        let (exit_code, signal) = match &seen.ended {
            Some(Ended::Exit(code)) => (Some(*code), None),
            Some(Ended::Signal(name)) => (None, Some(name.clone())),
            None => (None, None),
        };
        Self {
            program: Some(launch.program.path().to_string_lossy().into_owned()),
            args: Some(launch.args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect()),
            cwd: Some(launch.cwd.to_string_lossy().into_owned()),
            pid: seen.pid,
            started,
            contained: seen.containment.map(|reach| reach == Containment::Whole),
            orphaned: seen.orphaned,
            survivors: seen.survivors,
            exit_code,
            signal,
            exit_agrees: judged.exit_agrees,
            timed_out: ran.then_some(seen.stop == Some(Stop::Deadline)),
            input_delivery: seen.input.map(|input| match input {
                Input::Delivered => "delivered".into(),
                Input::Failed => "failed".into(),
                Input::Unread => "unread".into(),
            }),
            stdout_bytes: ran.then_some(seen.stdout.total),
            stdout_complete: ran.then_some(seen.stdout.complete),
            stderr_bytes: ran.then_some(seen.stderr.total),
            stderr_tail: ran.then(|| String::from_utf8_lossy(&seen.stderr.bytes).into_owned()),
            response_present: judged.response_present,
            response_valid: judged.response_valid,
            elapsed_ms: Some(u64::try_from(seen.elapsed.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

impl Passed {
    /// All variables of an environment.
    #[must_use]
    pub fn all(environment: &Environment) -> Vec<Self> {
        let passed = environment.passed.iter();
        passed.map(|(name, why)| Self { name: name.clone(), why: why.clone() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::exchange::launch::{Capture, Program, Stdin};

    #[test]
    fn what_was_not_seen_is_null() {
        let launch = Launch {
            program: Program::File("/e".into()),
            args: Vec::new(),
            cwd: "/".into(),
            env: Vec::new(),
            stdin: Stdin::Bytes(Vec::new()),
            stdout: Capture::Head(1),
            stderr: Capture::Tail(1),
        };
        let process = |seen: Observation| Process::new(&launch, &seen, Judged::default());
        let ran = process(Observation { started: true, ..Observation::default() });
        assert_eq!(
            (ran.started, ran.timed_out, ran.stdout_bytes),
            (Some(true), Some(false), Some(0))
        );
        let failed =
            process(Observation { host_fault: Some("x".into()), ..Observation::default() });
        let facts = (failed.started, failed.timed_out, failed.stdout_bytes, failed.stderr_tail);
        assert_eq!(facts, (None, None, None, None));
        assert_eq!((failed.contained, failed.survivors), (None, None));
    }
}
