//! Linux: the tree below this process. As a subreaper it becomes the parent of every descendant
//! whose own parent has ended, so that nothing can leave, whatever session or group it is in.
//!
//! What is below may take from this process whatever a user can take from his own processes:
//! descriptors and memory, by lowering its limits. So the list of children is opened before the
//! program starts and read again through the same descriptor into memory that is there already, and
//! whether a child runs is asked of the kernel by its id. What cannot be read is not known, and is
//! never taken for nothing.

use std::cell::RefCell;
use std::fs::File;
use std::time::{Duration, Instant};

use rustix::io::{Errno, pread};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

/// How many bytes are read at once; there is memory for as many from the start, which are the ids of
/// some five hundred children.
const CHUNK: usize = 4096;

/// Asks for the state of a child that has ended, and changes nothing.
const LOOK: WaitIdOptions =
    WaitIdOptions::EXITED.union(WaitIdOptions::NOHANG).union(WaitIdOptions::NOWAIT);

/// What is below this process, whoever it belongs to.
pub(super) struct Tree {
    list: File,
    /// The text of the list, and the ids in it.
    read: RefCell<(Vec<u8>, Vec<Pid>)>,
    /// The children that this process was born with: a shell that starts others and then executes
    /// the host leaves them to it. They are the caller's, and nothing is done to them.
    foreign: Vec<Pid>,
}

/// What became of everything that was to be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Killed {
    /// How many still run; unknown where nobody could be named.
    pub(super) left: Option<u32>,
    /// Whether any had to be killed.
    pub(super) any: bool,
}

impl Tree {
    /// Makes this process the one that orphans below it come to, and opens the list of its
    /// children, of whom the foreign ones are not its own.
    ///
    /// # Errors
    /// Why not every descendant would be within reach.
    pub(super) fn below_this_process(foreign: Vec<Pid>) -> Result<Self, String> {
        become_subreaper()?;
        // The first thread alone forks, so that the children are all its own.
        let list = File::open("/proc/thread-self/children")
            .map_err(|error| format!("/proc does not tell the children: {error}"))?;
        let read = RefCell::new((Vec::with_capacity(CHUNK), Vec::with_capacity(CHUNK / 8)));
        Ok(Self { list, read, foreign })
    }

    /// Hands over the children of this process but the foreign ones, oldest first; `None` where the
    /// list cannot be read. One that is read while children end can lack others.
    fn children<T>(&self, of: impl FnOnce(&[Pid]) -> T) -> Option<T> {
        let (text, pids) = &mut *self.read.borrow_mut();
        text.clear();
        loop {
            let at = text.len();
            // With no memory for more, those that fit are killed, and the next look finds others.
            if text.capacity() - at < CHUNK / 2 && text.try_reserve(CHUNK).is_err() {
                break;
            }
            text.resize(text.capacity().min(at + CHUNK), 0);
            match pread(&self.list, &mut text[at..], at as u64) {
                Err(Errno::INTR) => text.truncate(at),
                Err(_) => return None,
                Ok(read) => {
                    text.truncate(at + read);
                    if read == 0 {
                        break;
                    }
                }
            }
        }
        pids.clear();
        let words = text.split(u8::is_ascii_whitespace);
        let found = words.filter_map(|word| str::from_utf8(word).ok()?.parse().ok());
        for pid in found.filter_map(Pid::from_raw).filter(|pid| !self.foreign.contains(pid)) {
            if pids.try_reserve(1).is_err() {
                break;
            }
            pids.push(pid);
        }
        Some(of(pids))
    }

    /// Whether a child other than `leader` runs. Where that is so, so does a descendant. `None`
    /// where nobody can say.
    pub(super) fn has_others(&self, leader: Pid) -> Option<bool> {
        self.children(|children| children.iter().any(|child| *child != leader && runs(*child)))
    }

    /// Kills and reaps all children but the foreign ones, and whoever becomes one meanwhile, until
    /// the kernel says that there is none, or the time is up.
    ///
    /// Only children are killed, and the groups that they lead, by ids that cannot be reused before
    /// they are reaped here; their own children become ours and come next. A kill that meets a fork
    /// under way cancels it, and one of the group meets the child that the fork made just before.
    pub(super) fn kill_descendants(&self, bound: Duration) -> Killed {
        let until = Instant::now() + bound;
        let (mut known, mut unchanged, mut any) = (None, 0, false);
        loop {
            // With children of the caller among ours, only the list tells that there is no other.
            if self.foreign.is_empty() && reap() {
                return Killed { left: Some(0), any };
            }
            let seen = self.children(|children| {
                // The newest first: who forks without end is among them.
                for child in children.iter().rev().take_while(|_| Instant::now() < until) {
                    any = any || runs(*child);
                    let _ = kill_process_group(*child, Signal::KILL);
                    let _ = kill_process(*child, Signal::KILL);
                    if !self.foreign.is_empty() {
                        let reap = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
                        let _ = waitid(WaitId::Pid(*child), reap);
                    }
                }
                (children.len(), children.last().copied())
            });
            if seen.is_some_and(|(count, _)| count == 0) && !self.foreign.is_empty() {
                return Killed { left: Some(0), any };
            }
            if Instant::now() >= until {
                let left = |children: &[Pid]| children.iter().filter(|pid| runs(**pid)).count();
                // A list without anybody on it contradicts the kernel, who still has a child.
                let left = self.children(left).filter(|_| seen.is_some_and(|(count, _)| count > 0));
                return Killed { left: left.and_then(|left| u32::try_from(left).ok()), any };
            }
            // As long as new ones appear there is no time to lose: each level of a tree is a new one.
            unchanged = if seen == known { unchanged + 1 } else { 0 };
            match unchanged {
                0 => {}
                1..16 => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_micros(100 << (unchanged - 16).min(3))),
            }
            known = seen;
        }
    }
}

/// The children that this process was born with.
///
/// # Errors
/// It has some, and nobody can say which.
pub(super) fn born_with() -> Result<Vec<Pid>, String> {
    if matches!(waitid(WaitId::All, LOOK), Err(Errno::CHILD)) {
        return Ok(Vec::new());
    }
    let tree = Tree::below_this_process(Vec::new())?;
    tree.children(<[Pid]>::to_vec).ok_or_else(|| "/proc does not tell the children".to_owned())
}

#[cfg(target_os = "linux")]
fn become_subreaper() -> Result<(), String> {
    use rustix::process::{getpid, set_child_subreaper};
    set_child_subreaper(Some(getpid())).map_err(|error| format!("no subreaper: {error}"))
}

/// Orphans go to the system's first process, where nobody can find them.
#[cfg(not(target_os = "linux"))]
fn become_subreaper() -> Result<(), String> {
    Err("this system has no subreapers; only the process group is within reach".to_owned())
}

/// Whether a child of this process runs. The kernel says so without a descriptor and without `/proc`:
/// only one all of whose threads have ended can be waited for.
fn runs(child: Pid) -> bool {
    matches!(waitid(WaitId::Pid(child), LOOK), Ok(None) | Err(Errno::INTR))
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
