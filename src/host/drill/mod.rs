//! Drills: scripted engines that fail in known ways, run through the real host (SPEC 5); and the
//! same turned round, the protocol's cases run through any engine (SPEC 6b).

pub mod conform;
pub mod formats;
mod judge;
pub mod player;
mod pool;
pub mod run;
pub mod script;
mod select;
pub mod set;
mod validate;

use std::fmt::Display;

use super::cli::drill as cli;
use super::context::Context;
use crate::line::escape;

/// What a command prints on stdout, or on stderr if nothing came of it; and its exit code.
pub type CommandOutput = Result<(String, u8), (String, u8)>;

/// `satyrn-host drill`.
///
/// # Errors
/// The command line names something that is no drill, or a drill file has a mistake.
/// Or it was stopped.
pub fn drill(options: &cli::Drill, context: &Context) -> CommandOutput {
    if let Some(name) = &options.show {
        let text = set::built_in(name)
            .ok_or_else(|| bad(format!("no built-in drill: {}", escape(name))))?;
        return Ok((text.to_owned(), 0));
    }
    let gone = |why| bad(format!("the working directory is gone: {why}"));
    let drills = select::choose(options, context.cwd.as_ref().map_err(gone)?).map_err(bad)?;
    if options.list {
        return Ok((drills.iter().map(|drill| escape(&drill.name) + "\n").collect(), 0));
    }
    Ok(said(&run::run(&drills, options, context).map_err(stopped)?, options.format))
}

/// `satyrn-host conform`.
///
/// # Errors
/// Nothing could be tried, or it was stopped.
pub fn conform(options: &cli::Conform, context: &Context) -> CommandOutput {
    let results = conform::run(options, context).map_err(|fault| match fault {
        conform::Fault::Bad(why) => bad(why),
        conform::Fault::Stopped(signal) => stopped(signal),
    });
    Ok(said(&results?, options.format))
}

fn said(results: &formats::Results, format: cli::Format) -> (String, u8) {
    let [_, failed, _] = results.counts();
    (results.render(format), u8::from(failed > 0))
}

/// Nothing ran.
fn bad(why: impl Display) -> (String, u8) {
    (format!("error: {why}"), 2)
}

/// By a signal, as a shell tells it.
pub(super) fn stopped(signal: u8) -> (String, u8) {
    (format!("stopped by signal {signal}; nothing is judged"), 128 + signal)
}
