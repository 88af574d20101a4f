//! The runner: each drill in a host process of its own, started as anybody would start it, and
//! judged by what it said and by what it left.

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use serde_json::value::RawValue;
use tempfile::TempDir;

use super::formats::{Mismatch, Results, Row, State, millis};
use super::script::{Action, ChosenBy, Need, Part, READY, Reader, Script, Text};
use super::set::{Fault, is_path, load, name, names};
use crate::host::cli::drill as cli;
use crate::host::env;
use crate::host::implement::engines::{absolute, find};
use crate::host::implement::plan::{Limits, Surroundings};
use crate::host::process::observed::{self, Stop};
use crate::host::process::own;
use crate::line::escape;

/// How long after its deadline a host has to have ended.
const OVERTIME: Duration = Duration::from_secs(1);

/// How much later the runner stops waiting for it.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the other part of a host may take to end everything after one part was killed.
const AFTER_KILL: Duration = Duration::from_secs(1);

/// How often the runner looks.
const TICK: Duration = Duration::from_millis(1);

/// The largest output of a host that is kept, in bytes.
const MAX_OUTPUT: u64 = 8 << 20;

/// A drill that can be run.
#[derive(Clone, Debug)]
pub struct Drill {
    /// What it is called in the results.
    pub name: String,
    /// What `--drill` is given: the name of a built-in one, or an absolute path.
    pub named: String,
    /// What it says.
    pub script: Script,
}

/// Finds the drills that were asked for, in the order of the command line.
///
/// # Errors
/// What cannot be read or understood, one line each.
pub fn choose(options: &cli::Drill, cwd: &Path) -> Result<Vec<Drill>, String> {
    let mut drills = Vec::new();
    let mut faults = Vec::new();
    let mut add = |what: &Path| {
        let loaded = name(what, cwd).map_err(Fault::Missing).and_then(|named| {
            let script = load(&named)?;
            let name = if is_path(&named) { stem(what) } else { named.clone() };
            Ok(Drill { name, named, script })
        });
        match loaded {
            Ok(drill) => drills.push(drill),
            Err(Fault::Missing(why) | Fault::Bad(why)) => faults.push(escape(&why)),
        }
    };
    if options.what.is_empty() {
        for name in names() {
            add(name.as_ref());
        }
    }
    for what in &options.what {
        let dir = absolute(cwd, what);
        if !dir.is_dir() {
            add(what);
            continue;
        }
        let shown = escape(&what.to_string_lossy());
        let files = files(&dir).map_err(|why| format!("{shown}: {why}"))?;
        if files.is_empty() {
            return Err(format!("{shown}: no drill (*.yaml) in this directory"));
        }
        for file in files {
            add(&file);
        }
    }
    if !faults.is_empty() {
        return Err(faults.join("\n"));
    }
    if let Some(filter) = &options.filter {
        drills.retain(|drill| drill.name.contains(filter.as_str()));
        if drills.is_empty() {
            return Err(format!("no drill's name contains {filter:?}"));
        }
    }
    Ok(drills)
}

fn files(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(dir).map_err(|error| error.to_string())?;
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(is_yaml))
        .collect();
    files.sort();
    Ok(files)
}

fn is_yaml(end: &OsStr) -> bool {
    end.eq_ignore_ascii_case("yaml") || end.eq_ignore_ascii_case("yml")
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Runs them all, several at once, each as often as asked for.
///
/// # Errors
/// The signal that stopped it.
pub fn run(drills: &[Drill], options: &cli::Drill, around: &Surroundings) -> Result<Results, u8> {
    let one = |index: usize, stop: &Stop| {
        let mut ran = drill(&drills[index % drills.len()], around, stop);
        // One report of each drill is told; those of many runs would only fill the memory.
        if index >= drills.len() && !matches!(ran.state, State::Failed { .. }) {
            ran.report = None;
        }
        ran
    };
    let total = drills.len() * usize::from(options.repeat);
    let began = Instant::now();
    let mut runs: Vec<Vec<Ran>> = drills.iter().map(|_| Vec::new()).collect();
    for (index, ran) in many(total, options.jobs, around, one)?.into_iter().enumerate() {
        runs[index % drills.len()].push(ran);
    }
    let results = drills.iter().zip(runs).map(|(drill, runs)| row(drill, runs)).collect();
    Ok(Results { command: "drill", results, elapsed_ms: millis(began.elapsed()) })
}

/// Does `total` things, `jobs` at once, and returns what came of them in their order; or the signal
/// that stopped it, when none of them runs any more.
pub(super) fn many<T: Send>(
    total: usize,
    jobs: Option<u16>,
    around: &Surroundings,
    one: impl Fn(usize, &Stop) -> T + Sync,
) -> Result<Vec<T>, u8> {
    let stop = observed::prepare();
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let jobs = jobs.map_or_else(cores, usize::from).min(total).max(1);
    let bar = progress(total, around);
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(total)));
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= total || stop.asked().is_some() {
                        return;
                    }
                    let came = one(index, &stop);
                    bar.inc(1);
                    // Poisoned only if another worker panicked, which the scope passes on.
                    if let Ok(mut done) = done.lock() {
                        done.push((index, came));
                    }
                }
            });
        }
    });
    bar.finish_and_clear();
    if let Some(signal) = stop.asked() {
        return Err(signal);
    }
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, came)| came).collect())
}

