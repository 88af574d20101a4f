//! The judge: one pure, total function from what was seen to what it means (SPEC 2, the table).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::refusal::{Refusal, start_failed};
use crate::host::exchange::observation::{
    CancelledBy, Containment, Ended, Observation, StartFault,
};
use crate::host::exchange::transport::{Fault, transport};
use crate::json::{Found, NotJson, json};
use crate::line;
use crate::protocol::{Code, Response};

/// The reason of a start that failed inside `uv`.
const UV_FAILED: &str = "uv-failed";

/// A verdict, and what led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The name in the line: `OK`, the engine's code, or the host's.
    pub code: String,
    /// What the line says after the code, not yet escaped.
    pub message: String,
    /// The host's exit code.
    pub exit: u8,
    /// Who said it.
    pub source: Source,
    /// A word for scripts, where the code alone does not tell.
    pub reason: Option<&'static str>,
    /// What can be said of the launch.
    pub launch: LaunchState,
    /// Whether stdout was one JSON value; `None` where nothing ran.
    pub response_present: Option<bool>,
    /// Whether that value was a response.
    pub response_valid: Option<bool>,
    /// Whether the engine's exit mirrors its response; `None` where there is nothing to compare.
    pub exit_agrees: Option<bool>,
    /// Remarks of the engine.
    pub warnings: Vec<String>,
}

impl Outcome {
    /// Whether the contract is accepted.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.code == Code::Ok.name()
    }

    /// The line, without its line feed.
    #[must_use]
    pub fn line(&self) -> String {
        line::line(&self.code, &self.message)
    }
}

/// Who said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The engine, in a response.
    Engine,
    /// The host.
    Host,
}

/// What can be said of the launch. Only `LaunchFailed` says that nothing ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaunchState {
    /// The engine ran and ended by itself.
    Completed,
    /// No engine ran.
    LaunchFailed,
    /// The engine ran, or may have run, and its end was not its own.
    Incomplete,
}

/// What the judge needs to know of the plan.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The deadline that the engine had.
    pub deadline: Duration,
    /// The cap on stdout, in bytes.
    pub stdout: usize,
    /// Whether the process was `uv`, which can fail before it has started an engine.
    pub uv: bool,
}

/// The outcome of a refusal of the host's own, as it is before anything was observed.
#[must_use]
pub fn refused(refusal: &Refusal) -> Outcome {
    Outcome {
        code: refusal.code().to_owned(),
        message: refusal.to_string(),
        exit: refusal.exit(),
        source: Source::Host,
        reason: refusal.reason(),
        launch: match refusal {
            Refusal::HostFailed(_) => LaunchState::Incomplete,
            _ => LaunchState::LaunchFailed,
        },
        response_present: None,
        response_valid: None,
        exit_agrees: None,
        warnings: Vec::new(),
    }
}

/// Judges an observation: the first row that matches in the table of SPEC 2.
#[must_use]
pub fn judge(terms: Terms, seen: &Observation) -> Outcome {
    let fault = transport(seen);
    let row = match &fault {
        Some(Fault::NeverStarted(fault)) => return refused(&start_fault(fault)), // row 2
        Some(Fault::HostFailed(why)) => return refused(&Refusal::HostFailed((*why).to_owned())),
        Some(Fault::Cancelled(by)) => Some(cancelled(by)), // row 3
        Some(Fault::Deadline) => Some(timeout(terms, seen)), // row 4
        Some(Fault::OutputLimit(_)) => {
            let detail = format!("stdout grew above {} bytes", terms.stdout); // row 5
            Some(Refusal::Malformed { reason: "output-limit", detail })
        }
        // What an engine answered counts, however it ended, and also where the system contains no
        // more than a group; but one that may still run unseen is not believed.
        Some(Fault::Signal(_) | Fault::NoExit | Fault::NotContained(_)) | None => None,
    };
    let read = json(&seen.stdout.bytes).map(Response::parse);
    // What is cut at the bound is not the whole of what was written.
    let whole = !matches!(fault, Some(Fault::OutputLimit(_)));
    let (present, valid) = (whole && read.is_ok(), whole && matches!(read, Ok(Ok(_))));
    let outcome = match (row, read) {
        (Some(refusal), _) => refused(&refusal),
        (None, Err(fault)) => refused(&no_answer(terms, seen, fault)), // rows 6 and 7
        (None, Ok(Err(problem))) => {
            refused(&Refusal::Malformed { reason: "shape", detail: problem }) // row 8
        }
        (None, Ok(Ok(_))) if fault == Some(Fault::NotContained(Containment::Lost)) => {
            let why = "what the engine has left running could not be seen to its end";
            refused(&Refusal::HostFailed(why.to_owned()))
        }
        (None, Ok(Ok(response))) => answered(seen, response), // rows 9 to 11
    };
    let launch = if outcome.reason == Some(UV_FAILED) {
        LaunchState::LaunchFailed
    } else if seen.stop.is_some()
        || seen.ended.is_none()
        || seen.containment == Some(Containment::Lost)
    {
        LaunchState::Incomplete
    } else {
        LaunchState::Completed
    };
    Outcome { launch, response_present: Some(present), response_valid: Some(valid), ..outcome }
}

