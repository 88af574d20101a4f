//! Unix: an engine in a process group of its own, watched without reaping, so that the group's id
//! stays ours until the last kill. On Linux the tree below it is swept as well.

use std::ffi::{CString, OsString};
use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, getpid, kill_process, kill_process_group,
    waitid,
};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::{Receiver, Sender};

use super::launch::{self, Image, Stage, Start, c_text};
use super::signals;
use super::tree::{self, Tree};
use super::worker::{self, CHANGED};
use crate::host::exchange::launch::{Capture, Launch, Limits, Program, Stdin};
use crate::host::exchange::observation::{Containment, Ended, StartFault};
use crate::host::process::{Streams, TreeExit, tripwire};
use crate::host::program;

/// The executable of this process, also where its file has been replaced or deleted.
pub(super) const SELF: &str = "/proc/self/exe";

/// A started engine: the leader of its own process group, not reaped until [`Child::destroy`].
pub(in crate::host) struct Child {
    pid: Pid,
    reaped: bool,
    destroyed: bool,
    /// What is below the host, where all of it is within reach.
    tree: Option<Tree>,
    channel: Option<Receiver>,
    command: (PathBuf, PathBuf),
}

/// The streams of a child of this system.
pub(in crate::host) type ChildStreams = Streams<Sender, Receiver, Receiver>;

/// Starts a program in a process group of its own. It is only known to run once [`Child::started`]
/// says so.
///
/// What this takes of descriptors and gives back is more than [`Spawned::connect`] and a runtime
/// need, so that neither fails for want of one with the program under way.
pub(in crate::host) fn spawn(launch: &Launch, _: &Limits) -> Result<Spawned, StartFault> {
    tripwire();
    // Before there is anybody below who could take the means for it.
    let tree = Tree::below_this_process(Vec::new());
    let start = || -> std::io::Result<(Pid, Ends)> {
        let (image, heard) = image(launch)?;
        let (out, stdout) = pipe()?;
        let (err, stderr) = pipe()?;
        // The last one, which may give an end back at once.
        let (stdin, into) = stdin(&launch.stdin)?;
        enlarge(&stdout, &launch.stdout);
        let (stdin, stdout, stderr) = (stdin, stdout.into(), stderr.into());
        let child = launch::Child { host: getpid(), image, stdin, stdout, stderr };
        match launch::fork()? {
            None => {
                // A program that held the host's ends would wait for itself.
                drop((into, out, err, heard));
                child.run()
            }
            Some(pid) => Ok((pid, Ends { into, out, err, heard })),
        }
    };
    let (cwd, program) = (launch.cwd.clone(), launch.program.path().to_owned());
    let (pid, ends) = start().map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        fault(&cwd, &program, None, errno)
    })?;
    if let Err(why) = &tree {
        tracing::warn!(why, "descendants that leave the group are not contained");
        worker::announce_group(pid);
    }
    let child = Child {
        pid,
        reaped: false,
        destroyed: false,
        tree: tree.ok(),
        channel: None,
        command: (cwd, program),
    };
    Ok(Spawned { child, ends })
}

/// The program's stdin, and the host's end of it where there is more to write than fits at once: the
/// program then finds the whole of it, and nobody has to be woken for the other.
fn stdin(from: &Stdin) -> std::io::Result<(OwnedFd, Option<PipeWriter>)> {
    let bytes = match from {
        Stdin::File(file) => return Ok((file.try_clone()?.into(), None)),
        Stdin::Bytes(bytes) => bytes,
    };
    let (stdin, mut into) = pipe()?;
    let at_once = bytes.len() <= AT_ONCE;
    if at_once {
        into.write_all(bytes)?;
    }
    Ok((stdin.into(), (!at_once).then_some(into)))
}

