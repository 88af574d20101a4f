//! `satyrn-host doctor`: what would run here and why, and one exchange that tries it. Nothing else
//! is started.

pub mod facts;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use facts::{Check, Engine, Environment, Facts, Place, System, Variable};

use super::cli::doctor::Doctor;
use super::cli::implement::Implement;
use super::cli::{self, Invocation};
use super::context::Context;
use super::drill::formats::millis;
use super::drill::run::{Reported, reported};
use super::drill::stopped;
use super::env::{self, same};
use super::exchange::launch::Limits;
use super::implement::engines::{self, Parts, choose};
use super::implement::judge::refused;
use super::implement::plan::{Plan, deadline, plan};
use super::implement::refusal::Refusal;
use super::print::CommandOutput;
use super::process::observed::{self, Stop};
use super::process::self_command;
use super::program::{self, find, look};
use crate::protocol::VERSION;

/// The C library of this build.
const ABI: Option<&str> = if cfg!(target_env = "gnu") {
    Some("gnu")
} else if cfg!(target_env = "musl") {
    Some("musl")
} else if cfg!(target_env = "msvc") {
    Some("msvc")
} else {
    None
};

/// Which host the Pi extension runs. Not read by this one, but what many reports are about.
const FOR_PI: &str = "SATYRN_HOST";

/// What every engine accepts that does not add rules of its own.
const CONTRACT: &str = include_str!("../../../fixtures/contracts/good.yaml");

/// Gathers the facts and prints them.
///
/// # Errors
/// It was stopped by a signal.
pub fn doctor(options: &Doctor, context: &Context, parts: Parts) -> CommandOutput {
    let stop = observed::prepare();
    let facts = examine(options, context, parts, &stop);
    if let Some(signal) = stop.asked() {
        return Err(stopped(signal));
    }
    Ok((facts.render(options.format), u8::from(!facts.attention().is_empty())))
}

fn examine(options: &Doctor, context: &Context, parts: Parts, stop: &Stop) -> Facts {
    let path = context.var("PATH");
    let text = |path: &Result<PathBuf, String>| {
        path.as_ref().ok().map(|path| path.to_string_lossy().into_owned())
    };
    // Kept to the end: the exchange finds its contract there.
    let stage = stage();
    let dir = stage.as_ref().map_or(Path::new("."), |stage| stage.path());
    let words = options.words(dir, &dir.join("contract.yaml"));
    let (engine, environment, bound) = match implement(&words) {
        Ok(implement) => chosen(&implement, context, parts),
        Err(why) => (refusing(&Refusal::Usage(why)), None, Limits::default().deadline),
    };
    let check = match &stage {
        Ok(_) => check(&words, bound, stop, &context.vars),
        Err(error) => Check::impossible(format!(
            "no directory for its contract can be made in {} (TMPDIR): {error}",
            std::env::temp_dir().display()
        )),
    };
    Facts {
        version: env!("CARGO_PKG_VERSION"),
        protocol: VERSION,
        system: System {
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
            abi: ABI,
            kernel: kernel(),
            tells_children: observed::has_proc(),
        },
        executable: text(&context.exe),
        directory: text(&context.cwd),
        engine,
        variables: variables(context),
        environment,
        uv: tool("uv", path.as_deref()),
        pi: tool("pi", path.as_deref()),
        path: look("uv", path.as_deref()).map(|(entry, place)| entry_of(&entry, &place)).collect(),
        check,
    }
}

/// A directory with a contract in it.
fn stage() -> std::io::Result<tempfile::TempDir> {
    let dir = tempfile::Builder::new().prefix("satyrn-doctor-").tempdir()?;
    fs::write(dir.path().join("contract.yaml"), CONTRACT)?;
    Ok(dir)
}

/// The options of the exchange, read from its words as the host that runs it reads them.
fn implement(words: &[OsString]) -> Result<Box<Implement>, String> {
    let args: Vec<OsString> = ["satyrn-host", "implement"]
        .map(OsString::from)
        .into_iter()
        .chain(words.to_vec())
        .collect();
    match cli::parse(&args) {
        Invocation::Implement(options) => Ok(options),
        Invocation::Usage { detail, .. } => Err(detail),
        other => Err(format!("{other:?}")),
    }
}

