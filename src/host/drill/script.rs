//! A drill file as data: a scripted engine, how the host is called, and what it must say.
//!
//! Reading one checks everything that can be checked without running it, so that a mistake is told
//! with its file, line, column and field. Unknown fields are mistakes. `docs/drills.md` describes
//! every field for people, `schemas/drill-1.json` for editors.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};
use serde_json::Value;

use super::validate::{
    all_or_number, checked, environment, exit_code, forever_or_length, forever_or_number,
    ignorable, key, options, request_bytes, said,
};
use super::values::{Length, Signal, Text};
use crate::protocol::{Code, Response};

/// The file to which the engine writes when it is ready, where the runner has made it.
pub(super) const READY: &str = ".satyrn-drill-ready";

/// What fits into a command line on Windows, whose bound is 32,767 characters.
const WINDOWS_LINE: u32 = 30_000;

/// The largest drill file, in bytes. The YAML reader takes quadratic time over nesting, so this
/// also bounds the time: well below a second.
pub const MAX_BYTES: usize = 64 << 10;

/// The largest piece that is written at once, in bytes.
const MAX_PIECE: usize = 1 << 20;

/// One drill.
#[derive(Clone, Debug)]
pub struct Script {
    /// One sentence: what goes wrong, and what must come of it.
    pub about: String,
    /// What the system must offer.
    pub needs: Vec<Need>,
    /// The bounds of the exchange.
    pub limits: Limits,
    /// How the host is called.
    pub host: Call,
    /// Files that are there before the host starts, by their names in its working directory.
    pub files: BTreeMap<String, Content>,
    /// The engine.
    pub engine: Played,
    /// What is done to the host once the engine has said `ready`.
    pub when_ready: Vec<Action>,
    /// What must be seen.
    pub expect: Expect,
}

/// The engine of a drill.
#[derive(Clone, Debug)]
pub enum Played {
    /// The host's own executable, which plays these steps and then exits with 0.
    Steps(Vec<Step>),
    /// Something that may not even start.
    Start(Start),
}

/// Another program in the place of the scripted engine.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// As `--engine PROGRAM`.
    Program(PathBuf),
    /// As `--engine-repo DIR`.
    Checkout(PathBuf),
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a mapping with the fields of a drill")]
struct Fields {
    about: String,
    #[serde(default)]
    needs: Vec<Need>,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    host: Call,
    #[serde(default)]
    files: BTreeMap<String, Content>,
    #[serde(default, with = "serde_yaml::with::singleton_map_recursive")]
    engine: Option<Vec<Step>>,
    #[serde(default, with = "serde_yaml::with::singleton_map")]
    start: Option<Start>,
    #[serde(default, with = "serde_yaml::with::singleton_map_recursive")]
    when_ready: Vec<Action>,
    expect: Expect,
}

impl TryFrom<Fields> for Script {
    /// A field, and what is wrong with it.
    type Error = (&'static str, String);

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        let fault = |field, why: &str| Err((field, why.to_owned()));
        let about = fields.about.trim().to_owned();
        if about.is_empty() || about.contains('\n') {
            return fault("about", "must be one sentence on one line");
        }
        let engine = match (fields.engine, fields.start) {
            (Some(steps), None) => Played::Steps(steps),
            (None, Some(start)) => Played::Start(start),
            (Some(_), Some(_)) => return fault("start", "goes with no field `engine`"),
            (None, None) => return fault("engine", "is missing, and so is `start`"),
        };
        let says_ready = match &engine {
            Played::Steps(steps) => some(steps, &|step| matches!(step, Step::Ready)),
            Played::Start(_) => false,
        };
        if !fields.when_ready.is_empty() && !says_ready {
            return fault("when_ready", "needs a step `ready` in `engine`");
        }
        let closes = fields.when_ready.iter().any(|action| matches!(action, Action::Close(_)));
        if closes && !fields.host.leash {
            return fault("when_ready", "`close: leash` needs `host: {leash: true}`");
        }
        for name in fields.files.keys() {
            let plain = |part| !matches!(part, "" | "." | "..");
            if !name.split('/').all(plain) || name.contains(['\0', '\\']) || name == READY {
                return Err(("files", format!("{name:?} is no name for a file of a drill")));
            }
            let below = |other: &&String| {
                other.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('/'))
            };
            if let Some(other) = fields.files.keys().find(below) {
                return Err(("files", format!("{name:?} cannot be a file: {other:?} is below it")));
            }
        }
        Ok(Self {
            about,
            needs: fields.needs,
            limits: fields.limits,
            host: fields.host,
            files: fields.files,
            engine,
            when_ready: fields.when_ready,
            expect: fields.expect,
        })
    }
}

