//! Linux: the exec stub. The host starts its own executable in this role, and the stub becomes the
//! engine. Elsewhere on Unix nobody takes the role.
//!
//! It does what must be done between fork and exec and what safe code cannot do there: it ties its
//! life to the host's, resets what the host's own caller left behind, and tells a failed start
//! apart from an engine that exits. A start that blocks in the kernel blocks the stub, not the
//! host.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getppid, setsid};

use super::Role;
use super::signals;
use super::unix::SELF;
use crate::host::engines::Command;

/// The first argument of an executable in this role.
pub(super) const ROLE: &str = "__exec";

/// How long a program that is just being written is tried again.
const BUSY: Duration = Duration::from_millis(100);

/// How far a stub came before it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Entering the working directory.
    Directory,
    /// Executing the program.
    Program,
}

/// What the start channel said when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Not even that the stub was there.
    Silent,
    /// The program runs: the channel was closed by the exec.
    Done,
    /// It does not.
    Failed(Stage, Errno),
}

/// The byte with which the stub says that it holds the channel itself.
pub(super) const READY: u8 = b'R';

/// Reads everything that came over a start channel.
pub(super) fn read_start(message: &[u8]) -> Start {
    match message {
        [READY] => Start::Done,
        [READY, stage, errno @ ..] => {
            let stage = if *stage == b'D' { Stage::Directory } else { Stage::Program };
            let errno = errno.try_into().map_or(0, i32::from_le_bytes);
            Start::Failed(stage, Errno::from_raw_os_error(errno))
        }
        _ => Start::Silent,
    }
}

/// The arguments of a stub, the role first.
pub(super) fn args(host: Pid, channel: i32, command: &Command, program: &Path) -> Vec<OsString> {
    let host = host.as_raw_nonzero();
    let mut args: Vec<OsString> =
        vec![ROLE.into(), host.to_string().into(), channel.to_string().into()];
    args.extend([command.cwd.clone().into(), program.into()]);
    args.extend(command.args.iter().cloned());
    args
}

/// Runs as the stub: `args` are those after the role. Returns if this process has to be the engine
/// itself, since that one is in the same executable, or if there is none.
pub(super) fn run(args: &[OsString]) -> Role {
    let failed = Role::Done(ExitCode::FAILURE);
    let [host, channel, cwd, program, rest @ ..] = args else { return failed };
    if !bind_to(host, Signal::KILL) {
        return failed;
    }
    // The inherited descriptor has no owner here; one of our own closes itself at the exec.
    let channel = Path::new("/proc/self/fd").join(channel);
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let Ok(channel) = rustix::fs::open(channel, flags, Mode::empty()) else { return failed };
    let mut channel = File::from(channel);
    close_inherited(channel.as_raw_fd());
    // Without a terminal of its own it can neither take the caller's nor be stopped by it. The
    // session's id is that of its group and of the process.
    let _ = setsid();
    signals::reset_ignored();
    if channel.write_all(&[READY]).is_err() {
        return failed;
    }
    let (stage, errno) = match std::env::set_current_dir(cwd) {
        Err(error) => (b'D', Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        // The channel is closed here, as an exec would.
        Ok(()) if program == SELF && rest == ["protocol"] => return Role::Engine,
        Ok(()) => (b'X', exec(program, rest)),
    };
    let mut message = vec![stage];
    message.extend(errno.raw_os_error().to_le_bytes());
    let _ = channel.write_all(&message);
    failed
}

/// Has the kernel send `signal` when the parent ends, and says whether the parent is still the one
/// that started this process; it may have ended before the kernel was asked.
pub(super) fn bind_to(parent: &OsStr, signal: Signal) -> bool {
    let parent = parent.to_str().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
    follow_parent(signal) && parent.is_some() && getppid() == parent
}

#[cfg(target_os = "linux")]
fn follow_parent(signal: Signal) -> bool {
    rustix::process::set_parent_process_death_signal(Some(signal)).is_ok()
}

/// No such request here: the inner host looks for itself whether its parent is still there.
#[cfg(not(target_os = "linux"))]
fn follow_parent(_: Signal) -> bool {
    true
}

/// Executes the program itself, never through a shell. Returns why it could not.
fn exec(program: &OsStr, rest: &[OsString]) -> Errno {
    let text = |text: &OsStr| CString::new(text.as_bytes()).ok();
    let Some(path) = text(program) else { return Errno::INVAL };
    let args: Option<Vec<_>> =
        std::iter::once(program).chain(rest.iter().map(OsString::as_os_str)).map(text).collect();
    #[expect(clippy::disallowed_methods, reason = "the stub hands on the environment it was given")]
    let vars: Vec<_> = std::env::vars_os()
        .filter_map(|(mut pair, value)| {
            pair.push("=");
            pair.push(value);
            text(&pair)
        })
        .collect();
    let Some(args) = args else { return Errno::INVAL };
    let until = Instant::now() + BUSY;
    loop {
        // std's own exec would hand a file without an interpreter line to a shell.
        let Err(errno) = nix::unistd::execve(&path, &args, &vars);
        if errno != nix::errno::Errno::ETXTBSY || Instant::now() >= until {
            return Errno::from_raw_os_error(errno as i32);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Closes what the host's own caller left open. Only the three streams and the channel are ours.
fn close_inherited(channel: i32) {
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<i32> = open
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2 && *fd != channel)
        .collect();
    for fd in open {
        // The listing's own descriptor is closed by now; that this fails for it does not matter.
        let _ = nix::unistd::close(fd);
    }
}

/// The interpreter that a script names, for the words of a failed start.
pub(super) fn interpreter(program: &Path) -> Option<String> {
    let mut start = [0; 256];
    let read = File::open(program).and_then(|mut file| file.read(&mut start)).ok()?;
    let line = start[..read].split(|byte| *byte == b'\n').next()?.strip_prefix(b"#!")?;
    let text = String::from_utf8_lossy(line);
    text.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_messages() {
        let cases: [(&[u8], Start); 5] = [
            (b"", Start::Silent),
            (b"R", Start::Done),
            (b"RX\x02\0\0\0", Start::Failed(Stage::Program, Errno::NOENT)),
            (b"RD\x0d\0\0\0", Start::Failed(Stage::Directory, Errno::ACCESS)),
            (b"garbage", Start::Silent),
        ];
        for (message, expected) in cases {
            assert_eq!(read_start(message), expected, "{message:?}");
        }
    }

    #[test]
    fn interpreters_of_scripts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("script");
        for (text, expected) in [
            ("#!/bin/sh\n", Some("/bin/sh")),
            ("#! /usr/bin/env python3 -u\nx", Some("/usr/bin/env")),
            ("echo\n", None),
            ("", None),
            ("#!", None),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(interpreter(&path).as_deref(), expected, "{text}");
        }
    }
}
