//! Unix: a process group, watched without reaping, so that its id stays ours until the last kill.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid,
};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::signal::unix::{SignalKind, signal};

use super::Remains;
use crate::host::exchange::Streams;
use crate::host::observation::{Ended, StartFault};
use crate::host::plan::Plan;

/// A started engine: the leader of its own process group, not reaped until [`Child::destroy`].
pub(in crate::host) struct Child {
    pid: Pid,
    reaped: bool,
}

/// The streams of a child of this system.
pub(in crate::host) type ChildStreams = Streams<ChildStdin, ChildStdout, ChildStderr>;

/// Starts the plan's command in a process group of its own.
pub(in crate::host) fn spawn(plan: &Plan) -> Result<(Child, ChildStreams), StartFault> {
    super::tripwire();
    let command = &plan.command;
    // Installed before the spawn: where the caller has SIGCHLD ignored, every wait would fail.
    drop(signal(SignalKind::child()));
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts an engine")]
    let mut start = Command::new(&command.program);
    start
        .args(&command.args)
        .current_dir(&command.cwd)
        .env_clear()
        .envs(plan.environment.vars.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let started = start.spawn().map_err(|error| fault(plan, &error))?;
    let child = Child { pid: Pid::from_child(&started), reaped: false };
    let streams = || {
        Ok::<_, std::io::Error>(Streams {
            stdin: ChildStdin::from_std(started.stdin.ok_or(Errno::BADF)?)?,
            stdout: ChildStdout::from_std(started.stdout.ok_or(Errno::BADF)?)?,
            stderr: ChildStderr::from_std(started.stderr.ok_or(Errno::BADF)?)?,
        })
    };
    let streams = streams().map_err(|error| StartFault::System(error.to_string()))?;
    Ok((child, streams))
}

impl Child {
    /// The process id of the engine itself.
    pub(in crate::host) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Whether the engine's own process has exited. It is not reaped.
    pub(in crate::host) fn has_exited(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.reaped || !matches!(waitid(WaitId::Pid(self.pid), look), Ok(None))
    }

    /// Until the engine's own process has exited.
    pub(in crate::host) fn exited(&self) -> impl Future<Output = ()> + use<'_> {
        let changes = signal(SignalKind::child());
        async move {
            let Ok(mut changes) = changes else { return };
            while !self.has_exited() {
                changes.recv().await;
            }
        }
    }

    /// Asks the whole group to end.
    pub(in crate::host) fn terminate(&mut self) {
        if !self.reaped {
            // The leader is not reaped, so the group id cannot belong to anybody else.
            let _ = kill_process_group(self.pid, Signal::TERM);
        }
    }

    /// Kills the group and reaps its leader, waiting at most `bound` for it.
    pub(in crate::host) fn destroy(&mut self, bound: Duration) -> Remains {
        let until = Instant::now() + bound;
        if !self.reaped {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
        loop {
            match waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
                Ok(Some(status)) => {
                    self.reaped = true;
                    return Remains { ended: ended(&status), ..Remains::default() };
                }
                Ok(None) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_micros(100));
                }
                Err(Errno::INTR) => {}
                Ok(None) | Err(_) => return Remains::default(),
            }
        }
    }
}

impl Drop for Child {
    /// A dropped exchange leaves nothing running either.
    fn drop(&mut self) {
        if !self.reaped {
            self.destroy(Duration::from_millis(500));
        }
    }
}

fn ended(status: &WaitIdStatus) -> Option<Ended> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Some(Ended::Exit(i64::from(code))),
        (None, Some(signal)) => Some(Ended::Signal(signal_name(signal))),
        (None, None) => None,
    }
}

/// `SIGKILL` for 9; `signal 34` where there is no name.
fn signal_name(number: i32) -> String {
    signal_hook::low_level::signal_name(number)
        .map_or_else(|| format!("signal {number}"), str::to_owned)
}

/// Tells apart what the system calls by one name.
fn fault(plan: &Plan, error: &std::io::Error) -> StartFault {
    let command = &plan.command;
    let program = command.program.clone();
    if let Err(error) = command.cwd.read_dir().and(Ok(())).or_else(|error| {
        // A directory may be enterable without being readable.
        if error.kind() == std::io::ErrorKind::PermissionDenied { Ok(()) } else { Err(error) }
    }) {
        return StartFault::Directory(command.cwd.clone(), error.to_string());
    }
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => match program.metadata() {
            Ok(_) => StartFault::NoInterpreter(program, error.to_string()),
            Err(_) => StartFault::NoProgram(program),
        },
        Some(Errno::NOTDIR) => StartFault::NoProgram(program),
        Some(Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
            StartFault::System(error.to_string())
        }
        _ if program.is_dir() => StartFault::NotRunnable(program, "it is a directory".to_owned()),
        _ => StartFault::NotRunnable(program, error.to_string()),
    }
}
