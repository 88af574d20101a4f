//! The scripted engine: a process that plays the steps of a drill.
//!
//! `satyrn-host __drill DRILL` is the engine itself, started by the host exactly as a real one.
//! `satyrn-host __drill DRILL PATH LEFT` is a process below it: PATH leads to its `start` step, and
//! LEFT counts the processes that come below it in its line.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{PipeReader, Read, Write as _};
use std::process::{Child, ExitCode, Stdio};
use std::time::Duration;

use super::script::{Descendant, Output, READY, Step, Stream, Write};
use super::set::load;
use crate::host::implement::engines::PLAYER;
use crate::host::process::{self_command, self_ops};

/// How many bytes go into one write where nothing else is said and there is more than this.
const WRITE: usize = 1 << 20;

/// Takes up the role, if the command line names it.
#[must_use]
pub fn dispatch(args: &[OsString]) -> Option<ExitCode> {
    if args.get(1).is_none_or(|arg| arg != PLAYER) {
        return None;
    }
    Some(match play(&args[2..]) {
        Ok(exit) => ExitCode::from(exit),
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "satyrn-host: drill: {why}");
            ExitCode::FAILURE
        }
    })
}

/// What each step needs to know.
struct Player<'a> {
    /// The drill, as it was named.
    named: &'a OsStr,
    /// The indexes of the `start` steps that lead to the steps being played.
    path: Vec<usize>,
}

fn play(args: &[OsString]) -> Result<u8, String> {
    let named = args.first().ok_or("which drill?")?;
    let script = load(&named.to_string_lossy()).map_err(|fault| fault.to_string())?;
    let (path, left) = match args.get(1..) {
        None | Some([]) => (Vec::new(), 0),
        Some([path, left]) => {
            let path = path.to_string_lossy();
            let path: Option<_> = path.split('.').map(|index| index.parse().ok()).collect();
            let left = left.to_str().and_then(|left| left.parse().ok());
            (path.ok_or("no such step")?, left.ok_or("no such process")?)
        }
        Some(_) => return Err("too many words".to_owned()),
    };
    let (steps, descendant) = script.steps(&path).ok_or("no such step")?;
    let mut player = Player { named, path };
    match descendant {
        None => player.steps(steps),
        Some(descendant) => player.descendant(descendant, left),
    }
}