/// Which engine, as what command, with which variables, and how long it may take.
fn chosen(
    options: &Implement,
    context: &Context,
    parts: Parts,
) -> (Engine, Option<Environment>, Duration) {
    let choice = choose(options, &|name| context.var(name)).ok();
    let planned = plan(options, context, parts);
    let bound = match &planned {
        Ok(plan) => plan.limits.deadline,
        Err(_) => deadline(options, context).ok().flatten().unwrap_or(Limits::default().deadline),
    };
    let engine = Engine {
        kind: choice.as_ref().map(|(engine, _)| match engine {
            engines::Engine::Embedded => "embedded",
            engines::Engine::Program(_) => "program",
            engines::Engine::Checkout(_) => "checkout",
            engines::Engine::Drill(_) => "drill",
        }),
        chosen_by: choice.as_ref().map(|(_, origin)| *origin),
        ..match &planned {
            Ok(plan) => command(plan),
            Err(refusal) => refusing(refusal),
        }
    };
    let environment = planned.ok().map(|plan| {
        let passed: Vec<_> = plan.environment.passed.into_iter().map(|(name, _)| name).collect();
        let is_passed = |name: &OsStr| passed.iter().any(|passed| same(name, passed));
        let withheld = context.vars.iter().filter(|(name, _)| !is_passed(name)).count();
        Environment { passed, withheld }
    });
    (engine, environment, bound)
}

fn command(plan: &Plan) -> Engine {
    let command = &plan.launch;
    Engine {
        program: Some(command.program.path().to_string_lossy().into_owned()),
        args: command.args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect(),
        cwd: Some(command.cwd.to_string_lossy().into_owned()),
        deadline_ms: Some(millis(plan.limits.deadline)),
        ..Engine::default()
    }
}

fn refusing(refusal: &Refusal) -> Engine {
    Engine { refusal: Some(refused(refusal).line()), ..Engine::default() }
}

/// One exchange, by a host process of its own, which inherits everything as any other would.
fn check(words: &[OsString], bound: Duration, stop: &Stop, vars: &[(OsString, OsString)]) -> Check {
    let mut host = self_command();
    host.arg("implement").args(words);
    let Reported { report, elapsed, .. } = match reported(&mut host, bound, stop) {
        Ok(reported) => reported,
        Err(why) => return Check::impossible(why),
    };
    Check {
        line: Some(without_values(&report.line, vars)),
        ok: report.ok,
        elapsed_ms: Some(millis(elapsed)),
        contained: report.process.contained,
        trouble: None,
    }
}

/// The line ends with what the engine itself said last, which may be the value of a variable that it
/// was given: each value, and what stands before the `@` of an address, becomes the variable's name.
fn without_values(line: &str, vars: &[(OsString, OsString)]) -> String {
    let known =
        |name: &OsString| same(name, "PATH") || env::HOST.iter().any(|ours| same(name, ours));
    let mut hidden: Vec<(String, String)> = Vec::new();
    for (name, value) in vars.iter().filter(|(name, _)| !known(name)) {
        let (name, value) = (format!("${}", name.to_string_lossy()), value.to_string_lossy());
        let credentials = value.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
        hidden.extend(credentials.map(|(user, _)| (user.to_owned(), name.clone())));
        hidden.push((value.into_owned(), name));
    }
    // A short value is part of too many words; a long one may hold a shorter one.
    hidden.retain(|(value, _)| value.len() >= 6);
    hidden.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
    hidden.iter().fold(line.to_owned(), |line, (value, name)| line.replace(value, name))
}

/// The variables of ours that are set. Of those that mean nothing to the host, the name alone.
fn variables(context: &Context) -> Vec<Variable> {
    let shown = || env::HOST.iter().chain([&FOR_PI]);
    let mut found: Vec<_> = shown()
        .filter_map(|name| {
            let value = context.var(name)?.to_string_lossy().into_owned();
            Some(Variable { name: (*name).to_owned(), value: Some(value) })
        })
        .collect();
    let others = context.vars.iter().filter(|(name, _)| {
        let ours = name.to_string_lossy().to_ascii_uppercase().starts_with("SATYRN_");
        ours && !shown().any(|known| same(name, known))
    });
    found.extend(
        others.map(|(name, _)| Variable { name: name.to_string_lossy().into_owned(), value: None }),
    );
    found
}

fn tool(name: &str, path: Option<&OsStr>) -> Option<String> {
    find(name, path).map(|program| program.to_string_lossy().into_owned())
}

fn entry_of(entry: &Path, place: &program::Place) -> Place {
    Place {
        entry: entry.to_string_lossy().into_owned(),
        uv: match place {
            program::Place::Skipped => "skipped",
            program::Place::Nothing => "not-there",
            program::Place::Program(_) => "there",
        },
    }
}