/// Makes room in the pipe for all that is kept of stdout, as far as the system allows it: a program
/// that leaves before its output is read then loses nothing. That it cannot be had is no matter.
fn enlarge(pipe: &PipeWriter, capture: &Capture) {
    #[cfg(target_os = "linux")]
    if let Capture::Head(limit) = capture {
        let sizes = [*limit, 1 << 20];
        let _ =
            sizes.into_iter().find(|size| rustix::pipe::fcntl_setpipe_size(pipe, *size).is_ok());
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (pipe, capture);
}

/// A started engine whose streams the runtime does not know yet.
pub(in crate::host) struct Spawned {
    child: Child,
    ends: Ends,
}

impl Spawned {
    /// Hands the streams to the runtime.
    ///
    /// # Errors
    /// It cannot wait for one more; the engine is ended.
    pub(in crate::host) fn connect(self) -> std::io::Result<(Child, ChildStreams)> {
        let Self { mut child, ends: Ends { into, out, err, heard } } = self;
        let receiver = |from| Receiver::from_owned_fd(OwnedFd::from(from));
        child.channel = heard.map(receiver).transpose()?;
        let sender = |into| Sender::from_owned_fd(OwnedFd::from(into));
        let streams = Streams {
            stdin: into.map(sender).transpose()?,
            stdout: receiver(out)?,
            stderr: receiver(err)?,
        };
        Ok((child, streams))
    }
}

/// The largest request that a new pipe takes without anybody reading it, in bytes: `PIPE_BUF`.
const AT_ONCE: usize = if cfg!(target_os = "linux") { 4096 } else { 512 };

/// The host's ends: stdin, stdout and stderr of the engine, and the start channel.
struct Ends {
    into: Option<PipeWriter>,
    out: PipeReader,
    err: PipeReader,
    heard: Option<PipeReader>,
}

/// What the child becomes, and where the host hears how a program's start went.
fn image(launch: &Launch) -> std::io::Result<(Image, Option<PipeReader>)> {
    let program = match &launch.program {
        Program::Embedded(_, run) => return Ok((Image::Embedded(*run), None)),
        // The file of this executable may have been replaced or deleted.
        Program::Own(_) if Path::new(SELF).exists() => Path::new(SELF),
        Program::Own(path) | Program::File(path) => path,
    };
    let words = std::iter::once(program.as_os_str()).chain(launch.args.iter().map(AsRef::as_ref));
    let variable = |(name, value): &(OsString, OsString)| {
        let mut pair = name.clone();
        pair.push("=");
        pair.push(value);
        c_text(&pair)
    };
    let (heard, channel) = pipe()?;
    let program = Image::Program {
        path: c_text(program.as_os_str())?,
        args: words.map(c_text).collect::<Result<Vec<CString>, _>>()?,
        vars: launch.env.iter().map(variable).collect::<Result<_, _>>()?,
        cwd: launch.cwd.clone(),
        channel,
    };
    Ok((program, Some(heard)))
}

impl Child {
    /// The process id of the engine itself.
    pub(in crate::host) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Until the program runs, or is known not to.
    pub(in crate::host) async fn started(&mut self) -> Result<(), StartFault> {
        let Some(mut channel) = self.channel.take() else { return Ok(()) };
        let mut message = Vec::new();
        while let Ok(1..) = channel.read_buf(&mut message).await {}
        let (cwd, program) = &self.command;
        match launch::read_start(&message) {
            Start::Done => Ok(()),
            Start::Failed(stage, errno) => Err(fault(cwd, program, Some(stage), errno)),
            Start::Silent => {
                Err(StartFault::System("it ended before it could run the program".to_owned()))
            }
        }
    }

    /// Whether the engine's own process has exited. It is not reaped.
    pub(in crate::host) fn has_exited(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.reaped || !matches!(waitid(WaitId::Pid(self.pid), look), Ok(None))
    }

    /// Until the engine's own process has exited. Orphans that end meanwhile are reaped, so that
    /// a long exchange collects no zombies.
    pub(in crate::host) fn exited(&self) -> impl Future<Output = ()> + use<'_> {
        self.await_change(Self::has_exited)
    }

    /// Until nothing of the tree runs any more, as far as it is contained.
    pub(in crate::host) fn gone(&self) -> impl Future<Output = ()> + use<'_> {
        self.await_change(|child| {
            let others = child.tree.as_ref().map(|tree| tree.has_others(child.pid));
            child.has_exited() && matches!(others, None | Some(Some(false)))
        })
    }

    /// Until something holds, asked again whenever a child changes. Every descendant is our child
    /// when it ends, if its own parent has ended before.
    async fn await_change(&self, holds: impl Fn(&Self) -> bool) {
        loop {
            // Before the look, so that no change falls between the two.
            let changed = CHANGED.notified();
            if holds(self) {
                return;
            }
            changed.await;
            if self.tree.is_some() && !self.has_exited() {
                tree::reap_orphans(self.pid);
            }
        }
    }

    /// Asks the whole group to end.
    pub(in crate::host) fn terminate(&mut self) {
        self.signal(Signal::TERM);
    }

    /// Signals the leader's group, or the leader alone: a child that has just been forked leads no
    /// group yet. The leader is not reaped, so neither id can belong to anybody else.
    fn signal(&self, signal: Signal) {
        if !self.reaped && kill_process_group(self.pid, signal).is_err() {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Kills the group, reaps its leader, and sweeps what is left below this process; all of it
    /// within `bound`, and once.
    pub(in crate::host) fn destroy(&mut self, bound: Duration) -> TreeExit {
        let until = Instant::now() + bound;
        let mut exit = TreeExit::default();
        if std::mem::replace(&mut self.destroyed, true) {
            return exit;
        }
        let exited = self.has_exited();
        let others = self.tree.as_ref().filter(|_| exited).map(|tree| tree.has_others(self.pid));
        self.signal(Signal::KILL);
        loop {
            match waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
                Ok(Some(status)) => {
                    self.reaped = true;
                    exit.ended = ended(&status);
                    break;
                }
                Ok(None) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_micros(50));
                }
                Err(Errno::INTR) => {}
                Ok(None) | Err(_) => break,
            }
        }
        if let Some(tree) = &self.tree {
            let left = until.saturating_duration_since(Instant::now());
            let killed = tree.kill_descendants(left);
            exit.survivors = killed.left;
            exit.containment =
                if killed.left.is_some() { Containment::Whole } else { Containment::Lost };
            exit.orphaned = match others {
                None => Some(false),
                Some(others) if !killed.any => others,
                Some(_) => Some(true),
            };
        }
        exit
    }
}