impl Script {
    /// Reads the text of a drill file; `name` is said in front of a mistake.
    ///
    /// # Errors
    /// `NAME:LINE:COLUMN: FIELD: what is wrong`, one line.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("{name}: larger than {MAX_BYTES} bytes"));
        }
        // Some editors write one, and to the YAML reader it is a character like others.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let fields: Fields = serde_yaml::from_str(text).map_err(|error| {
            let problem = error.to_string();
            let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
            let problem = problem.replace(&format!(" at line {line} column {column}"), "");
            // The reader tells the place of the whole mapping.
            let repeated = problem.strip_prefix("duplicate field `").and_then(|rest| {
                let field = rest.strip_suffix('`')?;
                key(text, field, 2)
            });
            let (line, column) = repeated.unwrap_or((line, column));
            format!("{name}:{line}:{column}: {problem}")
        })?;
        fields.try_into().map_err(|(field, why)| {
            let (line, column) = key(text, field, 1).unwrap_or((1, 1));
            format!("{name}:{line}:{column}: {field}: {why}")
        })
    }

    /// What the system must offer: what the file says, and what its steps imply.
    #[must_use]
    pub fn needs(&self) -> Vec<Need> {
        let mut needs = self.needs.clone();
        let (freezes, signals) = self.when_ready.iter().fold((false, false), |(f, s), action| {
            let worker = matches!(action, Action::Kill(Part::Worker) | Action::Freeze(_));
            (f || worker, s || matches!(action, Action::Signal(_) | Action::Kill(_)))
        });
        let steps = match &self.engine {
            Played::Steps(steps) => some(steps, &Step::is_unix),
            Played::Start(_) => false,
        };
        let long = self.host.request_bytes > WINDOWS_LINE;
        for (need, implied) in [(Need::Proc, freezes), (Need::Unix, steps || signals || long)] {
            if implied && !needs.contains(&need) {
                needs.push(need);
            }
        }
        needs
    }

    /// The steps of the engine, or of the descendant at `path`: the indexes that lead to it.
    #[must_use]
    pub fn steps(&self, path: &[usize]) -> Option<(&[Step], Option<&Descendant>)> {
        let Played::Steps(steps) = &self.engine else { return None };
        let mut found: (&[Step], Option<&Descendant>) = (steps, None);
        for index in path {
            let Step::Start(descendant) = found.0.get(*index)? else { return None };
            found = (&descendant.steps, Some(descendant));
        }
        Some(found)
    }
}

fn some(steps: &[Step], holds: &dyn Fn(&Step) -> bool) -> bool {
    steps.iter().any(|step| {
        holds(step) || matches!(step, Step::Start(descendant) if some(&descendant.steps, holds))
    })
}

/// Something that not every system has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// Linux.
    Linux,
    /// Signals, sessions, and streams that can be closed.
    Unix,
    /// Windows.
    Windows,
    /// A mounted `/proc` that tells the children of a process.
    Proc,
    /// `uv` on PATH.
    Uv,
}

/// The bounds of the exchange.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The deadline, where neither a flag nor `SATYRN_DEADLINE` says another one.
    pub deadline: Option<Length>,
}

