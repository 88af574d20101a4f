//! What the runner of drills does to the hosts that it starts, and how it looks for what they left.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, kill_process};

use super::{signals, tree};

/// Before the first host. A drill sends signals; a host does not take one that it was born ignoring.
pub(in crate::host) fn prepare() {
    signals::reset_ignored();
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

/// The inner host of a guard: its only child.
pub(in crate::host) fn inner(guard: u32) -> Option<u32> {
    let list = std::fs::read_to_string(format!("/proc/{guard}/task/{guard}/children")).ok()?;
    list.split_ascii_whitespace().next()?.parse().ok()
}

/// The command lines of all processes that run in a directory; `None` where the system does not
/// tell. One that has ended and waits to be reaped does not run.
pub(in crate::host) fn running_in(dir: &Path) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").ok()?.flatten() {
        let path = process.path();
        let here = std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd == dir);
        let pid = process.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(pid) = pid.and_then(Pid::from_raw).filter(|pid| here && tree::is_running(*pid))
        else {
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
