//! Drills: scripted engines that fail in known ways, run through the real host (SPEC 5); and the
//! same turned round, the protocol's cases run through any engine (SPEC 6b).

pub mod cli;
pub mod conform;
pub mod engine;
mod read;
pub mod report;
pub mod run;
pub mod script;
pub mod set;

use super::plan::Surroundings;
use crate::line::escape;

/// What a command prints on stdout, and its exit code; or what is wrong with it, for stderr.
pub type Said = Result<(String, u8), String>;

/// `satyrn-host drill`.
///
/// # Errors
/// The command line names something that is no drill, or a drill file has a mistake.
pub fn drill(options: &cli::Drill, around: &Surroundings) -> Said {
    if let Some(name) = &options.show {
        let text = set::built_in(name).ok_or_else(|| format!("no built-in drill: {name}"))?;
        return Ok((text.to_owned(), 0));
    }
    let cwd = around.cwd.as_ref().map_err(|why| format!("the working directory is gone: {why}"))?;
    let drills = run::choose(options, cwd)?;
    if options.list {
        return Ok((drills.iter().map(|drill| escape(&drill.name) + "\n").collect(), 0));
    }
    let results = run::run(&drills, options, around);
    let [_, failed, _] = results.counts();
    Ok((results.render(options.format), u8::from(failed > 0)))
}

/// `satyrn-host conform`.
///
/// # Errors
/// Nothing could be tried.
pub fn conform(options: &cli::Conform, around: &Surroundings) -> Said {
    let results = conform::run(options, around)?;
    let [_, failed, _] = results.counts();
    Ok((results.render(options.format), u8::from(failed > 0)))
}