/// How the runner calls the host. Has no effect on a host that somebody else started.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// More words for its command line. `{dir}` stands for its working directory.
    #[serde(default, deserialize_with = "options")]
    pub options: Vec<String>,
    /// Variables that are set for it. `{dir}` stands for its working directory.
    #[serde(default, deserialize_with = "environment")]
    pub environment: BTreeMap<String, String>,
    /// How the host learns which engine to run.
    #[serde(default)]
    pub chosen_by: ChosenBy,
    /// Whether it is given `--leash` and a stdin that stays open.
    #[serde(default)]
    pub leash: bool,
    /// What becomes of its stdout.
    #[serde(default)]
    pub stdout: Reader,
    /// Makes the contract's path so long that the request has at least so many bytes, at most
    /// 120,000.
    #[serde(default, deserialize_with = "request_bytes")]
    pub request_bytes: u32,
}

/// How a host learns which engine to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChosenBy {
    /// `--drill`.
    #[default]
    Flag,
    /// `SATYRN_DRILL`.
    Variable,
    /// Only by what `options` and `environment` say.
    Nothing,
}

/// What becomes of the host's stdout. Only a reader learns what the host said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reader {
    /// It is read to its end.
    #[default]
    Read,
    /// It is closed before the host can have written to it.
    Closed,
    /// It stays open, and nobody reads it.
    Unread,
}

/// A file that the runner makes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// What stands in it.
    pub text: String,
    /// Whether it may be executed.
    #[serde(default)]
    pub executable: bool,
}

/// One thing that the scripted engine does.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Reads stdin to its end, or so many bytes.
    #[serde(deserialize_with = "all_or_number")]
    Read(Option<u64>),
    /// Writes. A write that fails ends the step, not the engine.
    Write(Write),
    /// Writes a well-formed response to stdout.
    Answer(Answer),
    /// Lets go of a stream.
    Close(Stream),
    /// Waits; `None` is for ever.
    #[serde(deserialize_with = "forever_or_length")]
    Sleep(Option<Length>),
    /// Starts a process below this one and goes on when it is up.
    Start(Descendant),
    /// From now on these signals do not end it.
    #[serde(deserialize_with = "ignorable")]
    Ignore(Vec<Signal>),
    /// Tells the runner that the engine is where the drill wants it.
    Ready,
    /// Writes the names of its environment variables, sorted, one a line.
    ListEnvironment(Output),
    /// Stops itself, as by SIGSTOP.
    Stop,
    /// Exits with this code.
    #[serde(deserialize_with = "exit_code")]
    Exit(u8),
    /// Ends itself by a signal; no core is dumped.
    Die(Signal),
}

impl Step {
    /// Whether only Unix has it.
    fn is_unix(&self) -> bool {
        match self {
            Self::Close(_) | Self::Ignore(_) | Self::Stop | Self::Die(_) => true,
            Self::Start(descendant) => descendant.session || !descendant.ignore.is_empty(),
            Self::Read(_)
            | Self::Write(_)
            | Self::Answer(_)
            | Self::Sleep(_)
            | Self::Ready
            | Self::ListEnvironment(_)
            | Self::Exit(_) => false,
        }
    }
}

/// A stream of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// What the request comes through.
    Stdin,
    /// What the response goes through.
    Stdout,
    /// What is drained and never judged.
    Stderr,
}

/// A stream that can be written to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// What the response goes through.
    #[default]
    Stdout,
    /// What is drained and never judged.
    Stderr,
}

/// Bytes and the way they are written.
#[derive(Clone, Debug)]
pub struct Write {
    /// Where to.
    pub to: Output,
    /// What.
    pub bytes: Vec<u8>,
    /// How often; `None` is without end.
    pub times: Option<u64>,
    /// Bytes in one write; `None` is as many as there are.
    pub pieces: Option<usize>,
    /// How long to wait after each piece.
    pub pause: Option<Length>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteFields {
    #[serde(default)]
    to: Output,
    text: Option<String>,
    base64: Option<String>,
    #[serde(default = "once", deserialize_with = "forever_or_number")]
    times: Option<u64>,
    pieces: Option<usize>,
    pause: Option<Length>,
}

#[expect(clippy::unnecessary_wraps, reason = "the shape that the field has")]
fn once() -> Option<u64> {
    Some(1)
}

impl<'de> Deserialize<'de> for Write {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked::<D, WriteFields, Self>(deserializer)
    }
}

