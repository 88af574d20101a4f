//! Unix: the supervisor, which is the process that the caller started.
//!
//! It forks the worker, which runs the exchange, and watches it; the worker watches the supervisor.
//! Each is a subreaper, so whichever of the two is killed, the other one still holds the tree and
//! ends it. The supervisor alone prints, and only what a worker has said when nothing ran any more: a
//! supervisor that was killed has printed nothing, and a worker that died never becomes an
//! acceptance. It has no runtime, so that it costs next to nothing, and knows no command: what it is
//! to say of a worker that is lost is handed in.

use std::fs::File;
use std::io::{ErrorKind, IsTerminal, PipeReader, Read};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, getpid, kill_process, kill_process_group,
    setsid, waitid,
};

use super::bounded_write::{self, timespec};
use super::channel::{Decoder, Message};
use super::clock::now;
use super::signals::{self, Signals};
use super::tree::{self, Tree};
use super::{launch, worker};
use crate::host::process::{Loss, NOTICE, Output, Supervision, notice};

/// How long after the deadline the worker may take before it counts as broken. It needs 100 ms for
/// the program to end by itself, and at most 500 ms to sweep.
const OVERTIME: Duration = Duration::from_millis(750);

/// How often the supervisor looks after the deadline. No wait counts for more than it was meant to
/// last: time in which both processes were frozen is not taken from the worker's overtime.
const PULSE: Duration = Duration::from_millis(50);

/// How long the supervisor itself may sweep, and how long it waits for a worker to end.
const SWEEP: Duration = Duration::from_millis(200);

/// How long a full stdout is waited for where the deadline has passed already.
const LAST_WRITE: Duration = Duration::from_millis(50);

/// The exit code where the end of the stdin lifeline cancels: that of SIGTERM.
const RELEASED: u8 = 128 + 15;

/// Runs `work` in a worker, sees it to its end, prints what it said, and returns the exit code. In
/// the worker it returns too, with nothing left to do but to end.
pub(in crate::host) fn run(supervision: &Supervision<'_>, work: impl FnOnce() -> Output) -> u8 {
    now();
    seclude();
    match start(supervision) {
        Ok(None) => {
            // Said by the supervisor, in the form that was asked for.
            std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "defect")));
            worker::deliver(work());
            0
        }
        Ok(Some(supervisor)) => supervisor.see_to_the_end(),
        Err(error) => {
            let output = (supervision.lost)(Loss::NotStarted(error));
            bounded_write::write(std::io::stdout(), &output.stdout, LAST_WRITE);
            output.exit
        }
    }
}

/// Nobody but root may read or write this process's memory and descriptors through `/proc`, where
/// there is one.
fn seclude() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// What the supervisor knows of its worker.
struct Supervisor<'a> {
    supervision: &'a Supervision<'a>,
    worker: Pid,
    signals: Signals,
    tree: Result<Tree, String>,
    channel: Option<UnixStream>,
    decoder: Decoder,
    /// When the deadline is, by [`now`], and as a person reads it.
    deadline: (Duration, String),
    /// The program's process group, where only the worker can name it.
    group: Option<Pid>,
    result: Option<Output>,
    /// Signals that are not handed on yet.
    pending: Vec<i32>,
    lifeline: Option<PipeReader>,
}

/// How the watch over a worker ended.
enum End {
    /// It has said all that it had to say.
    Result,
    /// It has ended, or what it says is garbled.
    Lost,
    /// It did not come to its end in time.
    Late,
    /// It could not be watched.
    Unwatched,
}

