//! What is kept of a stream as its bytes come in.

use std::collections::VecDeque;
use std::io::Write;

use super::launch::{Capture, LAST};
use super::observation::Captured;

/// Room in a file for the line that says how much is left out, in bytes.
const MARKER: u64 = 64;

/// Keeps what a [`Capture`] asks for, and counts the rest.
pub(super) struct Sink<'a> {
    capture: &'a Capture,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// How many bytes of the head went into the file.
    written: u64,
    total: u64,
    fault: Option<String>,
}

impl<'a> Sink<'a> {
    pub(super) fn new(capture: &'a Capture) -> Self {
        let (head, tail) = (Vec::new(), VecDeque::new());
        Self { capture, head, tail, written: 0, total: 0, fault: None }
    }

    /// Whether there was more than may be.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.capture, Capture::Head(limit) if self.total > *limit as u64)
    }

    /// Takes the next bytes. What cannot be written to a file is a fact, and the stream goes on.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        match self.capture {
            Capture::Head(limit) => {
                let room = limit - self.head.len();
                self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Capture::Tail(limit) => self.keep_last(bytes, *limit),
            Capture::File { limit, .. } => {
                let room = (*limit).max(2 * LAST as u64) - LAST as u64 - MARKER - self.written;
                let room = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
                self.write(&bytes[..room]);
                self.written += room as u64;
                self.keep_last(&bytes[room..], LAST);
            }
        }
    }

    fn keep_last(&mut self, bytes: &[u8], limit: usize) {
        self.tail.extend(bytes);
        let excess = self.tail.len().saturating_sub(limit);
        self.tail.drain(..excess);
    }

    fn write(&mut self, bytes: &[u8]) {
        if let (Capture::File { file, .. }, None) = (self.capture, &self.fault) {
            let mut file: &std::fs::File = file;
            self.fault = file.write_all(bytes).err().map(|error| error.to_string());
        }
    }

    /// What was kept; `complete` says whether the end of the stream was seen.
    pub(super) fn finish(mut self, complete: bool) -> Captured {
        if matches!(self.capture, Capture::File { .. }) {
            let left_out = self.total - self.written - self.tail.len() as u64;
            if left_out > 0 {
                self.write(format!("\n[{left_out} bytes are left out here]\n").as_bytes());
            }
            let tail = std::mem::take(&mut self.tail);
            let (first, second) = tail.as_slices();
            self.write(first);
            self.write(second);
        }
        let bytes = if self.tail.is_empty() { self.head } else { self.tail.into() };
        Captured { bytes, total: self.total, complete, fault: self.fault }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    /// What is in the file after so many bytes, which count up.
    fn file_of(length: usize, limit: u64, piece: usize) -> Vec<u8> {
        let capture = Capture::File { file: tempfile::tempfile().unwrap(), limit };
        let mut sink = Sink::new(&capture);
        let bytes: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
        bytes.chunks(piece).for_each(|piece| sink.push(piece));
        let captured = sink.finish(true);
        assert_eq!((captured.total, captured.fault), (length as u64, None));
        let Capture::File { mut file, .. } = capture else { unreachable!() };
        let mut found = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut found).unwrap();
        assert!(found.len() as u64 <= limit);
        if found.len() < length {
            assert!(found.ends_with(&bytes[length - LAST..]));
            let (head, _) = found.split_at(found.len() - LAST);
            let marker = String::from_utf8(head[head.len() - 50..].to_vec());
            let marker = marker.unwrap_or_default();
            let head = head.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
            assert!(head as u64 >= limit - LAST as u64 - MARKER, "{head} {marker}");
            let left_out = format!("\n[{} bytes are left out here]\n", length - LAST - head);
            assert!(found[head..].starts_with(left_out.as_bytes()), "{head}");
        } else {
            assert_eq!(found, bytes);
        }
        found
    }

    #[test]
    fn a_file_has_the_beginning_a_line_that_counts_and_the_end() {
        let limit = 3 * LAST as u64;
        for length in [0, 1, LAST, 2 * LAST, 3 * LAST - 64, 3 * LAST, 4 * LAST, 400_000] {
            for piece in [1000, 70_000, 1 << 20] {
                let found = file_of(length, limit, piece);
                assert!(length as u64 <= limit - MARKER || found.len() < length || length == 0);
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_a_fact() {
        let file = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let capture = Capture::File { file, limit: 1 << 20 };
        let mut sink = Sink::new(&capture);
        sink.push(b"x");
        sink.push(b"y");
        let captured = sink.finish(true);
        assert_eq!(captured.total, 2);
        assert!(captured.fault.is_some_and(|why| why.contains("space")));
    }
}
