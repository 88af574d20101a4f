//! `satyrn-host implement`: one contract, one engine, one line.

pub mod engines;
pub mod judge;
pub mod plan;
pub mod refusal;

use std::ffi::OsString;
use std::time::Duration;

use crate::host::cli::implement::{Format, Implement};
use crate::host::context::context;
use crate::host::exchange::cancel::Cancel;
use crate::host::exchange::exchange;
use crate::host::exchange::launch::Limits;
use crate::host::exchange::observation::Observation;
use crate::host::log::log;
use crate::host::print::eprint_bounded;
use crate::host::process::{self, Loss, Output, Supervision, bounded_write};
use crate::host::report;
use crate::line;
use judge::{Outcome, Terms, judge, refused};
use plan::{Plan, deadline, plan};
use refusal::{Refusal, start_failed};

/// Judges one contract and returns the exit code; `engine` is the embedded one.
pub(super) fn run(options: &Implement, name: Option<&OsString>, engine: fn() -> u8) -> u8 {
    let json = options.format == Format::Json;
    let lost = |loss| {
        let refusal = match loss {
            Loss::NotStarted(why) => start_failed("no-process", why),
            Loss::Lost(why) => Refusal::HostFailed(why),
        };
        output(&refused(&refusal), json, None)
    };
    let supervision = Supervision { lifeline: options.leash, lost: &lost };
    process::run(&supervision, || implement(options, json, name, engine))
}

/// Says that the command line was not understood, and returns the exit code.
pub(super) fn print_usage(detail: String, hint: &str, json: bool) -> u8 {
    let output = output(&refused(&Refusal::Usage(detail)), json, None);
    // The caller may be slow to read, but nothing else is waited for.
    bounded_write::write(std::io::stdout(), &output.stdout, Duration::from_millis(50));
    eprint_bounded(hint.trim_end());
    output.exit
}

/// One exchange, from the options to what is printed.
fn implement(
    options: &Implement,
    json: bool,
    name: Option<&OsString>,
    engine: fn() -> u8,
) -> Output {
    let refuse = |refusal: &Refusal| output(&refused(refusal), json, None);
    let context = context(name);
    if let Err(why) = log(options.verbose, &context) {
        return refuse(&Refusal::Usage(why));
    }
    let chosen = match deadline(options, &context) {
        Ok(chosen) => chosen,
        Err(refusal) => return refuse(&refusal),
    };
    // Before the disk is looked at, which may take as long as it likes.
    let promised = chosen.unwrap_or(Limits::default().deadline);
    process::announce_deadline(promised);
    let plan = match plan(options, &context) {
        Ok(plan) => plan,
        Err(refusal) => return refuse(&refusal),
    };
    if plan.limits.deadline != promised {
        process::announce_deadline(plan.limits.deadline);
    }
    if let Err(error) = process::defer_parent_death() {
        return refuse(&Refusal::HostFailed(format!("it cannot hear of its own end: {error}")));
    }
    let seen = exchange(&plan, engine, &Cancel::default());
    let seen = match seen {
        Ok(seen) => seen,
        Err(error) => {
            let why = format!("no room for its own runtime, the engine was ended: {error}");
            return refuse(&Refusal::HostFailed(why));
        }
    };
    let terms = Terms {
        deadline: plan.limits.deadline,
        stdout: plan.limits.stdout,
        uv: matches!(plan.engine, engines::Engine::Checkout(_)),
    };
    tracing::debug!(
        stop = ?seen.stop,
        ended = ?seen.ended,
        stdout = seen.stdout.total,
        stderr = seen.stderr.total,
        elapsed = ?seen.elapsed,
        "observation"
    );
    let outcome = judge(terms, &seen);
    for warning in &outcome.warnings {
        tracing::warn!("{}", line::escape(warning));
    }
    output(&outcome, json, Some((&plan, &seen)))
}

/// The verdict as it is printed.
fn output(outcome: &Outcome, json: bool, seen: Option<(&Plan, &Observation)>) -> Output {
    let mut text = if json { report::json(outcome, seen) } else { outcome.line() };
    text.push('\n');
    Output { stdout: text.into_bytes(), stderr: Vec::new(), exit: outcome.exit }
}
