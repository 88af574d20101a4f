//! Linux: the tree below this process. As a subreaper it becomes the parent of every descendant
//! whose own parent has ended, so that nothing can leave, whatever session or group it is in.

use std::fs;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

/// Makes this process the one that orphans below it come to.
///
/// # Errors
/// Why not every descendant would be within reach.
#[cfg(target_os = "linux")]
pub(super) fn become_subreaper() -> Result<(), String> {
    use rustix::process::{getpid, set_child_subreaper};
    set_child_subreaper(Some(getpid())).map_err(|error| format!("no subreaper: {error}"))
}

/// Orphans go to the system's first process, where nobody can find them.
#[cfg(not(target_os = "linux"))]
pub(super) fn become_subreaper() -> Result<(), String> {
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
/// Only children are killed, and the groups that they lead, by ids that cannot be reused before they
/// are reaped here; their own children become ours and come next. A kill that meets a fork under way
/// cancels it, and one of the group meets the child that the fork made just before.
pub(super) fn kill_descendants(bound: Duration, foreign: &[Pid]) -> (u32, bool) {
    let until = Instant::now() + bound;
    let mut known = Vec::new();
    let mut unchanged = 0;
    let mut killed = false;
    loop {
        if foreign.is_empty() && reap() {
            return (0, killed);
        }
        let mut children = children().unwrap_or_default();
        children.retain(|child| !foreign.contains(child));
        if children.is_empty() && !foreign.is_empty() {
            return (0, killed);
        }
        if Instant::now() >= until {
            let running = children.into_iter().filter(|child| is_running(*child)).count();
            return (u32::try_from(running).unwrap_or(u32::MAX), killed);
        }
        // The newest first: who forks without end is among them.
        for child in children.iter().rev().take_while(|_| Instant::now() < until) {
            killed = killed || is_running(*child);
            let _ = kill_process_group(*child, Signal::KILL);
            let _ = kill_process(*child, Signal::KILL);
            if !foreign.is_empty() {
                let _ = waitid(WaitId::Pid(*child), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
            }
        }
        // As long as new ones appear there is no time to lose: each level of a tree is a new one.
        unchanged = if children == known { unchanged + 1 } else { 0 };
        match unchanged {
            0 => {}
            1..16 => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(100 << (unchanged - 16).min(3))),
        }
        known = children;
    }
}

/// Reaps children that have ended, and says whether there is no child at all. All of them, since a
/// list of thousands takes longer; but not without end, since there may be who makes them as fast.
fn reap() -> bool {
    let until = Instant::now() + Duration::from_millis(50);
    while Instant::now() < until {
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(error) => return error == Errno::CHILD,
        }
    }
    false
}

/// Whether a child other than `leader` is running. Where that is so, so is a descendant.
pub(super) fn has_others(leader: Pid) -> bool {
    let children = children().unwrap_or_default();
    children.into_iter().any(|child| child != leader && is_running(child))
}

/// Reaps children that have ended, but not `leader`, whose id must stay taken, for a moment: there
/// may be who makes them faster than this. The list of all is not asked for, which takes the longer
/// the more there are.
#[cfg(target_os = "linux")]
pub(super) fn reap_orphans(leader: Pid) {
    use nix::sys::wait::{Id, WaitPidFlag, waitid as look_for};
    let until = Instant::now() + Duration::from_millis(2);
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    while Instant::now() < until {
        let found = look_for(Id::All, look).ok().and_then(|status| status.pid());
        let Some(child) = found.and_then(|pid| Pid::from_raw(pid.as_raw())) else { return };
        if child == leader {
            return;
        }
        let _ = waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}

/// Orphans do not come to this process.
#[cfg(not(target_os = "linux"))]
pub(super) fn reap_orphans(_leader: Pid) {}

/// The children of this process, whose first thread alone forks; `None` where `/proc` does not tell.
fn children() -> Option<Vec<Pid>> {
    let list = fs::read_to_string("/proc/thread-self/children").ok()?;
    let pids = list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
    Some(pids.filter_map(Pid::from_raw).collect())
}

/// A process that has ended and waits to be reaped does not run.
pub(super) fn is_running(pid: Pid) -> bool {
    fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).is_ok_and(|stat| runs(&stat))
}

/// By the line that `/proc` has of a process. Its name, in parentheses, may hold any bytes; the
/// words after it begin with the state, and the number of its threads is the eighteenth. One whose
/// first thread has ended before the others looks like one that has ended.
fn runs(stat: &[u8]) -> bool {
    let Some(end) = stat.iter().rposition(|byte| *byte == b')') else { return false };
    let rest = String::from_utf8_lossy(&stat[end + 1..]);
    let mut words = rest.split_ascii_whitespace();
    match words.next() {
        Some("Z") => words.nth(16).and_then(|threads| threads.parse().ok()).unwrap_or(1) > 1,
        state => state.is_some_and(|state| state != "X"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_runs() {
        let line = |name: &[u8], state: &str, threads: &str| {
            let rest = format!(") {state} 1 2 3 0 -1 4 5 6 7 8 9 10 11 12 20 0 {threads} 0 99");
            [b"7 (", name, rest.as_bytes()].concat()
        };
        for (stat, expected) in [
            (line(b"sh", "S", "1"), true),
            (line(b"sh", "R", "9"), true),
            (line(b"sh", "Z", "1"), false),
            (line(b"sh", "Z", "2"), true),
            (line(b"sh", "X", "1"), false),
            (line(b"a) Z 1 (", "S", "1"), true),
            (line(b"m\xc3\xb6p\xff", "S", "1"), true),
            (b"7 (sh) Z".to_vec(), false),
            (b"".to_vec(), false),
        ] {
            assert_eq!(runs(&stat), expected, "{}", String::from_utf8_lossy(&stat));
        }
    }

    #[test]
    fn this_process_runs() {
        assert!(is_running(rustix::process::getpid()));
    }
}