/// Rows 9 to 11: a refusal is believed on its own word, an acceptance only when everything agrees.
fn answered(seen: &Observation, response: Response) -> Outcome {
    let mirrored = Code::from_name(&response.code);
    let exit = match seen.ended {
        Some(Ended::Exit(exit)) => Some(exit),
        Some(Ended::Signal(_)) | None => None,
    };
    let exit_agrees = match (&seen.ended, mirrored) {
        (None, _) => None,
        (Some(Ended::Signal(_)), _) => Some(false),
        (Some(Ended::Exit(exit)), Some(code)) => Some(*exit == i64::from(code.exit())),
        (Some(Ended::Exit(exit)), None) => (*exit == 0).then_some(false),
    };
    if response.ok && exit_agrees != Some(true) {
        let refusal = match &seen.ended {
            Some(Ended::Exit(exit)) => Refusal::Malformed {
                reason: "exit-disagrees",
                detail: format!("it answered OK, but its exit code is {}", exit_shown(*exit)),
            },
            Some(Ended::Signal(name)) => Refusal::Crashed {
                reason: "signal",
                detail: format!("it answered OK, but was killed by {name}"),
            },
            None => Refusal::Crashed {
                reason: "no-exit",
                detail: "it answered OK, but its exit could not be seen".to_owned(),
            },
        };
        return Outcome { exit_agrees, ..refused(&refusal) };
    }
    let exit = match (mirrored, exit) {
        (Some(code), _) => code.exit(),
        (None, Some(exit @ 8..=63)) => u8::try_from(exit).unwrap_or(65),
        (None, _) => 65,
    };
    Outcome {
        code: response.code,
        message: response.message,
        exit,
        source: Source::Engine,
        reason: None,
        launch: LaunchState::Completed,
        response_present: None,
        response_valid: None,
        exit_agrees,
        warnings: response.warnings,
    }
}

/// Rows 6 and 7, and `uv`'s own failures, which are row 2.
fn no_answer(terms: Terms, seen: &Observation, fault: NotJson) -> Refusal {
    if let Some(line) = uv_failure(terms, seen) {
        return start_failed(UV_FAILED, format!("uv: {line}"));
    }
    let how = match &seen.ended {
        Some(Ended::Exit(0)) => {
            let reason = match fault.what {
                Found::Empty => "empty",
                Found::ByteOrderMark => "byte-order-mark",
                Found::InvalidUtf8 => "invalid-utf-8",
                Found::TextBefore => "text-before",
                Found::TextAfter => "text-after",
                Found::CutShort => "cut-short",
                Found::Syntax => "invalid-json",
            };
            let hint = cut_hint(&fault, seen.stdout.total);
            let detail = with_stderr(format!("stdout is not one JSON value: {fault}{hint}"), seen);
            return Refusal::Malformed { reason, detail };
        }
        Some(Ended::Exit(exit)) => ("exit", exit_named(*exit)),
        Some(Ended::Signal(name)) => ("signal", format!("killed by {name}")),
        None => ("no-exit", "its exit could not be seen".to_owned()),
    };
    let detail = with_stderr(format!("{}; no answer on stdout: {fault}", how.1), seen);
    Refusal::Crashed { reason: how.0, detail }
}

/// What a person needs to know of an answer that stops where a pipe was full (SPEC 2).
fn cut_hint(fault: &NotJson, total: u64) -> String {
    if fault.what == Found::CutShort && total > 0 && total.is_multiple_of(4096) {
        return format!("; cut at {total} bytes: the engine may leave before its output is read");
    }
    String::new()
}

/// The line with which `uv` says that it could not start an engine, if that is what happened.
fn uv_failure(terms: Terms, seen: &Observation) -> Option<String> {
    let exit_is_uvs = matches!(seen.ended, Some(Ended::Exit(1 | 2)));
    if !terms.uv || !exit_is_uvs || seen.stdout.total > 0 {
        return None;
    }
    let text = String::from_utf8_lossy(&seen.stderr.bytes);
    if text.lines().any(|line| line.starts_with("Traceback (most recent call last)")) {
        return None;
    }
    let is_uvs = |line: &&str| line.starts_with("error:") || line.trim_start().starts_with('×');
    text.lines().find(is_uvs).map(|line| line.trim().to_owned())
}

fn start_fault(fault: &StartFault) -> Refusal {
    start_failed(fault.reason(), fault.to_string())
}

/// The words for a cancellation.
fn cancelled(by: &CancelledBy) -> Refusal {
    let detail = match by {
        CancelledBy::Signal(_, name) => format!("cancelled by {name}"),
        CancelledBy::Lifeline => "cancelled: the caller closed the leash".to_owned(),
    };
    Refusal::Cancelled { by: by.clone(), detail }
}

fn timeout(terms: Terms, seen: &Observation) -> Refusal {
    let state = match (seen.stdout.complete, seen.stdout.total) {
        (true, _) => "stdout was closed, but the process had not exited".to_owned(),
        (false, 0) => "nothing on stdout".to_owned(),
        (false, 1) => "stdout still open after 1 byte".to_owned(),
        (false, n) => format!("stdout still open after {n} bytes"),
    };
    Refusal::Timeout(with_stderr(format!("no answer within {:?}: {state}", terms.deadline), seen))
}

/// Adds the last line that the engine wrote on stderr, where there is one: it often says why.
fn with_stderr(detail: String, seen: &Observation) -> String {
    let text = String::from_utf8_lossy(&seen.stderr.bytes);
    match text.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!("{detail}; last line of stderr: {}", line::shorten(line, 400)),
        None => detail,
    }
}

fn exit_named(exit: i64) -> String {
    let mirrored = Code::from_exit(exit).filter(|code| (3..=7).contains(&code.exit()));
    match mirrored {
        Some(code) => format!("exit code {exit} ({})", code.name()),
        None => format!("exit code {}", exit_shown(exit)),
    }
}

/// Windows' NTSTATUS codes are known by their hexadecimal form.
fn exit_shown(exit: i64) -> String {
    if exit > 0xffff { format!("0x{exit:08X}") } else { exit.to_string() }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
