//! What the runner of drills does to the hosts that it starts, and how it looks for what they left.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::{Pid, Signal, kill_process};

use super::signals;

/// A signal that asked the runner to stop. It then ends its hosts and clears up, which it cannot do
/// for a second one: that ends it at once, and its hosts by their stdin lifelines.
#[derive(Clone, Default)]
pub(in crate::host) struct Stop(Arc<AtomicUsize>);

impl Stop {
    /// The signal's number, once one has come.
    pub(in crate::host) fn asked(&self) -> Option<u8> {
        u8::try_from(self.0.load(Ordering::Relaxed)).ok().filter(|number| *number > 0)
    }
}

/// Before the first host. A signal that this process was born ignoring stays ignored by it. A drill
/// sends signals; a host does not take one that it was born ignoring.
pub(in crate::host) fn prepare() -> Stop {
    let (stop, ignored) = (Stop::default(), signals::ignored());
    let again = Arc::new(AtomicBool::new(false));
    for (number, code, _) in signals::CANCELLING {
        if !ignored.is_some_and(|ignored| ignored.contains(number)) {
            use signal_hook::flag::{register, register_conditional_default, register_usize};
            // In this order: the first signal only arms the second one.
            let _ = register_conditional_default(number, again.clone());
            let _ = register(number, again.clone());
            let _ = register_usize(number, stop.0.clone(), usize::from(code));
        }
    }
    signals::reset_ignored();
    stop
}

/// A directory's path as its processes see it: without links.
pub(in crate::host) fn plain(dir: &Path) -> std::io::Result<PathBuf> {
    dir.canonicalize()
}

/// Sends a signal, by its name.
pub(in crate::host) fn send(pid: u32, name: &str) -> Result<(), String> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("no such process")?;
    let signal = signals::number(name)
        .and_then(Signal::from_named_raw)
        .ok_or_else(|| format!("this system has no {name}"))?;
    kill_process(pid, signal).map_err(|error| format!("cannot send {name}: {error}"))
}

/// The worker of a supervisor: its only child.
pub(in crate::host) fn worker(supervisor: u32) -> Option<u32> {
    let list =
        std::fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children")).ok()?;
    list.split_ascii_whitespace().next()?.parse().ok()
}

/// The command lines of all processes that run in a directory; `None` where the system does not
/// tell. One that has ended and waits to be reaped does not run. The working directory of a host,
/// which is not dumpable, is hidden from everybody but root; its command line names the directory.
pub(in crate::host) fn running_in(dir: &Path) -> Option<Vec<String>> {
    let name = dir.as_os_str().as_bytes();
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").ok()?.flatten() {
        let path = process.path();
        let here = match std::fs::read_link(path.join("cwd")) {
            Ok(cwd) => cwd == dir,
            Err(_) => std::fs::read(path.join("cmdline"))
                .is_ok_and(|line| line.windows(name.len()).any(|part| part == name)),
        };
        let pid = process.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(pid) = pid.and_then(Pid::from_raw).filter(|pid| here && is_running(*pid)) else {
            continue;
        };
        let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        found.push(format!("{} {}", pid.as_raw_nonzero(), line.trim_end()));
    }
    Some(found)
}

/// Whether `/proc` tells the children of a process.
pub(in crate::host) fn has_proc() -> bool {
    let own = std::process::id();
    Path::new(&format!("/proc/{own}/task/{own}/children")).exists()
}

/// The name of the signal that ended a process.
pub(in crate::host) fn ended_by(status: ExitStatus) -> Option<String> {
    use std::os::unix::process::ExitStatusExt;
    status.signal().map(signals::name)
}

/// Whether a process of anybody runs: one that has ended and waits to be reaped does not.
fn is_running(pid: Pid) -> bool {
    std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).is_ok_and(|stat| is_alive(&stat))
}

/// By the line that `/proc` has of a process. Its name, in parentheses, may hold any bytes; the
/// words after it begin with the state, and the number of its threads is the eighteenth. One whose
/// first thread has ended before the others looks like one that has ended.
fn is_alive(stat: &[u8]) -> bool {
    let Some(end) = stat.iter().rposition(|byte| *byte == b')') else { return false };
    let rest = String::from_utf8_lossy(&stat[end + 1..]);
    let mut words = rest.split_ascii_whitespace();
    match words.next() {
        Some("Z") => words.nth(16).and_then(|threads| threads.parse().ok()).unwrap_or(1) > 1,
        state => state.is_some_and(|state| state != "X"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_runs() {
        let line = |name: &[u8], state: &str, threads: &str| {
            let rest = format!(") {state} 1 2 3 0 -1 4 5 6 7 8 9 10 11 12 20 0 {threads} 0 99");
            [b"7 (", name, rest.as_bytes()].concat()
        };
        for (stat, expected) in [
            (line(b"sh", "S", "1"), true),
            (line(b"sh", "R", "9"), true),
            (line(b"sh", "Z", "1"), false),
            (line(b"sh", "Z", "2"), true),
            (line(b"sh", "X", "1"), false),
            (line(b"a) Z 1 (", "S", "1"), true),
            (line(b"m\xc3\xb6p\xff", "S", "1"), true),
            (b"7 (sh) Z".to_vec(), false),
            (b"".to_vec(), false),
        ] {
            assert_eq!(is_alive(&stat), expected, "{}", String::from_utf8_lossy(&stat));
        }
    }

    #[test]
    fn this_process_runs() {
        assert!(is_running(rustix::process::getpid()));
    }
}
