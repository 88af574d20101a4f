//! Unix: the worker, which the supervisor forks. It runs a command's exchanges and says what came of
//! them; its supervisor prints it.

use std::future::pending;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, getppid};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::channel::{Message, send};
use super::clock::now;
use super::signals::{CANCELLING, LIFELINE, ORPHANED, Set, Signals, ignored, learn_ignored};
use crate::host::exchange::cancel::Cancel;
use crate::host::exchange::observation::CancelledBy;
use crate::host::process::{Output, Supervision};

/// How often the worker looks for its supervisor where nothing tells it.
#[cfg(not(target_os = "linux"))]
const LOOK: Duration = Duration::from_millis(50);

/// How late an exchange may begin without a word: the supervisor waits longer than that in any case.
const LATE: Duration = Duration::from_millis(20);

/// What this process is as a worker, for its whole life; nothing where it is none.
static WORKER: OnceLock<Worker> = OnceLock::new();

struct Worker {
    channel: UnixStream,
    supervisor: Pid,
    /// Whether the supervisor reads the stdin lifeline; else its signal means nothing.
    lifeline: bool,
    deadline: Duration,
    signals: Signals,
    /// Whether there is nothing yet that this process must end before itself.
    alone: Arc<AtomicBool>,
}

/// Makes this process the worker of `supervisor`.
///
/// # Errors
/// The system has no room for what it needs to hear of signals.
pub(super) fn begin(
    channel: UnixStream,
    supervisor: Pid,
    supervision: &Supervision<'_>,
    signals: Signals,
) -> std::io::Result<()> {
    let alone = Arc::new(AtomicBool::new(true));
    // Also where the caller ignores it.
    signal_hook::flag::register_conditional_default(ORPHANED, Arc::clone(&alone))?;
    let signals = signals.in_a_fork()?;
    let Supervision { lifeline, deadline, .. } = *supervision;
    let _ = WORKER.set(Worker { channel, supervisor, lifeline, deadline, signals, alone });
    Ok(())
}

fn say(message: &Message) {
    if let Some(worker) = WORKER.get() {
        // Without a supervisor nobody is left to hear it.
        let _ = send(&mut &worker.channel, message);
    }
}

/// Tells the supervisor the deadline, if it is another one than was known before, or begins so much
/// later that this would take from the worker's time to end.
pub(in crate::host) fn announce_deadline(deadline: Duration) {
    if WORKER.get().is_none_or(|worker| worker.deadline == deadline && now() < LATE) {
        return;
    }
    say(&Message::Deadline(now() + deadline, format!("{deadline:?}")));
}

/// Tells the supervisor the program's process group.
pub(super) fn announce_group(leader: Pid) {
    say(&Message::Group(leader.as_raw_nonzero().get()));
}

/// Hands the supervisor what it is to print, once nothing runs any more.
pub(super) fn deliver(output: Output) {
    say(&Message::Result(output));
}

/// Tells the worker that the supervisor has what it needs to end what will be started, and what it has
/// found out meanwhile: which signals both were born ignoring.
pub(super) fn tell_ready(mut channel: &UnixStream) {
    let (known, mask) = ignored().map_or((0, 0), |Set(mask)| (1, mask));
    let _ = channel.write_all(&[&[known], &mask.to_le_bytes()[..]].concat());
}

/// From here on the end of the supervisor is no longer the end of this process at once, which may be
/// about to start something. Until then it may wait for a disk, and nobody would end it. Returns when
/// the supervisor has what it needs to end what will be started.
///
/// # Errors
/// The system has no room.
pub(in crate::host) fn defer_parent_death() -> std::io::Result<()> {
    let Some(worker) = WORKER.get() else { return Ok(()) };
    worker.signals.hear(ORPHANED)?;
    worker.alone.store(false, Ordering::SeqCst);
    // As a rule it is there already. Without a supervisor there is nothing to wait for.
    let mut ready = [0; 9];
    if (&worker.channel).read_exact(&mut ready).is_ok() {
        let [known, mask @ ..] = ready;
        learn_ignored((known == 1).then_some(Set(u64::from_le_bytes(mask))));
    }
    Ok(())
}