impl TryFrom<WriteFields> for Write {
    type Error = String;

    fn try_from(fields: WriteFields) -> Result<Self, String> {
        let bytes = match (fields.text, fields.base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(text)) => {
                BASE64_STANDARD.decode(text).map_err(|why| format!("field `base64`: {why}"))?
            }
            _ => return Err("needs exactly one of the fields `text` and `base64`".to_owned()),
        };
        if bytes.is_empty() && fields.times.is_none() {
            return Err("field `times`: nothing cannot be written forever".to_owned());
        }
        if fields.pieces.is_some_and(|pieces| !(1..=MAX_PIECE).contains(&pieces)) {
            return Err(format!("field `pieces` must be from 1 to {MAX_PIECE}"));
        }
        let (times, pieces, pause) = (fields.times, fields.pieces, fields.pause);
        Ok(Self { to: fields.to, bytes, times, pieces, pause })
    }
}

/// A response as it stands on the wire: `OK`, or a refusal's code and message.
#[derive(Clone, Debug)]
pub struct Answer(pub Vec<u8>);

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Refused {
            code: String,
            message: String,
        }
        struct OkOrRefused;
        impl<'de> Visitor<'de> for OkOrRefused {
            type Value = Answer;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("OK, or {code: CODE, message: TEXT}")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Answer, E> {
                if word == Code::Ok.name() {
                    return Ok(Answer(Response::accepted(Vec::new()).encode()));
                }
                Err(E::invalid_value(de::Unexpected::Str(word), &self))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Answer, A::Error> {
                let Refused { code, message } =
                    Refused::deserialize(MapAccessDeserializer::new(map))?;
                let response = Response { ok: false, code, message, warnings: Vec::new() };
                Ok(Answer(response.encode()))
            }
        }
        deserializer.deserialize_any(OkOrRefused)
    }
}

/// A process below the engine: its own executable again.
#[derive(Clone, Debug)]
pub struct Descendant {
    /// Which of the engine's outputs it holds open.
    pub holds: Vec<Output>,
    /// Whether it leads a session of its own.
    pub session: bool,
    /// Whether its parent exits as soon as it is up.
    pub orphan: bool,
    /// How many processes stand in a line, each the parent of the next, all alike.
    pub deep: u8,
    /// Whether it goes on as a new process again and again, its parent gone each time.
    pub refork: bool,
    /// Signals that do not end it.
    pub ignore: Vec<Signal>,
    /// What the last in the line does; by default it sleeps for ever.
    pub steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescendantFields {
    #[serde(default)]
    holds: Vec<Output>,
    #[serde(default)]
    session: bool,
    #[serde(default)]
    orphan: bool,
    deep: Option<i64>,
    #[serde(default)]
    refork: bool,
    #[serde(default, deserialize_with = "ignorable")]
    ignore: Vec<Signal>,
    steps: Option<Vec<Step>>,
}

impl<'de> Deserialize<'de> for Descendant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked::<D, DescendantFields, Self>(deserializer)
    }
}

impl TryFrom<DescendantFields> for Descendant {
    type Error = String;

    fn try_from(fields: DescendantFields) -> Result<Self, Self::Error> {
        let deep =
            u8::try_from(fields.deep.unwrap_or(1)).ok().filter(|deep| (1..=32).contains(deep));
        let deep = deep.ok_or("field `deep` must be 1 to 32")?;
        if fields.refork && (fields.steps.is_some() || fields.orphan || deep > 1) {
            let why = "field `refork` goes with none of `steps`, `orphan` and `deep`";
            return Err(why.to_owned());
        }
        Ok(Self {
            holds: fields.holds,
            session: fields.session,
            orphan: fields.orphan,
            deep,
            refork: fields.refork,
            ignore: fields.ignore,
            steps: fields.steps.unwrap_or_else(|| vec![Step::Sleep(None)]),
        })
    }
}

