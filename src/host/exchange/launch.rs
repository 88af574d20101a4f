//! What an exchange is asked to run, and within which bounds. No engine, contract or drill in it.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A program that is ready to be started, without a shell, and what becomes of its streams.
#[derive(Debug)]
pub struct Launch {
    /// What runs.
    pub program: Program,
    /// The arguments after the program's own name, verbatim.
    pub args: Vec<OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The whole environment: names and values.
    pub env: Vec<(OsString, OsString)>,
    /// What the program reads.
    pub stdin: Stdin,
    /// What is kept of its stdout.
    pub stdout: Capture,
    /// What is kept of its stderr.
    pub stderr: Capture,
}

/// What runs, each with the absolute path that reports name.
#[derive(Clone, Debug)]
pub enum Program {
    /// A function of this executable, in a process of its own; its result is the exit code. Where
    /// the system cannot fork, the executable itself, which knows it by its arguments.
    Embedded(PathBuf, fn() -> u8),
    /// This executable, also where its file has been replaced or deleted.
    Own(PathBuf),
    /// A file.
    File(PathBuf),
}

impl Program {
    /// The path that reports name.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Embedded(path, _) | Self::Own(path) | Self::File(path) => path,
        }
    }
}

/// What a program reads. Then comes the end.
#[derive(Debug)]
pub enum Stdin {
    /// These bytes, which may be none.
    Bytes(Vec<u8>),
    /// A file from its position on, which the program reads by itself.
    File(File),
}

/// What is kept of a stream. It is read to its end in any case.
#[derive(Debug)]
pub enum Capture {
    /// The first bytes. One more ends the exchange.
    Head(usize),
    /// The last bytes. More of them end nothing.
    Tail(usize),
    /// A file of at most so many bytes: the first ones, and, where there were more, a line that says
    /// how many are left out and the last [`LAST`] bytes. More of them end nothing. `limit` is at
    /// least twice [`LAST`]; a smaller one counts as that.
    File {
        /// Where they go, from its position on.
        file: File,
        /// The largest size, in bytes.
        limit: u64,
    },
}

/// How many of the last bytes of a long stream stand at the end of its file.
pub const LAST: usize = 64 << 10;

/// The bounds of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From before the start to stdout's end and the exit.
    pub deadline: Duration,
    /// How long stdout may stay silent after the program's own exit while a descendant holds it.
    pub grace: Duration,
    /// The longest such wait in all.
    pub max_grace: Duration,
    /// How long the group has between TERM and KILL.
    pub terminate: Duration,
    /// The bound of the final sweep.
    pub sweep: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(30),
            grace: Duration::from_millis(100),
            max_grace: Duration::from_secs(2),
            terminate: Duration::from_millis(100),
            sweep: Duration::from_millis(500),
        }
    }
}
