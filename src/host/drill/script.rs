//! A drill file as data: a scripted engine, how the host is called, and what it must say.
//!
//! Reading one checks everything that can be checked without running it, so that a mistake is told
//! with its file, line, column and field. Unknown fields are mistakes. `docs/drills.md` describes
//! every field for people, `schemas/drill-1.json` for editors.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use include_dir::{Dir, include_dir};
use regex_lite::Regex;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};
use serde_json::Value;

use crate::host::cli::parse_deadline;
use crate::protocol::{Code, Response};

/// The drills that ship inside the binary. Adding one is adding a file.
static BUILT_IN: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/fixtures/drills");

/// The first argument of an executable that plays the engine of a drill.
pub const ROLE: &str = "__drill";

/// The largest drill file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

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
#[serde(deny_unknown_fields)]
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
            Played::Steps(steps) => any(steps, &|step| matches!(step, Step::Ready)),
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
            if name.is_empty() || name.split('/').any(|part| matches!(part, "" | "." | "..")) {
                return Err(("files", format!("{name:?} is no name below the directory")));
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
        let fields: Fields = serde_yaml::from_str(text).map_err(|error| {
            let problem = error.to_string();
            let Some(at) = error.location() else { return format!("{name}: {problem}") };
            let (line, column) = (at.line(), at.column());
            let tail = format!(" at line {line} column {column}");
            format!("{name}:{line}:{column}: {}", problem.replace(&tail, ""))
        })?;
        fields.try_into().map_err(|(field, why)| {
            // A top-level field stands at the start of a line.
            let is_there = |line: &str| {
                line.strip_prefix(field).is_some_and(|rest| rest.trim_start().starts_with(':'))
            };
            let line = text.lines().position(is_there).unwrap_or(0) + 1;
            format!("{name}:{line}:1: {field}: {why}")
        })
    }

    /// What the system must offer: what the file says, and what its steps imply.
    #[must_use]
    pub fn needs(&self) -> Vec<Need> {
        let mut needs = self.needs.clone();
        let (freezes, signals) = self.when_ready.iter().fold((false, false), |(f, s), action| {
            let inner = matches!(action, Action::Kill(Part::Inner) | Action::Freeze(_));
            (f || inner, s || matches!(action, Action::Signal(_) | Action::Kill(_)))
        });
        let steps = match &self.engine {
            Played::Steps(steps) => any(steps, &Step::is_unix),
            Played::Start(_) => false,
        };
        for (need, implied) in [(Need::Proc, freezes), (Need::Unix, steps || signals)] {
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

fn any(steps: &[Step], holds: &dyn Fn(&Step) -> bool) -> bool {
    steps.iter().any(|step| {
        holds(step) || matches!(step, Step::Start(descendant) if any(&descendant.steps, holds))
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
    /// More words for its command line.
    #[serde(default)]
    pub options: Vec<String>,
    /// Variables that are set for it.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// How the host learns which engine to run.
    #[serde(default)]
    pub chosen_by: ChosenBy,
    /// Whether it is given `--leash` and a stdin that stays open.
    #[serde(default)]
    pub leash: bool,
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
    Ignore(Vec<Signal>),
    /// Tells the runner that the engine is where the drill wants it.
    Ready,
    /// Writes the names of its environment variables, sorted, one a line.
    ListEnvironment(Output),
    /// Stops itself, as by SIGSTOP.
    Stop,
    /// Exits with this code.
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
        if fields.pieces == Some(0) {
            return Err("field `pieces` must be at least 1".to_owned());
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
    deep: Option<u8>,
    #[serde(default)]
    refork: bool,
    #[serde(default)]
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
        let deep = fields.deep.unwrap_or(1);
        if !(1..=32).contains(&deep) {
            return Err("field `deep` must be 1 to 32".to_owned());
        }
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

/// A signal, by its name: `SIGTERM`, or `TERM` for short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal(pub String);

const SIGNALS: &[&str] = &[
    "SIGABRT", "SIGALRM", "SIGBUS", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGKILL",
    "SIGPIPE", "SIGQUIT", "SIGSEGV", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP", "SIGUSR1",
    "SIGUSR2", "SIGXCPU",
];

impl<'de> Deserialize<'de> for Signal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed("the name of a signal", |text| Self::try_from(text.to_owned()), deserializer)
    }
}

impl TryFrom<String> for Signal {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let full = if name.starts_with("SIG") { name.clone() } else { format!("SIG{name}") };
        if SIGNALS.contains(&full.as_str()) {
            return Ok(Self(full));
        }
        Err(format!("{name:?} is not a signal; expected one of {}", SIGNALS.join(", ")))
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

/// The leash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leash {
    /// The host's stdin.
    Leash,
}

/// A process of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The one that the runner started.
    Guard,
    /// The one that runs the exchange.
    Inner,
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

/// Text that is expected: exactly this, or, between slashes, a regular expression.
#[derive(Clone, Debug)]
pub struct Text {
    source: String,
    pattern: Option<Regex>,
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(
            "text, or a pattern between slashes",
            |text| Self::try_from(text.to_owned()),
            deserializer,
        )
    }
}

impl TryFrom<String> for Text {
    type Error = String;

    fn try_from(source: String) -> Result<Self, String> {
        let inner = source.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        let pattern =
            inner.map(Regex::new).transpose().map_err(|why| format!("{source}: {why}"))?;
        Ok(Self { source, pattern })
    }
}

impl Text {
    /// Whether `text` is what is expected.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.pattern.as_ref().map_or(self.source == text, |pattern| pattern.is_match(text))
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.source)
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

/// A length of time with its unit: `500ms`, `2s`. More than zero, at most 24 hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length(pub Duration);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(
            "a length of time, such as 500ms or 2s",
            |text| Self::try_from(text.to_owned()),
            deserializer,
        )
    }
}

