//! `satyrn-host implement`: one contract, one engine, one line.

pub mod engines;
pub mod judge;
pub mod plan;
pub mod refusal;
pub mod report;

use std::ffi::OsString;
use std::time::Duration;

use crate::host::cli::implement::{Format, Implement};
use crate::host::context::{Context, context};
use crate::host::exchange::cancel::Cancel;
use crate::host::exchange::exchange;
use crate::host::exchange::launch::Limits;
use crate::host::exchange::observation::Observation;
use crate::host::log::log;
use crate::host::print::eprint_bounded;
use crate::host::process::{self, Loss, Output, Supervision, bounded_write};
use crate::line;
use crate::protocol::MAX_BYTES;
use engines::Parts;
use judge::{Outcome, Terms, judge, refused};
use plan::{Plan, deadline, plan};
use refusal::{Refusal, start_failed};
use report::Report;

/// Judges one contract and returns the exit code; `name` is the program's own, as it was called.
pub(super) fn run(options: &Implement, name: Option<&OsString>, parts: Parts) -> u8 {
    let json = options.format == Format::Json;
    let context = context(name);
    let decided = log(options.verbose, &context).map_err(Refusal::Usage);
    let deadline = match decided.and_then(|()| deadline(options, &context)) {
        Ok(deadline) => deadline.unwrap_or(Limits::default().deadline),
        Err(refusal) => return print_now(&output(&refused(&refusal), json, None)),
    };
    let lost = |loss| {
        let refusal = match loss {
            Loss::NotStarted(why) => start_failed("no-process", why),
            Loss::Lost(why) => Refusal::HostFailed(why),
        };
        output(&refused(&refusal), json, None)
    };
    let supervision = Supervision { lifeline: options.leash, deadline, lost: &lost };
    process::run(&supervision, || implement(options, json, &context, parts))
}

/// Says that the command line was not understood, and returns the exit code.
pub(super) fn print_usage(detail: String, hint: &str, json: bool) -> u8 {
    let exit = print_now(&output(&refused(&Refusal::Usage(detail)), json, None));
    eprint_bounded(hint.trim_end());
    exit
}

/// Prints what is known before anything has run. The caller may be slow to read, but not for long.
fn print_now(output: &Output) -> u8 {
    bounded_write::write(std::io::stdout(), &output.stdout, Duration::from_millis(50));
    output.exit
}

/// One exchange, from the options to what is printed.
fn implement(options: &Implement, json: bool, context: &Context, parts: Parts) -> Output {
    let refuse = |refusal: &Refusal| output(&refused(refusal), json, None);
    let plan = match plan(options, context, parts) {
        Ok(plan) => plan,
        Err(refusal) => return refuse(&refusal),
    };
    // A drill may have one of its own.
    process::announce_deadline(plan.limits.deadline);
    if let Err(error) = process::defer_parent_death() {
        return refuse(&Refusal::HostFailed(format!("it cannot hear of its own end: {error}")));
    }
    let seen = exchange(&plan.launch, &plan.limits, &Cancel::default());
    let terms = Terms {
        deadline: plan.limits.deadline,
        stdout: MAX_BYTES,
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
    let mut text = if json { Report::new(outcome, seen).json() } else { outcome.line() };
    text.push('\n');
    Output { stdout: text.into_bytes(), stderr: Vec::new(), exit: outcome.exit }
}
