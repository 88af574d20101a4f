//! Unix: the guard, which is the process that the caller started.
//!
//! It starts the inner host, which runs the exchange, and watches it; the inner host watches the
//! guard. Each is a subreaper, so whichever of the two is killed, the other one still holds the
//! tree and ends it. The guard alone prints, and only what a whole inner host has said: a guard
//! that was killed has printed nothing, and an inner host that died never becomes an acceptance.
//! It has no runtime, so that it costs next to nothing.

use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, PipeReader, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, getpid, kill_process, kill_process_group,
    setsid, waitid,
};

use super::bounded_write::{self, timespec};
use super::launch;
use super::signals::{self, CancelSource, Wake, Watch};
use super::tree::Tree;
use crate::host::implement::refusal::{Refusal, start_failed};
use crate::host::implement::{judge, render};
use crate::host::process::{NOTICE, Role, notice};
use crate::host::{cli, program};

/// How long after the deadline the inner host may take before it counts as broken. It needs 100 ms
/// for the engine to end by itself, and at most 500 ms to sweep.
const OVERTIME: Duration = Duration::from_millis(750);

/// How long an inner host may take to say when its deadline is.
const UNANNOUNCED: Duration = Duration::from_secs(30);

/// How often the guard looks after the deadline. No wait counts for more than it was meant to last:
/// time in which both processes were frozen is not taken from the inner host's overtime.
const PULSE: Duration = Duration::from_millis(50);

/// How long the guard itself may sweep after an inner host that died.
const SWEEP: Duration = Duration::from_millis(200);

/// More than any report: two texts of 1 MiB, each byte escaped, and the end of stderr.
const MAX_SAID: usize = 16 << 20;

/// How long a full stdout is waited for where the deadline has passed already.
const LAST_WRITE: Duration = Duration::from_millis(50);

/// The exit code where the end of the leash cancels: that of SIGTERM.
const RELEASED: u8 = 128 + 15;

/// The first bytes of what the inner host announces, one line each; no verdict begins with them.
const DEADLINE: u8 = 0x01;
const GROUP: u8 = 0x02;

/// Takes up the role that the command line names. A guard forks, and its inner host goes on from
/// here.
pub(in crate::host) fn dispatch(args: Vec<OsString>) -> Role {
    signals::unblock();
    if args.get(1).is_some_and(|arg| arg == "implement") {
        seclude();
        return match run(&args) {
            Ok(source) => Role::Host { args, source: Some(source) },
            Err(exit) => Role::Done(ExitCode::from(exit)),
        };
    }
    Role::Host { args, source: None }
}

/// Nobody but root may write into this process's pipes through `/proc`, where there is one.
fn seclude() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Tells the guard that signals can be taken, when the deadline is, and what to say to somebody
/// who waits. CommandOutput by the inner host before it starts anything.
pub(in crate::host) fn announce(deadline: Duration) {
    let at = now() + deadline;
    deliver(&format!("{}{} {deadline:?}\n", DEADLINE as char, at.as_nanos()), deadline);
}

/// Tells the guard the engine's process group. CommandOutput where the guard could find it in no other way.
pub(super) fn announce_group(leader: Pid) {
    deliver(&format!("{}{}\n", GROUP as char, leader.as_raw_nonzero()), Duration::ZERO);
}

/// Runs an exchange. A panic ends this process, which its guard reports; nothing stands in for it.
pub(in crate::host) fn catch_panic(exchange: impl FnOnce() -> u8, _: impl FnOnce() -> u8) -> u8 {
    exchange()
}

/// Writes to the guard, which is always reading.
pub(in crate::host) fn deliver(text: &str, _: Duration) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// The time since the guard first asked, which a fork goes on counting.
fn now() -> Duration {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed()
}

/// The inner host, as the guard sees it.
struct Inner {
    pid: Pid,
    stdout: Option<PipeReader>,
    said: Vec<u8>,
    announced: Option<Announced>,
    /// The engine's process group, where only the inner host can name it.
    group: Option<Pid>,
    /// Signals that are not handed on yet.
    pending: Vec<i32>,
}

