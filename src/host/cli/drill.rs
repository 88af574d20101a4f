//! The command lines of `drill` and `conform`: clap's types, and nothing that acts.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use crate::duration::parse_deadline;

/// Examples of `satyrn-host drill`.
pub const DRILL_EXAMPLES: &str = "\
Examples:
  satyrn-host drill
  satyrn-host drill --list
  satyrn-host drill --filter descendant --repeat 20
  satyrn-host drill my-drills/ --format junit
  satyrn-host implement --drill stdout-endless contract.yaml";

/// What the exit codes of `drill` and `conform` mean, and the variables that they read.
pub const EXITS: &str = "\
Exit codes:
  0  everything that could run here holds
  1  something does not, or the results cannot be printed
  2  nothing was judged: a mistake in the command line or a drill file, or no engine that starts
  128 + N  stopped by signal N; nothing is judged

Environment (what SATYRN_* choose for implement is not looked at):
  PATH    where uv is looked for; empty and relative entries are skipped
  TERM    dumb, or not set: no progress bar
  TMPDIR  where each drill gets its directory (TEMP on Windows)";

/// Examples of `satyrn-host conform`.
pub const CONFORM_EXAMPLES: &str = "\
Examples:
  satyrn-host conform --engine ./my-engine
  satyrn-host conform --engine-repo ../engine --format tap";

/// Options of `satyrn-host drill`.
#[derive(Args, Debug)]
pub struct Drill {
    /// Drill files, directories of them, or names of built-in drills [default: all built-in ones]
    #[arg(value_name = "FILE|DIR|NAME", value_hint = ValueHint::AnyPath)]
    pub what: Vec<PathBuf>,
    /// Print the names of the chosen drills, one a line, and run none
    #[arg(long, conflicts_with_all = ["show", "repeat", "jobs", "format"])]
    pub list: bool,
    /// Print the file of a built-in drill
    #[arg(long, value_name = "NAME", conflicts_with_all = ["what", "filter", "repeat", "jobs", "format"])]
    pub show: Option<String>,
    /// Only those drills whose name contains this text
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// How many drills run at once [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Run each drill so many times
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    pub repeat: u16,
    /// How the results are printed
    #[arg(long, value_name = "FORMAT", default_value = "table", value_enum)]
    pub format: Format,
}

/// Options of `satyrn-host conform`.
#[derive(Args, Debug)]
pub struct Conform {
    /// Names of cases [default: all of them]
    #[arg(value_name = "CASE")]
    pub what: Vec<String>,
    /// Try `PROGRAM protocol`; a path, not a bare name [default: the embedded engine]
    #[arg(long, value_name = "PROGRAM", conflicts_with = "engine_repo", value_hint = ValueHint::ExecutablePath)]
    pub engine: Option<PathBuf>,
    /// Try `uv run --project DIR satyrn-engine protocol`
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub engine_repo: Option<PathBuf>,
    /// How long each case may take: 500ms, 30s, 2m; at most 24h [default: 30s]
    #[arg(long, value_name = "DUR", value_parser = parse_deadline)]
    pub deadline: Option<Duration>,
    /// Only those cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// How many cases run at once [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// How the results are printed
    #[arg(long, value_name = "FORMAT", default_value = "table", value_enum)]
    pub format: Format,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// One JSON object.
    Json,
    /// The XML that CI servers read.
    Junit,
    /// The Test Anything Protocol, version 14.
    Tap,
}