/// A bar on stderr, for people only.
fn progress(total: usize, around: &Surroundings) -> ProgressBar {
    use std::io::IsTerminal;
    let dumb = around.var("TERM").is_none_or(|term| term == "dumb");
    if dumb || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total as u64);
    match ProgressStyle::with_template("{bar:40} {pos}/{len}  {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
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

/// A command as it can be given to a shell again.
pub(in crate::host) fn command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    if cfg!(windows) {
        // No file's name holds a quote there, and both shells take what stands between two.
        let plain = |c: char| c.is_alphanumeric() || "\\/:.-_".contains(c);
        let bare = |word: &str| !word.is_empty() && word.chars().all(plain);
        let quoted = |word: &str| if bare(word) { word.to_owned() } else { format!("\"{word}\"") };
        return words.into_iter().map(quoted).collect::<Vec<_>>().join(" ");
    }
    // What no shell can be given is a NUL, which no word of a command line holds.
    shlex::Quoter::new().allow_nul(true).join(words).unwrap_or_default()
}

fn drill(drill: &Drill, around: &Surroundings, stop: &Stop) -> Ran {
    if let Some(reason) = missing(&drill.script.needs(), around) {
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

/// Why a drill cannot run here.
fn missing(needs: &[Need], around: &Surroundings) -> Option<String> {
    let path = around.var("PATH");
    needs.iter().find_map(|need| {
        let (there, what) = match need {
            Need::Linux => (cfg!(target_os = "linux"), "needs Linux"),
            Need::Unix => (cfg!(unix), "needs Unix"),
            Need::Windows => (cfg!(windows), "needs Windows"),
            Need::Proc => {
                (observed::has_proc(), "needs a /proc that tells the children of a process")
            }
            Need::Uv => (find("uv", path.as_deref()).is_some(), "needs uv on PATH"),
        };
        (!there).then(|| what.to_owned())
    })
}

/// What was seen of one host, from outside.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// The exit code, or the name of the signal.
    exit: Option<String>,
    stdout: String,
    stderr: String,
    elapsed: Duration,
    /// What still ran after the host's end; `None` where the system does not tell.
    left: Option<Vec<String>>,
    /// What the runner itself could not do.
    trouble: Option<String>,
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
    let mut command = own();
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
    let status = watch(&mut host, until, stop, |host, leash| {
        let is_ready = || fs::metadata(place.join(READY)).is_ok_and(|file| file.len() > 0);
        if actions.is_some() && is_ready() {
            for action in actions.take().into_iter().flatten() {
                if let Err(why) = act(action, host, leash) {
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

/// The report of a host, and how long the host took; or why there is no report.
pub(in crate::host) type Reported = Result<(Box<RawValue>, Duration), String>;

/// Runs a host that has a leash and prints a report. One that is not back in time is killed;
/// whatever ends this runner ends the host too, since the other end of the leash goes with it.
pub(in crate::host) fn reported(host: &mut Command, deadline: Duration, stop: &Stop) -> Reported {
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
    let report = RawValue::from_string(text.trim_end().to_owned());
    Ok((report.map_err(|_| format!("the host printed no report: {text}"))?, elapsed))
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
    let mut leash = host.stdin.take();
    loop {
        if let Ok(Some(status)) = host.try_wait() {
            return Some(status);
        }
        each(host, &mut leash);
        if stop.asked().is_some() {
            leash = None;
        }
        if Instant::now() >= until {
            let _ = host.kill();
            let _ = host.wait();
            return None;
        }
        thread::sleep(TICK);
    }
}

fn act(action: &Action, host: &mut Child, leash: &mut Option<ChildStdin>) -> Result<(), String> {
    let pid = host.id();
    let inner = || observed::inner(pid).ok_or("the inner host is not there");
    match action {
        Action::Signal(signal) => observed::send(pid, &signal.0),
        Action::Kill(Part::Guard) => host.kill().map_err(|error| error.to_string()),
        Action::Kill(Part::Inner) => observed::send(inner()?, "SIGKILL"),
        Action::Close(_) => {
            *leash = None;
            Ok(())
        }
        Action::Sleep(length) => {
            thread::sleep(length.0);
            Ok(())
        }
        Action::Freeze(length) => {
            let parts = [pid, inner()?];
            for part in parts {
                observed::send(part, "SIGSTOP")?;
            }
            thread::sleep(length.0);
            // The inner one last: the guard may be the first to see how late it is.
            parts.into_iter().try_for_each(|part| observed::send(part, "SIGCONT"))
        }
    }
}

/// How long the host may take.
fn bound(script: &Script) -> Duration {
    let deadline = script.limits.deadline.map_or(Limits::default().deadline, |length| length.0);
    let frozen = script.when_ready.iter().map(|action| match action {
        Action::Freeze(length) => length.0,
        _ => Duration::ZERO,
    });
    let most = deadline + frozen.sum::<Duration>() + OVERTIME;
    script.expect.within.map_or(most, |within| within.0)
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

pub(super) fn differs(what: &str, expected: impl Display, seen: impl Display) -> Mismatch {
    Mismatch { what: what.to_owned(), expected: expected.to_string(), seen: seen.to_string() }
}

/// Compares what was seen with what is expected. Pure.
fn judge(script: &Script, seen: &Seen) -> Vec<Mismatch> {
    let expect = &script.expect;
    let report: Option<Value> = seen.stdout.strip_suffix('\n').and_then(|text| {
        serde_json::from_str(text).ok().filter(|_| !text.contains('\n')).filter(Value::is_object)
    });
    let mut found = Vec::new();
    found.extend(seen.trouble.as_ref().map(|why| differs("run", "the drill can act", why)));
    let exit = seen.exit.as_deref().unwrap_or("it did not end in time, and was killed");
    if expect.exit.to_string() != exit {
        found.push(differs("exit", &expect.exit, exit));
    }
    if report.is_none() && !seen.stdout.is_empty() {
        found.push(differs("stdout", "one JSON object and a line feed", &seen.stdout));
    }
    let usage = report.as_ref().is_some_and(|report| report["code"] == "USAGE");
    if !seen.stderr.is_empty() && !usage {
        found.push(differs("stderr", "nothing", &seen.stderr));
    }
    let member = |path: &str| {
        path.split('.').fold(report.as_ref(), |value, name| value.and_then(|value| value.get(name)))
    };
    let words = [
        ("code", &expect.code),
        ("message", &expect.message),
        ("line", &expect.line),
        ("reason", &expect.reason),
        ("launch", &expect.launch),
    ];
    for (name, expected) in words {
        let Some(expected) = expected else { continue };
        // A host that was killed has said nothing, which a drill may expect.
        let text = member(name).map_or(String::new(), shown);
        if !expected.matches(&text) {
            found.push(differs(name, expected, text));
        }
    }
    for (path, expected) in &expect.report {
        match member(path) {
            Some(value) if matches(expected, value) => {}
            Some(value) => found.push(differs(path, shown(expected), shown(value))),
            None => found.push(differs(path, shown(expected), "no such member")),
        }
    }
    if let Some(expected) = &expect.warnings {
        let warnings = member("warnings").and_then(Value::as_array).cloned().unwrap_or_default();
        let fits = |(text, value): (&Text, &Value)| text.matches(&shown(value));
        if expected.len() != warnings.len() || !expected.iter().zip(&warnings).all(fits) {
            let expected: Vec<_> = expected.iter().map(Text::to_string).collect();
            found.push(differs("warnings", format!("{expected:?}"), Value::from(warnings)));
        }
    }
    let within = bound(script);
    if seen.elapsed > within {
        found.push(differs("time", format!("at most {within:?}"), format!("{:?}", seen.elapsed)));
    }
    if let Some(left) = &seen.left
        && left.len() != expect.survivors as usize
    {
        let shown = if left.is_empty() { "none".to_owned() } else { left.join("; ") };
        found.push(differs("survivors", expect.survivors, shown));
    }
    let reported = member("process.survivors").and_then(Value::as_u64);
    if reported.is_some_and(|survivors| survivors != u64::from(expect.survivors)) {
        found.push(differs("process.survivors", expect.survivors, reported.unwrap_or_default()));
    }
    found
}

fn matches(expected: &Value, value: &Value) -> bool {
    match expected {
        Value::String(text) => {
            Text::try_from(text.clone()).is_ok_and(|text| text.matches(&shown(value)))
        }
        other => other == value,
    }
}

/// A value as a person writes it: text without quotes.
pub(super) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
