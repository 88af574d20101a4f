//! Unix: signals by name, and which of them this process was born ignoring.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::Signal;

use crate::host::observation::Cancel;

/// The signals that cancel an exchange, with the names that the verdict gives them.
pub(in crate::host) const CANCELLING: [(i32, u8, &str); 3] = [
    (signal_hook::consts::SIGINT, 2, "SIGINT"),
    (signal_hook::consts::SIGTERM, 15, "SIGTERM"),
    (signal_hook::consts::SIGHUP, 1, "SIGHUP"),
];

/// What the guard sends the inner host when the leash has ended.
pub(in crate::host) const LEASH: i32 = signal_hook::consts::SIGUSR1;

/// What the kernel sends the inner host when the guard has ended.
pub(in crate::host) const ORPHANED: i32 = signal_hook::consts::SIGUSR2;

/// What a signal that the guard takes, or has for the inner host, asks for.
pub(super) fn cancel(signal: Signal) -> Cancel {
    let known = CANCELLING.into_iter().find(|(number, ..)| *number == signal.as_raw());
    known.map_or(Cancel::Leash, |(_, code, name)| Cancel::Signal(code, name))
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

/// The signals that are ignored, as far as the system tells.
pub(in crate::host) fn ignored() -> Vec<i32> {
    // One read: the system makes the text anew for each open, and it is shorter than this.
    let mut status = [0; 4096];
    let read = std::fs::File::open("/proc/self/status").and_then(|mut file| file.read(&mut status));
    mask(&String::from_utf8_lossy(&status[..read.unwrap_or(0)]))
}

/// Has what is started from here on find every signal at its default. One that is ignored stays
/// ignored across an exec, a handled one does not: so they are handled, by doing nothing.
pub(in crate::host) fn reset_ignored() {
    for signal in ignored() {
        let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
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