/// Forks. The worker goes into a session of its own, so that a signal to the caller's group reaches
/// the supervisor alone and is handed on once.
fn start<'a>(supervision: &'a Supervision<'a>) -> Result<Option<Supervisor<'a>>, String> {
    let foreign = tree::born_with();
    // What the worker is sent is blocked before there is one: nothing that comes early is lost.
    let signals = Signals::queue(&[signals::LIFELINE])
        .map_err(|error| format!("the host cannot watch for signals: {error}"))?;
    let own_process = |error| format!("cannot start the host's own process: {error}");
    let supervisor = getpid();
    let fork = || {
        let null = File::open("/dev/null")?;
        let (near, far) = UnixStream::pair()?;
        near.set_nonblocking(true)?;
        let worker = launch::fork()?;
        if worker.is_none() {
            drop(near);
            rustix::stdio::dup2_stdin(&null)?;
            rustix::stdio::dup2_stdout(&null)?;
            // Nothing runs yet: a supervisor that has ended already is followed.
            if !launch::bind_to(supervisor, Signal::USR2) {
                return Err(std::io::Error::other("the supervisor has ended"));
            }
            // Out of reach of the terminal's signals, which the supervisor hands on; and where the
            // system shares processors by session, no less a share than a program's daemons have.
            let _ = setsid();
            return Ok(Err(far));
        }
        worker.map(|pid| Ok((pid, near))).ok_or_else(|| std::io::Error::other("no process"))
    };
    let (worker, channel) = match fork().map_err(own_process)? {
        Ok(forked) => forked,
        Err(channel) => {
            worker::begin(channel, supervisor, supervision, signals).map_err(own_process)?;
            return Ok(None);
        }
    };
    // While the worker decides what to start, which it does not before it has heard that this is
    // done. Where it fails, the worker says so in its report.
    let tree = foreign.and_then(Tree::below_this_process);
    worker::tell_ready(&channel);
    Ok(Some(Supervisor {
        supervision,
        worker,
        signals,
        tree,
        channel: Some(channel),
        decoder: Decoder::default(),
        deadline: (supervision.deadline, format!("{:?}", supervision.deadline)),
        group: None,
        result: None,
        pending: Vec::new(),
        lifeline: None,
    }))
}

