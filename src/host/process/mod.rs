//! The only room that touches processes: start, watch, kill the tree, reap.
//!
//! Each system has the same few functions; callers do not know which one they are on.

mod self_command;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub(super) use self_command::self_command;
pub(super) use system::{
    Child, ChildStreams, announce_deadline, bounded_write, defer_parent_death, forward_cancels,
    observed, own_executable, run, self_ops, spawn, unblock,
};

use std::io::IsTerminal;
use std::time::Duration;

use super::exchange::observation::{Containment, Ended};

/// When a person at a terminal is told that there is something to wait for.
const NOTICE: Duration = Duration::from_secs(2);

/// What a command has to say once it has ended, and how its process ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::host) struct Output {
    /// For stdout.
    pub(in crate::host) stdout: Vec<u8>,
    /// For stderr, after that.
    pub(in crate::host) stderr: Vec<u8>,
    /// The exit code.
    pub(in crate::host) exit: u8,
}

/// What whoever watches over a command's work needs to know of the command.
pub(super) struct Supervision<'a> {
    /// Whether the end of stdin cancels.
    pub(super) lifeline: bool,
    /// How long the work may take, as far as it is known before it begins.
    pub(super) deadline: Duration,
    /// What the command says where its work cannot say anything.
    pub(super) lost: &'a dyn Fn(Loss) -> Output,
}

/// Why the work of a command has said nothing. The words are for people.
pub(super) enum Loss {
    /// Nothing was started.
    #[cfg_attr(windows, expect(dead_code, reason = "one process is the whole host there"))]
    NotStarted(String),
    /// It ended, or was ended, and something may have run.
    Lost(String),
}

/// The streams of a child, as seen from the host.
pub(super) struct Streams<I, O, E> {
    /// Nothing where what it reads is in there already.
    pub(super) stdin: Option<I>,
    pub(super) stdout: O,
    pub(super) stderr: E,
}

/// What was left of a process tree when it was destroyed.
#[derive(Clone, Debug, Default)]
pub(super) struct TreeExit {
    /// How the program's own process ended.
    pub(super) ended: Option<Ended>,
    /// How far the kill reached.
    pub(super) containment: Containment,
    /// Whether descendants had to be killed after the program's own exit, where that is known.
    pub(super) orphaned: Option<bool>,
    /// Descendants that could not be killed in time, where that is known.
    pub(super) survivors: Option<u32>,
}

/// Tells a person, and nobody else, that there is something to wait for.
fn notice(deadline: &str) {
    let stderr = std::io::stderr();
    if stderr.is_terminal() {
        let text = format!("satyrn-host: waiting for the engine; the deadline is {deadline}\n");
        // A terminal that was stopped with Ctrl-S is not waited for.
        bounded_write::write(stderr, text.as_bytes(), Duration::ZERO);
    }
}

/// In the process-free test tier, any start is a mistake of the test.
#[cfg(test)]
fn tripwire() {
    panic!("the process-free tier must not start a process");
}

#[cfg(not(test))]
fn tripwire() {}