impl TryFrom<String> for Length {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_deadline(&text).map(Self).map_err(|why| format!("{text:?} {why}"))
    }
}

/// Reads a scalar by a function. Its mistakes are raised while the scalar is being read, which is
/// how they get its place and its field's name.
fn parsed<'de, D: Deserializer<'de>, T>(
    what: &'static str,
    parse: impl Fn(&str) -> Result<T, String>,
    deserializer: D,
) -> Result<T, D::Error> {
    struct Parsed<F>(&'static str, F);
    impl<T, F: Fn(&str) -> Result<T, String>> Visitor<'_> for Parsed<F> {
        type Value = T;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(self.0)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            (self.1)(text).map_err(E::custom)
        }
    }
    deserializer.deserialize_str(Parsed(what, parse))
}

/// Reads a mapping as `F` and checks it; for the same reason as [`parsed`].
fn checked<'de, D, F, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    F: Deserialize<'de>,
    T: TryFrom<F, Error = String>,
{
    struct Checked<F, T>(PhantomData<(F, T)>);
    impl<'de, F: Deserialize<'de>, T: TryFrom<F, Error = String>> Visitor<'de> for Checked<F, T> {
        type Value = T;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a mapping")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            let fields = F::deserialize(MapAccessDeserializer::new(map))?;
            T::try_from(fields).map_err(de::Error::custom)
        }
    }
    deserializer.deserialize_map(Checked(PhantomData))
}

fn request_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let parse = |text: &str| match text.parse() {
        Ok(bytes @ 0..=120_000) => Ok(bytes),
        _ => Err(format!("{text} is not a number of bytes up to 120000")),
    };
    parsed("a number of bytes", parse, from)
}

/// Text that is expected; a null is the word, as in a report, not the lack of an expectation.
fn said<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Text>, D::Error> {
    Text::deserialize(from).map(Some)
}

/// A number, or a word that stands for no bound.
fn number_or<'de, D: Deserializer<'de>>(
    word: &'static str,
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    struct NumberOr(&'static str);
    impl Visitor<'_> for NumberOr {
        type Value = Option<u64>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(formatter, "a number, or {}", self.0)
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<Option<u64>, E> {
            Ok(Some(number))
        }

        fn visit_str<E: de::Error>(self, word: &str) -> Result<Option<u64>, E> {
            if word == self.0 {
                return Ok(None);
            }
            Err(E::invalid_value(de::Unexpected::Str(word), &self))
        }
    }
    deserializer.deserialize_any(NumberOr(word))
}