/// Is told whenever a child of this process may have changed.
pub(super) static CHANGED: Notify = Notify::const_new();

/// Turns what this process hears into cancellations, and into news of its children, until the task is
/// aborted. The stdin lifeline is read by the supervisor, which hands its end on as a signal.
///
/// # Errors
/// The runtime cannot wait for one more descriptor, or the system has no room.
pub(in crate::host) fn forward_cancels(cancel: &Cancel) -> std::io::Result<JoinHandle<()>> {
    static OWN: OnceLock<Signals> = OnceLock::new();
    let signals = if let Some(worker) = WORKER.get() {
        &worker.signals
    } else {
        // A caller that is no command of ours has nobody before it who hears.
        if OWN.get().is_none() {
            let _ = OWN.set(Signals::queue(&[])?);
        }
        OWN.get().ok_or_else(|| std::io::Error::other("no signals"))?
    };
    let supervisor = WORKER.get().map(|worker| worker.supervisor);
    let lifeline = WORKER.get().is_some_and(|worker| worker.lifeline);
    // It is no pipe everywhere, and is read as one.
    let mut wake = Receiver::from_owned_fd_unchecked(signals.as_fd().try_clone_to_owned()?)?;
    let cancel = cancel.clone();
    Ok(tokio::spawn(async move {
        let mut gone = std::pin::pin!(end_of(supervisor));
        let mut orphaned = false;
        let (mut bytes, mut read) = ([0; 1024], 0);
        loop {
            for number in signals.came_in(&bytes[..read]) {
                match CANCELLING.iter().find(|(cancelling, ..)| *cancelling == number) {
                    Some((_, code, name)) => cancel.ask(CancelledBy::Signal(*code, name)),
                    None if number == LIFELINE && lifeline => cancel.ask(CancelledBy::Lifeline),
                    None => {}
                }
            }
            if orphaned || supervisor.is_some() && getppid() != supervisor {
                // Nobody is left to hear the verdict; what counts is that nothing stays.
                cancel.ask(CancelledBy::Lifeline);
                cancel.ask(CancelledBy::Lifeline);
            }
            CHANGED.notify_waiters();
            tokio::select! {
                came = wake.read(&mut bytes) => match came {
                    Ok(came) => read = came,
                    Err(_) => return,
                },
                () = &mut gone, if !orphaned => (orphaned, read) = (true, 0),
            }
        }
    }))
}

/// Never; the kernel says it with [`ORPHANED`].
#[cfg(target_os = "linux")]
async fn end_of(_supervisor: Option<Pid>) {
    pending::<()>().await;
}

/// Until the supervisor has ended.
#[cfg(not(target_os = "linux"))]
async fn end_of(supervisor: Option<Pid>) {
    use std::os::fd::OwnedFd;

    use nix::sys::event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue};

    let Some(supervisor) = supervisor else { return pending::<()>().await };
    let watch = || -> std::io::Result<Receiver> {
        let pid = supervisor.as_raw_nonzero().get().unsigned_abs() as usize;
        let queue = Kqueue::new()?;
        let (once, exit) = (EvFlags::EV_ADD | EvFlags::EV_ONESHOT, FilterFlag::NOTE_EXIT);
        let end = KEvent::new(pid, EventFilter::EVFILT_PROC, once, exit, 0, 0);
        queue.kevent(&[end], &mut [], None)?;
        // It is no pipe, and is never read: it is only waited for.
        Receiver::from_owned_fd_unchecked(OwnedFd::from(queue))
    };
    if let Ok(queue) = watch()
        && queue.readable().await.is_ok()
    {
        return;
    }
    // There is no room for a queue, or the supervisor had gone before it was asked for.
    while getppid() == Some(supervisor) {
        tokio::time::sleep(LOOK).await;
    }
}
