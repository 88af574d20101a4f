//! The runner: each drill in a host process of its own, started as anybody would start it, and
//! judged by what it said and by what it left.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tempfile::TempDir;

use super::formats::{Results, Row, State, millis};
use super::judge::{OVERTIME, Seen, bound, differs, judge};
use super::pool::many;
use super::script::{Action, ChosenBy, Part, READY, Reader, Script};
use super::select::{Drill, missing};
use crate::host::cli::drill as cli;
use crate::host::context::Context;
use crate::host::env;
use crate::host::implement::report::Report;
use crate::host::process::observed::{self, Stop};
use crate::host::process::self_command;
use crate::host::program::command_line;

/// How much later the runner stops waiting for it.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the other part of a host may take to end everything after one part was killed.
const AFTER_KILL: Duration = Duration::from_secs(1);

/// How often the runner looks.
const TICK: Duration = Duration::from_millis(1);

/// The largest output of a host that is kept, in bytes.
const MAX_OUTPUT: u64 = 8 << 20;

/// Runs them all, several at once, each as often as asked for.
///
/// # Errors
/// The signal that stopped it.
pub fn run(drills: &[Drill], options: &cli::Drill, context: &Context) -> Result<Results, u8> {
    let one = |index: usize, stop: &Stop| {
        let mut ran = drill(&drills[index % drills.len()], context, stop);
        // One report of each drill is told; those of many runs would only fill the memory.
        if index >= drills.len() && !matches!(ran.state, State::Failed { .. }) {
            ran.report = None;
        }
        ran
    };
    let total = drills.len() * usize::from(options.repeat);
    let began = Instant::now();
    let mut runs: Vec<Vec<Ran>> = drills.iter().map(|_| Vec::new()).collect();
    for (index, ran) in many(total, options.jobs, context, one)?.into_iter().enumerate() {
        runs[index % drills.len()].push(ran);
    }
    let results = drills.iter().zip(runs).map(|(drill, runs)| row(drill, runs)).collect();
    Ok(Results { command: "drill", results, elapsed_ms: millis(began.elapsed()) })
}

/// One run of one drill.
struct Ran {
    state: State,
    report: Option<Box<RawValue>>,
    elapsed: Duration,
}

/// Many runs of one drill in one row; the first failure is the one that is told.
fn row(drill: &Drill, runs: Vec<Ran>) -> Row {
    let count = runs.len();
    let failed = runs.iter().filter(|ran| matches!(ran.state, State::Failed { .. })).count();
    let elapsed = runs.iter().map(|ran| ran.elapsed).max().unwrap_or_default();
    let told = runs.into_iter().reduce(|told, ran| match (&told.state, &ran.state) {
        (State::Passed, State::Failed { .. }) => ran,
        _ => told,
    });
    let (state, report) = told.map_or((State::Passed, None), |ran| (ran.state, ran.report));
    Row {
        name: drill.name.clone(),
        about: drill.script.about.clone(),
        state,
        runs: u32::try_from(count).unwrap_or(u32::MAX),
        failed_runs: u32::try_from(failed).unwrap_or(u32::MAX),
        elapsed_ms: millis(elapsed),
        report,
        again: command_line(["satyrn-host", "drill", &drill.named]),
    }
}

fn drill(drill: &Drill, context: &Context, stop: &Stop) -> Ran {
    if let Some(reason) = missing(&drill.script.needs(), context) {
        return Ran { state: State::Skipped { reason }, report: None, elapsed: Duration::ZERO };
    }
    let (mismatches, report, elapsed) = match attempt(drill, stop) {
        Ok(seen) => {
            let report = RawValue::from_string(seen.stdout.trim_end().to_owned()).ok();
            (judge(&drill.script, &seen), report, seen.elapsed)
        }
        Err(why) => (vec![differs("run", "it can be run", why)], None, Duration::ZERO),
    };
    let state = if mismatches.is_empty() { State::Passed } else { State::Failed { mismatches } };
    Ran { state, report, elapsed }
}