/// The release of the kernel, where a file tells it.
fn kernel() -> Option<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(release.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(vars: &[(&str, &str)]) -> Context {
        Context {
            vars: vars.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: Ok(std::path::absolute("here").unwrap()),
            exe: Ok(std::path::absolute("host").unwrap()),
        }
    }

    fn chosen(words: &[&str], vars: &[(&str, &str)]) -> (Engine, Option<Environment>, Duration) {
        let args = ["satyrn-host", "doctor"].iter().chain(words).map(OsString::from);
        let Invocation::Doctor(options) = cli::parse(&args.collect::<Vec<_>>()) else {
            panic!("{words:?}")
        };
        let words = options.words("/r".as_ref(), "/r/contract.yaml".as_ref());
        let parts = Parts { embedded: || 0, drilled: crate::host::drill::drilled };
        super::chosen(&implement(&words).unwrap(), &context(vars), parts)
    }

    #[test]
    fn what_an_engine_says_shows_no_value() {
        let vars = [
            ("HTTPS_PROXY", "http://u:S3CRET@p:1"),
            ("TZ", "S3CRET-ZONE"),
            ("SHORT", "no"),
            ("PATH", "/usr/bin"),
            ("SATYRN_ENGINE", "./engine"),
        ];
        for (line, expected) in [
            ("uv: failed via http://u:S3CRET@p:1", "uv: failed via $HTTPS_PROXY"),
            ("uv: user u:S3CRET refused", "uv: user $HTTPS_PROXY refused"),
            ("S3CRET-ZONE S3CRET-ZONE", "$TZ $TZ"),
            ("no /usr/bin ./engine", "no /usr/bin ./engine"),
        ] {
            assert_eq!(without_values(line, &context(&vars).vars), expected);
        }
    }

    #[test]
    fn the_choice_and_its_cause() {
        for (words, vars, kind, by) in [
            (&[][..], &[][..], "embedded", "default"),
            (&[], &[("SATYRN_ENGINE", "./e")], "program", "SATYRN_ENGINE"),
            (&["--engine=./f"], &[("SATYRN_ENGINE", "./e")], "program", "--engine"),
            (&["--drill=hangs"], &[], "drill", "--drill"),
            (&[], &[("SATYRN_DRILL", "hangs")], "drill", "SATYRN_DRILL"),
        ] {
            let (engine, environment, _) = chosen(words, vars);
            assert_eq!((engine.kind, engine.chosen_by), (Some(kind), Some(by)), "{words:?}");
            assert!(engine.program.is_some() && engine.refusal.is_none(), "{engine:?}");
            assert!(environment.is_some());
        }
    }

    #[test]
    fn what_would_be_refused_is_told_with_its_line() {
        for (words, vars, kind, part) in [
            (&["--engine=e"][..], &[][..], Some("program"), "ENGINE_START_FAILED: --engine must"),
            (&["--engine-repo=./no"], &[], Some("checkout"), "engine checkout is not a directory"),
            (&[], &[("SATYRN_ENGINE", "a"), ("SATYRN_DRILL", "b")], None, "USAGE: SATYRN_ENGINE"),
            (&[], &[("SATYRN_DEADLINE", "x")], Some("embedded"), "USAGE: SATYRN_DEADLINE needs"),
        ] {
            let (engine, environment, _) = chosen(words, vars);
            assert_eq!((engine.kind, environment), (kind, None), "{words:?} {vars:?}");
            assert!(engine.refusal.is_some_and(|line| line.contains(part)), "{words:?} {vars:?}");
        }
    }

    #[test]
    fn the_bound_is_the_deadline_of_the_exchange() {
        let bound = |words: &[&str], vars: &[(&str, &str)]| chosen(words, vars).2;
        assert_eq!(bound(&[], &[]), Duration::from_secs(30));
        assert_eq!(bound(&[], &[("SATYRN_DEADLINE", "5s")]), Duration::from_secs(5));
        assert_eq!(bound(&["--engine=e"], &[("SATYRN_DEADLINE", "5s")]), Duration::from_secs(5));
        assert_eq!(bound(&["--engine=e"], &[("SATYRN_DEADLINE", "x")]), Duration::from_secs(30));
    }

    #[test]
    fn only_names_of_variables_that_are_not_the_hosts_own() {
        let vars = [
            ("FOO_TOKEN", "hunter2"),
            ("HOME", "/hunter2"),
            ("SATYRN_LATER", "hunter2"),
            ("SATYRN_DEADLINE", "9s"),
        ];
        let found: Vec<_> = variables(&context(&vars))
            .into_iter()
            .map(|variable| (variable.name, variable.value))
            .collect();
        let expected = [
            ("SATYRN_DEADLINE".to_owned(), Some("9s".to_owned())),
            ("SATYRN_LATER".to_owned(), None),
        ];
        assert_eq!(found, expected);
        let (_, environment, _) = chosen(&[], &vars);
        let environment = environment.unwrap();
        assert_eq!(environment.passed, ["HOME", "NO_COLOR", "GIT_TERMINAL_PROMPT"]);
        assert_eq!(environment.withheld, 3);
    }
}
