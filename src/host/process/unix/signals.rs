//! Unix: signals by name, which of them this process was born ignoring, and how a process of ours
//! hears of those that reach it.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGCHLD, SIGPIPE, SIGXFSZ};
use signal_hook::flag;

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

/// What the supervisor sends the worker when the stdin lifeline has ended.
pub(super) const LIFELINE: i32 = signal_hook::consts::SIGUSR1;

/// What the kernel sends the worker when the supervisor has ended.
pub(super) const ORPHANED: i32 = signal_hook::consts::SIGUSR2;

/// Signals that wait to be read, instead of interrupting: those that cancel, and those that this process
/// has reasons of its own to hear.
pub(super) struct Signals(queue::Queue);

impl Signals {
    /// From here on the signals that cancel, the end of a child, and `others` wait to be read.
    pub(super) fn queue(others: &[i32]) -> std::io::Result<Self> {
        let cancelling = CANCELLING.iter().map(|(number, ..)| *number);
        // Elsewhere a signal that is to be heard is no longer ignored.
        let cancelling = cancelling.filter(|number| cfg!(target_os = "linux") || is_heard(*number));
        // A stdout that may not grow is a stdout without room, and no reason to die.
        let numbers: Vec<i32> =
            cancelling.chain([SIGCHLD, SIGXFSZ]).chain(others.iter().copied()).collect();
        // Every wait would fail where the caller has it ignored; a handler undoes that.
        flag::register(SIGCHLD, Arc::default())?;
        queue::Queue::new(&numbers).map(Self)
    }

    /// The same in a process that was forked since, which has heard nothing yet.
    ///
    /// # Errors
    /// The system has no room.
    pub(super) fn in_a_fork(self) -> std::io::Result<Self> {
        self.0.in_a_fork().map(Self)
    }

    /// The signals that came since the last call.
    pub(super) fn came(&self) -> impl Iterator<Item = i32> {
        self.0.came().filter(|number| is_heard(*number))
    }

    /// The signals that came, of whom these bytes were read.
    pub(super) fn came_in(&self, bytes: &[u8]) -> impl Iterator<Item = i32> {
        self.0.came_in(bytes).filter(|number| is_heard(*number))
    }

    /// Hears one more.
    pub(super) fn hear(&self, number: i32) -> std::io::Result<()> {
        self.0.hear(number)
    }
}

/// Whether a signal means anything here: one that was ignored when the host started stays ignored.
/// That is asked when it comes, since it costs more than all else about signals.
fn is_heard(number: i32) -> bool {
    cancelling(number).is_none() || !ignored().is_some_and(|ignored| ignored.contains(number))
}

/// It can be read when a signal has come.
impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Linux: the signals are blocked, and the kernel lists them in a descriptor. No handler runs, so
/// that a fork has nothing to undo but the mask.
#[cfg(target_os = "linux")]
mod queue {
    use std::os::fd::{AsFd, BorrowedFd};

    use nix::sys::signal::{SigSet, Signal};
    use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};

    pub(super) struct Queue(SignalFd);

    impl Queue {
        pub(super) fn new(numbers: &[i32]) -> std::io::Result<Self> {
            let set: SigSet =
                numbers.iter().filter_map(|number| Signal::try_from(*number).ok()).collect();
            // Whatever else the caller has blocked is unblocked.
            set.thread_set_mask()?;
            let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
            Ok(Self(SignalFd::with_flags(&set, flags)?))
        }

        /// The descriptor lists the signals of whoever reads it.
        #[expect(clippy::unnecessary_wraps, reason = "elsewhere there is more to do")]
        pub(super) fn in_a_fork(self) -> std::io::Result<Self> {
            Ok(self)
        }

        pub(super) fn came(&self) -> impl Iterator<Item = i32> {
            let next = || self.0.read_signal().ok().flatten();
            std::iter::from_fn(next).filter_map(|came| i32::try_from(came.ssi_signo).ok())
        }

        #[expect(clippy::unused_self, reason = "elsewhere the bytes say nothing")]
        pub(super) fn came_in(&self, bytes: &[u8]) -> impl Iterator<Item = i32> {
            let records = bytes.chunks_exact(size_of::<siginfo>());
            records.filter_map(|record| Some(i32::from_ne_bytes(*record.first_chunk()?)))
        }

        pub(super) fn hear(&self, number: i32) -> std::io::Result<()> {
            let mut set = SigSet::thread_get_mask()?;
            set.add(Signal::try_from(number)?);
            set.thread_set_mask()?;
            Ok(self.0.set_mask(&set)?)
        }
    }

    impl AsFd for Queue {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }
}

