//! The host: runs one engine and says what happened. See the crate's page for the flow.

pub mod cli;
pub mod doctor;
pub mod drill;
pub mod env;
pub mod exchange;
pub mod implement;
pub mod pages;
mod process;
pub mod report;
pub mod schema;

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use cli::{Format, Implement, Invocation};
use exchange::exchange;
use exchange::observation::Observation;
use implement::engines;
use implement::judge::{Outcome, Terms, judge, refused};
use implement::plan::{Limits, Plan, Surroundings, deadline, plan};
use implement::refusal::Refusal;
use process::{Ears, Role};

use crate::line;

/// Runs `satyrn-host` with the process's own arguments and returns its exit code. `engine` serves
/// the protocol once, on this process's own streams, and returns the exit code; it is handed in,
/// since the host knows nothing of the engine that it carries.
#[must_use]
pub fn main(engine: fn() -> u8) -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    if let Some(exit) = drill::player::dispatch(&args) {
        return exit;
    }
    let (args, ears) = match process::dispatch(args) {
        Role::Done(exit) => return exit,
        Role::Host { args, ears } => (args, ears),
    };
    if ears.is_some() {
        // Said by the guard, as HOST_FAILED, in the form that was asked for.
        std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "defect")));
    }
    let exit = match cli::parse(&args) {
        Invocation::Implement(options) => {
            let defect = || {
                let refusal = Refusal::HostFailed("its own process had a defect".to_owned());
                say(&refused(&refusal), cli::wants_json(&args), None)
            };
            process::shield(|| implement(&options, ears, args.first(), engine), defect)
        }
        Invocation::Drill(options) => tell(drill::drill(&options, &surroundings(args.first()))),
        Invocation::Conform(options) => tell(drill::conform(&options, &surroundings(args.first()))),
        Invocation::Doctor(options) => tell(doctor::doctor(&options, &surroundings(args.first()))),
        Invocation::Schema(name) => {
            let unknown = || (format!("error: no schema {name}"), 2);
            tell(schema::text(name).map(|text| (text.to_owned(), 0)).ok_or_else(unknown))
        }
        Invocation::Usage { detail, hint } => {
            let exit = say(&refused(&Refusal::Usage(detail)), cli::wants_json(&args), None);
            complain(hint.trim_end());
            exit
        }
        Invocation::Print { text, exit: 0 } => tell(Ok((text, 0))),
        Invocation::Print { text, exit } => {
            complain(text.trim_end());
            exit
        }
    };
    ExitCode::from(exit)
}

/// Prints what a command has to say and returns its exit code.
fn tell(said: drill::Said) -> u8 {
    match said {
        Ok((text, exit)) => match print(&text) {
            Ok(()) => exit,
            // As the shell's own tools do it: who closes the pipe has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => exit,
            Err(error) => {
                complain(&format!("error: cannot print it: {error}"));
                exit.max(1)
            }
        },
        Err((why, exit)) => {
            complain(&why);
            exit
        }
    }
}

/// One exchange, from the options to the printed line.
fn implement(
    options: &Implement,
    ears: Option<Ears>,
    name: Option<&OsString>,
    engine: fn() -> u8,
) -> u8 {
    let json = options.format == Format::Json;
    let refuse = |refusal: &Refusal| say(&refused(refusal), json, None);
    let around = surroundings(name);
    if let Err(why) = log(options.verbose, &around) {
        return refuse(&Refusal::Usage(why));
    }
    let chosen = match deadline(options, &around) {
        Ok(chosen) => chosen,
        Err(refusal) => return refuse(&refusal),
    };
    // Before the disk is looked at, which may take as long as it likes.
    let promised = chosen.unwrap_or(Limits::default().deadline);
    process::announce(promised);
    let plan = match plan(options, &around) {
        Ok(plan) => plan,
        Err(refusal) => return refuse(&refusal),
    };
    if plan.limits.deadline != promised {
        process::announce(plan.limits.deadline);
    }
    if let Some(ears) = &ears {
        ears.stay();
    }
    let seen = exchange(&plan, engine, |cancel| {
        ears.map_or(Ok(()), |ears| ears.listen(cancel, options.leash))
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
    say(&outcome, json, Some((&plan, &seen)))
}

/// The environment, the working directory and the executable, read once.
fn surroundings(name: Option<&OsString>) -> Surroundings {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads them")]
    let vars = std::env::vars_os().collect();
    Surroundings {
        vars,
        cwd: std::env::current_dir().map_err(|error| error.to_string()),
        exe: std::env::current_exe()
            .or_else(|_| std::path::absolute(process::own_executable(name)))
            .map_err(|error| error.to_string()),
    }
}

/// Starts logging to stderr, where it was asked for.
fn log(verbose: u8, around: &Surroundings) -> Result<(), String> {
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::prelude::*;
    let filter = match (verbose, around.var("SATYRN_LOG")) {
        (0, None) => return Ok(()),
        (0, Some(filter)) => filter
            .to_string_lossy()
            .parse::<Targets>()
            .map_err(|error| format!("SATYRN_LOG cannot be read: {error}"))?,
        (1, _) => Targets::new().with_default(LevelFilter::INFO),
        (_, _) => Targets::new().with_default(LevelFilter::DEBUG),
    };
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(|| process::bounded_write::Stderr)
        .with_ansi(false);
    tracing_subscriber::registry().with(layer.with_filter(filter)).init();
    Ok(())
}

/// Prints the verdict and returns its exit code.
fn say(outcome: &Outcome, json: bool, seen: Option<(&Plan, &Observation)>) -> u8 {
    let left = seen.map(|(plan, seen)| plan.limits.deadline.saturating_sub(seen.elapsed));
    process::deliver(&render(outcome, json, seen), left.unwrap_or_default());
    outcome.exit
}

/// The verdict as it is printed, with its line feed.
fn render(outcome: &Outcome, json: bool, seen: Option<(&Plan, &Observation)>) -> String {
    let mut text = if json { report::json(outcome, seen) } else { outcome.line() };
    text.push('\n');
    text
}

fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// A hint that nobody has room for is lost; it is not waited for long.
fn complain(text: &str) {
    let patience = Duration::from_millis(100);
    process::bounded_write::write(std::io::stderr(), format!("{text}\n").as_bytes(), patience);
}
