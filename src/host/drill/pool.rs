//! Many things at once, each in a host process of its own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};

use crate::host::context::Context;
use crate::host::process::observed::{self, Stop};

/// Does `total` things, `jobs` at once, and returns what came of them in their order; or the signal
/// that stopped it, when none of them runs any more.
pub(super) fn many<T: Send>(
    total: usize,
    jobs: Option<u16>,
    context: &Context,
    one: impl Fn(usize, &Stop) -> T + Sync,
) -> Result<Vec<T>, u8> {
    let stop = observed::prepare();
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let jobs = jobs.map_or_else(cores, usize::from).min(total).max(1);
    let bar = progress(total, context);
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(total)));
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= total || stop.asked().is_some() {
                        return;
                    }
                    let came = one(index, &stop);
                    bar.inc(1);
                    // Poisoned only if another worker panicked, which the scope passes on.
                    if let Ok(mut done) = done.lock() {
                        done.push((index, came));
                    }
                }
            });
        }
    });
    bar.finish_and_clear();
    if let Some(signal) = stop.asked() {
        return Err(signal);
    }
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, came)| came).collect())
}

/// A bar on stderr, for people only.
fn progress(total: usize, context: &Context) -> ProgressBar {
    use std::io::IsTerminal;
    let dumb = context.var("TERM").is_none_or(|term| term == "dumb");
    if dumb || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total as u64);
    match ProgressStyle::with_template("{bar:40} {pos}/{len}  {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
