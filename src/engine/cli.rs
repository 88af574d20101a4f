//! The command line of `satyrn-engine`.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::line::line;
use crate::protocol::Code;

const AFTER_HELP: &str = "\
Exit codes:
  0  OK                      the contract is accepted
  1  -                       a defect of the engine; not a refusal
  2  USAGE                   the command line was not understood
  3  CONTRACT_UNREADABLE     the contract file cannot be read, or is not UTF-8
  4  CONTRACT_INVALID_YAML   the contract is not one YAML document
  5  CONTRACT_MISSING_FIELD  no mapping, or id or task is not a non-empty string
  6  REPO_UNAVAILABLE        the repository is not a directory
  7  INVALID_REQUEST         the request is malformed (protocol only)";

/// Judges contracts.
#[derive(Parser)]
#[command(
    name = "satyrn-engine",
    version = concat!(env!("CARGO_PKG_VERSION"), " (protocol 1)"),
    about = "Judges contracts: small YAML files with an id and a task.",
    after_help = AFTER_HELP
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Judge one contract: silent and 0, or one line on stderr and the refusal's exit code
    Check {
        /// The repository the contract speaks of
        #[arg(long, value_name = "REPO")]
        repo: PathBuf,
        /// The contract file
        contract: PathBuf,
    },
    /// Serve one JSON request on stdin with one JSON response on stdout, then exit
    Protocol,
}

/// Runs `satyrn-engine` with the process's own arguments.
#[must_use]
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if args.len() == 2 && args[1] == "protocol" {
        return protocol();
    }
    match Cli::try_parse_from(args) {
        Ok(Cli { command: Command::Protocol }) => protocol(),
        Ok(Cli { command: Command::Check { repo, contract } }) => {
            match super::check(&repo, &contract) {
                Ok(_) => ExitCode::SUCCESS,
                Err(refusal) => {
                    let line = line(refusal.code().name(), &refusal.to_string());
                    // A closed stderr changes no verdict.
                    let _ = writeln!(std::io::stderr(), "{line}");
                    ExitCode::from(refusal.code().exit())
                }
            }
        }
        Err(error) => {
            // Help and version go to stdout with 0, everything else to stderr with 2.
            let _ = error.print();
            ExitCode::from(if error.use_stderr() { Code::Usage.exit() } else { 0 })
        }
    }
}

/// Serves the protocol on the process's own streams. Whatever fails ends with exit code 1, and
/// with nothing on stdout and stderr, so that no reader takes a defect for a verdict.
#[must_use]
pub fn protocol() -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let served = std::panic::catch_unwind(|| {
        super::serve(std::io::stdin().lock(), std::io::stdout().lock())
    });
    match served {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(_)) | Err(_) => ExitCode::FAILURE,
    }
}