fn all_or_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    number_or("all", from)
}

fn forever_or_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    number_or("forever", from)
}

fn forever_or_length<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Length>, D::Error> {
    let parse = |text: &str| match text {
        "forever" => Ok(None),
        _ => Length::try_from(text.to_owned()).map(Some),
    };
    parsed("a length of time, such as 500ms or 2s, or forever", parse, from)
}

/// The names of the built-in drills, sorted.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = BUILT_IN
        .files()
        .filter(|file| file.path().extension().is_some_and(|end| end == "yaml"))
        .filter_map(|file| file.path().file_stem()?.to_str())
        .collect();
    names.sort_unstable();
    names
}

/// The text of a built-in drill.
#[must_use]
pub fn built_in(name: &str) -> Option<&'static str> {
    if name.contains(['/', '\\']) {
        return None;
    }
    BUILT_IN.get_file(format!("{name}.yaml"))?.contents_utf8()
}

/// Whether `named` is a path rather than the name of a built-in drill.
#[must_use]
pub fn is_path(named: &str) -> bool {
    named.contains(['/', '\\']) || Path::new(named).extension().is_some()
}

/// Why a drill cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not there, or cannot be read.
    Missing(String),
    /// It is there, but is no drill.
    Bad(String),
}

/// Reads a drill by the name of a built-in one, or by its path.
///
/// # Errors
/// Why not, in one line.
pub fn load(named: &str) -> Result<Script, Fault> {
    if !is_path(named) {
        let text = built_in(named).ok_or_else(|| {
            Fault::Missing(format!(
                "no such drill: {named}; `satyrn-host drill --list` names them, and a file is \
                 given by its path"
            ))
        })?;
        return Script::parse(named, text).map_err(Fault::Bad);
    }
    let text = read(Path::new(named))
        .map_err(|why| Fault::Missing(format!("cannot read the drill {named}: {why}")))?;
    Script::parse(named, &text).map_err(Fault::Bad)
}

