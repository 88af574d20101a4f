//! Unix: what happens between fork and exec. The host forks, and the child becomes the program.
//!
//! It does there what has to be done in the child and what no spawn of the library does: it ties its
//! life to the host's, leads a session of its own, resets what the host's own caller left behind,
//! and tells a failed start apart from an engine that exits. A start that blocks in the kernel
//! blocks the child, not the host. To fork is sound, since no part of the host has a second thread then;
//! and it costs a fraction of executing this file once more.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getppid, setsid};

use super::signals;

/// How long a program that is just being written is tried again.
const BUSY: Duration = Duration::from_millis(100);

/// How far a child came before it failed.
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
    /// Not even that the child was there.
    Silent,
    /// The program runs: the channel was closed by the exec.
    Done,
    /// It does not.
    Failed(Stage, Errno),
}

/// The byte with which the child says that it is there.
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

/// Starts a second process that goes on from here, and returns its id; `None` in that process.
///
/// # Errors
/// The system has no room for one more.
pub(super) fn fork() -> std::io::Result<Option<Pid>> {
    debug_assert!(
        std::fs::read_dir("/proc/self/task").map_or(true, |threads| threads.count() == 1),
        "a process with threads must not fork"
    );
    Ok(match fork::fork()? {
        fork::Fork::Child => None,
        fork::Fork::Parent(pid) => Pid::from_raw(pid),
    })
}

/// What the child becomes.
pub(super) enum Image {
    /// The engine that this executable carries, in the host's own working directory.
    Embedded(fn() -> u8),
    /// Another program, by its path; never through a shell.
    Program {
        path: CString,
        args: Vec<CString>,
        vars: Vec<CString>,
        cwd: PathBuf,
        /// Where the host hears how the start went.
        channel: PipeWriter,
    },
}

/// Everything that the child needs, made before the fork.
pub(super) struct Child {
    /// The process that forks.
    pub(super) host: Pid,
    pub(super) image: Image,
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

impl Child {
    /// Goes on as the child, which never returns.
    pub(super) fn run(self) -> ! {
        // A defect in here must not go on as a second host.
        let exit = catch_unwind(AssertUnwindSafe(|| self.become_program())).unwrap_or(1);
        // The caller's frames belong to the host that forked.
        std::process::exit(i32::from(exit))
    }

    fn become_program(self) -> u8 {
        let Self { host, image, stdin, stdout, stderr } = self;
        let streams = || {
            rustix::stdio::dup2_stdin(&stdin)?;
            rustix::stdio::dup2_stdout(&stdout)?;
            rustix::stdio::dup2_stderr(&stderr)
        };
        if !bind_to(host, Signal::KILL) || streams().is_err() {
            return 1;
        }
        drop((stdin, stdout, stderr));
        // Without a terminal of its own it can neither take the caller's nor be stopped by it. The
        // session's id is that of its group and of the process.
        let _ = setsid();
        if let Image::Program { .. } = image {
            signals::reset_ignored();
        }
        // One that has come since the fork ends this process here.
        signals::unblock();
        match image {
            Image::Embedded(engine) => {
                close_others(None);
                reveal();
                engine()
            }
            Image::Program { path, args, vars, cwd, mut channel } => {
                close_others(Some(channel.as_raw_fd()));
                if channel.write_all(&[READY]).is_err() {
                    return 1;
                }
                let (stage, errno) = match std::env::set_current_dir(cwd) {
                    Err(error) => (b'D', Errno::from_io_error(&error).unwrap_or(Errno::IO)),
                    Ok(()) => (b'X', exec(&path, &args, &vars)),
                };
                let mut message = vec![stage];
                message.extend(errno.raw_os_error().to_le_bytes());
                let _ = channel.write_all(&message);
                1
            }
        }
    }
}

/// Undoes what [`seclude`](super::supervisor::seclude) did, as an exec does.
fn reveal() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable);
}

/// Has the kernel send `signal` when the parent ends, and says whether the parent is still the one
/// that started this process; it may have ended before the kernel was asked.
pub(super) fn bind_to(parent: Pid, signal: Signal) -> bool {
    follow_parent(signal) && getppid() == Some(parent)
}

#[cfg(target_os = "linux")]
fn follow_parent(signal: Signal) -> bool {
    rustix::process::set_parent_process_death_signal(Some(signal)).is_ok()
}

/// No such request here: the worker looks for itself whether its parent is still there.
#[cfg(not(target_os = "linux"))]
fn follow_parent(_: Signal) -> bool {
    true
}

/// Executes the program itself, never through a shell. Returns why it could not.
fn exec(path: &CString, args: &[CString], vars: &[CString]) -> Errno {
    let until = Instant::now() + BUSY;
    loop {
        // std's own exec would hand a file without an interpreter line to a shell.
        let Err(errno) = nix::unistd::execve(path, args, vars);
        if errno != nix::errno::Errno::ETXTBSY || Instant::now() >= until {
            return Errno::from_raw_os_error(errno as i32);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Text as the system takes it. A NUL cannot be in a path or in a word of a command line.
pub(super) fn c_text(text: &OsStr) -> Result<CString, Errno> {
    CString::new(text.as_bytes()).map_err(|_| Errno::INVAL)
}

/// Up to which number descriptors are tried one by one, where the system counts them.
const FEW: i32 = 256;

/// Up to which number they are tried where the system says nothing.
const MANY: u64 = 65_536;

/// Closes what the host and its own caller have open. Only the three streams and the channel are the
/// engine's. Where the system does not list them, all numbers are tried, within reason.
fn close_others(channel: Option<i32>) {
    let list = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    // Linux 6.2 and later say how many there are, which is much less work than to list them.
    let open = if cfg!(target_os = "linux") { std::fs::metadata(list).ok() } else { None };
    let mut left = open.map_or(0, |open| open.len()).checked_sub(3 + u64::from(channel.is_some()));
    for fd in (3..FEW).filter(|fd| Some(*fd) != channel) {
        match &mut left {
            None => break,
            Some(0) => return,
            // The descriptors are in use by nobody in this process.
            Some(left) => *left -= u64::from(nix::unistd::close(fd).is_ok()),
        }
    }
    let Ok(open) = std::fs::read_dir(list) else {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let limit = limit.map_or(MANY, |limit| limit.min(MANY));
        for fd in (3..i32::try_from(limit).unwrap_or(FEW)).filter(|fd| Some(*fd) != channel) {
            let _ = nix::unistd::close(fd);
        }
        return;
    };
    let open: Vec<i32> = open
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2 && Some(*fd) != channel)
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
    // As the system takes it: a carriage return belongs to the name.
    text.split([' ', '\t']).find(|word| !word.is_empty()).map(str::to_owned)
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
            ("#!\t/bin/sh\r\n", Some("/bin/sh\r")),
            ("echo\n", None),
            ("", None),
            ("#!", None),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(interpreter(&path).as_deref(), expected, "{text}");
        }
    }
}
