//! What was seen of a host against what its drill expects. Pure.

use std::fmt::Display;
use std::time::Duration;

use serde_json::Value;

use super::formats::Mismatch;
use super::script::{Action, Script};
use super::values::Text;
use crate::host::exchange::launch::Limits;

/// How long after its deadline a host has to have ended.
pub(super) const OVERTIME: Duration = Duration::from_secs(1);

/// What was seen of one host, from outside.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// The exit code, or the name of the signal.
    pub(super) exit: Option<String>,
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) elapsed: Duration,
    /// What still ran after the host's end; `None` where the system does not tell.
    pub(super) left: Option<Vec<String>>,
    /// What the runner itself could not do.
    pub(super) trouble: Option<String>,
}

/// How long the host may take.
pub(super) fn bound(script: &Script) -> Duration {
    let deadline = script.limits.deadline.map_or(Limits::default().deadline, |length| length.0);
    let frozen = script.when_ready.iter().map(|action| match action {
        Action::Freeze(length) => length.0,
        _ => Duration::ZERO,
    });
    let most = deadline + frozen.sum::<Duration>() + OVERTIME;
    script.expect.within.map_or(most, |within| within.0)
}

pub(super) fn differs(what: &str, expected: impl Display, seen: impl Display) -> Mismatch {
    Mismatch { what: what.to_owned(), expected: expected.to_string(), seen: seen.to_string() }
}

/// Compares what was seen with what is expected. Pure.
pub(super) fn judge(script: &Script, seen: &Seen) -> Vec<Mismatch> {
    let expect = &script.expect;
    let report: Option<Value> = seen.stdout.strip_suffix('\n').and_then(|text| {
        serde_json::from_str(text).ok().filter(|_| !text.contains('\n')).filter(Value::is_object)
    });
    let mut found = Vec::new();
    found.extend(seen.trouble.as_ref().map(|why| differs("run", "the drill can act", why)));
    let exit = seen.exit.as_deref().unwrap_or("it did not end in time, and was killed");
    if expect.exit.to_string() != exit {
        found.push(differs("exit", &expect.exit, exit));
    }
    if report.is_none() && !seen.stdout.is_empty() {
        found.push(differs("stdout", "one JSON object and a line feed", &seen.stdout));
    }
    let usage = report.as_ref().is_some_and(|report| report["code"] == "USAGE");
    if !seen.stderr.is_empty() && !usage {
        found.push(differs("stderr", "nothing", &seen.stderr));
    }
    let member = |path: &str| {
        path.split('.').fold(report.as_ref(), |value, name| value.and_then(|value| value.get(name)))
    };
    let words = [
        ("code", &expect.code),
        ("message", &expect.message),
        ("line", &expect.line),
        ("reason", &expect.reason),
        ("launch", &expect.launch),
    ];
    for (name, expected) in words {
        let Some(expected) = expected else { continue };
        // A host that was killed has said nothing, which a drill may expect.
        let text = member(name).map_or(String::new(), shown);
        if !expected.matches(&text) {
            found.push(differs(name, expected, text));
        }
    }
    for (path, expected) in &expect.report {
        match member(path) {
            Some(value) if matches(expected, value) => {}
            Some(value) => found.push(differs(path, shown(expected), shown(value))),
            None => found.push(differs(path, shown(expected), "no such member")),
        }
    }
    if let Some(expected) = &expect.warnings {
        let warnings = member("warnings").and_then(Value::as_array).cloned().unwrap_or_default();
        let fits = |(text, value): (&Text, &Value)| text.matches(&shown(value));
        if expected.len() != warnings.len() || !expected.iter().zip(&warnings).all(fits) {
            let expected: Vec<_> = expected.iter().map(Text::to_string).collect();
            found.push(differs("warnings", format!("{expected:?}"), Value::from(warnings)));
        }
    }
    let within = bound(script);
    if seen.elapsed > within {
        found.push(differs("time", format!("at most {within:?}"), format!("{:?}", seen.elapsed)));
    }
    if let Some(left) = &seen.left
        && left.len() != expect.survivors as usize
    {
        let shown = if left.is_empty() { "none".to_owned() } else { left.join("; ") };
        found.push(differs("survivors", expect.survivors, shown));
    }
    let reported = member("process.survivors").and_then(Value::as_u64);
    if reported.is_some_and(|survivors| survivors != u64::from(expect.survivors)) {
        found.push(differs("process.survivors", expect.survivors, reported.unwrap_or_default()));
    }
    found
}

fn matches(expected: &Value, value: &Value) -> bool {
    match expected {
        Value::String(text) => {
            Text::try_from(text.clone()).is_ok_and(|text| text.matches(&shown(value)))
        }
        other => other == value,
    }
}

/// A value as a person writes it: text without quotes.
pub(super) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
