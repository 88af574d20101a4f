//! Which engine runs, and as which command (SPEC 2). Looks at the file system, starts nothing.

use std::ffi::{OsStr, OsString};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::time::Duration;

use super::refusal::{Refusal, start_failed};
use crate::host::cli::implement::Implement;
use crate::host::drill::script::{self, Played, Start};
use crate::host::drill::set;
use crate::host::program::{absolute, find};

/// The engine that was chosen, by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The host's own executable, as a process of its own.
    Embedded,
    /// `PROGRAM protocol`.
    Program(PathBuf),
    /// `uv run --project DIR satyrn-engine protocol`.
    Checkout(PathBuf),
    /// A drill by its name or path: the host's own executable, which plays a script.
    Drill(PathBuf),
}

/// A command that is ready to be started, without a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// An absolute path.
    pub program: PathBuf,
    /// Whether the program is the host's own executable.
    pub own: bool,
    /// The arguments after it, verbatim.
    pub args: Vec<OsString>,
    /// The working directory.
    pub cwd: PathBuf,
}

type Variable = (&'static str, fn(PathBuf) -> Engine);

const VARIABLES: [Variable; 3] = [
    ("SATYRN_ENGINE", Engine::Program),
    ("SATYRN_ENGINE_REPO", Engine::Checkout),
    ("SATYRN_DRILL", Engine::Drill),
];

/// Chooses by flag, else by variable, else the embedded engine; and says which one decided.
///
/// # Errors
/// Two variables, and no flag to silence them: USAGE. (Two flags are refused by clap.)
pub fn choose(
    options: &Implement,
    var: &dyn Fn(&str) -> Option<OsString>,
) -> Result<(Engine, &'static str), Refusal> {
    if let Some(program) = &options.chosen.engine {
        return Ok((Engine::Program(program.clone()), "--engine"));
    }
    if let Some(dir) = &options.chosen.engine_repo {
        return Ok((Engine::Checkout(dir.clone()), "--engine-repo"));
    }
    if let Some(drill) = &options.chosen.drill {
        return Ok((Engine::Drill(drill.clone()), "--drill"));
    }
    let set: Vec<_> = VARIABLES
        .iter()
        .filter_map(|(name, engine)| Some((engine(var(name)?.into()), *name)))
        .collect();
    match <[_; 1]>::try_from(set) {
        Ok([chosen]) => Ok(chosen),
        Err(none) if none.is_empty() => Ok((Engine::Embedded, "default")),
        Err(several) => Err(Refusal::Usage(format!(
            "{} are both set; unset one, or choose with a flag",
            several.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(" and ")
        ))),
    }
}

/// Turns the choice into a command. `origin` is named in the words of a refusal.
///
/// # Errors
/// `ENGINE_START_FAILED`, each cause with its own words.
pub fn resolve(
    engine: &Engine,
    origin: &str,
    cwd: &Path,
    exe: &Path,
    path: Option<&OsStr>,
) -> Result<Command, Refusal> {
    match engine {
        Engine::Embedded => Ok(own(cwd, exe, vec!["protocol".into()])),
        Engine::Drill(drill) => {
            Ok(own(cwd, exe, vec![script::ROLE.into(), drill.clone().into_os_string()]))
        }
        Engine::Program(program) => {
            if program.as_os_str().is_empty() {
                return Err(start_failed("empty-setting", format!("{origin} is empty")));
            }
            let bytes = program.as_os_str().as_encoded_bytes();
            if !bytes.contains(&b'/') && !bytes.contains(&(MAIN_SEPARATOR as u8)) {
                let name = program.display();
                let why = format!("{origin} must be a path, not the bare name {name}: ./{name}?");
                return Err(start_failed("bare-name", why));
            }
            let program = absolute(cwd, program);
            let program =
                if cfg!(windows) { windows_program(program, Path::is_dir)? } else { program };
            Ok(Command { program, own: false, args: vec!["protocol".into()], cwd: cwd.to_owned() })
        }
        Engine::Checkout(dir) => {
            if dir.as_os_str().is_empty() {
                return Err(start_failed("empty-setting", format!("{origin} is empty")));
            }
            let dir = absolute(cwd, dir);
            let shown = dir.display();
            if !dir.is_dir() {
                let why = format!("engine checkout is not a directory: {shown}");
                return Err(start_failed("no-checkout", why));
            }
            if !dir.join("pyproject.toml").is_file() {
                let why = format!("engine checkout has no pyproject.toml: {shown}");
                return Err(start_failed("no-pyproject", why));
            }
            let uv = find("uv", path).ok_or_else(|| {
                start_failed("no-uv", "uv is not on PATH; install it, or choose --engine")
            })?;
            let mut args: Vec<OsString> = vec!["run".into(), "--project".into()];
            args.extend([dir.clone().into(), "satyrn-engine".into(), "protocol".into()]);
            Ok(Command { program: uv, own: false, args, cwd: dir })
        }
    }
}

/// The program that Windows may run for a path: an `.exe`, which a name without an extension gets
/// as a shell would give it. Never a `.bat` or `.cmd`, whose arguments go through a command
/// interpreter, in whatever way it is written.
///
/// # Errors
/// `ENGINE_START_FAILED`.
fn windows_program(path: PathBuf, is_dir: fn(&Path) -> bool) -> Result<PathBuf, Refusal> {
    let text = path.to_string_lossy();
    let refuse = |why: &str| Err(start_failed("not-runnable", format!("cannot run {text}: {why}")));
    // A verbatim path is taken as it is written; every other one is tidied by the system.
    let name = text.rsplit(['/', '\\']).next().unwrap_or_default();
    let (file, stream) = match name.split_once(':') {
        Some((file, stream)) => (file, Some(stream)),
        None => (name, None),
    };
    let plain = file.trim_end_matches(['.', ' ']);
    let extension = plain.rsplit_once('.').map(|(_, end)| end.trim_end().to_ascii_lowercase());
    match extension.as_deref() {
        Some("bat" | "cmd") => {
            refuse("a .bat or .cmd file is never run, only an .exe; name the program behind it")
        }
        _ if stream.is_some() => refuse("a stream of a file is never run, only an .exe"),
        _ if plain != file => refuse("its name ends in a dot or blank, which Windows leaves out"),
        _ if text.starts_with("\\\\.\\") => refuse("a device is never run, only an .exe"),
        Some("exe") => Ok(path),
        _ if is_dir(&path) => refuse("it is a directory"),
        None => {
            let mut path = path.into_os_string();
            path.push(".exe");
            Ok(path.into())
        }
        Some(_) => refuse("on Windows only an .exe is run"),
    }
}

/// What a drill puts in the place of the engine: itself, or the program that it names.
///
/// # Errors
/// `ENGINE_START_FAILED`: there is no such drill, or its file has a mistake.
pub fn drilled(
    drill: &Path,
    origin: &str,
    cwd: &Path,
) -> Result<(Engine, Option<Duration>), Refusal> {
    if drill.as_os_str().is_empty() {
        return Err(start_failed("empty-setting", format!("{origin} is empty")));
    }
    let named = set::name(drill, cwd).map_err(|why| start_failed("no-drill", why))?;
    let script = set::load(&named).map_err(|fault| match fault {
        set::Fault::Missing(why) => start_failed("no-drill", why),
        set::Fault::Bad(why) => start_failed("bad-drill", why),
    })?;
    let engine = match script.engine {
        Played::Steps(_) => Engine::Drill(named.into()),
        Played::Start(Start::Program(program)) => Engine::Program(program),
        Played::Start(Start::Checkout(dir)) => Engine::Checkout(dir),
    };
    Ok((engine, script.limits.deadline.map(|length| length.0)))
}

fn own(cwd: &Path, exe: &Path, args: Vec<OsString>) -> Command {
    Command { program: exe.to_owned(), own: true, args, cwd: cwd.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::cli::{Invocation, parse};

    fn options(words: &[&str]) -> Implement {
        let words = ["satyrn-host", "implement"].iter().chain(words).chain(&["c"]);
        match parse(&words.map(OsString::from).collect::<Vec<_>>()) {
            Invocation::Implement(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    fn chosen(words: &[&str], vars: &[(&str, &str)]) -> Result<(Engine, &'static str), Refusal> {
        choose(&options(words), &|name| {
            vars.iter().find(|(set, _)| *set == name).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn a_flag_silences_the_variables() {
        let both = [("SATYRN_ENGINE", "/v"), ("SATYRN_ENGINE_REPO", "/w")];
        let program = |path: &str| Engine::Program(path.into());
        assert_eq!(chosen(&[], &[]), Ok((Engine::Embedded, "default")));
        assert_eq!(chosen(&[], &both[..1]), Ok((program("/v"), "SATYRN_ENGINE")));
        assert_eq!(
            chosen(&[], &both[1..]),
            Ok((Engine::Checkout("/w".into()), "SATYRN_ENGINE_REPO"))
        );
        assert_eq!(chosen(&["--engine", "/f"], &both), Ok((program("/f"), "--engine")));
        let drill = |named: &str| Engine::Drill(named.into());
        let all = [&both[..], &[("SATYRN_DRILL", "d")]].concat();
        assert_eq!(chosen(&[], &all[2..]), Ok((drill("d"), "SATYRN_DRILL")));
        assert_eq!(chosen(&["--drill", "x"], &all), Ok((drill("x"), "--drill")));
        for two in [&all[..2], &all[1..], &[all[0], all[2]]] {
            let refusal = chosen(&[], two).unwrap_err().to_string();
            assert!(two.iter().all(|(name, _)| refusal.contains(name)), "{refusal}");
        }
        assert!(matches!(chosen(&[], &both), Err(Refusal::Usage(_))));
        assert_eq!(chosen(&[], &[("SATYRN_ENGINE", "")]), Ok((program(""), "SATYRN_ENGINE")));
    }

    #[test]
    fn every_start_failure_has_its_own_words() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path();
        let ready = here.join("ready");
        std::fs::create_dir(&ready).unwrap();
        std::fs::write(ready.join("pyproject.toml"), "").unwrap();
        let resolve = |engine: Engine, path: Option<&OsStr>| {
            resolve(&engine, "--x", here, Path::new("/exe"), path).map_err(|refusal| {
                assert_eq!(refusal.code(), "ENGINE_START_FAILED");
                refusal.reason().unwrap()
            })
        };
        let program = |path: &str| resolve(Engine::Program(path.into()), None);
        let checkout = |path: &Path| resolve(Engine::Checkout(path.into()), None);
        assert_eq!(program(""), Err("empty-setting"));
        assert_eq!(program("engine"), Err("bare-name"));
        let named = format!("engine{}", std::env::consts::EXE_SUFFIX);
        assert_eq!(program("./engine").map(|c| c.program), Ok(here.join(named)));
        assert_eq!(checkout(Path::new("")), Err("empty-setting"));
        assert_eq!(checkout(Path::new("missing")), Err("no-checkout"));
        assert_eq!(checkout(here), Err("no-pyproject"));
        assert_eq!(checkout(&ready), Err("no-uv"));
        assert_eq!(resolve(Engine::Embedded, None).map(|c| c.program), Ok("/exe".into()));
    }

    #[test]
    fn windows_runs_nothing_but_an_exe() {
        let program = |text: &str| {
            windows_program(text.into(), |path| path.to_string_lossy().ends_with("dir"))
                .map(|path| path.to_string_lossy().into_owned())
        };
        for (text, runs) in [
            (r"C:\a b\engine.exe", r"C:\a b\engine.exe"),
            (r"C:\ü\ENGINE.EXE", r"C:\ü\ENGINE.EXE"),
            (r"C:\a\engine.bat.exe", r"C:\a\engine.bat.exe"),
            (r"\\server\share\engine.exe", r"\\server\share\engine.exe"),
            (r"\\?\C:\long\engine.exe", r"\\?\C:\long\engine.exe"),
            (r"C:\a\engine", r"C:\a\engine.exe"),
            (r"C:\a.bat\engine", r"C:\a.bat\engine.exe"),
            ("C:/a/engine", "C:/a/engine.exe"),
        ] {
            assert_eq!(program(text), Ok(runs.to_owned()), "{text}");
        }
        for text in [
            r"C:\a\x.bat",
            r"C:\a\x.cmd",
            r"C:\a\x.CMD",
            r"C:\a\x.bAt",
            r"C:\a\x.bat.",
            r"C:\a\x.bat . .",
            r"C:\a\x.cmd ",
            r"C:\a\x.bat::$DATA",
            r"C:\a\x.bat:stream",
            r"C:\a\x.cmd. ::$DATA",
            r"C:\a\x.bat:.exe",
            r"C:\a\x.bat\..\x.cmd",
            "C:/a/x.bat",
            r"C:\a\engine.exe.",
            r"C:\a\engine.exe ",
            r"C:\a\engine.exe::$DATA",
            r"C:\a\engine.",
            r"C:\a\engine.com",
            r"C:\a\engine.ps1",
            r"C:\a\engine.py",
            r"C:\a\dir",
            r"\\.\pipe\x.exe",
            r"\\.\NUL",
        ] {
            let refusal = program(text).unwrap_err();
            assert_eq!(refusal.reason(), Some("not-runnable"), "{text}");
            let batch = text.to_ascii_lowercase();
            let batch = batch.contains("x.bat") || batch.contains("x.cmd");
            assert_eq!(refusal.to_string().contains("never run, only an .exe; name"), batch);
        }
    }
}
