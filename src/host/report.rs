//! The JSON report (SPEC 2, `--format json`): one object, its members only ever appended to.

use serde::Serialize;

use super::env::Environment;
use super::exchange::observation::{Containment, Ended, Input, Observation, Stop};
use super::implement::judge::{Launch, Outcome, Source};
use super::implement::plan::Plan;

/// The version of the report's shape.
const REPORT: u32 = 1;

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the members' names are given by the schema")]
struct Report<'a> {
    report: u32,
    line: String,
    ok: bool,
    code: &'a str,
    message: &'a str,
    source: &'static str,
    reason: Option<&'static str>,
    launch: &'static str,
    process: Process,
    warnings: Vec<&'a str>,
    environment: Vec<Passed<'a>>,
}

/// Facts about the engine's process; null where they are not known.
#[derive(Serialize, Default)]
struct Process {
    program: Option<String>,
    args: Option<Vec<String>>,
    cwd: Option<String>,
    pid: Option<u32>,
    started: Option<bool>,
    contained: Option<bool>,
    orphaned: Option<bool>,
    survivors: Option<u32>,
    exit_code: Option<i64>,
    signal: Option<String>,
    exit_agrees: Option<bool>,
    timed_out: Option<bool>,
    input_delivery: Option<&'static str>,
    stdout_bytes: Option<u64>,
    stdout_complete: Option<bool>,
    stderr_bytes: Option<u64>,
    stderr_tail: Option<String>,
    response_present: Option<bool>,
    response_valid: Option<bool>,
    elapsed_ms: Option<u64>,
}

/// A variable that was passed to the engine: its name, never its value, and why.
#[derive(Serialize)]
struct Passed<'a> {
    name: &'a str,
    why: &'a str,
}

/// The report as one line of JSON, without its line feed.
///
/// `seen` is the plan and what was observed of it, where it came that far.
#[must_use]
pub fn json(outcome: &Outcome, seen: Option<(&Plan, &Observation)>) -> String {
    let environment = seen.map(|(plan, _)| &plan.environment);
    let report = Report {
        report: REPORT,
        line: outcome.line(),
        ok: outcome.ok(),
        code: &outcome.code,
        message: &outcome.message,
        source: match outcome.source {
            Source::Engine => "engine",
            Source::Host => "host",
        },
        reason: outcome.reason,
        launch: match outcome.launch {
            Launch::Completed => "completed",
            Launch::LaunchFailed => "launch-failed",
            Launch::Incomplete => "incomplete",
        },
        process: seen.map(|(plan, seen)| process(outcome, plan, seen)).unwrap_or_default(),
        warnings: environment
            .into_iter()
            .flat_map(|environment| &environment.warnings)
            .chain(&outcome.warnings)
            .map(String::as_str)
            .collect(),
        environment: environment.map(passed).unwrap_or_default(),
    };
    // Plain structs of strings and numbers always serialise.
    serde_json::to_string(&report).unwrap_or_default()
}

fn process(outcome: &Outcome, plan: &Plan, seen: &Observation) -> Process {
    let launch = &plan.launch;
    // A start that was cut off may have happened or not.
    let started = match (seen.started, &seen.start_fault) {
        (true, _) => Some(true),
        (false, Some(_)) => Some(false),
        (false, None) => None,
    };
    let ran = seen.start_fault.is_none();
    let (exit_code, signal) = match &seen.ended {
        Some(Ended::Exit(code)) => (Some(*code), None),
        Some(Ended::Signal(name)) => (None, Some(name.clone())),
        None => (None, None),
    };
    Process {
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
        exit_agrees: outcome.exit_agrees,
        timed_out: ran.then_some(seen.stop == Some(Stop::Deadline)),
        input_delivery: seen.input.map(|input| match input {
            Input::Delivered => "delivered",
            Input::Failed => "failed",
            Input::Unread => "unread",
        }),
        stdout_bytes: ran.then_some(seen.stdout.total),
        stdout_complete: ran.then_some(seen.stdout.complete),
        stderr_bytes: ran.then_some(seen.stderr.total),
        stderr_tail: ran.then(|| String::from_utf8_lossy(&seen.stderr.bytes).into_owned()),
        response_present: outcome.response_present,
        response_valid: outcome.response_valid,
        elapsed_ms: Some(u64::try_from(seen.elapsed.as_millis()).unwrap_or(u64::MAX)),
    }
}

fn passed(environment: &Environment) -> Vec<Passed<'_>> {
    environment.passed.iter().map(|(name, why)| Passed { name, why }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::implement::judge::refused;
    use super::super::implement::refusal::Refusal;
    use super::*;

    #[test]
    fn keys_stand_in_their_order() {
        let text = json(&refused(&Refusal::Usage("x\ny".into())), None);
        let keys = [
            "{\"report\":1,\"line\":\"satyrn-engine: USAGE: x\\\\ny\",\"ok\":false,\"code\":\"USAGE\"",
            ",\"message\":\"x\\ny\",\"source\":\"host\",\"reason\":null,\"launch\":\"launch-failed\"",
            ",\"process\":{\"program\":null,\"args\":null,\"cwd\":null,\"pid\":null,\"started\":null",
            ",\"contained\":null,\"orphaned\":null,\"survivors\":null,\"exit_code\":null",
            ",\"signal\":null,\"exit_agrees\":null,\"timed_out\":null,\"input_delivery\":null",
            ",\"stdout_bytes\":null,\"stdout_complete\":null,\"stderr_bytes\":null",
            ",\"stderr_tail\":null,\"response_present\":null,\"response_valid\":null",
            ",\"elapsed_ms\":null},\"warnings\":[],\"environment\":[]}",
        ];
        assert_eq!(text, keys.concat());
    }
}
