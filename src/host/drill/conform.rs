//! Conformance: the protocol's fixtures turned round on an engine (SPEC 6b).
//!
//! Each case is one host process, which sends the bytes of the case in the place of a request; so
//! an engine that hangs or floods is dealt with as always, and the verdict is the host's own.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use include_dir::{Dir, include_dir};
use serde::Deserialize;
use serde_json::Value;

use super::formats::{Mismatch, Results, Row, State, millis};
use super::judge::differs;
use super::pool::many;
use super::run::{Reported, reported};
use crate::host::cli::drill as cli;
use crate::host::context::Context;
use crate::host::env;
use crate::host::exchange::launch::Limits;
use crate::host::implement::judge::{LaunchState, Source};
use crate::host::implement::report::Report;
use crate::host::process::observed::{self, Stop};
use crate::host::process::self_command;
use crate::host::program::{absolute, command_line};
use crate::line::escape;

/// The cases, and the requests and responses that are files.
static PROTOCOL: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/fixtures/protocol");

/// The contracts that the requests speak of.
const CONTRACTS: &[(&str, &[u8])] = &[
    ("blank-task.yaml", include_bytes!("../../../fixtures/contracts/blank-task.yaml")),
    ("empty.yaml", include_bytes!("../../../fixtures/contracts/empty.yaml")),
    ("good.yaml", include_bytes!("../../../fixtures/contracts/good.yaml")),
    ("invalid.yaml", include_bytes!("../../../fixtures/contracts/invalid.yaml")),
    ("list.yaml", include_bytes!("../../../fixtures/contracts/list.yaml")),
    ("no-fields.yaml", include_bytes!("../../../fixtures/contracts/no-fields.yaml")),
    ("not-utf-8.yaml", include_bytes!("../../../fixtures/contracts/not-utf-8.yaml")),
];

/// One case of `cases.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    request: Request,
    /// A file with the whole response; a message that ends with `: ` goes on in the system's words.
    response: Option<String>,
    code: String,
    exit: u8,
}

/// What is sent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    /// Text with placeholders.
    Text(String),
    /// A file with placeholders.
    File(String),
    /// Bytes as they are.
    Base64(String),
}

/// A directory with the contracts in it, and the words that stand for it in the fixtures.
struct Place {
    repo: String,
    contract: String,
}

impl Place {
    /// Text of a fixture, with the paths as JSON writes them.
    fn fill(&self, text: &str) -> String {
        let json = |path: &str| {
            let quoted = Value::from(path).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        };
        text.replace("{repo}", &json(&self.repo)).replace("{contract}", &json(&self.contract))
    }
}

/// Why there are no results.
#[derive(Debug)]
pub enum Fault {
    /// Nothing can be tried.
    Bad(String),
    /// A signal, by its number.
    Stopped(u8),
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Bad(why)
    }
}

/// Tries the engine on every case that was asked for.
///
/// # Errors
/// The engine does not start, the stage cannot be set, or it was stopped.
pub fn run(options: &cli::Conform, context: &Context) -> Result<Results, Fault> {
    let cwd =
        context.cwd.as_ref().map_err(|why| format!("the working directory is gone: {why}"))?;
    let stage = tempfile::Builder::new().prefix("satyrn-conform-").tempdir();
    let stage = stage.map_err(|error| format!("cannot set the stage: {error}"))?;
    let place = set(stage.path()).map_err(|error| format!("cannot set the stage: {error}"))?;
    let cases = chosen(cases()?, options)?;
    let engine = engine(options, cwd);
    let began = Instant::now();
    let one = |case: &Case, stop: &Stop| {
        let request = stage.path().join(format!("{}.request", case.name));
        let ran = request_of(case, &place)
            .and_then(|bytes| fs::write(&request, bytes).map_err(|error| error.to_string()))
            .and_then(|()| exchange(&engine, &request, &place, options, stop));
        row(case, &place, ran, &engine)
    };
    // Tried once before anything is judged: `uv` may have to make the checkout's environment first,
    // and an engine that does not start would fail every case in the same words.
    let tried =
        many(1, Some(1), context, |_, stop| one(&cases[0], stop)).map_err(Fault::Stopped)?;
    let report = tried.into_iter().next().and_then(|row| row.report);
    let report: Option<Report> = report.and_then(|report| serde_json::from_str(report.get()).ok());
    if let Some(report) = report.filter(|report| report.launch == LaunchState::LaunchFailed) {
        return Err(format!("nothing could be tried: {}", report.line).into());
    }
    let results = many(cases.len(), options.jobs, context, |index, stop| one(&cases[index], stop))
        .map_err(Fault::Stopped)?;
    Ok(Results { command: "conform", results, elapsed_ms: millis(began.elapsed()) })
}