/// Runs one host in a directory of its own, which also marks every process that comes of it: as its
/// working directory, and in the command line of each process of the host.
fn attempt(drill: &Drill, stop: &Stop) -> Result<Seen, String> {
    let script = &drill.script;
    let (dir, place) = stage(script).map_err(|error| format!("cannot set the stage: {error}"))?;
    let contract = match script.host.request_bytes {
        0 => "contract.yaml".to_owned(),
        bytes => "x".repeat(bytes as usize),
    };
    let mut command = self_command();
    command.args(["implement", "--format", "json"]);
    if script.host.chosen_by == ChosenBy::Flag {
        command.arg("--drill").arg(&drill.named);
    }
    // Whatever ends this runner ends the host too.
    command.arg("--leash");
    let dir_in = |text: &String| text.replace("{dir}", &place.to_string_lossy());
    command.args(script.host.options.iter().map(dir_in)).arg("--").arg(place.join(contract));
    for name in env::HOST {
        command.env_remove(name);
    }
    if script.host.chosen_by == ChosenBy::Variable {
        command.env("SATYRN_DRILL", &drill.named);
    }
    command
        .envs(script.host.environment.iter().map(|(name, value)| (name, dir_in(value))))
        .current_dir(&place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let began = Instant::now();
    let mut host = command.spawn().map_err(|error| format!("cannot start the host: {error}"))?;
    drop(command);
    let unread = match script.host.stdout {
        Reader::Read => None,
        Reader::Closed => host.stdout.take().and(None),
        Reader::Unread => host.stdout.take(),
    };
    let (stdout, stderr) = (collect(host.stdout.take()), collect(host.stderr.take()));
    let mut seen = Seen::default();
    let mut actions = (!script.when_ready.is_empty()).then_some(&script.when_ready);
    let until = began + bound(script) + PATIENCE;
    // Once the drill is ready, what it says is done, once.
    let status = watch(&mut host, until, stop, |host, lifeline| {
        let is_ready = || fs::metadata(place.join(READY)).is_ok_and(|file| file.len() > 0);
        if actions.is_some() && is_ready() {
            for action in actions.take().into_iter().flatten() {
                if let Err(why) = act(action, host, lifeline) {
                    seen.trouble.get_or_insert(why);
                }
            }
        }
    });
    seen.elapsed = began.elapsed();
    seen.exit = status.and_then(|status| match status.code() {
        Some(code) => Some(code.to_string()),
        None => observed::ended_by(status),
    });
    let killed = script.when_ready.iter().any(|action| matches!(action, Action::Kill(_)));
    seen.left = left(&place, if killed { AFTER_KILL } else { Duration::ZERO });
    seen.stdout = stdout.recv_timeout(OVERTIME).unwrap_or_default();
    seen.stderr = stderr.recv_timeout(OVERTIME).unwrap_or_default();
    drop((dir, unread));
    Ok(seen)
}

/// A directory with everything in it that the drill wants to find, and its path without links.
fn stage(script: &Script) -> std::io::Result<(TempDir, PathBuf)> {
    let dir = tempfile::Builder::new().prefix("satyrn-drill-").tempdir()?;
    let place = observed::plain(dir.path())?;
    fs::write(place.join(READY), "")?;
    fs::write(place.join("contract.yaml"), "id: drill\ntask: Show how the host takes it.\n")?;
    for (name, content) in &script.files {
        let path = place.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, &content.text)?;
        #[cfg(unix)]
        if content.executable {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok((dir, place))
}

/// What came of a host that reported.
pub(in crate::host) struct Reported {
    /// The report, read.
    pub(in crate::host) report: Report,
    /// The same as it was printed.
    pub(in crate::host) text: Box<RawValue>,
    /// How long the host took.
    pub(in crate::host) elapsed: Duration,
}

/// Runs a host that has a stdin lifeline and prints a report. One that is not back in time is killed;
/// whatever ends this runner ends the host too, since the other end of the lifeline goes with it.
///
/// # Errors
/// Why there is no report.
pub(in crate::host) fn reported(
    host: &mut Command,
    deadline: Duration,
    stop: &Stop,
) -> Result<Reported, String> {
    host.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let began = Instant::now();
    let mut host = host.spawn().map_err(|error| format!("cannot start the host: {error}"))?;
    let (stdout, stderr) = (collect(host.stdout.take()), collect(host.stderr.take()));
    let until = began + deadline + OVERTIME + PATIENCE;
    if watch(&mut host, until, stop, |_, _| ()).is_none() {
        return Err("the host did not end in time, and was killed".to_owned());
    }
    let elapsed = began.elapsed();
    let text = stdout.recv_timeout(OVERTIME).unwrap_or_default();
    let _ = stderr.recv_timeout(OVERTIME);
    let none = |_| format!("the host printed no report: {text}");
    let report = serde_json::from_str(&text).map_err(none)?;
    let text = RawValue::from_string(text.trim_end().to_owned()).map_err(none)?;
    Ok(Reported { report, text, elapsed })
}

/// Reads a stream to its end on a thread of its own.
fn collect(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (send, receive) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            let _ = stream.take(MAX_OUTPUT).read_to_end(&mut bytes);
        }
        let _ = send.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receive
}

/// Until the host has ended; meanwhile `each` is called again and again. One that does not end in
/// time is killed, and nothing is returned. When the runner is to stop, the host is told so.
fn watch(
    host: &mut Child,
    until: Instant,
    stop: &Stop,
    mut each: impl FnMut(&mut Child, &mut Option<ChildStdin>),
) -> Option<std::process::ExitStatus> {
    let mut lifeline = host.stdin.take();
    loop {
        if let Ok(Some(status)) = host.try_wait() {
            return Some(status);
        }
        each(host, &mut lifeline);
        if stop.asked().is_some() {
            lifeline = None;
        }
        if Instant::now() >= until {
            let _ = host.kill();
            let _ = host.wait();
            return None;
        }
        thread::sleep(TICK);
    }
}

fn act(action: &Action, host: &mut Child, lifeline: &mut Option<ChildStdin>) -> Result<(), String> {
    let pid = host.id();
    let worker = || observed::worker(pid).ok_or("the inner host is not there");
    match action {
        Action::Signal(signal) => observed::send(pid, &signal.0),
        Action::Kill(Part::Supervisor) => host.kill().map_err(|error| error.to_string()),
        Action::Kill(Part::Worker) => observed::send(worker()?, "SIGKILL"),
        Action::Close(_) => {
            *lifeline = None;
            Ok(())
        }
        Action::Sleep(length) => {
            thread::sleep(length.0);
            Ok(())
        }
        Action::Freeze(length) => {
            let parts = [pid, worker()?];
            for part in parts {
                observed::send(part, "SIGSTOP")?;
            }
            thread::sleep(length.0);
            // The worker last: the supervisor may be the first to see how late it is.
            parts.into_iter().try_for_each(|part| observed::send(part, "SIGCONT"))
        }
    }
}

/// What still runs there; asked again for as long as something does and there is patience.
fn left(place: &Path, patience: Duration) -> Option<Vec<String>> {
    let until = Instant::now() + patience;
    loop {
        let found = observed::running_in(place)?;
        if found.is_empty() || Instant::now() >= until {
            return Some(found);
        }
        thread::sleep(TICK);
    }
}
