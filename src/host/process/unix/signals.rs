//! Unix: signals by name, which of them this process was born ignoring, and how a process of ours
//! hears of those that reach it.

use std::io::{PipeReader, PipeWriter, Read};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
#[cfg(not(target_os = "linux"))]
use std::time::Duration;

use rustix::process::{Pid, getppid};
use signal_hook::consts::{SIGCHLD, SIGPIPE, SIGXFSZ};
use signal_hook::flag;
use signal_hook::low_level::pipe;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Notify;

use crate::host::exchange::cancel::Cancel;
use crate::host::exchange::observation::CancelledBy;

/// The signals that cancel an exchange, with the names that the verdict gives them.
pub(super) const CANCELLING: [(i32, u8, &str); 3] = [
    (signal_hook::consts::SIGINT, 2, "SIGINT"),
    (signal_hook::consts::SIGTERM, 15, "SIGTERM"),
    (signal_hook::consts::SIGHUP, 1, "SIGHUP"),
];

/// The number of a signal that cancels, as an exit code has it.
pub(super) fn cancelling(number: i32) -> Option<u8> {
    CANCELLING.iter().find(|(cancelling, ..)| *cancelling == number).map(|(_, code, _)| *code)
}

/// What the guard sends the inner host when the leash has ended.
pub(super) const LEASH: i32 = signal_hook::consts::SIGUSR1;

/// What the kernel sends the inner host when the guard has ended.
const ORPHANED: i32 = signal_hook::consts::SIGUSR2;

/// How often the inner host looks for its guard where nothing tells it.
#[cfg(not(target_os = "linux"))]
const LOOK: Duration = Duration::from_millis(50);

/// How a process of ours hears of signals: each is noted, and wakes whoever waits. One that was
/// ignored when the host started stays ignored, but for SIGCHLD.
pub(super) struct Watch {
    notes: Vec<(i32, Arc<AtomicBool>)>,
}

impl Watch {
    /// From here on the signals that cancel are noted. A fork inherits that, and no more.
    pub(super) fn begin() -> std::io::Result<Self> {
        // Handled also because every wait would fail where the caller has it ignored.
        flag::register(SIGCHLD, Arc::default())?;
        // A stdout that may not grow is a stdout without room, and no reason to die.
        flag::register(SIGXFSZ, Arc::default())?;
        let mut watch = Self { notes: Vec::new() };
        let heard = CANCELLING.iter().filter(|(number, ..)| !ignored().contains(number));
        heard.map(|(number, ..)| *number).try_for_each(|number| watch.note(number))?;
        Ok(watch)
    }

    fn note(&mut self, number: i32) -> std::io::Result<()> {
        let came = Arc::new(AtomicBool::new(false));
        flag::register(number, Arc::clone(&came))?;
        self.notes.push((number, came));
        Ok(())
    }

    /// Everything that [`Wake::arm`] needs of the system.
    pub(super) fn wake(&self) -> std::io::Result<Wake> {
        let (stream, write) = std::io::pipe()?;
        let mut writers = Vec::with_capacity(1 + self.notes.len());
        for (number, _) in &self.notes {
            writers.push((*number, write.try_clone()?));
        }
        writers.push((SIGCHLD, write));
        Ok(Wake { stream, writers })
    }

    /// The signals that came since the last call.
    pub(super) fn came(&self) -> impl Iterator<Item = i32> {
        let came = self.notes.iter().filter(|(_, came)| came.swap(false, Ordering::SeqCst));
        came.map(|(number, _)| *number)
    }
}

/// What wakes a process that waits. Each has its own, since a fork shares the stream.
pub(super) struct Wake {
    stream: PipeReader,
    writers: Vec<(i32, PipeWriter)>,
}

impl Wake {
    /// The stream can be read once a signal has been noted, or a child has changed, from now on.
    pub(super) fn arm(self) -> std::io::Result<PipeReader> {
        for (number, write) in self.writers {
            pipe::register(number, write)?;
        }
        Ok(self.stream)
    }
}

/// Is told whenever a child of this process may have changed.
pub(super) static CHANGED: Notify = Notify::const_new();

/// The inner host's source. Nothing that is said once they are open is lost, though it is acted on
/// only when somebody listens.
pub(in crate::host) struct CancelSource {
    watch: Watch,
    wake: PipeReader,
    guard: Pid,
    /// Whether there is nothing yet that this process must end before itself.
    alone: Arc<AtomicBool>,
}

impl CancelSource {
    /// The source of a process that `guard` started and that inherited its `watch`.
    pub(super) fn open(mut watch: Watch, guard: Pid) -> std::io::Result<Self> {
        // What came before the fork was noted by both, and the guard hands it on.
        watch.came().for_each(drop);
        watch.note(LEASH)?;
        watch.note(ORPHANED)?;
        let wake = watch.wake()?.arm()?;
        let alone = Arc::new(AtomicBool::new(true));
        flag::register_conditional_default(ORPHANED, Arc::clone(&alone))?;
        Ok(Self { watch, wake, guard, alone })
    }

    /// From here on the end of the guard is no longer the end of this process at once, which may be
    /// about to start something. Until then it may wait for a disk, and nobody would end it.
    pub(in crate::host) fn defer_parent_death(&self) {
        self.alone.store(false, Ordering::SeqCst);
    }

