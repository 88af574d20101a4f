//! The command line of `satyrn-engine`.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};
use serde::Serialize;

use crate::line::{PREFIX, escape_args, line};
use crate::protocol::{Code, Response};

const EXAMPLES: &str = "\
Examples:
  satyrn-engine check --repo . contracts/*.yaml
  satyrn-engine check --repo . --format json contract.yaml
  satyrn-engine protocol <request.json";

/// A test compares it with the protocol's codes.
const EXITS: &str = "\
Exit codes:
  0  OK                      the contract is accepted
  1  -                       a defect of the engine; not a refusal
  2  USAGE                   the command line was not understood
  3  CONTRACT_UNREADABLE     the contract file cannot be read, or is not UTF-8
  4  CONTRACT_INVALID_YAML   the contract is not one YAML document
  5  CONTRACT_MISSING_FIELD  no mapping, or id or task is not a non-empty string
  6  REPO_UNAVAILABLE        the repository is not a directory
  7  INVALID_REQUEST         the request is malformed (protocol only)

Environment:
  no variable is read";

/// Judges contracts.
#[derive(Parser)]
#[command(
    name = "satyrn-engine",
    version = concat!(env!("CARGO_PKG_VERSION"), " (protocol 1)"),
    about = "Judges contracts: small YAML files with an id and a task.",
    before_help = EXAMPLES,
    after_help = EXITS
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Judge contracts: silent and 0, or one line on stderr for each refusal and its exit code
    #[command(before_help = EXAMPLES, after_help = EXITS)]
    Check(Check),
    /// Serve one JSON request on stdin with one JSON response on stdout, then exit
    #[command(before_help = EXAMPLES, after_help = EXITS)]
    Protocol,
}

#[derive(Args)]
struct Check {
    /// The repository the contracts speak of
    #[arg(long, value_name = "REPO", value_hint = ValueHint::DirPath)]
    repo: PathBuf,
    /// Lines on stderr for refusals, or one JSON object a contract on stdout
    #[arg(long, value_name = "FORMAT", default_value = "line", value_enum)]
    format: Format,
    /// Print warnings on stderr too
    #[arg(short, long)]
    verbose: bool,
    /// The contract files, or - for stdin; of several, the highest exit code is returned
    #[arg(value_name = "CONTRACT", required = true, value_hint = ValueHint::FilePath)]
    contracts: Vec<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One line for each refusal.
    Line,
    /// One JSON object a contract, a line each.
    Json,
}

/// Runs `satyrn-engine` with the process's own arguments.
#[must_use]
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if args.len() == 2 && args[1] == "protocol" {
        return ExitCode::from(protocol());
    }
    std::panic::set_hook(Box::new(|_| {}));
    std::panic::catch_unwind(|| run(args)).unwrap_or_else(|_| {
        // A crash is not a refusal.
        let _ = writeln!(std::io::stderr(), "{PREFIX}defect: please report it");
        ExitCode::FAILURE
    })
}

/// The whole command line of `satyrn-engine`, for whoever makes pages of it.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

fn run(args: Vec<OsString>) -> ExitCode {
    let shown = escape_args(&args);
    match Cli::try_parse_from(args) {
        Ok(Cli { command: Command::Protocol }) => ExitCode::from(protocol()),
        Ok(Cli { command: Command::Check(options) }) => check(&options),
        Err(error) => {
            // Help and version go to stdout with 0, everything else to stderr with 2. What was
            // typed is quoted there, so it is parsed again in a form that can be shown.
            let error = Cli::try_parse_from(shown).err().unwrap_or(error);
            let _ = error.print();
            ExitCode::from(if error.use_stderr() { Code::Usage.exit() } else { 0 })
        }
    }
}

/// Judges each contract and returns the highest exit code. A closed stream changes no verdict.
fn check(options: &Check) -> ExitCode {
    let mut worst = 0;
    for path in &options.contracts {
        let verdict = if path.as_os_str() == "-" {
            super::check_stream(&options.repo, std::io::stdin().lock())
        } else {
            super::check(&options.repo, path)
        };
        let response = super::respond(verdict);
        worst = worst.max(Code::from_name(&response.code).map_or(1, Code::exit));
        let path = path.to_string_lossy();
        if options.format == Format::Json {
            let _ = writeln!(std::io::stdout(), "{}", json(&path, &response));
            continue;
        }
        // Of several contracts, each line says which one it speaks of.
        let several = options.contracts.len() > 1;
        let of = if several { format!("{path}: ") } else { String::new() };
        if !response.ok {
            let line = line(&response.code, &format!("{of}{}", response.message));
            let _ = writeln!(std::io::stderr(), "{line}");
        }
        for warning in response.warnings.iter().filter(|_| options.verbose) {
            let line = line("WARNING", &format!("{path}: {warning}"));
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
    ExitCode::from(worst)
}

/// One contract's verdict: the members of a response, and which contract it is.
fn json(path: &str, response: &Response) -> String {
    #[derive(Serialize)]
    struct Verdict<'a> {
        contract: &'a str,
        ok: bool,
        code: &'a str,
        message: &'a str,
        warnings: &'a [String],
    }
    let Response { ok, code, message, warnings } = response;
    let verdict = Verdict { contract: path, ok: *ok, code, message, warnings };
    // A plain struct of strings always serialises.
    serde_json::to_string(&verdict).unwrap_or_default()
}

/// Serves the protocol on the process's own streams. Whatever fails ends with exit code 1, and
/// with nothing on stdout and stderr, so that no reader takes a defect for a verdict.
#[must_use]
pub fn protocol() -> u8 {
    std::panic::set_hook(Box::new(|_| {}));
    let served = std::panic::catch_unwind(|| {
        super::serve(std::io::stdin().lock(), std::io::stdout().lock())
    });
    match served {
        Ok(Ok(code)) => code,
        Ok(Err(_)) | Err(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::VERSION;

    #[test]
    fn the_version_names_the_protocol() {
        let version = format!("{} (protocol {VERSION})", env!("CARGO_PKG_VERSION"));
        assert_eq!(command().get_version(), Some(version.as_str()));
    }

    #[test]
    fn every_command_shows_examples_first_and_every_code_last() {
        command().debug_assert();
        let mut command = command();
        command.build();
        for command in std::iter::once(&command).chain(command.get_subcommands()) {
            if command.get_name() == "help" {
                continue;
            }
            let help = command.clone().render_long_help().to_string();
            assert!(help.starts_with("Examples:\n  satyrn-engine "), "{help}");
            let (options, exits) = help.split_once("\nExit codes:\n").unwrap();
            assert!(options.contains("\nOptions:\n"), "{help}");
            let rows: Vec<_> = exits.lines().map_while(|row| row.strip_prefix("  ")).collect();
            for code in Code::ALL {
                let start = format!("{}  {} ", code.exit(), code.name());
                assert!(rows.iter().any(|row| row.starts_with(&start)), "{start}: {help}");
            }
            // And 1, which no code has.
            assert_eq!(rows.len(), Code::ALL.len() + 1, "{help}");
        }
    }
}
