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
use implement::judge::refused;
use implement::refusal::Refusal;
use implement::{implement, print_verdict};
use print::{eprint_bounded, print_output};
use process::Role;

/// Runs `satyrn-host` with the process's own arguments and returns its exit code. `engine` serves
/// the protocol once, on this process's own streams, and returns the exit code; it is handed in,
/// since the host knows nothing of the engine that it carries.
#[must_use]
pub fn main(engine: fn() -> u8) -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    if let Some(exit) = drill::player::dispatch(&args) {
        return exit;
    }
    let (args, source) = match process::dispatch(args) {
        Role::Done(exit) => return exit,
        Role::Host { args, source } => (args, source),
    };
    if source.is_some() {
        // CommandOutput by the guard, as HOST_FAILED, in the form that was asked for.
        std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "defect")));
    }
    let exit = match cli::parse(&args) {
        Invocation::Implement(options) => {
            let defect = || {
                let refusal = Refusal::HostFailed("its own process had a defect".to_owned());
                print_verdict(&refused(&refusal), cli::wants_json(&args), None)
            };
            process::catch_panic(|| implement(&options, source, args.first(), engine), defect)
        }
        Invocation::Drill(options) => print_output(drill::drill(&options, &context(args.first()))),
        Invocation::Conform(options) => {
            print_output(drill::conform(&options, &context(args.first())))
        }
        Invocation::Doctor(options) => {
            print_output(doctor::doctor(&options, &context(args.first())))
        }
        Invocation::Schema(name) => {
            let unknown = || (format!("error: no schema {name}"), 2);
            print_output(schema::text(name).map(|text| (text.to_owned(), 0)).ok_or_else(unknown))
        }
        Invocation::Usage { detail, hint } => {
            let exit =
                print_verdict(&refused(&Refusal::Usage(detail)), cli::wants_json(&args), None);
            eprint_bounded(hint.trim_end());
            exit
        }
        Invocation::Print { text, exit: 0 } => print_output(Ok((text, 0))),
        Invocation::Print { text, exit } => {
            eprint_bounded(text.trim_end());
            exit
        }
    };
    ExitCode::from(exit)
}
