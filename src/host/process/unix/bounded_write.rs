//! Unix: writing to what the caller gave us, without ever being held up by it.

use std::io::Write;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Writes as far as there is room within `patience`, and returns what there was no room for. A
/// reader that has gone away changes nothing. Each piece fits a pipe that says it has room, so that
/// no write blocks; the caller's descriptor is not switched to another mode, since the caller shares
/// it.
pub(in crate::host) fn write(to: impl AsFd, mut text: &[u8], patience: Duration) -> &[u8] {
    let until = Instant::now() + patience;
    while !text.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        let mut fds = [PollFd::new(&to, PollFlags::OUT)];
        match poll(&mut fds, Some(&timespec(left))) {
            Ok(0) => return text,
            Err(Errno::INTR) => continue,
            Ok(_) | Err(_) => {}
        }
        match rustix::io::write(&to, &text[..text.len().min(4096)]) {
            Ok(written) => text = &text[written..],
            Err(Errno::AGAIN | Errno::INTR) if !left.is_zero() => {}
            Err(Errno::AGAIN | Errno::INTR) => return text,
            Err(_) => return &[],
        }
    }
    text
}

/// A duration as the system calls take it.
pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

/// stderr for the log: what it has no room for is lost.
pub(in crate::host) struct Stderr;

impl Write for Stderr {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        write(std::io::stderr(), text, Duration::ZERO);
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