/// The cases that were asked for, at least one.
fn chosen(cases: Vec<Case>, options: &cli::Conform) -> Result<Vec<Case>, String> {
    if let Some(name) =
        options.what.iter().find(|name| !cases.iter().any(|case| case.name == **name))
    {
        return Err(format!("no such case: {}", escape(name)));
    }
    let filter = options.filter.as_deref().unwrap_or_default();
    let wanted = |case: &Case| {
        case.name.contains(filter) && (options.what.is_empty() || options.what.contains(&case.name))
    };
    let chosen: Vec<_> = cases.into_iter().filter(wanted).collect();
    if chosen.is_empty() { Err(format!("no case's name contains {filter:?}")) } else { Ok(chosen) }
}

fn cases() -> Result<Vec<Case>, String> {
    serde_json::from_str(text_of("cases.json")?).map_err(|error| format!("cases.json: {error}"))
}

fn text_of(file: &str) -> Result<&'static str, String> {
    let found = PROTOCOL.get_file(file).and_then(include_dir::File::contents_utf8);
    found.ok_or_else(|| format!("no such fixture: {file}"))
}

fn set(dir: &Path) -> std::io::Result<Place> {
    let repo = observed::plain(dir)?.join("contracts");
    fs::create_dir(&repo)?;
    for (name, bytes) in CONTRACTS {
        fs::write(repo.join(name), bytes)?;
    }
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Ok(Place { contract: text(&repo.join("good.yaml")), repo: text(&repo) })
}

/// The options with which a host is told the engine.
fn engine(options: &cli::Conform, cwd: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let flags = [("--engine", &options.engine), ("--engine-repo", &options.engine_repo)];
    for (flag, value) in flags {
        if let Some(value) = value {
            words.extend([flag.into(), written(cwd, value).into()]);
        }
    }
    if let Some(deadline) = options.deadline {
        words.extend(["--deadline".into(), format!("{}ms", deadline.as_millis().max(1)).into()]);
    }
    words
}

/// A bare name stays one, since the host refuses it with words of its own.
fn written(cwd: &Path, path: &Path) -> PathBuf {
    if path.components().count() > 1 { absolute(cwd, path) } else { path.to_owned() }
}

fn request_of(case: &Case, place: &Place) -> Result<Vec<u8>, String> {
    match &case.request {
        Request::Text(text) => Ok(place.fill(text).into_bytes()),
        Request::File(file) => Ok(place.fill(text_of(file)?).into_bytes()),
        Request::Base64(text) => BASE64_STANDARD.decode(text).map_err(|error| error.to_string()),
    }
}

fn exchange(
    engine: &[OsString],
    request: &Path,
    place: &Place,
    options: &cli::Conform,
    stop: &Stop,
) -> Result<Reported, String> {
    let mut command = self_command();
    command.args(["implement", "--format", "json", "--request"]).arg(request).args(engine);
    command.args(["--leash", "--"]).arg(&place.contract);
    for name in env::HOST {
        command.env_remove(name);
    }
    reported(&mut command, options.deadline.unwrap_or(Limits::default().deadline), stop)
}

fn row(case: &Case, place: &Place, ran: Result<Reported, String>, engine: &[OsString]) -> Row {
    let (mismatches, report, elapsed) = match ran {
        Ok(Reported { report, text, elapsed }) => {
            (judge(case, place, &report), Some(text), elapsed)
        }
        Err(why) => (vec![differs("run", "it can be run", why)], None, Duration::ZERO),
    };
    let engine: Vec<_> = engine.iter().map(|word| word.to_string_lossy()).collect();
    let words = ["satyrn-host", "conform"].into_iter().chain(engine.iter().map(AsRef::as_ref));
    Row {
        name: case.name.clone(),
        about: String::new(),
        failed_runs: u32::from(!mismatches.is_empty()),
        state: if mismatches.is_empty() { State::Passed } else { State::Failed { mismatches } },
        runs: 1,
        elapsed_ms: millis(elapsed),
        report,
        again: command_line(words.chain([case.name.as_str()])),
    }
}