impl Drop for Child {
    /// A dropped exchange leaves nothing running either.
    fn drop(&mut self) {
        self.destroy(Duration::from_millis(500));
    }
}

fn ended(status: &WaitIdStatus) -> Option<Ended> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Some(Ended::Exit(i64::from(code))),
        (None, Some(signal)) => Some(Ended::Signal(signals::name(signal))),
        (None, None) => None,
    }
}

/// Tells apart what the system calls by one name. Without a stage both are possible.
fn fault(cwd: &Path, program: &Path, stage: Option<Stage>, errno: Errno) -> StartFault {
    let why = std::io::Error::from(errno).to_string();
    let program = program.to_owned();
    match (stage, errno) {
        (Some(Stage::Directory), _) => StartFault::Directory(cwd.to_owned(), why),
        (None, _) if !cwd.is_dir() => StartFault::Directory(cwd.to_owned(), why),
        (_, Errno::NOENT) if program.exists() => match launch::interpreter(&program) {
            Some(interpreter) => StartFault::NoInterpreter(program, interpreter),
            None => StartFault::NotRunnable(program, format!("its loader is missing: {why}")),
        },
        (_, Errno::NOENT | Errno::NOTDIR) => StartFault::NoProgram(program),
        (_, Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM) => StartFault::System(why),
        _ if program.is_dir() => StartFault::NotRunnable(program, "it is a directory".to_owned()),
        _ => StartFault::NotRunnable(program, why),
    }
}

/// The path of this executable: by the system, else as the caller named it.
pub(in crate::host) fn own_executable(named: Option<&OsString>) -> PathBuf {
    let by_system = PathBuf::from(SELF);
    if by_system.exists() {
        return by_system;
    }
    let named = PathBuf::from(named.map_or("satyrn-host".into(), Clone::clone));
    if named.components().count() > 1 {
        return named;
    }
    #[expect(clippy::disallowed_methods, reason = "asked for before there is a snapshot")]
    let path = std::env::var_os("PATH");
    program::find(&named.to_string_lossy(), path.as_deref()).unwrap_or(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_faults_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path();
        std::fs::write(here.join("script"), "#!/missing/interpreter\n").unwrap();
        std::fs::write(here.join("binary"), "\x7fELF").unwrap();
        let gone = here.join("gone");
        let cases = [
            (here, "nope", Some(Stage::Program), Errno::NOENT, "no-program"),
            (here, "script/nope", Some(Stage::Program), Errno::NOTDIR, "no-program"),
            (here, "script", Some(Stage::Program), Errno::NOENT, "no-interpreter"),
            (here, "binary", Some(Stage::Program), Errno::NOENT, "not-runnable"),
            (here, "script", Some(Stage::Program), Errno::ACCESS, "not-runnable"),
            (here, "script", Some(Stage::Program), Errno::NOEXEC, "not-runnable"),
            (here, "script", Some(Stage::Program), Errno::TOOBIG, "not-runnable"),
            (here, "script", Some(Stage::Program), Errno::TXTBSY, "not-runnable"),
            (here, ".", Some(Stage::Program), Errno::ACCESS, "not-runnable"),
            (here, "script", Some(Stage::Directory), Errno::NOENT, "no-working-directory"),
            (&gone, "script", None, Errno::NOENT, "no-working-directory"),
            (here, "script", None, Errno::AGAIN, "no-process"),
            (here, "script", None, Errno::MFILE, "no-process"),
            (here, "script", None, Errno::NOMEM, "no-process"),
        ];
        for (cwd, program, stage, errno, reason) in cases {
            let fault = fault(cwd, &here.join(program), stage, errno);
            assert_eq!(fault.reason(), reason, "{program} {stage:?} {errno:?}: {fault}");
        }
    }
}
