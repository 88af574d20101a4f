//! Windows: one process is the whole host. It is in a job that ends with it, and so is everything
//! that it starts, from its first moment on; a second job inside holds the engine's tree, so that
//! the tree can be ended before the host speaks.

use std::cell::RefCell;
use std::ffi::OsString;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use win32job::{ExtendedLimitInfo, Job, JobError};

use crate::host::exchange::launch::{Launch, Limits, Stdin};
use crate::host::exchange::observation::{Containment, Ended, StartFault};
use crate::host::process::{Streams, TreeExit, tripwire};

/// The engine gets a console of its own that nobody sees: none flashes up, and a Ctrl-C in ours
/// reaches the host alone.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// How long a program that is just being written is tried again.
const BUSY: Duration = Duration::from_millis(100);

/// How long processes that end by themselves with the engine may take before they count as left
/// behind.
const SETTLE: Duration = Duration::from_millis(20);

/// The same for a single one: as a rule it is the process that the system started for the engine's
/// console, which ends when nobody uses the console any more, and nothing tells it from others. With
/// the grace of a held stdout it stays below 200 ms.
const SETTLE_ALONE: Duration = Duration::from_millis(90);

/// How often a job is asked who is in it.
const PULSE: Duration = Duration::from_millis(1);

/// The path of this executable: by the system, else as the caller named it.
pub(in crate::host) fn own_executable(named: Option<&OsString>) -> PathBuf {
    std::env::current_exe()
        .unwrap_or_else(|_| named.map_or("satyrn-host.exe".into(), PathBuf::from))
}

/// The job that this process is in for good. Its handle is never closed by hand, for that would
/// end the host itself; the system closes it when the host has ended, however it ended.
fn adopt() -> Result<&'static Job, &'static str> {
    static ADOPTED: OnceLock<Result<Job, String>> = OnceLock::new();
    let adopted = ADOPTED.get_or_init(|| {
        let job = killing_job()?;
        job.assign_current_process().map_err(said)?;
        Ok(job)
    });
    adopted.as_ref().map_err(String::as_str)
}

/// A job whose processes end when its last handle is closed. No handle of it is inherited.
fn killing_job() -> Result<Job, String> {
    Job::create_with_limit_info(ExtendedLimitInfo::new().limit_kill_on_job_close()).map_err(said)
}

fn said(error: JobError) -> String {
    let what = error.to_string();
    format!("{what}: {}", std::io::Error::from(error))
}

/// A started engine.
pub(in crate::host) struct Child {
    process: RefCell<tokio::process::Child>,
    pid: u32,
    adopted: Option<&'static Job>,
    /// The engine's tree, until it is ended.
    tree: Option<Job>,
}

/// The streams of a child of this system.
pub(in crate::host) type ChildStreams = Streams<ChildStdin, ChildStdout, ChildStderr>;

/// Starts a program, inside the host's job.
pub(in crate::host) fn spawn(launch: &Launch, limits: &Limits) -> Result<Spawned, StartFault> {
    tripwire();
    let (cwd, program) = (&launch.cwd, launch.program.path());
    let adopted = adopt();
    if let Err(why) = adopted {
        tracing::warn!(why, "descendants are not contained");
    }
    let stdin = match &launch.stdin {
        Stdin::Bytes(_) => Stdio::piped(),
        Stdin::File(file) => {
            Stdio::from(file.try_clone().map_err(|error| StartFault::System(error.to_string()))?)
        }
    };
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts a program")]
    let mut start = Command::new(program);
    start
        .args(&launch.args)
        .current_dir(cwd)
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .creation_flags(CREATE_NO_WINDOW);
    let until = Instant::now() + BUSY.min(limits.deadline);
    let started = loop {
        match start.spawn() {
            Err(error) if error.raw_os_error() == Some(SHARING) && Instant::now() < until => {
                thread::sleep(PULSE);
            }
            other => break other,
        }
    };
    let mut process = started.map_err(|error| fault(cwd, program, &error))?;
    let gone = || StartFault::System("its streams could not be had".to_owned());
    let streams = Streams {
        stdin: process.stdin.take(),
        stdout: process.stdout.take().ok_or_else(gone)?,
        stderr: process.stderr.take().ok_or_else(gone)?,
    };
    let tree = process.raw_handle().and_then(|handle| {
        let job = killing_job().and_then(|job| {
            job.assign_process(handle.addr().cast_signed()).map_err(said)?;
            Ok(job)
        });
        // One that has ended already cannot be assigned.
        job.inspect_err(|why| tracing::debug!(why, "no job of its own for the tree")).ok()
    });
    let pid = process.id().unwrap_or_default();
    let adopted = adopted.ok();
    Ok(Spawned(Child { process: RefCell::new(process), pid, adopted, tree }, streams))
}

/// A started engine whose streams the runtime does not know yet.
pub(in crate::host) struct Spawned(Child, ChildStreams);

impl Spawned {
    /// Hands the streams to the runtime.
    ///
    /// # Errors
    /// None on this system.
    #[expect(clippy::unnecessary_wraps, reason = "other systems need room for the streams")]
    pub(in crate::host) fn connect(self) -> std::io::Result<(Child, ChildStreams)> {
        Ok((self.0, self.1))
    }
}

impl Child {
    /// The process id of the engine itself.
    pub(in crate::host) fn pid(&self) -> u32 {
        self.pid
    }

    /// A program that was started at all runs.
    #[expect(clippy::unused_async, reason = "other systems learn it later")]
    pub(in crate::host) async fn started(&mut self) -> Result<(), StartFault> {
        Ok(())
    }