/// Compares the host's report with the case. Pure.
fn judge(case: &Case, place: &Place, report: &Report) -> Vec<Mismatch> {
    if report.source != Source::Engine {
        // The host's own line says what is wrong with the answer.
        return vec![differs("response", format!("code {}", case.code), &report.line)];
    }
    let mut found = Vec::new();
    if report.code != case.code {
        found.push(differs("code", &case.code, &report.line));
    }
    let process = &report.process;
    if process.exit_code != Some(i64::from(case.exit)) {
        let code = || process.exit_code.map(|code| code.to_string());
        let seen = process.signal.clone().or_else(code).unwrap_or_else(|| "none".to_owned());
        found.push(differs("exit", case.exit, seen));
    }
    if process.stderr_bytes != Some(0) {
        let seen = process.stderr_tail.as_deref().unwrap_or("null");
        found.push(differs("stderr", "nothing", seen));
    }
    if let Some(expected) = message_of(case, place).filter(|_| report.code == case.code) {
        let seen = &report.message;
        let fits = match expected.strip_suffix(' ') {
            Some(start) if start.ends_with(':') => seen.starts_with(&expected),
            _ => *seen == expected,
        };
        if !fits {
            found.push(differs("message", expected, seen));
        }
    }
    found
}

/// The message that the case has in its response, if it has one.
fn message_of(case: &Case, place: &Place) -> Option<String> {
    let text = place.fill(text_of(case.response.as_ref()?).ok()?);
    let response: Value = serde_json::from_str(&text).ok()?;
    response["message"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_case_can_be_sent_and_every_response_is_there() {
        let place = Place { repo: "/a \"b\"".into(), contract: "/c".into() };
        let cases = cases().unwrap();
        assert!(cases.len() >= 50, "{}", cases.len());
        for case in &cases {
            request_of(case, &place).unwrap_or_else(|why| panic!("{}: {why}", case.name));
            assert_eq!(
                message_of(case, &place).is_some(),
                case.response.is_some(),
                "{}",
                case.name
            );
        }
    }

    #[test]
    fn every_contract_of_the_fixtures_is_on_the_stage() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/contracts");
        let mut files: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        files.sort();
        let names: Vec<_> = CONTRACTS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, files);
    }

    #[test]
    fn each_part_of_an_answer_is_looked_at() {
        let place = Place { repo: "/r".into(), contract: "/r/good.yaml".into() };
        let cases = cases().unwrap();
        let judge = |name: &str, report: &Value| {
            let case = cases.iter().find(|case| case.name == name).unwrap();
            let report = Report::deserialize(report).unwrap();
            judge(case, &place, &report).into_iter().map(|found| found.what).collect::<Vec<_>>()
        };
        let good = json!({
            "report": 1, "line": "l", "ok": false, "code": "CONTRACT_UNREADABLE", "source": "engine",
            "reason": null, "launch": "completed", "warnings": [], "environment": [],
            "message": "cannot read contract /r/missing.yaml: in other words",
            "process": {"exit_code": 3, "signal": null, "stderr_bytes": 0, "stderr_tail": ""},
        });
        let name = "contract-unreadable-missing";
        let with = |pointer: &str, value: Value| {
            let mut report = good.clone();
            *report.pointer_mut(pointer).unwrap() = value;
            judge(name, &report)
        };
        assert!(judge(name, &good).is_empty());
        assert_eq!(with("/source", json!("host")), ["response"]);
        assert_eq!(with("/code", json!("REPO_UNAVAILABLE")), ["code"]);
        assert_eq!(with("/message", json!("cannot read contract /s: why")), ["message"]);
        assert_eq!(with("/process/exit_code", json!(0)), ["exit"]);
        assert_eq!(with("/process/exit_code", Value::Null), ["exit"]);
        assert_eq!(with("/process/stderr_bytes", json!(1)), ["stderr"]);
        // A message without the system's words is the same to the last character.
        let mut report = good.clone();
        report["code"] = json!("INVALID_REQUEST");
        report["message"] = json!("unsupported protocol version 2; expected 1.");
        report["process"]["exit_code"] = json!(7);
        assert_eq!(judge("version-2", &report), ["message"]);
    }
}