struct Announced {
    /// By [`now`].
    deadline: Duration,
    /// The same, as a person reads it.
    shown: String,
}

/// Runs the inner host to its end, prints what it said, and returns its exit code as an error; in
/// the inner host, returns its source.
fn run(args: &[OsString]) -> Result<CancelSource, u8> {
    let json = cli::wants_json(args);
    let leash = args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--leash");
    let began = now();
    let refused = |refusal: Refusal| {
        let outcome = judge::refused(&refusal);
        (render(&outcome, json, None).into_bytes(), outcome.exit)
    };
    let unstarted = |why: String| {
        let (text, exit) = refused(start_failed("no-process", why));
        bounded_write::write(std::io::stdout(), &text, LAST_WRITE);
        Err(exit)
    };
    // Where this fails, the worker says so in the report.
    let tree = Tree::below_this_process();
    let watch = match Watch::begin() {
        Ok(watch) => watch,
        Err(error) => {
            return unstarted(format!("the host cannot watch for signals: {error}"));
        }
    };
    let (watch, wake, mut inner) = match start(watch) {
        Ok(Half::Guard(watch, wake, inner)) => (watch, wake, inner),
        Ok(Half::Inner(source)) => return Ok(source),
        Err(error) => {
            return unstarted(format!("cannot start the host's own process: {error}"));
        }
    };
    let mut leash = leash.then(hold).transpose();
    let armed = wake.arm();
    let in_time = match (&armed, &mut leash) {
        (Ok(wake), Ok(leash)) => inner.attend(&watch, wake, leash, began),
        _ => false,
    };
    if !in_time {
        let _ = kill_process(inner.pid, Signal::KILL);
    }
    let status = inner.reap(SWEEP);
    // An inner host that has spoken has ended the group itself, and its id may be somebody else's.
    if let Some(group) = inner.group.filter(|_| !inner.has_spoken()) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let swept = tree.as_ref().map(|tree| tree.kill_descendants(SWEEP));
    let deadline = inner.announced.as_ref().map_or(Duration::ZERO, |told| told.deadline);
    let patience = deadline.saturating_sub(now()).max(LAST_WRITE);
    // A worker that was blinded has said so; that its supervisor is, nobody else can say.
    let blind = swept.is_ok_and(|killed| killed.left.is_none());
    let why = match status.map(|status| (status.exit_status(), status.terminating_signal())) {
        _ if armed.is_err() || leash.is_err() => "it could not watch its own process".to_owned(),
        _ if blind => "it could not see what the engine has left running".to_owned(),
        _ if !in_time => "its own process did not finish in time".to_owned(),
        Some((Some(exit), _)) => match u8::try_from(exit) {
            Ok(exit) if inner.has_spoken() => {
                return Err(print(&inner.said, patience, &watch, &leash).unwrap_or(exit));
            }
            _ => format!("its own process ended with exit code {exit} and without a verdict"),
        },
        Some((_, Some(signal))) => {
            format!("its own process was killed by {}", signals::name(signal))
        }
        _ => "its own process could not be reaped".to_owned(),
    };
    let (text, exit) = refused(Refusal::HostFailed(why));
    Err(print(&text, patience, &watch, &leash).unwrap_or(exit))
}

/// The leash: it can be read, to its end, once stdin has ended. A thread of its own reads stdin,
/// since others may do so too, and what was there a moment ago may be theirs now.
fn hold() -> std::io::Result<PipeReader> {
    let (end, open) = std::io::pipe()?;
    let read = move || {
        // A terminal stops whoever reads it in the background, unless the signal is blocked.
        let _ = nix::sys::signal::SigSet::all().thread_block();
        let stdin = std::io::stdin();
        // Whatever is written to the leash is of no interest; only its end is.
        let mut bytes = [0; 4096];
        loop {
            let (events, pause) = match rustix::io::read(&stdin, &mut bytes) {
                Ok(1..) => continue,
                Err(Errno::AGAIN | Errno::INTR) => (PollFlags::IN, None),
                Err(Errno::IO) if stdin.is_terminal() => (PollFlags::empty(), Some(PULSE)),
                Ok(0) | Err(_) => break,
            };
            let pause = pause.map(timespec);
            let _ = poll(&mut [PollFd::new(&stdin, events)], pause.as_ref());
        }
        drop(open);
    };
    std::thread::Builder::new().stack_size(64 << 10).spawn(read)?;
    Ok(end)
}

