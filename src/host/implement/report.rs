//! The JSON report (SPEC 2, `--format json`): one object, its members only ever appended to. It is
//! written and read back as the same type.

use serde::{Deserialize, Serialize};

use super::judge::{LaunchState, Outcome, Source};
use super::plan::Plan;
use crate::host::exchange::observation::Observation;
use crate::host::report::{Judged, Passed, Process};

/// The version of the report's shape.
const REPORT: u32 = 1;

/// A verdict, and what led to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The version of this shape.
    pub report: u32,
    /// The line that `--format line` prints.
    pub line: String,
    /// Whether the contract is accepted.
    pub ok: bool,
    /// The name of the verdict.
    pub code: String,
    /// What the line says after the code, verbatim and whole.
    pub message: String,
    /// Who reached the verdict.
    pub source: Source,
    /// A word for scripts, where the code alone does not tell. Null then, but never missing, which
    /// serde would take for the same.
    #[serde(deserialize_with = "Option::deserialize")]
    pub reason: Option<String>,
    /// What can be said of the launch.
    pub launch: LaunchState,
    /// Facts about the engine's process.
    pub process: Process,
    /// Remarks of the host and of the engine.
    pub warnings: Vec<String>,
    /// The variables that the engine got.
    pub environment: Vec<Passed>,
}

impl Report {
    /// `seen` is the plan and what was observed of it, where it came that far.
    #[must_use]
    pub fn new(outcome: &Outcome, seen: Option<(&Plan, &Observation)>) -> Self {
        let environment = seen.map(|(plan, _)| &plan.environment);
        let judged = Judged {
            exit_agrees: outcome.exit_agrees,
            response_present: outcome.response_present,
            response_valid: outcome.response_valid,
        };
        let process = seen.map(|(plan, seen)| Process::new(&plan.launch, seen, judged));
        let warnings = environment.into_iter().flat_map(|environment| &environment.warnings);
        Self {
            report: REPORT,
            line: outcome.line(),
            ok: outcome.ok(),
            code: outcome.code.clone(),
            message: outcome.message.clone(),
            source: outcome.source,
            reason: outcome.reason.map(str::to_owned),
            launch: outcome.launch,
            process: process.unwrap_or_default(),
            warnings: warnings.chain(&outcome.warnings).cloned().collect(),
            environment: environment.map(Passed::all).unwrap_or_default(),
        }
    }

    /// The report as one line of JSON, without its line feed.
    #[must_use]
    pub fn json(&self) -> String {
        // Plain structs of strings and numbers always serialise.
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge::refused;
    use super::super::refusal::Refusal;
    use super::*;
    use serde_json::Value;

    fn usage() -> Report {
        Report::new(&refused(&Refusal::Usage("x\ny".into())), None)
    }

    #[test]
    fn keys_stand_in_their_order() {
        let text = usage().json();
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

    #[test]
    fn every_word_is_read_back_as_it_was_written() {
        for source in [Source::Engine, Source::Host] {
            for launch in
                [LaunchState::Completed, LaunchState::LaunchFailed, LaunchState::Incomplete]
            {
                let process =
                    Process { input_delivery: Some("unread".into()), ..Process::default() };
                let environment = vec![Passed { name: "PATH".into(), why: "listed".into() }];
                let reason = Some("deadline".into());
                let report = Report { source, reason, launch, process, environment, ..usage() };
                let read: Report = serde_json::from_str(&report.json()).unwrap();
                assert_eq!(read, report);
            }
        }
    }

    #[test]
    fn what_a_later_version_adds_is_passed_over_and_what_is_missing_is_named() {
        let whole: Value = serde_json::from_str(&usage().json()).unwrap();
        let mut later = whole.clone();
        later["later"] = 1.into();
        later["process"]["later"] = 1.into();
        assert_eq!(Report::deserialize(&later).unwrap(), usage());
        for name in whole.as_object().unwrap().keys() {
            let mut cut = whole.clone();
            cut.as_object_mut().unwrap().remove(name);
            let why = Report::deserialize(&cut).unwrap_err().to_string();
            assert_eq!(why, format!("missing field `{name}`"));
        }
    }
}
