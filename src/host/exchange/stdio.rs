//! The pump: the input goes in, both outputs come out, and nothing blocks.

use std::future::{Future, poll_fn};
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep_until, timeout};

use super::cancel::{Cancel, interrupted};
use super::launch::{Capture, Limits};
use super::observation::{Captured, Input, Stop, Stream};
use super::sink::Sink;
use crate::host::process::Streams;

/// How long stdout may take to end once everything that could write to it is dead.
const LAST_READ: Duration = Duration::from_millis(50);

/// How many pieces of 16 KiB are taken at most where a host looks once more: all that a pipe of 1 MiB
/// can hold.
const LOOKS: usize = 65;

/// Writes the input and reads both outputs at once, so that no pipe can fill up and block.
pub(super) struct StdioPump<'a, I, O, E> {
    pub(super) stdin: Option<I>,
    unwritten: &'a [u8],
    pub(super) input: Input,
    pub(super) stdout: Option<O>,
    out: Sink<'a>,
    stderr: Option<E>,
    err: Sink<'a>,
    pub(super) limits: Limits,
    buffer: Box<[MaybeUninit<u8>]>,
}

/// What one step of the conversation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Bytes of stdout, or its end.
    Stdout,
    /// Something else moved.
    Other,
}

impl<'a, I, O, E> StdioPump<'a, I, O, E>
where
    I: AsyncWrite + Unpin,
    O: AsyncRead + Unpin,
    E: AsyncRead + Unpin,
{
    /// `input` is what goes in where `streams` have a stdin; each output is kept as asked for.
    pub(super) fn new(
        streams: Streams<I, O, E>,
        input: &'a [u8],
        [stdout, stderr]: [&'a Capture; 2],
        limits: Limits,
    ) -> Self {
        Self {
            input: if streams.stdin.is_some() { Input::Unread } else { Input::Delivered },
            stdin: streams.stdin,
            unwritten: input,
            stdout: Some(streams.stdout),
            out: Sink::new(stdout),
            stderr: Some(streams.stderr),
            err: Sink::new(stderr),
            limits,
            buffer: Box::new_uninit_slice(16 << 10),
        }
    }

    /// Until stdout has ended and the process has exited, or something ends it earlier.
    ///
    /// After the exit, while a descendant holds stdout, each chunk re-arms the grace; the whole
    /// wait is bounded, and the deadline goes on.
    pub(super) async fn run(
        &mut self,
        has_exited: impl Fn() -> bool,
        exited: impl Future<Output = ()>,
        deadline: Instant,
        cancel: &Cancel,
    ) -> Option<Stop> {
        let mut exited = pin!(exited);
        // The moment of the exit, and the moment until which more output is awaited.
        let mut gone: Option<(Instant, Instant)> = None;
        loop {
            if let Some(stream) = self.over() {
                return Some(Stop::OutputLimit(stream));
            }
            if gone.is_some() && self.stdout.is_none() {
                return None;
            }
            let grace = gone.map_or(deadline, |(_, until)| until);
            tokio::select! {
                biased;
                stop = interrupted(deadline, cancel) => {
                    if stop != Stop::Deadline {
                        return Some(stop);
                    }
                    // The host itself may have been frozen: a program that has exited counts, also
                    // where a descendant still holds stdout.
                    self.look();
                    if let Some(stream) = self.over() {
                        return Some(Stop::OutputLimit(stream));
                    }
                    return (!has_exited()).then_some(stop);
                }
                () = &mut exited, if gone.is_none() => {
                    let now = Instant::now();
                    gone = Some((now, now + self.limits.grace));
                }
                () = sleep_until(grace), if gone.is_some() => return None,
                step = poll_fn(|cx| self.poll_step(cx)) => {
                    if let (Step::Stdout, Some((at, until))) = (step, &mut gone) {
                        let latest = *at + self.limits.max_grace;
                        *until = latest.min(Instant::now() + self.limits.grace);
                    }
                }
            }
        }
    }

    /// Keeps reading while the processes are given time to end by themselves.
    pub(super) async fn wind_down(
        &mut self,
        gone: impl Future<Output = ()>,
        until: Instant,
        cancel: &Cancel,
    ) {
        let mut gone = pin!(gone);
        loop {
            tokio::select! {
                biased;
                _ = cancel.asked(2) => return,
                () = sleep_until(until) => return,
                () = &mut gone => return,
                _ = poll_fn(|cx| self.poll_step(cx)) => {}
            }
        }
    }

    /// Moves what is left in the pipes once the other ends are dead. That may be more than is kept, where
    /// the host itself was kept from reading it before.
    pub(super) async fn drain(&mut self) -> Option<Stop> {
        let rest = async {
            while self.stdin.is_some() || self.stdout.is_some() || self.stderr.is_some() {
                poll_fn(|cx| self.poll_step(cx)).await;
            }
        };
        // Only a process outside the tree can still hold a pipe; it is not waited for.
        let _ = timeout(LAST_READ, rest).await;
        self.over().map(Stop::OutputLimit)
    }

    /// Takes what is there, without blocking, a bounded number of times.
    fn look(&mut self) {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        for _ in 0..LOOKS {
            if self.poll_step(&mut cx).is_pending() {
                return;
            }
        }
    }

    /// Moves whichever stream can move. Pending only when none can.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        let mut read = ReadBuf::uninit(&mut self.buffer);
        if poll_read(&mut self.stdout, &mut read, cx).is_ready() {
            self.out.push(read.filled());
            return Poll::Ready(Step::Stdout);
        }
        if poll_read(&mut self.stderr, &mut read, cx).is_ready() {
            self.err.push(read.filled());
            return Poll::Ready(Step::Other);
        }
        self.poll_write(cx).map(|()| Step::Other)
    }

    /// Writes once. The stream is closed as soon as the input is through, or cannot be. On
    /// Windows a write is only handed to a thread; what has become of it is said by the flush.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(stdin) = &mut self.stdin else { return Poll::Pending };
        if !self.unwritten.is_empty() {
            match ready!(Pin::new(&mut *stdin).poll_write(cx, self.unwritten)) {
                Ok(bytes @ 1..) => self.unwritten = &self.unwritten[bytes..],
                Ok(0) | Err(_) => self.input = Input::Failed,
            }
        }
        if self.unwritten.is_empty() && self.input != Input::Failed {
            self.input = match ready!(Pin::new(stdin).poll_flush(cx)) {
                Ok(()) => Input::Delivered,
                Err(_) => Input::Failed,
            };
        }
        if self.input != Input::Unread {
            self.stdin = None;
        }
        Poll::Ready(())
    }

    /// The stream of which there was more than may be, if there is one.
    fn over(&self) -> Option<Stream> {
        let over = [(Stream::Stdout, &self.out), (Stream::Stderr, &self.err)];
        over.into_iter().find(|(_, sink)| sink.is_over()).map(|(stream, _)| stream)
    }

    /// What was kept of both outputs.
    pub(super) fn captured(self) -> (Captured, Captured) {
        (self.out.finish(self.stdout.is_none()), self.err.finish(self.stderr.is_none()))
    }
}

/// Reads once. At the end, or at an error, which on a pipe means the same, nothing is read and the
/// stream is dropped.
fn poll_read(
    stream: &mut Option<impl AsyncRead + Unpin>,
    into: &mut ReadBuf<'_>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    let Some(open) = stream else { return Poll::Pending };
    if ready!(Pin::new(open).poll_read(cx, into)).is_err() {
        into.clear();
    }
    if into.filled().is_empty() {
        *stream = None;
    }
    Poll::Ready(())
}