/// Prints as far as there is room within `patience`. Who cancels while there is none gets the exit
/// code of that, and a line that is not whole.
fn print(
    mut text: &[u8],
    patience: Duration,
    watch: &Watch,
    leash: &std::io::Result<Option<PipeReader>>,
) -> Option<u8> {
    let until = now() + patience;
    loop {
        let left = until.saturating_sub(now());
        text = bounded_write::write(std::io::stdout(), text, left.min(PULSE));
        if text.is_empty() || left.is_zero() {
            return None;
        }
        let by_signal = watch.came().find_map(signals::cancelling).map(|number| 128 + number);
        let released = leash.as_ref().ok().and_then(Option::as_ref).is_some_and(has_ended);
        if let Some(exit) = by_signal.or(released.then_some(RELEASED)) {
            return Some(exit);
        }
    }
}

/// Whether the leash has ended.
fn has_ended(leash: &PipeReader) -> bool {
    poll(&mut [PollFd::new(leash, PollFlags::IN)], Some(&timespec(Duration::ZERO)))
        .is_ok_and(|ready| ready > 0)
}

/// What a process is after the fork.
enum Half {
    Guard(Watch, Wake, Inner),
    Inner(CancelSource),
}

/// Starts the inner host. It goes into a session of its own, so that a signal to the caller's group
/// reaches the guard alone and is handed on once.
fn start(watch: Watch) -> std::io::Result<Half> {
    let guard = getpid();
    let wake = watch.wake()?;
    let null = File::open("/dev/null")?;
    let (read, write) = std::io::pipe()?;
    if let Some(pid) = launch::fork()? {
        let inner = Inner {
            pid,
            stdout: Some(read),
            said: Vec::new(),
            announced: None,
            group: None,
            pending: Vec::new(),
        };
        return Ok(Half::Guard(watch, wake, inner));
    }
    drop(wake);
    rustix::stdio::dup2_stdin(null)?;
    rustix::stdio::dup2_stdout(write)?;
    // Nothing runs yet: a guard that has ended already is followed.
    if !launch::bind_to(guard, Signal::USR2) {
        return Err(std::io::Error::other("the guard has ended"));
    }
    // Out of reach of the terminal's signals, which the guard hands on; and where the system
    // shares processors by session, no less a share than an engine's daemons have.
    let _ = setsid();
    CancelSource::open(watch, guard).map(Half::Inner)
}

impl Inner {
    /// Until the inner host has ended and all that it said is read; false if it took too long.
    fn attend(
        &mut self,
        watch: &Watch,
        mut wake: &PipeReader,
        leash: &mut Option<PipeReader>,
        began: Duration,
    ) -> bool {
        let mut noticed = false;
        let (mut overtime, mut turned) = (OVERTIME, began);
        loop {
            self.pending.extend(watch.came());
            self.hand_on();
            if self.has_exited() {
                while self.said.len() <= MAX_SAID && self.read(Duration::ZERO) {}
                return true;
            }
            let announced = self.announced.as_ref();
            let deadline = announced.map_or(began + UNANNOUNCED, |told| told.deadline);
            let asked = now();
            let late = asked >= deadline;
            if late {
                overtime = overtime.saturating_sub(PULSE.min(asked.saturating_sub(turned)));
            }
            turned = asked;
            if late && overtime.is_zero() || self.said.len() > MAX_SAID {
                return false;
            }
            let mut left = if late { PULSE.min(overtime) } else { deadline.saturating_sub(asked) };
            match announced {
                Some(told) if !noticed && asked >= began + NOTICE => {
                    noticed = true;
                    notice(&told.shown);
                }
                Some(_) if !noticed => left = left.min((began + NOTICE).saturating_sub(asked)),
                _ => {}
            }
            let mut fds = vec![PollFd::new(wake, PollFlags::IN)];
            let out = self.stdout.as_ref().map(|out| PollFd::new(out, PollFlags::IN));
            fds.extend(out);
            fds.extend(leash.as_ref().map(|leash| PollFd::new(leash, PollFlags::IN)));
            // An interrupted or failed poll is no event; the loop looks at everything again.
            let polled = poll(&mut fds, Some(&timespec(left)));
            if polled.is_err() {
                continue;
            }
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready[0] {
                // It can be read, so this does not block; what does not fit wakes again.
                let _ = wake.read(&mut [0; 64]);
            }
            if leash.is_some() && ready.last() == Some(&true) {
                *leash = None;
                self.pending.push(signals::LEASH);
            }
            if self.stdout.is_some() && ready[1] {
                self.read(Duration::ZERO);
            }
        }
    }

