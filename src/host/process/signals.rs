//! Unix: signals by name, which of them this process was born ignoring, and what becomes of those
//! that reach the host.

use std::io::Read;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, getppid};
use tokio::signal::unix::{SignalKind, signal};

use crate::host::exchange::Cancellation;
use crate::host::observation::Cancel;

/// The signals that cancel an exchange, with the names that the verdict gives them.
pub(super) const CANCELLING: [(i32, u8, &str); 3] = [
    (signal_hook::consts::SIGINT, 2, "SIGINT"),
    (signal_hook::consts::SIGTERM, 15, "SIGTERM"),
    (signal_hook::consts::SIGHUP, 1, "SIGHUP"),
];

/// What the guard sends the inner host when the leash has ended.
const LEASH: i32 = signal_hook::consts::SIGUSR1;

/// What the kernel sends the inner host when the guard has ended.
const ORPHANED: i32 = signal_hook::consts::SIGUSR2;

/// The process that started the inner host.
pub(super) static GUARD: OnceLock<Pid> = OnceLock::new();

/// How often the inner host looks for its guard where the kernel does not tell it.
const LOOK: Duration = Duration::from_millis(50);

/// Turns signals into a cancellation. One that was ignored when the host started stays ignored. The
/// leash is read by the guard, which hands its end on as a signal.
pub(in crate::host) fn listen(cancel: &Cancellation, guarded: bool, _leash: bool) {
    let ignored = ignored();
    let on = |number: i32, by: Cancel, at_once: bool| {
        let cancel = cancel.clone();
        let Ok(mut signals) = signal(SignalKind::from_raw(number)) else { return };
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                cancel.cancel(by.clone());
                if at_once {
                    cancel.cancel(by.clone());
                }
            }
        });
    };
    for (number, code, name) in CANCELLING {
        if !ignored.contains(&number) {
            on(number, Cancel::Signal(code, name), false);
        }
    }
    on(LEASH, Cancel::Leash, false);
    // Nobody is left to hear the verdict; what counts is that nothing stays.
    on(ORPHANED, Cancel::Leash, true);
    // Where the caller has that signal ignored, one that came before this was lost.
    if GUARD.get().is_some_and(|guard| getppid() != Some(*guard)) {
        cancel.cancel(Cancel::Leash);
        cancel.cancel(Cancel::Leash);
    }
    if guarded && !cfg!(target_os = "linux") {
        let (guard, cancel) = (getppid(), cancel.clone());
        tokio::spawn(async move {
            while getppid() == guard && guard != Some(Pid::INIT) {
                tokio::time::sleep(LOOK).await;
            }
            cancel.cancel(Cancel::Leash);
            cancel.cancel(Cancel::Leash);
        });
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
        // One read: the system makes the text anew for each open, and it is shorter than this.
        let mut status = [0; 4096];
        let read =
            std::fs::File::open("/proc/self/status").and_then(|mut file| file.read(&mut status));
        mask(&String::from_utf8_lossy(&status[..read.unwrap_or(0)]))
    })
}

/// Has what is started from here on find every signal at its default. One that is ignored stays
/// ignored across an exec, a handled one does not: so they are handled, by doing nothing.
pub(super) fn reset_ignored() {
    // Those of faults stay as they are: no library lets safe code handle them.
    for signal in ignored().iter().filter(|s| !signal_hook::consts::FORBIDDEN.contains(s)) {
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
