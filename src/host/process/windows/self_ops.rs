//! What a scripted engine does to its own process, as far as Windows has it.

use std::os::windows::io::{AsHandle, OwnedHandle};

/// Another handle of stdin, stdout or stderr.
pub(in crate::host) fn duplicate(stream: u8) -> Result<OwnedHandle, String> {
    let handle = match stream {
        0 => std::io::stdin().as_handle().try_clone_to_owned(),
        1 => std::io::stdout().as_handle().try_clone_to_owned(),
        _ => std::io::stderr().as_handle().try_clone_to_owned(),
    };
    handle.map_err(|error| error.to_string())
}

/// Says to whoever reads the other end of stdin that this process is up. The stream itself stays:
/// safe code cannot close it here.
pub(in crate::host) fn up() -> Result<(), String> {
    use std::io::Write;
    let _ = std::fs::File::from(duplicate(0)?).write_all(b"u");
    Ok(())
}

/// The steps that need Unix; the runner skips their drills.
pub(in crate::host) fn close(_: u8) -> Result<(), String> {
    Err("safe code closes no stream on Windows".to_owned())
}

pub(in crate::host) fn lead_session() -> Result<(), String> {
    Err("this system has no sessions".to_owned())
}

pub(in crate::host) fn ignore(name: &str) -> Result<(), String> {
    Err(format!("this system has no {name}"))
}

pub(in crate::host) fn end_by(name: &str) -> Result<(), String> {
    ignore(name)
}
