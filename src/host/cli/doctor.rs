//! The command line of `doctor`: clap's types, and nothing that acts.

use std::ffi::OsString;
use std::path::Path;

use clap::{Args, ValueEnum};

use super::implement::Chosen;

/// Examples of `satyrn-host doctor`.
pub const EXAMPLES: &str = "\
Examples:
  satyrn-host doctor
  satyrn-host doctor --engine ./my-engine
  satyrn-host doctor --format json >report.json

It starts one process, the engine, as `implement` would. Of the environment it shows the names of
what an engine would be given and the values of the variables below. It shows the last line of what
the engine says, with the values of all other variables replaced by their names; look at it before
you send it.";

/// Its exit codes and variables.
pub const TABLES: &str = "\
Exit codes:
  0  the engine that would run here accepts a good contract
  1  something needs attention, or the report cannot be printed
  2  the command line was not understood; nothing ran
  128 + N  stopped by signal N

Environment (a flag beats it):
  SATYRN_ENGINE       as --engine
  SATYRN_ENGINE_REPO  as --engine-repo
  SATYRN_DRILL        as --drill
  SATYRN_DEADLINE     as --deadline of implement
  SATYRN_LOG          as for implement; the log of the exchange is not shown
  SATYRN_HOST         the host that the Pi extension runs; shown, not used
  PATH                where uv and pi are looked for; empty and relative entries are skipped
  TMPDIR              where the contract for its exchange is put (TEMP on Windows)";

/// Options of `satyrn-host doctor`.
#[derive(Args, Debug)]
pub struct Doctor {
    /// Which engine.
    #[command(flatten)]
    pub chosen: Chosen,
    /// Print a text, or a JSON object
    #[arg(long, value_name = "FORMAT", default_value = "text", value_enum)]
    pub format: DoctorFormat,
}

/// How a doctor's report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DoctorFormat {
    /// For people: one fact a line.
    Text,
    /// One JSON object.
    Json,
}

impl Doctor {
    /// The command line of the exchange that is tried, after the word `implement`.
    #[must_use]
    pub fn words(&self, repo: &Path, contract: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["--format=json".into(), "--leash".into()];
        let with = |option: &str, value: &Path| {
            let mut word = OsString::from(option);
            word.push(value);
            word
        };
        let options = [
            ("--engine=", &self.chosen.engine),
            ("--engine-repo=", &self.chosen.engine_repo),
            ("--drill=", &self.chosen.drill),
        ];
        words.extend(
            options
                .iter()
                .filter_map(|(option, value)| value.as_ref().map(|value| with(option, value))),
        );
        words.extend([with("--repo=", repo), "--".into(), contract.into()]);
        words
    }
}
