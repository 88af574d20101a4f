//! This executable once more: drills start hosts, and scripted engines their descendants, with it.

use super::{own_executable, tripwire};

/// A command that starts this executable again.
pub(in crate::host) fn self_command() -> std::process::Command {
    tripwire();
    #[expect(clippy::disallowed_methods, reason = "drills start hosts and descendants with it")]
    std::process::Command::new(own_executable(std::env::args_os().next().as_ref()))
}