impl Player<'_> {
    fn steps(&mut self, steps: &[Step]) -> Result<u8, String> {
        for (index, step) in steps.iter().enumerate() {
            match step {
                Step::Read(bytes) => {
                    let bytes = bytes.unwrap_or(u64::MAX);
                    let _ = std::io::copy(&mut stdin()?.take(bytes), &mut std::io::sink());
                }
                Step::Write(write) => self::write(write)?,
                Step::Answer(answer) => {
                    let _ = output(Output::Stdout)?.write_all(&answer.0);
                }
                Step::Close(stream) => self_ops::close(match stream {
                    Stream::Stdin => 0,
                    Stream::Stdout => 1,
                    Stream::Stderr => 2,
                })?,
                Step::Sleep(length) => sleep(length.map(|length| length.0)),
                Step::Start(descendant) => {
                    self.path.push(index);
                    self.start(descendant, descendant.deep - u8::from(!descendant.orphan))?;
                    self.path.pop();
                }
                Step::Ignore(signals) => {
                    signals.iter().try_for_each(|signal| self_ops::ignore(&signal.0))?;
                }
                Step::Ready => ready(),
                Step::ListEnvironment(to) => {
                    let _ = output(*to)?.write_all(&variables());
                }
                Step::Stop => self_ops::end_by("SIGSTOP")?,
                Step::Die(signal) => self_ops::end_by(&signal.0)?,
                Step::Exit(code) => return Ok(*code),
            }
        }
        Ok(0)
    }

    /// Starts the process at the current path and waits until it is up.
    fn start(&self, descendant: &Descendant, left: u8) -> Result<Child, String> {
        let (child, mut up) = self.spawn(descendant, left)?;
        // The end of the pipe means that it is gone, which a drill may want.
        let _ = up.read(&mut [0]);
        Ok(child)
    }

    /// Starts the process at the current path; it says through the pipe that it is up.
    fn spawn(&self, descendant: &Descendant, left: u8) -> Result<(Child, PipeReader), String> {
        let path: Vec<_> = self.path.iter().map(usize::to_string).collect();
        let (up, reports) = std::io::pipe().map_err(|error| error.to_string())?;
        let mut command = self_command();
        command.arg(PLAYER).arg(self.named).arg(path.join(".")).arg(left.to_string());
        // It says that it is up on the one stream that no descendant has to hold.
        command.stdin(reports);
        for output in [Output::Stdout, Output::Stderr] {
            let held = descendant.holds.contains(&output);
            let stream = if held { Stdio::inherit() } else { Stdio::null() };
            match output {
                Output::Stdout => command.stdout(stream),
                Output::Stderr => command.stderr(stream),
            };
        }
        let child = command.spawn().map_err(|error| format!("cannot start a process: {error}"))?;
        Ok((child, up))
    }

    /// Plays one process of a line; `left` more come below it.
    fn descendant(&mut self, descendant: &Descendant, left: u8) -> Result<u8, String> {
        if descendant.session {
            self_ops::lead_session()?;
        }
        for signal in &descendant.ignore {
            self_ops::ignore(&signal.0)?;
        }
        if left > 0 {
            let mut next = self.start(descendant, left - 1)?;
            self_ops::up()?;
            if !(descendant.orphan && left == descendant.deep) {
                let _ = next.wait();
            }
            return Ok(0);
        }
        self_ops::up()?;
        if descendant.refork {
            // Nobody waits for the next one: the tree changes as fast as it can.
            self.spawn(descendant, 0)?;
            return Ok(0);
        }
        self.steps(&descendant.steps)
    }
}

fn stdin() -> Result<File, String> {
    self_ops::duplicate(0).map(File::from)
}

/// A stream without a buffer of its own, so that one write is one write.
fn output(to: Output) -> Result<File, String> {
    let number = match to {
        Output::Stdout => 1,
        Output::Stderr => 2,
    };
    self_ops::duplicate(number).map(File::from)
}

fn write(write: &Write) -> Result<(), String> {
    let mut to = output(write.to)?;
    let length = write.bytes.len().max(1);
    let mut left = write.times.map(|times| times.saturating_mul(write.bytes.len() as u64));
    let piece = write.pieces.unwrap_or(WRITE);
    // Copies enough for one piece to begin anywhere in the text.
    let bytes = write.bytes.repeat(piece.div_ceil(length) + 1);
    let mut at = 0;
    while left != Some(0) {
        let end = at + left.map_or(piece, |left| usize::try_from(left).unwrap_or(piece).min(piece));
        if to.write_all(&bytes[at..end]).is_err() {
            break;
        }
        left = left.map(|left| left - (end - at) as u64);
        at = end % length;
        if let Some(pause) = write.pause {
            sleep(Some(pause.0));
        }
    }
    Ok(())
}

fn sleep(length: Option<Duration>) {
    match length {
        Some(length) => std::thread::sleep(length),
        None => loop {
            std::thread::sleep(Duration::from_hours(1));
        },
    }
}

/// Only where the runner has made the file: nobody else's directory gets one.
fn ready() {
    let _ = OpenOptions::new().append(true).open(READY).and_then(|mut file| file.write_all(b"r"));
}

fn variables() -> Vec<u8> {
    #[expect(clippy::disallowed_methods, reason = "the engine says what it was given")]
    let mut names: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
    names.sort();
    let mut text = Vec::new();
    for name in names {
        text.extend_from_slice(name.as_encoded_bytes());
        text.push(b'\n');
    }
    text
}
