//! The command line of `implement`: clap's types, and nothing that acts.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use crate::duration::parse_deadline;
use crate::host::env::EnvRequest;

/// Examples of `satyrn-host implement`.
pub const EXAMPLES: &str = "\
Examples:
  satyrn-host implement contract.yaml
  satyrn-host implement --engine ./my-engine --deadline 5s contract.yaml
  satyrn-host implement --engine-repo ../engine --format json contract.yaml";

/// The exit codes and the variables of `implement`. A test compares them with what the code has.
pub const TABLES: &str = "\
Exit codes (of implement):
     0  OK                         the contract is accepted
     1  HOST_FAILED                a process of the host was killed, had a defect or no room
     2  USAGE                      the command line was not understood
     3  CONTRACT_UNREADABLE        the contract file cannot be read, or is not UTF-8
     4  CONTRACT_INVALID_YAML      the contract is not one YAML document
     5  CONTRACT_MISSING_FIELD     no mapping, or id or task is not a non-empty string
     6  REPO_UNAVAILABLE           the repository is not a directory
     7  INVALID_REQUEST            host and engine do not speak the same protocol
  8-63  another engine's refusal   its own exit code
    65  another engine's refusal   where its exit code says nothing
    69  ENGINE_START_FAILED        nothing ran
    70  ENGINE_CRASHED             it ended badly, without an answer
    76  ENGINE_MALFORMED_RESPONSE  it answered something else
   124  ENGINE_TIMEOUT             the deadline passed
  128+  ENGINE_CANCELLED           128 + the signal
   143  ENGINE_CANCELLED           the leash

Environment (a flag beats it):
  SATYRN_ENGINE       as --engine
  SATYRN_ENGINE_REPO  as --engine-repo
  SATYRN_DRILL        as --drill
  SATYRN_DEADLINE     as --deadline
  SATYRN_LOG          what to log on stderr: error, warn, info, debug, trace, or TARGET=LEVEL,...
  PATH                where uv is looked for; empty and relative entries are skipped";

/// Options of `satyrn-host implement`.
#[derive(Args, Debug)]
pub struct Implement {
    /// The contract file
    #[arg(value_name = "CONTRACT", value_hint = ValueHint::FilePath)]
    pub contract: PathBuf,
    /// The repository the contract speaks of [default: the working directory]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub repo: Option<PathBuf>,
    /// Which engine.
    #[command(flatten)]
    pub chosen: Chosen,
    /// How long the whole exchange may take: 500ms, 30s, 2m; at most 24h [default: 30s]
    #[arg(long, value_name = "DUR", value_parser = parse_deadline)]
    pub deadline: Option<Duration>,
    /// Print the line, or a JSON report
    #[arg(long, value_name = "FORMAT", default_value = "line", value_enum)]
    pub format: Format,
    /// Pass one more variable to the engine; NAME=REASON where it loads code or carries a secret
    #[arg(long = "env", value_name = "NAME[=REASON]", value_parser = EnvRequest::parse)]
    pub wishes: Vec<EnvRequest>,
    /// Pass the whole environment to the engine
    #[arg(long)]
    pub inherit_env: bool,
    /// Cancel when the host's own stdin ends
    #[arg(long)]
    pub leash: bool,
    /// Send the bytes of this file in the place of the request; `conform` does
    #[arg(long, value_name = "FILE", hide = true)]
    pub request: Option<PathBuf>,
    /// Say on stderr what is done; twice for more
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// The options that choose an engine, at most one of them.
#[derive(Args, Debug)]
#[group(id = "chosen", multiple = false)]
pub struct Chosen {
    /// Run `PROGRAM protocol` as the engine; a path, not a bare name
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::ExecutablePath)]
    pub engine: Option<PathBuf>,
    /// Run `uv run --project DIR satyrn-engine protocol` as the engine
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub engine_repo: Option<PathBuf>,
    /// Run a drill as the engine: one that fails as its script says
    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub drill: Option<PathBuf>,
}

/// What goes to stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One line.
    Line,
    /// One JSON object.
    Json,
}

/// Reads the words after `implement` as scripts and editors write them: some of the options above,
/// each once, and one path. Anything else, right or wrong, is `None`, and clap decides. Set up for this
/// command alone, clap costs 18 % of the instructions of a whole run (`docs/performance.md`). A test
/// holds this to what clap says.
pub(super) fn short(words: &[OsString]) -> Option<Implement> {
    let mut contract = None;
    let (mut repo, mut engine, mut engine_repo, mut drill) = (None, None, None, None);
    let (mut deadline, mut format, mut leash) = (None, None, None);
    let mut words = words.iter().map(|word| word.to_str());
    while let Some(word) = words.next() {
        let word = word.filter(|word| !word.is_empty())?;
        let Some(option) = word.strip_prefix("--") else {
            once(&mut contract, Some(word).filter(|word| !word.starts_with('-')))?;
            continue;
        };
        if option == "leash" {
            once(&mut leash, Some(true))?;
            continue;
        }
        let (name, value) = match option.split_once('=') {
            Some(pair) => pair,
            None => (option, words.next()?.filter(|value| !value.starts_with('-'))?),
        };
        let value = Some(value).filter(|value| !value.is_empty())?;
        match name {
            "repo" => once(&mut repo, Some(value.into())),
            "engine" => once(&mut engine, Some(value.into())),
            "engine-repo" => once(&mut engine_repo, Some(value.into())),
            "drill" => once(&mut drill, Some(value.into())),
            "deadline" => once(&mut deadline, parse_deadline(value).ok()),
            "format" => once(&mut format, Format::from_str(value, false).ok()),
            _ => None,
        }?;
    }
    let chosen = Chosen { engine, engine_repo, drill };
    let choices = [&chosen.engine, &chosen.engine_repo, &chosen.drill];
    Some(Implement {
        contract: contract.filter(|_| choices.into_iter().flatten().count() < 2)?.into(),
        repo,
        chosen,
        deadline,
        format: format.unwrap_or(Format::Line),
        wishes: Vec::new(),
        inherit_env: false,
        leash: leash.unwrap_or_default(),
        request: None,
        verbose: 0,
    })
}

/// Sets what is not set yet, to something that is there.
fn once<T>(slot: &mut Option<T>, value: Option<T>) -> Option<()> {
    let free = slot.is_none();
    *slot = Some(value?);
    free.then_some(())
}
