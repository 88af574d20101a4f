//! The host: runs one engine and says what happened. See the crate's page for the flow.

pub mod cli;
pub mod context;
pub mod doctor;
pub mod drill;
pub mod env;
pub mod exchange;
pub mod implement;
mod log;
pub mod pages;
mod print;
mod process;
pub mod program;
pub mod report;
pub mod schema;

use std::process::ExitCode;

use cli::Invocation;
use context::context;
use implement::engines::Parts;
use print::{eprint_bounded, print_output};

/// Runs `satyrn-host` with the process's own arguments and returns its exit code. `engine` serves
/// the protocol once, on this process's own streams, and returns the exit code; it is handed in,
/// since the host knows nothing of the engine that it carries.
#[must_use]
pub fn main(engine: fn() -> u8) -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    if let Some(exit) = drill::player::dispatch(&args) {
        return exit;
    }
    process::unblock();
    let parts = Parts { embedded: engine, drilled: drill::drilled };
    let exit = match cli::parse(&args) {
        Invocation::Implement(options) => implement::run(&options, args.first(), parts),
        Invocation::Drill(options) => print_output(drill::drill(&options, &context(args.first()))),
        Invocation::Conform(options) => {
            print_output(drill::conform(&options, &context(args.first())))
        }
        Invocation::Doctor(options) => {
            print_output(doctor::doctor(&options, &context(args.first()), parts))
        }
        Invocation::Schema(name) => {
            let unknown = || (format!("error: no schema {name}"), 2);
            print_output(schema::text(name).map(|text| (text.to_owned(), 0)).ok_or_else(unknown))
        }
        Invocation::Usage { detail, hint } => {
            implement::print_usage(detail, &hint, cli::wants_json(&args))
        }
        Invocation::Print { text, exit: 0 } => print_output(Ok((text, 0))),
        Invocation::Print { text, exit } => {
            eprint_bounded(text.trim_end());
            exit
        }
    };
    ExitCode::from(exit)
}