    /// Turns what is heard into a cancellation, for as long as the runtime runs. The leash is read
    /// by the guard, which hands its end on as a signal.
    ///
    /// # Errors
    /// The runtime cannot wait for the stream.
    pub(in crate::host) fn forward_cancels(
        self,
        cancel: Cancel,
        leash: bool,
    ) -> std::io::Result<()> {
        let Self { watch, wake, guard, .. } = self;
        let mut wake = Receiver::from_owned_fd(OwnedFd::from(wake))?;
        tokio::spawn(async move {
            let mut bytes = [0; 64];
            let mut gone = pin!(end_of(guard));
            let mut orphaned = false;
            loop {
                for number in watch.came() {
                    match CANCELLING.iter().find(|(cancelling, ..)| *cancelling == number) {
                        Some((_, code, name)) => cancel.ask(CancelledBy::Signal(*code, name)),
                        None if number == LEASH && leash => cancel.ask(CancelledBy::Leash),
                        None => {}
                    }
                }
                if orphaned || getppid() != Some(guard) {
                    // Nobody is left to hear the verdict; what counts is that nothing stays.
                    cancel.ask(CancelledBy::Leash);
                    cancel.ask(CancelledBy::Leash);
                }
                CHANGED.notify_waiters();
                tokio::select! {
                    _ = wake.read(&mut bytes) => {}
                    () = &mut gone, if !orphaned => orphaned = true,
                }
            }
        });
        Ok(())
    }
}

/// Never; the kernel says it with [`ORPHANED`].
#[cfg(target_os = "linux")]
async fn end_of(_guard: Pid) {
    std::future::pending::<()>().await;
}

/// Until the guard has ended.
#[cfg(not(target_os = "linux"))]
async fn end_of(guard: Pid) {
    use nix::sys::event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue};
    let watch = || -> std::io::Result<Receiver> {
        let (queue, pid) = (Kqueue::new()?, guard.as_raw_nonzero().get().unsigned_abs() as usize);
        let (once, exit) = (EvFlags::EV_ADD | EvFlags::EV_ONESHOT, FilterFlag::NOTE_EXIT);
        let end = KEvent::new(pid, EventFilter::EVFILT_PROC, once, exit, 0, 0);
        queue.kevent(&[end], &mut [], None)?;
        // It is no pipe, and is never read: it is only waited for.
        Receiver::from_owned_fd_unchecked(OwnedFd::from(queue))
    };
    if let Ok(queue) = watch()
        && queue.readable().await.is_ok()
    {
        return;
    }
    // There is no room for a queue, or the guard had gone before it was asked for.
    while getppid() == Some(guard) {
        tokio::time::sleep(LOOK).await;
    }
}

/// `SIGKILL` for 9; `signal 34` where there is no name.
pub(super) fn name(number: i32) -> String {
    signal_hook::low_level::signal_name(number)
        .map_or_else(|| format!("signal {number}"), str::to_owned)
}

/// The number of a signal on this system; the inverse of [`name`].
pub(super) fn number(of: &str) -> Option<i32> {
    (1..32).find(|number| name(*number) == of)
}

/// Unblocks every signal: a mask is inherited through fork and exec, and with SIGCHLD blocked no
/// end of a process would ever be noticed.
pub(super) fn unblock() {
    let _ = nix::sys::signal::SigSet::empty().thread_set_mask();
}

/// The signals that this process, or the one that it was forked from, was born ignoring, as far as
/// the system tells.
pub(super) fn ignored() -> &'static [i32] {
    static IGNORED: OnceLock<Vec<i32>> = OnceLock::new();
    IGNORED.get_or_init(|| {
        const STATUS: &str = "/proc/self/status";
        // One read is enough, but for who is in hundreds of groups.
        let mut start = [0; 4096];
        let read = std::fs::File::open(STATUS).and_then(|mut file| file.read(&mut start));
        match read.unwrap_or(0) {
            read if read < start.len() => mask(&String::from_utf8_lossy(&start[..read])),
            _ => mask(&String::from_utf8_lossy(&std::fs::read(STATUS).unwrap_or_default())),
        }
    })
}

/// Has what is started from here on find every signal at its default. One that is ignored stays
/// ignored across an exec, a handled one does not: so they are handled, by doing nothing.
pub(super) fn reset_ignored() {
    // Those of faults stay as they are: no library lets safe code handle them.
    // SIGPIPE is ignored by Rust's own start, also where the system does not tell.
    let all = ignored().iter().chain(&[SIGPIPE]);
    for signal in all.filter(|signal| !signal_hook::consts::FORBIDDEN.contains(signal)) {
        let _ = signal_hook::flag::register(*signal, Arc::new(AtomicBool::new(false)));
    }
}

/// Has the signals that ask for an end, and that the host handles, end this fork of it.
pub(super) fn end_as_by_default() {
    for (signal, ..) in CANCELLING {
        let always = Arc::new(AtomicBool::new(true));
        let _ = signal_hook::flag::register_conditional_default(signal, always);
    }
}

/// Reads the `SigIgn` line: a hexadecimal mask, signal 1 the lowest bit.
fn mask(status: &str) -> Vec<i32> {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bits = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (1..=64).filter(|signal| bits >> (signal - 1) & 1 == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks() {
        assert_eq!(mask("Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\tffff\n"), [1, 13]);
        assert_eq!(mask("SigIgn:\t8000000000000000\n"), [64]);
        assert!(mask("SigIgn:\tnonsense\n").is_empty());
        assert!(mask("").is_empty());
    }

    #[test]
    fn names() {
        assert_eq!(name(9), "SIGKILL");
        assert_eq!((number("SIGKILL"), number("KILL")), (Some(9), None));
        assert_eq!(name(40), "signal 40");
    }
}
