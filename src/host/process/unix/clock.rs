//! The clock that supervisor and worker share.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The time since the supervisor first asked, which a fork goes on counting.
pub(super) fn now() -> Duration {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed()
}
