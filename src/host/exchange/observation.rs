//! What was seen of one exchange: facts only, no judgement. Unknown facts are `None`.

use std::path::PathBuf;
use std::time::Duration;

/// Everything that was observed of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Why no program ran, if none did.
    pub start_fault: Option<StartFault>,
    /// Why the host itself could not go on, if it could not. Something may have run, and was ended.
    pub host_fault: Option<String>,
    /// Whether the program is known to run or to have run.
    pub started: bool,
    /// The program's process id.
    pub pid: Option<u32>,
    /// What made the host end the exchange, if it did not end by itself.
    pub stop: Option<Stop>,
    /// How the program's own process ended.
    pub ended: Option<Ended>,
    /// What became of the input.
    pub input: Option<Input>,
    /// Its stdout, as far as it was to be kept.
    pub stdout: Captured,
    /// Its stderr, as far as it was to be kept.
    pub stderr: Captured,
    /// How far the final kill reached; `None` where nothing ran.
    pub containment: Option<Containment>,
    /// Whether descendants had to be killed after the program's own exit.
    pub orphaned: Option<bool>,
    /// Descendants that still ran when the host gave up on them.
    pub survivors: Option<u32>,
    /// From before the start to after the last kill.
    pub elapsed: Duration,
}

/// How far a kill reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Containment {
    /// Every descendant was within reach, and was seen to its end or is counted as a survivor.
    Whole,
    /// The system offers no more than the process group, which can be left.
    #[default]
    Group,
    /// Every descendant was within reach at the start, and then nobody could say any more who was
    /// there: what is below can take the means for it from the host.
    Lost,
}

/// Bytes read from one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// What was kept.
    pub bytes: Vec<u8>,
    /// How many bytes were read in all.
    pub total: u64,
    /// Whether the end of the stream was seen.
    pub complete: bool,
    /// Why not all that was to be kept could be, if so: a file that has no room.
    pub fault: Option<String>,
}

/// An output of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The standard output.
    Stdout,
    /// The standard error output.
    Stderr,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With an exit code.
    Exit(i64),
    /// By a signal, with its name (`SIGKILL`).
    Signal(String),
}

/// What made the host end an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The deadline passed before stdout's end and the exit were seen.
    Deadline,
    /// Somebody asked for it.
    Cancelled(CancelledBy),
    /// A stream grew above what is kept of it.
    OutputLimit(Stream),
}

/// Who asked for the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CancelledBy {
    /// A signal: its number and its name.
    Signal(u8, &'static str),
    /// The end of the host's own stdin, its lifeline, with `--leash`.
    Lifeline,
}

/// What became of the input on the program's stdin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Written whole, and the stream closed.
    Delivered,
    /// The program closed the stream before it was written whole.
    Failed,
    /// Not yet written whole when the exchange ended.
    Unread,
}

/// Why a program was never started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartFault {
    /// The working directory cannot be entered: path, system error.
    #[error("cannot enter the working directory {0}: {1}")]
    Directory(PathBuf, String),
    /// The program is not there.
    #[error("no such program: {0}")]
    NoProgram(PathBuf),
    /// The program is there, but the interpreter that it names is not.
    #[error("cannot run {0}: its interpreter is missing: {1}")]
    NoInterpreter(PathBuf, String),
    /// The program cannot be executed: path, why.
    #[error("cannot run {0}: {1}")]
    NotRunnable(PathBuf, String),
    /// The system had no room for another process, or for its pipes.
    #[error("cannot start a process: {0}")]
    System(String),
}

impl StartFault {
    /// The fault as a word for scripts.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Directory(..) => "no-working-directory",
            Self::NoProgram(_) => "no-program",
            Self::NoInterpreter(..) => "no-interpreter",
            Self::NotRunnable(..) => "not-runnable",
            Self::System(_) => "no-process",
        }
    }
}
