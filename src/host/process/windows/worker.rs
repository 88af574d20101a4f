//! Windows: what the process hears of its console, and what it says to a person who waits.

use std::io::Read;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use tokio::signal::windows as console;
use tokio::task::JoinHandle;

use crate::host::exchange::cancel::Cancel;
use crate::host::exchange::observation::CancelledBy;
use crate::host::process::{NOTICE, notice};

/// What this process is as a worker.
static WORKER: Mutex<Worker> = Mutex::new(Worker { events: None, lifeline: false, deadline: None });

struct Worker {
    /// No event that comes once they are registered is lost, though it is acted on only when
    /// somebody listens.
    events: Option<std::io::Result<Events>>,
    lifeline: bool,
    deadline: Option<(Instant, Duration)>,
}

struct Events {
    c: console::CtrlC,
    again: console::CtrlBreak,
    close: console::CtrlClose,
    logoff: console::CtrlLogoff,
    shutdown: console::CtrlShutdown,
}

/// From here on console events are heard.
pub(super) fn begin(lifeline: bool, deadline: Duration) {
    if let Ok(mut worker) = WORKER.lock() {
        let deadline = Some((Instant::now() + deadline, deadline));
        *worker = Worker { events: Some(Events::register()), lifeline, deadline };
    }
}

/// When the deadline is.
pub(super) fn deadline() -> Instant {
    let known = WORKER.lock().ok().and_then(|worker| worker.deadline);
    known.map_or_else(Instant::now, |(at, _)| at)
}

/// Says when the deadline is, as far as it is known by then.
pub(in crate::host) fn announce_deadline(deadline: Duration) {
    if let Ok(mut worker) = WORKER.lock() {
        worker.deadline = Some((Instant::now() + deadline, deadline));
    }
}

/// There is nobody here whose end would be the end of this process.
///
/// # Errors
/// None on this system.
#[expect(clippy::unnecessary_wraps, reason = "other systems have a supervisor")]
pub(in crate::host) fn defer_parent_death() -> std::io::Result<()> {
    Ok(())
}

/// Takes console events and the end of the stdin lifeline as cancellations, until the task is aborted.
///
/// # Errors
/// None on this system: without console events the rest still works.
#[expect(clippy::unnecessary_wraps, reason = "other systems need room for one more stream")]
pub(in crate::host) fn forward_cancels(cancel: &Cancel) -> std::io::Result<JoinHandle<()>> {
    let (events, lifeline) = match WORKER.lock() {
        Ok(mut worker) => (worker.events.take(), std::mem::take(&mut worker.lifeline)),
        Err(_) => (None, false),
    };
    let events = events.unwrap_or_else(Events::register).inspect_err(|error| {
        tracing::warn!(%error, "console events do not cancel");
    });
    if lifeline {
        let cancel = cancel.clone();
        thread::spawn(move || {
            // Whatever is written to the lifeline is of no interest; only its end is.
            let mut bytes = [0; 4096];
            while std::io::stdin().lock().read(&mut bytes).is_ok_and(|read| read > 0) {}
            cancel.ask(CancelledBy::Lifeline);
        });
    }
    let cancel = cancel.clone();
    Ok(tokio::spawn(async move {
        let told = async {
            tokio::time::sleep(NOTICE).await;
            let deadline = WORKER.lock().ok().and_then(|worker| worker.deadline);
            if let Some((_, deadline)) = deadline {
                notice(&format!("{deadline:?}"));
            }
        };
        let heard = async {
            if let Ok(events) = events {
                events.watch(cancel).await;
            }
        };
        tokio::join!(told, heard);
    }))
}

impl Events {
    fn register() -> std::io::Result<Self> {
        Ok(Self {
            c: console::ctrl_c()?,
            again: console::ctrl_break()?,
            close: console::ctrl_close()?,
            logoff: console::ctrl_logoff()?,
            shutdown: console::ctrl_shutdown()?,
        })
    }

    async fn watch(mut self, cancel: Cancel) {
        loop {
            let (number, name) = tokio::select! {
                Some(()) = self.c.recv() => (2, "Ctrl-C"),
                Some(()) = self.again.recv() => (2, "Ctrl-Break"),
                Some(()) = self.close.recv() => (1, "the closing of the console"),
                Some(()) = self.logoff.recv() => (15, "the end of the session"),
                Some(()) = self.shutdown.recv() => (15, "the system's shutdown"),
                else => return,
            };
            cancel.ask(CancelledBy::Signal(number, name));
        }
    }
}
