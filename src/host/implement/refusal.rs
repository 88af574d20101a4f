//! The host's own vocabulary of refusals, with its exit codes (SPEC 2).

use crate::host::exchange::observation::CancelledBy;

/// A refusal that the host says itself. `Display` is the detail of the line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The command line, or a variable that stands for an option, was not understood.
    #[error("{0}")]
    Usage(String),
    /// No engine ran.
    #[error("{detail}")]
    StartFailed {
        /// A word for scripts.
        reason: &'static str,
        /// What, which path, what to do.
        detail: String,
    },
    /// Somebody asked for the end.
    #[error("{detail}")]
    Cancelled {
        /// Who.
        by: CancelledBy,
        /// The same for people.
        detail: String,
    },
    /// The deadline passed.
    #[error("{0}")]
    Timeout(String),
    /// The engine ended, but what it printed is no answer.
    #[error("{detail}")]
    Malformed {
        /// A word for scripts.
        reason: &'static str,
        /// What is wrong with it, and where.
        detail: String,
    },
    /// The engine ended badly and left no answer that could be believed.
    #[error("{detail}")]
    Crashed {
        /// A word for scripts.
        reason: &'static str,
        /// How it ended.
        detail: String,
    },
    /// A defect of the host.
    #[error("{0}")]
    HostFailed(String),
}

impl Refusal {
    /// The cause's name in the line.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Usage(_) => "USAGE",
            Self::StartFailed { .. } => "ENGINE_START_FAILED",
            Self::Cancelled { .. } => "ENGINE_CANCELLED",
            Self::Timeout(_) => "ENGINE_TIMEOUT",
            Self::Malformed { .. } => "ENGINE_MALFORMED_RESPONSE",
            Self::Crashed { .. } => "ENGINE_CRASHED",
            Self::HostFailed(_) => "HOST_FAILED",
        }
    }

    /// The host's exit code.
    #[must_use]
    pub const fn exit(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::StartFailed { .. } => 69,
            Self::Cancelled { by: CancelledBy::Signal(number, _), .. } => 128 + *number,
            Self::Cancelled { by: CancelledBy::Lifeline, .. } => 143,
            Self::Timeout(_) => 124,
            Self::Malformed { .. } => 76,
            Self::Crashed { .. } => 70,
            Self::HostFailed(_) => 1,
        }
    }

    /// The refusal's kind as a word for scripts, where there is more to say than the code.
    #[must_use]
    pub const fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Usage(_) | Self::HostFailed(_) => None,
            Self::StartFailed { reason, .. }
            | Self::Malformed { reason, .. }
            | Self::Crashed { reason, .. } => Some(reason),
            Self::Cancelled { by: CancelledBy::Signal(..), .. } => Some("signal"),
            Self::Cancelled { by: CancelledBy::Lifeline, .. } => Some("leash"),
            Self::Timeout(_) => Some("deadline"),
        }
    }
}

/// Shorthand for the refusals that come before any process.
pub(in crate::host) fn start_failed(reason: &'static str, detail: impl Into<String>) -> Refusal {
    Refusal::StartFailed { reason, detail: detail.into() }
}

#[cfg(test)]
impl Refusal {
    /// One of each kind. The match has no wildcard arm, so that it asks for a new kind too.
    pub(in crate::host) fn each() -> Vec<Self> {
        let detail = || "why".to_owned();
        let first = Self::Usage(detail());
        std::iter::successors(Some(first), |refusal| {
            Some(match refusal {
                Self::Usage(_) => start_failed("x", detail()),
                Self::StartFailed { .. } => {
                    Self::Cancelled { by: CancelledBy::Signal(2, "SIGINT"), detail: detail() }
                }
                Self::Cancelled { by: CancelledBy::Signal(..), .. } => {
                    Self::Cancelled { by: CancelledBy::Lifeline, detail: detail() }
                }
                Self::Cancelled { by: CancelledBy::Lifeline, .. } => Self::Timeout(detail()),
                Self::Timeout(_) => Self::Malformed { reason: "x", detail: detail() },
                Self::Malformed { .. } => Self::Crashed { reason: "x", detail: detail() },
                Self::Crashed { .. } => Self::HostFailed(detail()),
                Self::HostFailed(_) => return None,
            })
        })
        .collect()
    }
}
