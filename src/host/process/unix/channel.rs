//! What a worker says to its supervisor: typed messages, each with its length in front, over one
//! descriptor that nobody else has. Pure but for [`send`].

use std::io::Write;
use std::time::Duration;

use crate::host::process::Output;

/// The largest result, in bytes: two texts of 1 MiB in a report, each byte escaped, or 16 MiB of
/// stdout and 1 MiB of stderr.
const MAX: usize = 18 << 20;

/// The smallest results go in one write, so that the supervisor wakes once.
const AT_ONCE: usize = 64 << 10;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// The deadline is another one: when it is, by the clock that both share, and as a person reads
    /// it.
    Deadline(Duration, String),
    /// The process group of the program, where the supervisor could find it in no other way.
    Group(i32),
    /// The end: nothing that was started runs any more, as far as it was within reach.
    Result(Output),
}

const DEADLINE: u8 = 1;
const GROUP: u8 = 2;
const RESULT: u8 = 3;

/// Writes one message.
///
/// # Errors
/// The other end is gone.
pub(super) fn send(to: &mut impl Write, message: &Message) -> std::io::Result<()> {
    let (kind, head, rest): (_, Vec<u8>, [&[u8]; 2]) = match message {
        Message::Deadline(at, shown) => {
            let at = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
            (DEADLINE, at.to_le_bytes().to_vec(), [shown.as_bytes(), &[]])
        }
        Message::Group(pid) => (GROUP, pid.to_le_bytes().to_vec(), [&[], &[]]),
        Message::Result(Output { stdout, stderr, exit }) => {
            let mut head = vec![*exit];
            head.extend(u32::try_from(stdout.len()).unwrap_or(u32::MAX).to_le_bytes());
            (RESULT, head, [stdout, stderr])
        }
    };
    let length = 1 + head.len() + rest[0].len() + rest[1].len();
    let mut bytes = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes().to_vec();
    bytes.push(kind);
    bytes.extend(head);
    if length <= AT_ONCE {
        bytes.extend(rest.concat());
        return to.write_all(&bytes);
    }
    to.write_all(&bytes)?;
    rest.into_iter().try_for_each(|part| to.write_all(part))
}

/// Takes messages apart as their bytes come in.
#[derive(Debug, Default)]
pub(super) struct Decoder(Vec<u8>);

/// What came over the channel is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Garbled;

impl Decoder {
    /// Takes more bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next message, once it is whole.
    pub(super) fn next(&mut self) -> Result<Option<Message>, Garbled> {
        let Some((length, rest)) = self.0.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX {
            return Err(Garbled);
        }
        if rest.len() < length {
            return Ok(None);
        }
        let message = read(&rest[..length]).ok_or(Garbled)?;
        self.0.drain(..4 + length);
        Ok(Some(message))
    }
}

fn read(bytes: &[u8]) -> Option<Message> {
    let (kind, body) = bytes.split_first()?;
    Some(match *kind {
        DEADLINE => {
            let (at, shown) = body.split_first_chunk()?;
            let at = Duration::from_nanos(u64::from_le_bytes(*at));
            Message::Deadline(at, String::from_utf8(shown.to_vec()).ok()?)
        }
        GROUP => Message::Group(i32::from_le_bytes(body.try_into().ok()?)),
        RESULT => {
            let (exit, body) = body.split_first()?;
            let (length, body) = body.split_first_chunk()?;
            let (stdout, stderr) = body.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            let (stdout, stderr) = (stdout.to_vec(), stderr.to_vec());
            Message::Result(Output { stdout, stderr, exit: *exit })
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn messages() -> [Message; 5] {
        let result = |stdout: &[u8], stderr: &[u8], exit| {
            Message::Result(Output { stdout: stdout.into(), stderr: stderr.into(), exit })
        };
        [
            Message::Deadline(Duration::from_nanos(u64::MAX), "30s".to_owned()),
            Message::Group(-7),
            result(b"", b"", 0),
            result(b"satyrn-engine: OK\n", b"x", 255),
            result(&b"o".repeat(AT_ONCE), &b"e".repeat(AT_ONCE), 3),
        ]
    }

    #[test]
    fn messages_come_out_as_they_went_in_however_they_are_cut() {
        let mut bytes = Vec::new();
        for message in messages() {
            send(&mut bytes, &message).unwrap();
        }
        for size in [1, 3, 4096, bytes.len()] {
            let mut decoder = Decoder::default();
            let mut found = Vec::new();
            for piece in bytes.chunks(size) {
                decoder.push(piece);
                while let Some(message) = decoder.next().unwrap() {
                    found.push(message);
                }
            }
            assert_eq!(found, messages(), "{size}");
        }
    }

    #[test]
    fn what_is_no_message_is_told_from_one_that_is_not_whole() {
        for (bytes, expected) in [
            (&b""[..], Ok(None)),
            (b"\x05\0\0", Ok(None)),
            (b"\x05\0\0\0\x02\x01\0\0", Ok(None)),
            (b"\x05\0\0\0\x02\x01\0\0\0", Ok(Some(Message::Group(1)))),
            (b"\x05\0\0\0\x09\x01\0\0\0", Err(Garbled)),
            (b"\x04\0\0\0\x02\x01\0\0", Err(Garbled)),
            (b"\0\0\0\0", Err(Garbled)),
            (b"\xff\xff\xff\xff", Err(Garbled)),
            (b"\x06\0\0\0\x03\0\x09\0\0\0", Err(Garbled)),
        ] {
            let mut decoder = Decoder::default();
            decoder.push(bytes);
            assert_eq!(decoder.next(), expected, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut decoder = Decoder::default();
            decoder.push(&bytes);
            while let Ok(Some(_)) = decoder.next() {}
        }
    }
}
