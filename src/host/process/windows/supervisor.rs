//! Windows: the work of a command is done in the process that the caller started, which is in a job
//! that ends with it. What remains of a supervisor is that a defect is caught, and the printing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::{bounded_write, worker};
use crate::host::process::{Loss, Output, Supervision};

/// Runs `work`, prints what it said, and returns the exit code.
pub(in crate::host) fn run(supervision: &Supervision<'_>, work: impl FnOnce() -> Output) -> u8 {
    worker::begin(supervision.lifeline, supervision.deadline);
    // Said as the command says it, in the form that was asked for.
    std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "defect")));
    let lost = || (supervision.lost)(Loss::Lost("its own process had a defect".to_owned()));
    let output = catch_panic(work, lost);
    let left = worker::deadline().saturating_duration_since(Instant::now());
    bounded_write::write(std::io::stdout(), &output.stdout, left);
    if !output.stderr.is_empty() {
        bounded_write::write(std::io::stderr(), &output.stderr, left);
    }
    output.exit
}

/// Runs something, and something in its place if it panics.
fn catch_panic<T>(work: impl FnOnce() -> T, panicked: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| panicked())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_caught() {
        assert_eq!(catch_panic(|| 7, || 1), 7);
        assert_eq!(catch_panic(|| panic!("on purpose"), || 1), 1);
    }
}