    /// Whether the engine's own process has exited.
    pub(in crate::host) fn has_exited(&self) -> bool {
        !matches!(self.process.borrow_mut().try_wait(), Ok(None))
    }

    /// Until the engine's own process has exited.
    pub(in crate::host) fn exited(&self) -> impl Future<Output = ()> + use<'_> {
        // Borrowed for each look only, since others look too.
        poll_fn(|cx| {
            let mut process = self.process.borrow_mut();
            pin!(process.wait()).poll(cx).map(drop)
        })
    }

    /// Until nothing of the tree runs any more, as far as it is contained.
    pub(in crate::host) async fn gone(&self) {
        while !self.has_exited() || self.others() > Some(0) {
            tokio::time::sleep(PULSE).await;
        }
    }

    /// Ends the tree. There is no request here that a program without a console of ours would get.
    pub(in crate::host) fn terminate(&mut self) {
        // By hand first: a process that ends with its job has the exit code of success.
        let _ = self.process.borrow_mut().start_kill();
        self.tree = None;
    }

    /// Ends the tree and waits until nothing of it is left, within `bound`.
    pub(in crate::host) fn destroy(&mut self, bound: Duration) -> TreeExit {
        let until = Instant::now() + bound;
        let exited = self.has_exited();
        if exited {
            self.settle(bound);
        }
        let orphaned = self.others().map(|others| exited && others > 0);
        self.terminate();
        self.await_empty(until.saturating_duration_since(Instant::now()));
        let status = self.process.borrow_mut().try_wait().ok().flatten();
        let exit = status.and_then(|status| status.code());
        TreeExit {
            ended: exit.map(ended),
            containment: match self.adopted {
                Some(_) => Containment::Whole,
                None => Containment::Group,
            },
            orphaned,
            survivors: self.others(),
        }
    }

    /// Gives what ends with the engine the time to do so.
    fn settle(&self, bound: Duration) {
        let began = Instant::now();
        loop {
            let patience = match self.others() {
                None | Some(0) => return,
                Some(1) => SETTLE_ALONE,
                Some(_) => SETTLE,
            };
            if began.elapsed() >= patience.min(bound) {
                return;
            }
            thread::sleep(PULSE);
        }
    }

    fn await_empty(&self, bound: Duration) {
        let until = Instant::now() + bound;
        while (!self.has_exited() || self.others() > Some(0)) && Instant::now() < until {
            thread::sleep(PULSE);
        }
    }

    /// How many processes of our making run beside the engine; `None` where nobody knows.
    fn others(&self) -> Option<u32> {
        // More than the list has room for is an error too.
        let all = self.adopted?.query_process_id_list().ok();
        let own = [std::process::id(), self.pid].map(|pid| pid as usize);
        let others = all.map(|all| all.iter().filter(|pid| !own.contains(pid)).count());
        Some(others.and_then(|others| u32::try_from(others).ok()).unwrap_or(u32::MAX))
    }
}

impl Drop for Child {
    /// A dropped exchange leaves nothing running either.
    fn drop(&mut self) {
        self.terminate();
    }
}

/// An exit code as the system documents it: `0xC0000005` is no negative number.
fn ended(exit: i32) -> Ended {
    Ended::Exit(i64::from(exit.cast_unsigned()))
}

/// The system's numbers for the causes that have words of their own.
const ACCESS: i32 = 5;
const NO_MEMORY: [i32; 4] = [8, 14, 1450, 1455];
const SHARING: i32 = 32;
const NOT_THERE: [i32; 2] = [2, 3];
const NO_DIRECTORY: i32 = 267;

/// Tells apart what the system calls by one name.
fn fault(cwd: &Path, program: &Path, error: &std::io::Error) -> StartFault {
    let (why, program) = (error.to_string(), program.to_owned());
    match error.raw_os_error() {
        _ if !cwd.is_dir() => StartFault::Directory(cwd.to_owned(), why),
        Some(NO_DIRECTORY) => StartFault::Directory(cwd.to_owned(), why),
        Some(number) if NO_MEMORY.contains(&number) => StartFault::System(why),
        Some(ACCESS) if program.is_dir() => {
            StartFault::NotRunnable(program, "it is a directory".to_owned())
        }
        Some(number) if NOT_THERE.contains(&number) && !program.exists() => {
            StartFault::NoProgram(program)
        }
        None if !program.exists() => StartFault::NoProgram(program),
        _ if program.is_dir() => StartFault::NotRunnable(program, "it is a directory".to_owned()),
        _ => StartFault::NotRunnable(program, why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_faults_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path();
        std::fs::write(here.join("text.exe"), "no program").unwrap();
        let gone = here.join("gone");
        for (cwd, program, number, reason) in [
            (here, "nope.exe", 2, "no-program"),
            (here, "text.exe\\nope.exe", 3, "no-program"),
            (here, "text.exe", 193, "not-runnable"),
            (here, "text.exe", 5, "not-runnable"),
            (here, "text.exe", 206, "not-runnable"),
            (here, ".", 5, "not-runnable"),
            (here, "text.exe", 267, "no-working-directory"),
            (&gone, "text.exe", 2, "no-working-directory"),
            (here, "text.exe", 1455, "no-process"),
        ] {
            let error = std::io::Error::from_raw_os_error(number);
            let fault = fault(cwd, &here.join(program), &error);
            assert_eq!(fault.reason(), reason, "{program} {number}: {fault}");
        }
    }

    #[test]
    fn exit_codes_are_not_negative() {
        assert_eq!(ended(-1_073_741_819), Ended::Exit(0xC000_0005));
        assert_eq!(ended(3), Ended::Exit(3));
    }
}