impl Supervisor<'_> {
    fn see_to_the_end(mut self) -> u8 {
        let end = match self.supervision.lifeline.then(hold).transpose() {
            Ok(lifeline) => {
                self.lifeline = lifeline;
                self.attend()
            }
            Err(_) => End::Unwatched,
        };
        if let Some(output) = self.result.take() {
            // Nothing that the worker started runs any more. What it said is printed once it has
            // ended too: a reader that wakes earlier only takes the time from it.
            self.reap();
            self.sweep();
            return self.print(&output.stdout, &output.stderr).unwrap_or(output.exit);
        }
        if !matches!(end, End::Lost) {
            let _ = kill_process(self.worker, Signal::KILL);
        }
        let status = self.reap();
        // A worker without a result has not ended the group itself, so its id is still the group's.
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.sweep();
        let status = status.map(|status| (status.exit_status(), status.terminating_signal()));
        let why = match (end, status) {
            (End::Unwatched, _) => "it could not watch its own process".to_owned(),
            (End::Late, _) => "its own process did not finish in time".to_owned(),
            (_, Some((Some(exit), _))) => {
                format!("its own process ended with exit code {exit} and without a verdict")
            }
            (_, Some((_, Some(signal)))) => {
                format!("its own process was killed by {}", signals::name(signal))
            }
            (_, _) => "its own process could not be reaped".to_owned(),
        };
        let output = (self.supervision.lost)(Loss::Lost(why));
        self.print(&output.stdout, &output.stderr).unwrap_or(output.exit)
    }

    /// Until the worker has said its result, or will not say one any more.
    fn attend(&mut self) -> End {
        let began = now();
        let mut noticed = false;
        let (mut overtime, mut turned) = (OVERTIME, began);
        loop {
            self.pending.extend(self.signals.came());
            self.hand_on();
            if self.channel.is_none() || self.has_exited() {
                // What it said before its end is still there.
                while self.result.is_none() && self.read() {}
                return if self.result.is_some() { End::Result } else { End::Lost };
            }
            let deadline = self.deadline.0;
            let asked = now();
            let late = asked >= deadline;
            if late {
                overtime = overtime.saturating_sub(PULSE.min(asked.saturating_sub(turned)));
            }
            turned = asked;
            if late && overtime.is_zero() {
                return End::Late;
            }
            let mut left = if late { PULSE.min(overtime) } else { deadline.saturating_sub(asked) };
            if !noticed && asked >= began + NOTICE {
                noticed = true;
                notice(&self.deadline.1);
            } else if !noticed {
                left = left.min((began + NOTICE).saturating_sub(asked));
            }
            let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
            fds.extend(self.channel.as_ref().map(|channel| PollFd::new(channel, PollFlags::IN)));
            fds.extend(self.lifeline.as_ref().map(|line| PollFd::new(line, PollFlags::IN)));
            let polled = poll(&mut fds, Some(&timespec(left)));
            match polled {
                Err(Errno::INTR) => continue,
                // Somebody has taken the descriptors that poll may look at; what is open still works.
                Err(_) => {
                    self.read();
                    if self.result.is_some() {
                        return End::Result;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
                Ok(_) => {}
            }
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            if self.lifeline.is_some() && ready.last() == Some(&true) {
                self.lifeline = None;
                let _ = Signal::from_named_raw(signals::LIFELINE)
                    .map(|signal| kill_process(self.worker, signal));
            }
            if ready[1] {
                self.read();
                if self.result.is_some() {
                    return End::Result;
                }
            }
        }
    }

    /// Hands signals on to the worker.
    fn hand_on(&mut self) {
        let cancelling = |number: &i32| signals::cancelling(*number).is_some();
        for signal in self.pending.drain(..).filter(cancelling) {
            let _ = Signal::from_named_raw(signal).map(|signal| kill_process(self.worker, signal));
        }
    }

    fn has_exited(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.worker), look), Ok(None) | Err(Errno::INTR))
    }

    /// Reads once, without waiting; false when there is no more. What is garbled ends the channel.
    fn read(&mut self) -> bool {
        let Some(channel) = &mut self.channel else { return false };
        let mut bytes = [0; 4096];
        match channel.read(&mut bytes) {
            Ok(read @ 1..) => self.decoder.push(&bytes[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Ok(0) | Err(_) => {
                self.channel = None;
                return false;
            }
        }
        loop {
            match self.decoder.next() {
                Ok(None) => return true,
                Ok(Some(Message::Deadline(at, shown))) => self.deadline = (at, shown),
                Ok(Some(Message::Group(group))) => self.group = Pid::from_raw(group),
                Ok(Some(Message::Result(output))) => {
                    self.result = Some(output);
                    return false;
                }
                Err(_) => {
                    self.channel = None;
                    return false;
                }
            }
        }
    }

    /// Prints as far as there is room within the deadline. Who cancels while there is none gets the
    /// exit code of that, and a line that is not whole.
    fn print(&mut self, mut text: &[u8], stderr: &[u8]) -> Option<u8> {
        let until = now() + self.deadline.0.saturating_sub(now()).max(LAST_WRITE);
        loop {
            let left = until.saturating_sub(now());
            text = bounded_write::write(std::io::stdout(), text, left.min(PULSE));
            if text.is_empty() || left.is_zero() {
                break;
            }
            self.pending.extend(self.signals.came());
            let by_signal = self.pending.iter().copied().find_map(signals::cancelling);
            let released = self.lifeline.as_ref().is_some_and(has_ended);
            let by_signal = by_signal.map(|number| 128 + number);
            if let Some(exit) = by_signal.or(released.then_some(RELEASED)) {
                return Some(exit);
            }
        }
        bounded_write::write(std::io::stderr(), stderr, LAST_WRITE);
        None
    }

    /// Waits for the worker's end for a moment, then brings it about.
    fn reap(&mut self) -> Option<WaitIdStatus> {
        let (mut until, mut killed) = (now() + SWEEP, false);
        loop {
            match waitid(WaitId::Pid(self.worker), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
                Ok(Some(status)) => return Some(status),
                Err(Errno::INTR) => continue,
                Err(_) => return None,
                Ok(None) => {}
            }
            let mut left = until.saturating_sub(now());
            if left.is_zero() && killed {
                return None;
            }
            if left.is_zero() {
                let _ = kill_process(self.worker, Signal::KILL);
                (until, left, killed) = (now() + SWEEP, SWEEP, true);
            }
            // Its end is one of the signals that can be read.
            let _ = poll(&mut [PollFd::new(&self.signals, PollFlags::IN)], Some(&timespec(left)));
            self.pending.extend(self.signals.came());
        }
    }

    /// Ends what has come to this process because its own parent has ended.
    fn sweep(&self) {
        if let Ok(tree) = &self.tree {
            tree.kill_descendants(SWEEP);
        }
    }
}

/// The stdin lifeline: it can be read, to its end, once stdin has ended. A thread of its own reads stdin,
/// since others may do so too, and what was there a moment ago may be theirs now.
fn hold() -> std::io::Result<PipeReader> {
    let (end, open) = std::io::pipe()?;
    let read = move || {
        // A terminal stops whoever reads it in the background, unless the signal is blocked.
        let _ = nix::sys::signal::SigSet::all().thread_block();
        let stdin = std::io::stdin();
        // Whatever is written to the lifeline is of no interest; only its end is.
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

/// Whether the stdin lifeline has ended.
fn has_ended(lifeline: &PipeReader) -> bool {
    poll(&mut [PollFd::new(lifeline, PollFlags::IN)], Some(&timespec(Duration::ZERO)))
        .is_ok_and(|ready| ready > 0)
}
