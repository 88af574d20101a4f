//! What the runner of drills does to the hosts that it starts, and how it looks for what they left.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Ctrl-C ends the runner at once, and its hosts by their stdin lifelines.
#[derive(Clone, Default)]
pub(in crate::host) struct Stop(Option<u8>);

impl Stop {
    /// The signal's number: there never is one.
    pub(in crate::host) fn asked(&self) -> Option<u8> {
        self.0
    }
}

/// Before the first host: nothing, here.
pub(in crate::host) fn prepare() -> Stop {
    Stop::default()
}

/// A directory's path as it is. The system's own form of a path without links (`\\?\C:\`) takes
/// nothing that is joined to it with a slash.
pub(in crate::host) fn plain(dir: &Path) -> std::io::Result<PathBuf> {
    std::path::absolute(dir)
}

/// There are no signals here; the runner skips the drills that send one.
pub(in crate::host) fn send(_: u32, name: &str) -> Result<(), String> {
    Err(format!("this system has no {name}"))
}

/// The host is one process.
pub(in crate::host) fn worker(_: u32) -> Option<u32> {
    None
}

/// Whether anything runs in a directory: it cannot be renamed as long as it is the working
/// directory of a process. Who that is, the system does not tell.
pub(in crate::host) fn running_in(dir: &Path) -> Option<Vec<String>> {
    let mut elsewhere = dir.as_os_str().to_owned();
    elsewhere.push("~");
    let free = std::fs::rename(dir, &elsewhere).is_ok();
    if free {
        std::fs::rename(&elsewhere, dir).ok()?;
    }
    Some(if free { Vec::new() } else { vec!["a process that runs there".to_owned()] })
}

/// Not on this system.
pub(in crate::host) fn has_proc() -> bool {
    false
}

/// Processes end with an exit code only.
pub(in crate::host) fn ended_by(_: ExitStatus) -> Option<String> {
    None
}
