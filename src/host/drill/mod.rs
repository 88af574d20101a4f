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
pub mod values;

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use super::cli::drill as cli;
use super::context::Context;
use super::implement::engines::Engine;
use super::implement::refusal::{Refusal, start_failed};
use super::print::CommandOutput;
use crate::line::escape;

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

/// What a drill puts in the place of the engine: itself, or the program that it names.
///
/// # Errors
/// `ENGINE_START_FAILED`: there is no such drill, or its file has a mistake.
pub fn drilled(
    drill: &Path,
    origin: &str,
    cwd: &Path,
) -> Result<(Engine, Option<Duration>), Refusal> {
    if drill.as_os_str().is_empty() {
        return Err(start_failed("empty-setting", format!("{origin} is empty")));
    }
    let named = set::name(drill, cwd).map_err(|why| start_failed("no-drill", why))?;
    let script = set::load(&named).map_err(|fault| match fault {
        set::Fault::Missing(why) => start_failed("no-drill", why),
        set::Fault::Bad(why) => start_failed("bad-drill", why),
    })?;
    let engine = match script.engine {
        script::Played::Steps(_) => Engine::Drill(named.into()),
        script::Played::Start(script::Start::Program(program)) => Engine::Program(program),
        script::Played::Start(script::Start::Checkout(dir)) => Engine::Checkout(dir),
    };
    Ok((engine, script.limits.deadline.map(|length| length.0)))
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
