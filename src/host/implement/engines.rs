//! Which engine runs, and as which command (SPEC 2). Looks at the file system, starts nothing.

use std::ffi::{OsStr, OsString};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::time::Duration;

use super::refusal::{Refusal, start_failed};
use crate::host::cli::implement::Implement;
use crate::host::exchange::launch::Program;
use crate::host::program::{absolute, find, windows_program};

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
#[derive(Clone, Debug)]
pub struct Command {
    /// What runs, by an absolute path.
    pub program: Program,
    /// The arguments after it, verbatim.
    pub args: Vec<OsString>,
    /// The working directory.
    pub cwd: PathBuf,
}

/// What is handed in, since `implement` knows neither the engine that this executable carries nor
/// the drills.
#[derive(Clone, Copy)]
pub struct Parts {
    /// Serves the protocol once on this process's own streams, and returns the exit code.
    pub embedded: fn() -> u8,
    /// What a drill puts in the place of the engine, and its deadline. The drill is given by its
    /// name or path, by whom it was chosen, and the working directory.
    pub drilled: fn(&Path, &str, &Path) -> Drilled,
}

/// What a drill puts in the place of the engine, and its deadline, if it has one.
///
/// # Errors
/// USAGE or `ENGINE_START_FAILED`.
pub type Drilled = Result<(Engine, Option<Duration>), Refusal>;

/// The first argument of this executable where it plays the engine of a drill.
pub const PLAYER: &str = "__drill";

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
    embedded: fn() -> u8,
) -> Result<Command, Refusal> {
    let own = |program: fn(PathBuf) -> Program, args: Vec<OsString>| {
        Ok(Command { program: program(exe.to_owned()), args, cwd: cwd.to_owned() })
    };
    match engine {
        Engine::Embedded => Ok(Command {
            program: Program::Embedded(exe.to_owned(), embedded),
            args: vec!["protocol".into()],
            cwd: cwd.to_owned(),
        }),
        Engine::Drill(drill) => own(Program::Own, vec![PLAYER.into(), drill.into()]),
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
            let program = if cfg!(windows) {
                windows_program(program, Path::is_dir)
                    .map_err(|why| start_failed("not-runnable", why))?
            } else {
                program
            };
            let (program, args) = (Program::File(program), vec!["protocol".into()]);
            Ok(Command { program, args, cwd: cwd.to_owned() })
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
            Ok(Command { program: Program::File(uv), args, cwd: dir })
        }
    }
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
            let found = resolve(&engine, "--x", here, Path::new("/exe"), path, || 0);
            found.map(|command| command.program.path().to_owned()).map_err(|refusal| {
                assert_eq!(refusal.code(), "ENGINE_START_FAILED");
                refusal.reason().unwrap()
            })
        };
        let program = |path: &str| resolve(Engine::Program(path.into()), None);
        let checkout = |path: &Path| resolve(Engine::Checkout(path.into()), None);
        assert_eq!(program(""), Err("empty-setting"));
        assert_eq!(program("engine"), Err("bare-name"));
        let named = format!("engine{}", std::env::consts::EXE_SUFFIX);
        assert_eq!(program("./engine"), Ok(here.join(named)));
        assert_eq!(checkout(Path::new("")), Err("empty-setting"));
        assert_eq!(checkout(Path::new("missing")), Err("no-checkout"));
        assert_eq!(checkout(here), Err("no-pyproject"));
        assert_eq!(checkout(&ready), Err("no-uv"));
        assert_eq!(resolve(Engine::Embedded, None), Ok("/exe".into()));
    }
}
