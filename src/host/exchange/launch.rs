//! What an exchange is asked to run, and within which bounds.

use std::time::Duration;

use crate::protocol::MAX_BYTES;

/// The bounds of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From before the start to stdout's end and the exit.
    pub deadline: Duration,
    /// The largest stdout, in bytes; one more ends the exchange.
    pub stdout: usize,
    /// How much of the end of stderr is kept, in bytes.
    pub stderr: usize,
    /// How long stdout may stay silent after the engine's own exit while a descendant holds it.
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
            stdout: MAX_BYTES,
            stderr: 64 << 10,
            grace: Duration::from_millis(100),
            max_grace: Duration::from_secs(2),
            terminate: Duration::from_millis(100),
            sweep: Duration::from_millis(500),
        }
    }
}
