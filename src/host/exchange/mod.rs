//! The one effect: runs the engine of a plan once and says what was seen.
//!
//! Whatever goes wrong in here becomes a fact of the [`Observation`]; nothing is judged and nothing
//! is retried.

pub mod observation;

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::implement::plan::{Limits, Plan};
use super::process::{self, Child, ChildStreams};
use observation::{Cancel, Captured, Ended, Input, Observation, StartFault, Stop};

/// How long stdout may take to end once everything that could write to it is dead.
const LAST_READ: Duration = Duration::from_millis(50);

/// The signals by which an engine may have ended because all processes were asked to end at once.
const WISHES: [&str; 3] = ["SIGINT", "SIGTERM", "SIGHUP"];

/// How much later than the engine the host may hear of such a wish.
const LAST_WISH: Duration = Duration::from_millis(5);

/// The one way to end an exchange from outside. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Cancellation {
    by: Arc<OnceLock<Cancel>>,
    asked: CancellationToken,
    again: CancellationToken,
}

impl Cancellation {
    /// Asks for the end. The first caller is named in the verdict; from the second call on, the
    /// engine is no longer given time to end by itself.
    pub fn cancel(&self, by: Cancel) {
        if self.by.set(by).is_err() {
            self.again.cancel();
        }
        self.asked.cancel();
    }
}

/// Runs one engine process and sees it to its end; `engine` is the embedded one. Returns within the
/// deadline plus [`Limits::terminate`], [`Limits::sweep`] and a few milliseconds, whatever the
/// engine does. `listen` is called within the runtime, and hands the cancellation to whoever may ask
/// for the end; what was asked for before is not lost on its way there.
///
/// # Errors
/// The system has no room for the host's own runtime. The engine may have begun, and is ended.
pub fn exchange(
    plan: &Plan,
    engine: fn() -> u8,
    listen: impl FnOnce(Cancellation) -> std::io::Result<()>,
) -> std::io::Result<Observation> {
    let began = Instant::now();
    let faulty = |fault| Observation { start_fault: Some(fault), ..Observation::default() };
    let seen = match process::spawn(plan, engine) {
        Err(fault) => faulty(fault),
        Ok(spawned) => {
            // The engine is at work while this is set up.
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let seen = runtime.block_on(async {
                let cancel = Cancellation::default();
                listen(cancel.clone())?;
                let (child, streams) = spawned.connect()?;
                std::io::Result::Ok(converse(plan, child, streams, began, &cancel).await)
            });
            // The process ends next. A stream that something outside the tree still holds is not
            // waited for, and to take the runtime down would only cost time.
            std::mem::forget(runtime);
            seen?.unwrap_or_else(faulty)
        }
    };
    Ok(Observation { elapsed: began.elapsed(), ..seen })
}

/// From the start to the last kill.
async fn converse(
    plan: &Plan,
    mut child: Child,
    streams: ChildStreams,
    began: Instant,
    cancel: &Cancellation,
) -> Result<Observation, StartFault> {
    let mut seen = Observation { pid: Some(child.pid()), ..Observation::default() };
    let deadline = began + plan.limits.deadline;
    let mut talk = Conversation::new(streams, &plan.request, plan.limits);
    let started = tokio::select! {
        biased;
        started = child.started() => started.map(|()| None),
        stop = interrupted(deadline, cancel) => Ok(Some(stop)),
    };
    seen.stop = started.inspect_err(|_| drop(child.destroy(plan.limits.sweep)))?;
    if seen.stop.is_none() {
        seen.started = true;
        seen.stop = talk.run(|| child.has_exited(), child.exited(), deadline, cancel).await;
    }
    if seen.stop.is_some() {
        // From here on a broken pipe would be the host's own doing, not the engine's.
        talk.stdin = None;
    }
    let complete = talk.stdout.is_none();
    if matches!(seen.stop, Some(Stop::Deadline | Stop::Cancelled(_))) {
        child.terminate();
        let until = Instant::now() + plan.limits.terminate;
        talk.wind_down(child.gone(), until, cancel).await;
    }
    let end = child.destroy(plan.limits.sweep);
    talk.drain().await;
    // Who was asked to stop has not crashed.
    let wished = matches!(&end.ended, Some(Ended::Signal(by)) if WISHES.contains(&by.as_str()));
    if seen.stop.is_none() && wished {
        let _ = timeout(LAST_WISH, cancel.asked.cancelled()).await;
        seen.stop = cancel.by.get().cloned().map(Stop::Cancelled);
    }
    // Before the program ran, exit and request were those of the host's own child.
    seen.input = seen.started.then_some(talk.input);
    (seen.stdout, seen.stderr) = talk.captured();
    // An end that the host brought about says nothing about the output.
    seen.stdout.complete &= complete || seen.stop.is_none();
    seen.ended = end.ended.filter(|_| seen.started);
    seen.contained = Some(end.contained);
    seen.orphaned = end.orphaned;
    seen.survivors = end.survivors;
    Ok(seen)
}

