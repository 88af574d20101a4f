//! Windows: writing to what the caller gave us, without ever being held up by it.

use std::io::Write;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// How long room is waited for where nothing is to be waited for: the thread has to be started.
const LEAST: Duration = Duration::from_millis(50);

/// Writes as far as there is room within `patience`. A reader that has gone away, or that does not
/// read, changes nothing: a write that never ends is cut off with the process.
pub(in crate::host) fn write(mut to: impl Write + Send + 'static, text: &[u8], patience: Duration) {
    let (text, (done, written)) = (text.to_owned(), channel());
    thread::spawn(move || {
        let _ = to.write_all(&text).and_then(|()| to.flush());
        let _ = done.send(());
    });
    let _ = written.recv_timeout(patience.max(LEAST));
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