/// Elsewhere handlers note the signals and write to a pipe.
#[cfg(not(target_os = "linux"))]
mod queue {
    use std::io::{PipeReader, PipeWriter, Read, pipe};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, PoisonError};

    pub(super) struct Queue {
        notes: Mutex<Vec<(i32, Arc<AtomicBool>)>>,
        wake: PipeReader,
        waker: PipeWriter,
    }

    impl Queue {
        pub(super) fn new(numbers: &[i32]) -> std::io::Result<Self> {
            super::unblock();
            let (wake, waker) = pipe()?;
            rustix::io::ioctl_fionbio(&wake, true)?;
            let queue = Self { notes: Mutex::default(), wake, waker };
            numbers.iter().try_for_each(|number| queue.hear(*number))?;
            Ok(queue)
        }

        /// Both processes would read from one pipe. What came early is noted already.
        pub(super) fn in_a_fork(self) -> std::io::Result<Self> {
            let (wake, waker) = pipe()?;
            rustix::io::ioctl_fionbio(&wake, true)?;
            let queue = Self { wake, waker, ..self };
            let notes = queue.notes.lock().unwrap_or_else(PoisonError::into_inner);
            for (number, _) in &*notes {
                signal_hook::low_level::pipe::register(*number, queue.waker.try_clone()?)?;
            }
            drop(notes);
            Ok(queue)
        }

        pub(super) fn came(&self) -> impl Iterator<Item = i32> {
            while (&self.wake).read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
            let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
            let came = notes.iter().filter(|(_, came)| came.swap(false, Ordering::SeqCst));
            came.map(|(number, _)| *number).collect::<Vec<_>>().into_iter()
        }

        pub(super) fn came_in(&self, _: &[u8]) -> impl Iterator<Item = i32> {
            self.came()
        }

        pub(super) fn hear(&self, number: i32) -> std::io::Result<()> {
            let came = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(number, Arc::clone(&came))?;
            signal_hook::low_level::pipe::register(number, self.waker.try_clone()?)?;
            self.notes.lock().unwrap_or_else(PoisonError::into_inner).push((number, came));
            Ok(())
        }
    }

    impl AsFd for Queue {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.wake.as_fd()
        }
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

/// Unblocks every signal: a mask is inherited through fork and exec.
pub(in crate::host) fn unblock() {
    let _ = nix::sys::signal::SigSet::empty().thread_set_mask();
}

/// A set of signals as the system writes it: signal 1 is the lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Set(pub(super) u64);

impl Set {
    pub(super) fn contains(self, number: i32) -> bool {
        self.numbers().any(|found| found == number)
    }

    fn numbers(self) -> impl Iterator<Item = i32> {
        (1..=64).filter(move |number| self.0 >> (number - 1) & 1 == 1)
    }
}

/// What this process was born ignoring, once somebody has asked or told.
static IGNORED: OnceLock<Option<Set>> = OnceLock::new();

/// The signals that this process, or the one that it was forked from, was born ignoring; `None` where
/// the system does not tell.
pub(super) fn ignored() -> Option<Set> {
    *IGNORED.get_or_init(|| {
        const STATUS: &str = "/proc/self/status";
        // One read is enough, but for who is in hundreds of groups.
        let mut start = [0; 4096];
        let read = std::fs::File::open(STATUS).and_then(|mut file| file.read(&mut start)).ok()?;
        if read < start.len() {
            return mask(&String::from_utf8_lossy(&start[..read]));
        }
        mask(&String::from_utf8_lossy(&std::fs::read(STATUS).ok()?))
    })
}

/// Tells this process what its parent was born ignoring, which had the time to ask.
pub(super) fn learn_ignored(ignored: Option<Set>) {
    let _ = IGNORED.set(ignored);
}

/// Has what is started from here on find every signal at its default. One that is ignored stays
/// ignored across an exec, a handled one does not: so they are handled, by doing nothing.
pub(super) fn reset_ignored() {
    // Those of faults stay as they are: no library lets safe code handle them.
    // SIGPIPE is ignored by Rust's own start, also where the system does not tell.
    let all = ignored().into_iter().flat_map(Set::numbers).chain([SIGPIPE]);
    for signal in all.filter(|signal| !signal_hook::consts::FORBIDDEN.contains(signal)) {
        let _ = flag::register(signal, Arc::new(AtomicBool::new(false)));
    }
}

/// Reads the `SigIgn` line: a hexadecimal mask.
fn mask(status: &str) -> Option<Set> {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(line.trim(), 16).ok().map(Set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks() {
        let status = "Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\tffff\n";
        assert_eq!(mask(status), Some(Set(0x1001)));
        assert_eq!(mask("SigIgn:\t8000000000000000\n"), Some(Set(1 << 63)));
        assert_eq!(Set(1 << 63 | 0x1001).numbers().collect::<Vec<_>>(), [1, 13, 64]);
        assert!(Set(0x1001).contains(13) && !Set(0x1001).contains(12));
        assert_eq!(mask("SigIgn:\tnonsense\n"), None);
        assert_eq!(mask(""), None);
    }

    #[test]
    fn names() {
        assert_eq!(name(9), "SIGKILL");
        assert_eq!((number("SIGKILL"), number("KILL")), (Some(9), None));
        assert_eq!(name(40), "signal 40");
    }
}
