//! The one effect: runs one program once and says what was seen.
//!
//! Whatever goes wrong in here becomes a fact of the [`Observation`]; nothing is judged and nothing
//! is retried.

pub mod cancel;
pub mod launch;
pub mod observation;
mod sink;
mod stdio;
pub mod transport;

use std::sync::OnceLock;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, timeout};

use super::process::{self, Child, ChildStreams};
use cancel::{Cancel, interrupted};
use launch::{Launch, Limits, Stdin};
use observation::{Ended, Observation, StartFault, Stop};
use stdio::StdioPump;

/// The signals by which a program may have ended because all processes were asked to end at once.
const WISHES: [&str; 3] = ["SIGINT", "SIGTERM", "SIGHUP"];

/// How much later than the program the host may hear of such a wish.
const LAST_WISH: Duration = Duration::from_millis(5);

/// Runs one program and sees it to its end. Returns within the deadline plus
/// [`terminate`](Limits::terminate), [`sweep`](Limits::sweep) and a few milliseconds, whatever the
/// program does. What this process hears meanwhile is asked of `cancel`.
///
/// It can be called again and again in one process, by one thread at a time: everything below this
/// process is ended before it returns, and no other wait takes an exit status that is not its own.
#[must_use]
pub fn exchange(launch: &Launch, limits: &Limits, cancel: &Cancel) -> Observation {
    let began = Instant::now();
    let faulty = |fault| Observation { start_fault: Some(fault), ..Observation::default() };
    let seen = match process::spawn(launch, limits) {
        Err(fault) => faulty(fault),
        Ok(spawned) => {
            // The program is at work while this is set up.
            let seen = runtime().and_then(|runtime| {
                runtime.block_on(async {
                    let heard = process::forward_cancels(cancel)?;
                    let (child, streams) = spawned.connect()?;
                    let seen = converse(launch, limits, child, streams, began, cancel).await;
                    heard.abort();
                    Ok(seen)
                })
            });
            let broken = |error: std::io::Error| {
                let why = format!("no room for its own runtime, the program was ended: {error}");
                Ok(Observation { host_fault: Some(why), ..Observation::default() })
            };
            seen.unwrap_or_else(broken).unwrap_or_else(faulty)
        }
    };
    Observation { elapsed: began.elapsed(), ..seen }
}

/// The runtime of every exchange of this process. It is kept to the end: to take it down costs time,
/// and nothing of it outlives the process.
fn runtime() -> std::io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if RUNTIME.get().is_none() {
        let _ = RUNTIME.set(Builder::new_current_thread().enable_all().build()?);
    }
    RUNTIME.get().ok_or_else(|| std::io::Error::other("no runtime"))
}

/// From the start to the last kill.
async fn converse(
    launch: &Launch,
    limits: &Limits,
    mut child: Child,
    streams: ChildStreams,
    began: Instant,
    cancel: &Cancel,
) -> Result<Observation, StartFault> {
    let mut seen = Observation { pid: Some(child.pid()), ..Observation::default() };
    let deadline = began + limits.deadline;
    let input: &[u8] = match &launch.stdin {
        Stdin::Bytes(bytes) => bytes,
        Stdin::File(_) => &[],
    };
    let mut pump = StdioPump::new(streams, input, [&launch.stdout, &launch.stderr], *limits);
    let started = tokio::select! {
        biased;
        started = child.started() => started.map(|()| None),
        stop = interrupted(deadline, cancel) => Ok(Some(stop)),
    };
    seen.stop = started.inspect_err(|_| drop(child.destroy(limits.sweep)))?;
    if seen.stop.is_none() {
        seen.started = true;
        seen.stop = pump.run(|| child.has_exited(), child.exited(), deadline, cancel).await;
    }
    if seen.stop.is_some() {
        // From here on a broken pipe would be the host's own doing, not the program's.
        pump.stdin = None;
    }
    let complete = pump.stdout.is_none();
    if matches!(seen.stop, Some(Stop::Deadline | Stop::Cancelled(_))) {
        child.terminate();
        let until = Instant::now() + limits.terminate;
        pump.wind_down(child.gone(), until, cancel).await;
    }
    let end = child.destroy(limits.sweep);
    let over = pump.drain().await;
    seen.stop = seen.stop.or(over);
    // Who was asked to stop has not crashed.
    let wished = matches!(&end.ended, Some(Ended::Signal(by)) if WISHES.contains(&by.as_str()));
    if seen.stop.is_none() && wished {
        let by = timeout(LAST_WISH, cancel.asked(1)).await;
        seen.stop = by.ok().map(Stop::Cancelled);
    }
    // Before the program ran, exit and request were those of the host's own child.
    // What became of a file is between the program and the file.
    let written = seen.started && matches!(launch.stdin, Stdin::Bytes(_));
    seen.input = written.then_some(pump.input);
    (seen.stdout, seen.stderr) = pump.captured();
    // An end that the host brought about says nothing about the output.
    seen.stdout.complete &= complete || seen.stop.is_none();
    seen.ended = end.ended.filter(|_| seen.started);
    seen.containment = Some(end.containment);
    seen.orphaned = end.orphaned;
    seen.survivors = end.survivors;
    Ok(seen)
}

#[cfg(test)]
mod tests;
