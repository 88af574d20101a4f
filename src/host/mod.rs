//! The host: runs one engine and says what happened. See the crate's page for the flow.

pub mod cli;
pub mod engines;
pub mod env;
pub mod exchange;
pub mod observation;
pub mod plan;
mod process;
pub mod refusal;
pub mod report;
pub mod verdict;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use cli::{Format, Implement, Invocation};
use exchange::{Cancellation, exchange};
use observation::{Cancel, Observation};
use plan::{Plan, Surroundings, plan};
use refusal::Refusal;
use verdict::{Outcome, Terms, judge, refused};

/// Runs `satyrn-host` with the process's own arguments and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let exit = match cli::parse(&args) {
        Invocation::Implement(options) => implement(&options),
        Invocation::Usage { detail, hint } => {
            let format = if cli::wants_json(&args) { Format::Json } else { Format::Line };
            let exit = say(&refused(&Refusal::Usage(detail)), format, None);
            complain(hint.trim_end());
            exit
        }
        Invocation::Print { text, exit: 0 } => {
            print(&text);
            0
        }
        Invocation::Print { text, exit } => {
            complain(text.trim_end());
            exit
        }
    };
    ExitCode::from(exit)
}

/// One exchange, from the options to the printed line.
fn implement(options: &Implement) -> u8 {
    let around = surroundings();
    if let Err(why) = log(options.verbose, &around) {
        return say(&refused(&Refusal::Usage(why)), options.format, None);
    }
    let plan = match plan(options, &around) {
        Ok(plan) => plan,
        Err(refusal) => return say(&refused(&refusal), options.format, None),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let why = format!("cannot start the host's own runtime: {error}");
            return say(&refused(&refusal::start_failed("no-runtime", why)), options.format, None);
        }
    };
    let seen = runtime.block_on(async {
        let cancel = Cancellation::default();
        listen(&cancel, options.leash);
        exchange(&plan, &cancel).await
    });
    // The listener on stdin may still be in a read that nothing ends.
    runtime.shutdown_background();
    let terms = Terms {
        deadline: plan.limits.deadline,
        stdout: plan.limits.stdout,
        uv: matches!(plan.engine, engines::Engine::Checkout(_)),
    };
    tracing::debug!(?seen, "observation");
    say(&judge(terms, &seen), options.format, Some((&plan, &seen)))
}

/// The environment, the working directory and the executable, read once.
fn surroundings() -> Surroundings {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads them")]
    let vars = std::env::vars_os().collect();
    Surroundings {
        vars,
        cwd: std::env::current_dir().map_err(|error| error.to_string()),
        exe: std::env::current_exe().map_err(|error| error.to_string()),
    }
}

/// Turns signals, and the end of stdin where it is a leash, into a cancellation.
fn listen(cancel: &Cancellation, leash: bool) {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        for (kind, by) in [
            (SignalKind::interrupt(), Cancel::Signal(2, "SIGINT")),
            (SignalKind::terminate(), Cancel::Signal(15, "SIGTERM")),
            (SignalKind::hangup(), Cancel::Signal(1, "SIGHUP")),
        ] {
            let cancel = cancel.clone();
            let Ok(mut signals) = signal(kind) else { continue };
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    cancel.cancel(by.clone());
                }
            });
        }
    }
    if leash {
        let cancel = cancel.clone();
        std::thread::spawn(move || {
            // Whatever is written to the leash is of no interest; only its end is.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            cancel.cancel(Cancel::Leash);
        });
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
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    tracing_subscriber::registry().with(layer.with_filter(filter)).init();
    Ok(())
}

/// Prints the verdict and returns its exit code.
fn say(outcome: &Outcome, format: Format, seen: Option<(&Plan, &Observation)>) -> u8 {
    let mut text = match format {
        Format::Line => outcome.line(),
        Format::Json => report::json(outcome, seen),
    };
    text.push('\n');
    print(&text);
    outcome.exit
}

/// A reader that has gone away changes no verdict.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