/// Until somebody asks for the end, or the deadline passes.
async fn interrupted(deadline: Instant, cancel: &Cancellation) -> Stop {
    tokio::select! {
        biased;
        () = cancel.asked.cancelled() => match cancel.by.get() {
            Some(by) => Stop::Cancelled(by.clone()),
            // The cause is set before the token.
            None => Stop::Deadline,
        },
        () = sleep_until(deadline) => Stop::Deadline,
    }
}

/// The streams of a child, as seen from the host.
pub(super) struct Streams<I, O, E> {
    /// Nothing where the request is in there already.
    pub(super) stdin: Option<I>,
    pub(super) stdout: O,
    pub(super) stderr: E,
}

/// Writes the request and reads both outputs at once, so that no pipe can fill up and block.
struct Conversation<'a, I, O, E> {
    stdin: Option<I>,
    unwritten: &'a [u8],
    input: Input,
    stdout: Option<O>,
    stdout_total: u64,
    kept: Vec<u8>,
    stderr: Option<E>,
    stderr_total: u64,
    tail: VecDeque<u8>,
    limits: Limits,
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

impl<'a, I, O, E> Conversation<'a, I, O, E>
where
    I: AsyncWrite + Unpin,
    O: AsyncRead + Unpin,
    E: AsyncRead + Unpin,
{
    fn new(streams: Streams<I, O, E>, request: &'a [u8], limits: Limits) -> Self {
        Self {
            input: if streams.stdin.is_some() { Input::Unread } else { Input::Delivered },
            stdin: streams.stdin,
            unwritten: request,
            stdout: Some(streams.stdout),
            stdout_total: 0,
            kept: Vec::new(),
            stderr: Some(streams.stderr),
            stderr_total: 0,
            tail: VecDeque::new(),
            limits,
            buffer: Box::new_uninit_slice(16 << 10),
        }
    }

    /// Until stdout has ended and the process has exited, or something ends it earlier.
    ///
    /// After the exit, while a descendant holds stdout, each chunk re-arms the grace; the whole
    /// wait is bounded, and the deadline goes on.
    async fn run(
        &mut self,
        has_exited: impl Fn() -> bool,
        exited: impl Future<Output = ()>,
        deadline: Instant,
        cancel: &Cancellation,
    ) -> Option<Stop> {
        let mut exited = pin!(exited);
        // The moment of the exit, and the moment until which more output is awaited.
        let mut gone: Option<(Instant, Instant)> = None;
        loop {
            if self.stdout_total > self.limits.stdout as u64 {
                return Some(Stop::OutputLimit);
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
                    // The host itself may have been frozen: an engine that has exited counts, also
                    // where a descendant still holds stdout.
                    self.look();
                    if self.stdout_total > self.limits.stdout as u64 {
                        return Some(Stop::OutputLimit);
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
    async fn wind_down(
        &mut self,
        gone: impl Future<Output = ()>,
        until: Instant,
        cancel: &Cancellation,
    ) {
        let mut gone = pin!(gone);
        loop {
            tokio::select! {
                biased;
                () = cancel.again.cancelled() => return,
                () = sleep_until(until) => return,
                () = &mut gone => return,
                _ = poll_fn(|cx| self.poll_step(cx)) => {}
            }
        }
    }

    /// Moves what is left in the pipes once the other ends are dead.
    async fn drain(&mut self) {
        let rest = async {
            while self.stdin.is_some() || self.stdout.is_some() || self.stderr.is_some() {
                poll_fn(|cx| self.poll_step(cx)).await;
            }
        };
        // Only a process outside the tree can still hold a pipe; it is not waited for.
        let _ = timeout(LAST_READ, rest).await;
    }

    /// Takes what is there, without blocking, a bounded number of times.
    fn look(&mut self) {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        for _ in 0..=self.limits.stdout / self.buffer.len() {
            if self.poll_step(&mut cx).is_pending() {
                return;
            }
        }
    }

    /// Moves whichever stream can move. Pending only when none can.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        let mut read = ReadBuf::uninit(&mut self.buffer);
        if poll_read(&mut self.stdout, &mut read, cx).is_ready() {
            let bytes = read.filled();
            self.stdout_total += bytes.len() as u64;
            let room = self.limits.stdout - self.kept.len();
            self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
            return Poll::Ready(Step::Stdout);
        }
        if poll_read(&mut self.stderr, &mut read, cx).is_ready() {
            let bytes = read.filled();
            self.stderr_total += bytes.len() as u64;
            self.tail.extend(bytes);
            let excess = self.tail.len().saturating_sub(self.limits.stderr);
            self.tail.drain(..excess);
            return Poll::Ready(Step::Other);
        }
        self.poll_write(cx).map(|()| Step::Other)
    }

    /// Writes once. The stream is closed as soon as the request is through, or cannot be. On
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

    fn captured(self) -> (Captured, Captured) {
        (
            Captured {
                bytes: self.kept,
                total: self.stdout_total,
                complete: self.stdout.is_none(),
            },
            Captured {
                bytes: self.tail.into(),
                total: self.stderr_total,
                complete: self.stderr.is_none(),
            },
        )
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

#[cfg(test)]
mod tests;
