//! Linux: the tree below this process. As a subreaper it becomes the parent of every descendant
//! whose own parent has ended, so that nothing can leave, whatever session or group it is in.

use std::fs;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// Makes this process the one that orphans below it come to.
///
/// # Errors
/// Why not every descendant would be within reach.
#[cfg(target_os = "linux")]
pub(super) fn adopt() -> Result<(), String> {
    use rustix::process::{getpid, set_child_subreaper};
    set_child_subreaper(Some(getpid())).map_err(|error| format!("no subreaper: {error}"))
}

/// Orphans go to the system's first process, where nobody can find them.
#[cfg(not(target_os = "linux"))]
pub(super) fn adopt() -> Result<(), String> {
    Err("this system has no subreapers; only the process group is within reach".to_owned())
}

/// Whether `/proc` tells the children, without which an orphan cannot be found.
///
/// # Errors
/// That it does not.
pub(super) fn look() -> Result<(), String> {
    children().map(drop).ok_or_else(|| "/proc does not tell the children".to_owned())
}

/// The children that this process was born with: a shell that starts others and then executes the
/// host leaves them to it. They are the caller's, and nothing is done to them.
pub(super) fn foreign() -> Vec<Pid> {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::All, look) {
        Err(Errno::CHILD) => Vec::new(),
        Ok(_) | Err(_) => children().unwrap_or_default(),
    }
}

/// Kills and reaps all children but the foreign ones, and whoever becomes one meanwhile, until there
/// is none or the time is up. Returns how many are still running, and whether any had to be killed:
/// a list of children that end while it is read can lack others, so one look is not enough.
///
/// Only children are killed, by an id that cannot be reused before they are reaped here; their own
/// children become ours and come next. A kill that meets a fork under way cancels it.
pub(super) fn sweep(bound: Duration, foreign: &[Pid]) -> (u32, bool) {
    let until = Instant::now() + bound;
    let mut pause = Duration::from_micros(50);
    let mut known = Vec::new();
    let mut killed = false;
    loop {
        if foreign.is_empty() && is_childless() {
            return (0, killed);
        }
        let mut children = children().unwrap_or_default();
        children.retain(|child| !foreign.contains(child));
        for child in &children {
            killed |= is_running(*child);
            let _ = kill_process(*child, Signal::KILL);
            let _ = waitid(WaitId::Pid(*child), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
        if children.is_empty() && !foreign.is_empty() {
            return (0, killed);
        }
        if Instant::now() >= until {
            let running = children.into_iter().filter(|child| is_running(*child)).count();
            return (u32::try_from(running).unwrap_or(u32::MAX), killed);
        }
        // As long as new ones appear there is no time to lose.
        if children.iter().all(|child| known.contains(child)) {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(1));
        }
        known = children;
    }
}

/// Reaps one child that has ended, if there is one, and says whether there is no child at all.
fn is_childless() -> bool {
    let any = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    matches!(any, Err(Errno::CHILD))
}

/// Whether a child other than `leader` is running. Where that is so, so is a descendant.
pub(super) fn has_others(leader: Pid) -> bool {
    let children = children().unwrap_or_default();
    children.into_iter().any(|child| child != leader && is_running(child))
}

/// Reaps the children that have ended, but for `leader`, whose id must stay taken.
pub(super) fn reap_orphans(leader: Pid) {
    for child in children().unwrap_or_default() {
        if child != leader {
            let _ = waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    }
}

/// The children of this process, which has a single thread; `None` where `/proc` does not tell.
fn children() -> Option<Vec<Pid>> {
    let list = fs::read_to_string("/proc/thread-self/children").ok()?;
    let pids = list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
    Some(pids.filter_map(Pid::from_raw).collect())
}

/// A process that has ended and waits to be reaped does not run.
pub(super) fn is_running(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    // The name, in parentheses, may hold anything; the state is the first word after it.
    stat.is_ok_and(|stat| {
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    })
}
