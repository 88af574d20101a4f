//! What a scripted engine does to its own process, where only Unix has it.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{Resource, Rlimit, setrlimit, setsid};

use super::signals;

/// Another descriptor of stdin, stdout or stderr.
pub(in crate::host) fn duplicate(stream: u8) -> Result<OwnedFd, String> {
    let fd = match stream {
        0 => std::io::stdin().as_fd().try_clone_to_owned(),
        1 => std::io::stdout().as_fd().try_clone_to_owned(),
        _ => std::io::stderr().as_fd().try_clone_to_owned(),
    };
    fd.map_err(|error| error.to_string())
}

/// Says to whoever reads the other end of stdin that this process is up, and lets go of it.
pub(in crate::host) fn up() -> Result<(), String> {
    let _ = File::from(duplicate(0)?).write_all(b"u");
    close(0)
}

/// Lets go of a stream. The null device takes its number, so that no later file gets it.
pub(in crate::host) fn close(stream: u8) -> Result<(), String> {
    let null = File::options().read(true).write(true).open("/dev/null");
    let null = null.map_err(|error| error.to_string())?;
    match stream {
        0 => rustix::stdio::dup2_stdin(null),
        1 => rustix::stdio::dup2_stdout(null),
        _ => rustix::stdio::dup2_stderr(null),
    }
    .map_err(|error| error.to_string())
}

/// Leads a session of its own, out of reach of a kill of the group.
pub(in crate::host) fn lead_session() -> Result<(), String> {
    setsid().map(drop).map_err(|error| format!("no session: {error}"))
}

/// From now on the signal does not end this process. It is handled, not ignored as by `SIG_IGN`,
/// which safe code cannot set; the difference shows only in what this process would start.
pub(in crate::host) fn ignore(name: &str) -> Result<(), String> {
    let number = number(name)?;
    signal_hook::flag::register(number, Arc::new(AtomicBool::new(false)))
        .map(drop)
        .map_err(|error| format!("{name} cannot be ignored: {error}"))
}

/// Ends, or stops, this process as the signal does by default; no core is dumped.
pub(in crate::host) fn end_by(name: &str) -> Result<(), String> {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let _ = setrlimit(Resource::Core, none);
    signal_hook::low_level::emulate_default_handler(number(name)?)
        .map_err(|error| format!("{name}: {error}"))
}

fn number(name: &str) -> Result<i32, String> {
    signals::number(name).ok_or_else(|| format!("this system has no {name}"))
}