fn read(path: &Path) -> Result<String, String> {
    let found = path.metadata().map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("not a regular file".to_owned());
    }
    if found.len() > MAX_BYTES {
        return Err(format!("larger than {MAX_BYTES} bytes"));
    }
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text))
        .map_err(|error| error.to_string())?;
    Ok(text)
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(why) | Self::Bad(why) => formatter.write_str(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "expect: {code: OK, exit: 0}\n";

    #[test]
    fn every_built_in_drill_can_be_read() {
        assert!(names().len() >= 70, "{}", names().len());
        for name in names() {
            let script = load(name).unwrap_or_else(|fault| panic!("{fault}"));
            assert!(script.about.ends_with('.'), "{name}: {}", script.about);
        }
    }

    #[test]
    fn every_step_can_be_written() {
        let text = "\
about: Everything.
needs: [linux, unix, proc]
limits: {deadline: 500ms}
host: {options: [-v], environment: {A: b}, chosen_by: variable, leash: true, request_bytes: 9}
files: {a/b: {text: x, executable: true}}
engine:
  - read: all
  - read: 5
  - write: {text: a, to: stderr, times: 3, pieces: 2, pause: 1ms}
  - write: {base64: /w==, times: forever}
  - answer: OK
  - answer: {code: X, message: y}
  - close: stdin
  - sleep: 5ms
  - sleep: forever
  - ignore: [TERM, SIGHUP]
  - ready
  - list_environment: stdout
  - stop
  - start:
      holds: [stdout, stderr]
      session: true
      orphan: true
      deep: 4
      ignore: [TERM]
      steps:
        - start: {refork: true}
        - exit: 3
  - die: KILL
when_ready:
  - signal: TERM
  - kill: inner
  - freeze: 5ms
  - sleep: 5ms
  - close: leash
expect:
  code: OK
  message: /a.c/
  line: x
  exit: SIGKILL
  reason: shape
  launch: completed
  within: 1s
  survivors: 0
  warnings: [a, /b/]
  report: {process.pid: null}
";
        let script = Script::parse("x", text).unwrap_or_else(|why| panic!("{why}"));
        let Played::Steps(steps) = &script.engine else { panic!() };
        assert_eq!(steps.len(), 15);
        let Step::Write(write) = &steps[3] else { panic!() };
        assert_eq!((write.bytes.as_slice(), write.times), (&b"\xff"[..], None));
        let Step::Answer(Answer(bytes)) = &steps[4] else { panic!() };
        assert_eq!(bytes, b"{\"version\":1,\"ok\":true,\"code\":\"OK\",\"message\":\"\"}\n");
        assert_eq!(script.expect.exit, Exit::Signal(Signal("SIGKILL".into())));
        let (below, descendant) = script.steps(&[13]).unwrap();
        assert_eq!((below.len(), descendant.map(|found| found.deep)), (2, Some(4)));
        assert!(script.steps(&[13, 0]).is_some_and(|(_, found)| found.is_some_and(|it| it.refork)));
        for path in [&[99][..], &[0], &[13, 1], &[13, 0, 0, 0]] {
            assert!(script.steps(path).is_none(), "{path:?}");
        }
    }

    #[test]
    fn mistakes_are_told_with_their_place_and_field() {
        let engine = |step: &str| format!("about: x\nengine:\n  - ready\n  - {step}\n{REST}");
        for (text, start, part) in [
            (format!("{REST}engine: []\n"), "x:1:1: ", "missing field `about`"),
            ("about: x\nengine: []\n".into(), "x:1:1: ", "missing field `expect`"),
            (format!("about: x\nnope: 1\n{REST}"), "x:2:1: ", "unknown field `nope`"),
            (format!("about: x\nabout: y\n{REST}"), "x:1:1: ", "duplicate field `about`"),
            (format!("about: \"\"\nengine: []\n{REST}"), "x:1:1: about: ", "one sentence"),
            (format!("about: x\n{REST}"), "x:1:1: engine: ", "is missing"),
            (
                format!("about: x\nengine: []\nstart: {{program: y}}\n{REST}"),
                "x:3:1: start: ",
                "`engine`",
            ),
            (format!("about: x\nengine: {{}}\n{REST}"), "x:2:9: engine: ", "expected a sequence"),
            (engine("raed: all"), "x:4:5: engine[1]: ", "unknown variant `raed`"),
            (engine("read: al"), "x:4:11: engine[1].read: ", "expected a number, or all"),
            (engine("read: -1"), "x:4:11: engine[1].read: ", "-1"),
            (engine("write: {txt: a}"), "x:4:13: engine[1].write: ", "unknown field `txt`"),
            (engine("write: {}"), "x:4:12: engine[1].write: ", "`text` and `base64`"),
            (engine("write: {base64: '!'}"), "x:4:12: engine[1].write: ", "field `base64`"),
            (engine("write: {text: a, pieces: 0}"), "x:4:12: engine[1].write: ", "field `pieces`"),
            (
                engine("write: {text: '', times: forever}"),
                "x:4:12: engine[1].write: ",
                "field `times`",
            ),
            (engine("answer: NO"), "x:4:13: engine[1].answer: ", "expected OK, or {code"),
            (engine("answer: {code: X}"), "x:4:13: engine[1].answer: ", "missing field `message`"),
            (engine("sleep: 5"), "x:4:12: engine[1].sleep: ", "a number and a unit"),
            (engine("close: all"), "x:4:12: engine[1].close: ", "unknown variant `all`"),
            (engine("die: NOPE"), "x:4:10: engine[1].die: ", "\"NOPE\" is not a signal"),
            (engine("exit: 256"), "x:4:11: engine[1].exit: ", "256"),
            (engine("exit: 1\n    read: all"), "x:4:5: engine[1]: ", "single key"),
            (engine("start: {deep: 0}"), "x:4:12: engine[1].start: ", "field `deep`"),
            (
                engine("start: {refork: true, deep: 2}"),
                "x:4:12: engine[1].start: ",
                "field `refork`",
            ),
            (
                engine("start: {steps: [{raed: all}]}"),
                "x:4:22: engine[1].start.steps[0]: ",
                "unknown variant `raed`",
            ),
            (
                "about: x\nengine: []\nexpect: {exit: 0}\n".into(),
                "x:3:9: expect: ",
                "`code` or `line`",
            ),
            ("about: x\nengine: []\nexpect: {code: OK}\n".into(), "x:3:9: expect: ", "`exit`"),
            (
                "about: x\nengine: []\nexpect: {code: OK, exit: 256}\n".into(),
                "x:3:26: expect.exit: ",
                "an exit code, or the name of a signal",
            ),
            (
                "about: x\nengine: []\nexpect: {code: '/(/', exit: 0}\n".into(),
                "x:3:16: expect.code: ",
                "/(/",
            ),
            (
                "about: x\nengine: []\nexpect: {code: OK, exit: 0, report: {a: '/(/'}}\n".into(),
                "x:3:9: expect: ",
                "field `report`: a: ",
            ),
            (
                format!("about: x\nlimits: {{deadline: 0s}}\nengine: []\n{REST}"),
                "x:2:20: limits.deadline: ",
                "more than zero",
            ),
            (
                format!("about: x\nhost: {{request_bytes: 200000}}\nengine: []\n{REST}"),
                "x:2:23: host.request_bytes: ",
                "up to 120000",
            ),
            (
                format!("about: x\nengine: []\nwhen_ready: [{{signal: TERM}}]\n{REST}"),
                "x:3:1: when_ready: ",
                "needs a step `ready`",
            ),
            (
                format!("about: x\nengine: [ready]\nwhen_ready: [{{close: leash}}]\n{REST}"),
                "x:3:1: when_ready: ",
                "`host: {leash: true}`",
            ),
            (
                format!("about: x\nfiles: {{../a: {{text: b}}}}\nengine: []\n{REST}"),
                "x:2:1: files: ",
                "\"../a\"",
            ),
            ("about: [".into(), "x:", ""),
            ("about: x\n---\nabout: y\n".into(), "x:", ""),
            (String::new(), "x", ""),
        ] {
            let why = Script::parse("x", &text).expect_err(&text);
            assert!(why.starts_with(start) && why.contains(part), "{text}: {why}");
            assert!(!why.contains('\n') && !why.contains(" at line "), "{why}");
        }
    }

    #[test]
    fn needs_follow_from_the_steps() {
        let needs = |steps: &str, more: &str| {
            let text = format!("about: x\nengine: {steps}\n{more}{REST}");
            Script::parse("x", &text).unwrap_or_else(|why| panic!("{why}")).needs()
        };
        assert_eq!(needs("[{read: all}, {start: {deep: 3}}]", ""), []);
        assert_eq!(needs("[stop]", ""), [Need::Unix]);
        assert_eq!(needs("[{start: {steps: [{die: TERM}]}}]", ""), [Need::Unix]);
        assert_eq!(needs("[{start: {session: true}}]", "needs: [uv]\n"), [Need::Uv, Need::Unix]);
        let more = "when_ready: [{freeze: 1s}]\n";
        assert_eq!(needs("[ready]", more), [Need::Proc]);
        assert_eq!(needs("[ready]", "when_ready: [{signal: INT}]\n"), [Need::Unix]);
    }

    #[test]
    fn text_is_exact_or_a_pattern() {
        let text = "about: x\nengine: []\nexpect: {code: OK, exit: 0, reason: null}\n";
        let script = Script::parse("x", text).unwrap_or_else(|why| panic!("{why}"));
        assert!(script.expect.reason.is_some_and(|reason| reason.matches("null")));
        let matches = |text: &str, seen| Text::try_from(text.to_owned()).unwrap().matches(seen);
        assert!(matches("a.c", "a.c") && !matches("a.c", "abc") && !matches("a", "ab"));
        assert!(matches("/a.c/", "xabcx") && !matches("/^a$/", "ab") && matches("/", "/"));
    }
}