    /// Hands signals on to the inner host, not before it has said that it can take them.
    fn hand_on(&mut self) {
        if self.announced.is_some() {
            for signal in self.pending.drain(..).filter_map(Signal::from_named_raw) {
                let _ = kill_process(self.pid, signal);
            }
        }
    }

    fn has_exited(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.pid), look), Ok(None) | Err(Errno::INTR))
    }

    /// Reads once, if there is something within `patience`; false when there is no more.
    fn read(&mut self, patience: Duration) -> bool {
        let Some(stdout) = &mut self.stdout else { return false };
        let mut fds = [PollFd::new(stdout, PollFlags::IN)];
        if !poll(&mut fds, Some(&timespec(patience))).is_ok_and(|ready| ready > 0) {
            return false;
        }
        let mut bytes = [0; 4096];
        match stdout.read(&mut bytes) {
            Ok(read @ 1..) => self.said.extend_from_slice(&bytes[..read]),
            Ok(0) | Err(_) => self.stdout = None,
        }
        // Two announcements may come in one read; the last one counts.
        while let Some(&kind @ (DEADLINE | GROUP)) = self.said.first() {
            let Some(end) = self.said.iter().position(|byte| *byte == b'\n') else { return true };
            let line: Vec<u8> = self.said.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line[1..]);
            if kind == GROUP {
                self.group = text.trim_end().parse().ok().and_then(Pid::from_raw);
            } else if let Some((at, shown)) = text.trim_end().split_once(' ') {
                let deadline = Duration::from_nanos(at.parse().unwrap_or(0));
                self.announced = Some(Announced { deadline, shown: shown.to_owned() });
            }
        }
        true
    }

    /// Whether it said something whole: one line where an engine may have run, since that engine
    /// can write to a pipe of a process of the same user.
    fn has_spoken(&self) -> bool {
        let lines = self.said.split(|byte| *byte == b'\n').count() - 1;
        let one = lines == 1 || lines > 1 && self.announced.is_none();
        one && self.said.ends_with(b"\n") && self.said.len() <= MAX_SAID
    }

    fn reap(&self, bound: Duration) -> Option<WaitIdStatus> {
        let until = Instant::now() + bound;
        loop {
            match waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_micros(50));
                }
                Err(Errno::INTR) => {}
                Ok(None) | Err(_) => return None,
            }
        }
    }
}

/// The path of this executable: by the system, else as the caller named it.
pub(in crate::host) fn own_executable(named: Option<&OsString>) -> PathBuf {
    let by_system = PathBuf::from(super::child::SELF);
    if by_system.exists() {
        return by_system;
    }
    let named = PathBuf::from(named.map_or("satyrn-host".into(), Clone::clone));
    if named.components().count() > 1 {
        return named;
    }
    #[expect(clippy::disallowed_methods, reason = "asked for before there is a snapshot")]
    let path = std::env::var_os("PATH");
    program::find(&named.to_string_lossy(), path.as_deref()).unwrap_or(named)
}
