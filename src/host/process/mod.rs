//! The only room that touches processes: start, watch, kill the tree, reap.
//!
//! Each system has the same few functions; callers do not know which one they are on.

#[cfg(unix)]
mod guard;
#[cfg(unix)]
pub(super) mod hosts;
#[cfg(unix)]
pub(super) mod outlet;
#[cfg(unix)]
pub(super) mod scripted;
#[cfg(unix)]
pub(super) mod signals;
#[cfg(unix)]
mod stub;
#[cfg(unix)]
mod tree;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(super) use {
    guard::{Role, announce, dispatch, own_executable},
    unix::spawn,
};

use super::observation::Ended;

/// What was left of a process tree when it was destroyed.
#[derive(Clone, Debug, Default)]
pub(super) struct Remains {
    /// How the engine's own process ended.
    pub(super) ended: Option<Ended>,
    /// Whether every descendant was within reach.
    pub(super) contained: bool,
    /// Whether descendants had to be killed after the engine's own exit, where that is known.
    pub(super) orphaned: Option<bool>,
    /// Descendants that could not be killed in time, where that is known.
    pub(super) survivors: Option<u32>,
}

/// A command that starts this executable again.
pub(super) fn own() -> std::process::Command {
    tripwire();
    #[expect(clippy::disallowed_methods, reason = "drills start hosts and descendants with it")]
    std::process::Command::new(own_executable(std::env::args_os().next().as_ref()))
}

/// In the process-free test tier, any start is a mistake of the test.
#[cfg(test)]
fn tripwire() {
    panic!("the process-free tier must not start a process");
}

#[cfg(not(test))]
fn tripwire() {}
