//! What was seen of a host against what its drill expects. Pure.

use std::fmt::Display;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::formats::Mismatch;
use super::script::{Action, Script};
use super::values::Text;
use crate::host::exchange::launch::Limits;
use crate::host::implement::report::Report;

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
    // As it was printed, for the members that a drill names, and as the host means it.
    let printed: Option<Value> = seen.stdout.strip_suffix('\n').and_then(|text| {
        serde_json::from_str(text).ok().filter(|_| !text.contains('\n')).filter(Value::is_object)
    });
    let mut found = Vec::new();
    found.extend(seen.trouble.as_ref().map(|why| differs("run", "the drill can act", why)));
    let exit = seen.exit.as_deref().unwrap_or("it did not end in time, and was killed");
    if expect.exit.to_string() != exit {
        found.push(differs("exit", &expect.exit, exit));
    }
    if printed.is_none() && !seen.stdout.is_empty() {
        found.push(differs("stdout", "one JSON object and a line feed", &seen.stdout));
    }
    let report = printed.as_ref().map(Report::deserialize).and_then(|read| {
        read.map_err(|why| found.push(differs("stdout", "a whole report", why))).ok()
    });
    let report = report.as_ref();
    let usage = report.is_some_and(|report| report.code == "USAGE");
    if !seen.stderr.is_empty() && !usage {
        found.push(differs("stderr", "nothing", &seen.stderr));
    }
    let words = [
        ("code", &expect.code, report.map(|report| word(&report.code))),
        ("message", &expect.message, report.map(|report| word(&report.message))),
        ("line", &expect.line, report.map(|report| word(&report.line))),
        ("reason", &expect.reason, report.map(|report| word(&report.reason))),
        ("launch", &expect.launch, report.map(|report| word(report.launch))),
    ];
    for (name, expected, said) in words {
        let Some(expected) = expected else { continue };
        // A host that was killed has said nothing, which a drill may expect.
        let text = said.unwrap_or_default();
        if !expected.matches(&text) {
            found.push(differs(name, expected, text));
        }
    }
    let member = |path: &str| {
        path.split('.')
            .fold(printed.as_ref(), |value, name| value.and_then(|value| value.get(name)))
    };
    for (path, expected) in &expect.report {
        match member(path) {
            Some(value) if matches(expected, value) => {}
            Some(value) => found.push(differs(path, shown(expected), shown(value))),
            None => found.push(differs(path, shown(expected), "no such member")),
        }
    }
    if let Some(expected) = &expect.warnings {
        let warnings = report.map_or(&[][..], |report| &report.warnings);
        let fits = |(text, warning): (&Text, &String)| text.matches(warning);
        if expected.len() != warnings.len() || !expected.iter().zip(warnings).all(fits) {
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
    if let Some(survivors) = report.and_then(|report| report.process.survivors)
        && survivors != expect.survivors
    {
        found.push(differs("process.survivors", expect.survivors, survivors));
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

/// A member as a drill names it: what is null is the word `null`.
fn word(member: impl Serialize) -> String {
    // Text, a word or null always serialises.
    serde_json::to_value(member).map(|value| shown(&value)).unwrap_or_default()
}

/// A value as a person writes it: text without quotes.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::implement::judge::refused;
    use crate::host::implement::refusal::Refusal;

    /// What differs, and what was seen there, where a host that ended with 2 printed `stdout`.
    fn differing(expect: &str, stdout: &str) -> Vec<(String, String)> {
        let text = format!("about: x\nengine: []\nexpect: {{exit: 2, {expect}}}\n");
        let seen =
            Seen { exit: Some("2".to_owned()), stdout: stdout.to_owned(), ..Seen::default() };
        let found = judge(&Script::parse("x", &text).unwrap(), &seen);
        found.into_iter().map(|found| (found.what, found.seen)).collect()
    }

    fn usage() -> Value {
        let report = Report::new(&refused(&Refusal::Usage("why".to_owned())), None);
        serde_json::from_str(&report.json()).unwrap()
    }

    #[test]
    fn a_member_is_expected_by_its_word_and_any_other_by_its_path() {
        let printed = format!("{}\n", usage());
        for expect in [
            "code: USAGE, message: why, line: 'satyrn-engine: USAGE: why'",
            "code: USAGE, launch: launch-failed, reason: null, warnings: []",
            "code: USAGE, report: {process.pid: null, source: host, ok: false, environment: []}",
        ] {
            assert_eq!(differing(expect, &printed), [], "{expect}");
        }
        for (expect, what, seen) in [
            ("code: OK", "code", "USAGE"),
            ("code: USAGE, reason: deadline", "reason", "null"),
            ("code: USAGE, launch: completed", "launch", "launch-failed"),
            ("code: USAGE, warnings: [x]", "warnings", "[]"),
            ("code: USAGE, report: {process.pid: 1}", "process.pid", "null"),
            ("code: USAGE, report: {process.later: 1}", "process.later", "no such member"),
        ] {
            assert_eq!(differing(expect, &printed), [(what.to_owned(), seen.to_owned())]);
        }
    }

    /// A drill may name what this version of the report does not have.
    #[test]
    fn what_a_later_report_adds_can_be_expected() {
        let mut later = usage();
        later["process"]["later"] = 7.into();
        let printed = format!("{later}\n");
        assert_eq!(differing("code: USAGE, report: {process.later: 7}", &printed), []);
    }

    #[test]
    fn what_is_missing_is_told_and_so_is_what_is_no_report() {
        for name in ["code", "reason", "launch"] {
            let mut cut = usage();
            cut.as_object_mut().unwrap().remove(name);
            let expect = "code: USAGE, reason: null, launch: launch-failed";
            let found = differing(expect, &format!("{cut}\n"));
            assert_eq!(found[0], ("stdout".to_owned(), format!("missing field `{name}`")));
            assert!(found.contains(&(name.to_owned(), String::new())), "{found:?}");
        }
        for text in ["[1]\n", "{}", "{}\n{}\n", "x\n"] {
            let found = differing("code: USAGE", text);
            assert_eq!(found[0], ("stdout".to_owned(), text.to_owned()));
        }
        // One that was killed has said nothing, which a drill may expect.
        assert_eq!(differing("line: ''", ""), []);
    }
}