/// Something that is done to the host while the engine runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Sends a signal to the process that the runner started.
    Signal(Signal),
    /// Kills a part of the host.
    Kill(Part),
    /// Lets go of the host's stdin.
    Close(Leash),
    /// Stops both parts of the host for so long.
    Freeze(Length),
    /// Waits.
    Sleep(Length),
}

/// What can be let go of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leash {
    /// The host's stdin lifeline.
    Leash,
}

/// A process of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The supervisor, which the runner started.
    #[serde(rename = "guard")]
    Supervisor,
    /// The worker, which runs the exchange.
    #[serde(rename = "inner")]
    Worker,
}

/// What must be seen. What is left out is not looked at.
#[derive(Clone, Debug)]
pub struct Expect {
    /// The code.
    pub code: Option<Text>,
    /// The message, verbatim.
    pub message: Option<Text>,
    /// The line.
    pub line: Option<Text>,
    /// How the host ends.
    pub exit: Exit,
    /// The reason.
    pub reason: Option<Text>,
    /// What is said of the launch.
    pub launch: Option<Text>,
    /// The longest the host may take; by default its deadline and one second.
    pub within: Option<Length>,
    /// How many processes are left when the host has ended.
    pub survivors: u32,
    /// The report's warnings, all of them.
    pub warnings: Option<Vec<Text>>,
    /// Other members of the report, such as `process.signal`.
    pub report: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectFields {
    #[serde(default, deserialize_with = "said")]
    code: Option<Text>,
    #[serde(default, deserialize_with = "said")]
    message: Option<Text>,
    #[serde(default, deserialize_with = "said")]
    line: Option<Text>,
    exit: Exit,
    #[serde(default, deserialize_with = "said")]
    reason: Option<Text>,
    #[serde(default, deserialize_with = "said")]
    launch: Option<Text>,
    within: Option<Length>,
    #[serde(default)]
    survivors: u32,
    warnings: Option<Vec<Text>>,
    #[serde(default)]
    report: BTreeMap<String, Value>,
}

impl<'de> Deserialize<'de> for Expect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked::<D, ExpectFields, Self>(deserializer)
    }
}

impl TryFrom<ExpectFields> for Expect {
    type Error = String;

    fn try_from(fields: ExpectFields) -> Result<Self, String> {
        if fields.code.is_none() && fields.line.is_none() {
            return Err("needs the field `code` or `line`".to_owned());
        }
        for (name, value) in &fields.report {
            if let Value::String(text) = value {
                Text::try_from(text.clone())
                    .map_err(|why| format!("field `report`: {name}: {why}"))?;
            }
        }
        Ok(Self {
            code: fields.code,
            message: fields.message,
            line: fields.line,
            exit: fields.exit,
            reason: fields.reason,
            launch: fields.launch,
            within: fields.within,
            survivors: fields.survivors,
            warnings: fields.warnings,
            report: fields.report,
        })
    }
}

/// How a process ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With an exit code.
    Code(u8),
    /// By a signal.
    Signal(Signal),
}

impl<'de> Deserialize<'de> for Exit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CodeOrSignal;
        impl Visitor<'_> for CodeOrSignal {
            type Value = Exit;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an exit code, or the name of a signal")
            }

            fn visit_u64<E: de::Error>(self, code: u64) -> Result<Exit, E> {
                let number = de::Unexpected::Unsigned(code);
                u8::try_from(code).map(Exit::Code).map_err(|_| E::invalid_value(number, &self))
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Exit, E> {
                Signal::try_from(name.to_owned()).map(Exit::Signal).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(CodeOrSignal)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "{code}"),
            Self::Signal(Signal(name)) => formatter.write_str(name),
        }
    }
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
