//! `satyrn-host implement`: one contract, one engine, one line.

pub mod engines;
pub mod judge;
pub mod plan;
pub mod refusal;

use std::ffi::OsString;

use crate::host::cli::implement::{Format, Implement};
use crate::host::context::context;
use crate::host::exchange::exchange;
use crate::host::exchange::launch::Limits;
use crate::host::exchange::observation::Observation;
use crate::host::log::log;
use crate::host::process::{self, CancelSource};
use crate::host::report;
use crate::line;
use judge::{Outcome, Terms, judge, refused};
use plan::{Plan, deadline, plan};
use refusal::Refusal;

/// One exchange, from the options to the printed line.
pub(super) fn implement(
    options: &Implement,
    source: Option<CancelSource>,
    name: Option<&OsString>,
    engine: fn() -> u8,
) -> u8 {
    let json = options.format == Format::Json;
    let refuse = |refusal: &Refusal| print_verdict(&refused(refusal), json, None);
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
    process::announce(promised);
    let plan = match plan(options, &context) {
        Ok(plan) => plan,
        Err(refusal) => return refuse(&refusal),
    };
    if plan.limits.deadline != promised {
        process::announce(plan.limits.deadline);
    }
    if let Some(source) = &source {
        source.defer_parent_death();
    }
    let seen = exchange(&plan, engine, |cancel| {
        source.map_or(Ok(()), |source| source.forward_cancels(cancel, options.leash))
    });
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
    print_verdict(&outcome, json, Some((&plan, &seen)))
}

/// Prints the verdict and returns its exit code.
pub(super) fn print_verdict(
    outcome: &Outcome,
    json: bool,
    seen: Option<(&Plan, &Observation)>,
) -> u8 {
    let left = seen.map(|(plan, seen)| plan.limits.deadline.saturating_sub(seen.elapsed));
    process::deliver(&render(outcome, json, seen), left.unwrap_or_default());
    outcome.exit
}

/// The verdict as it is printed, with its line feed.
pub(super) fn render(outcome: &Outcome, json: bool, seen: Option<(&Plan, &Observation)>) -> String {
    let mut text = if json { report::json(outcome, seen) } else { outcome.line() };
    text.push('\n');
    text
}
