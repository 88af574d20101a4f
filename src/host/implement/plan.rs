//! From options and context to a plan. Pure but for looking whether files are there.

use std::time::Duration;

use super::engines::{Command, Engine, Parts, choose, resolve};
use super::refusal::{Refusal, start_failed};
use crate::duration::parse_deadline;
use crate::host::cli::implement::Implement;
use crate::host::cli::utf8;
use crate::host::context::Context;
use crate::host::env::{EnvRequest, Environment, Policy, select};
use crate::host::exchange::launch::{Capture, Launch, Limits, Stdin};
use crate::host::program::absolute;
use crate::line::escape;
use crate::protocol::{MAX_BYTES, Request};

/// How much of the end of an engine's stderr is kept, in bytes.
const STDERR: usize = 64 << 10;

/// Everything that one exchange needs, decided before anything is started.
#[derive(Debug)]
pub struct Plan {
    /// The engine that was chosen.
    pub engine: Engine,
    /// The command that runs it, with the request as its stdin.
    pub launch: Launch,
    /// Why each variable is in its environment, and what could not be had.
    pub environment: Environment,
    /// The bounds.
    pub limits: Limits,
}

/// The deadline that the caller chose: the flag's, else the variable's.
///
/// # Errors
/// USAGE.
pub fn deadline(options: &Implement, context: &Context) -> Result<Option<Duration>, Refusal> {
    match (options.deadline, context.var("SATYRN_DEADLINE")) {
        (Some(deadline), _) => Ok(Some(deadline)),
        (None, None) => Ok(None),
        (None, Some(text)) => parse_deadline(&text.to_string_lossy())
            .map(Some)
            .map_err(|why| Refusal::Usage(format!("SATYRN_DEADLINE {why}"))),
    }
}

/// Decides everything. Looks at the disk, which may take as long as it likes.
///
/// # Errors
/// USAGE or `ENGINE_START_FAILED` (SPEC 2, rows 1 and 2).
pub fn plan(options: &Implement, context: &Context, parts: Parts) -> Result<Plan, Refusal> {
    let deadline = deadline(options, context)?;
    let contract = utf8("CONTRACT", options.contract.as_os_str()).map_err(Refusal::Usage)?;
    let repo = options.repo.clone().unwrap_or_else(|| ".".into());
    let repo = utf8("--repo", repo.as_os_str()).map_err(Refusal::Usage)?;
    let (engine, origin) = choose(options, &|name| context.var(name))?;
    let cwd = context.cwd.as_ref().map_err(|why| {
        start_failed("no-working-directory", format!("the working directory is gone: {why}"))
    })?;
    let absolute = |what: &str, path: &str| {
        utf8(what, absolute(cwd, path.as_ref()).as_os_str()).map_err(Refusal::Usage)
    };
    let request =
        Request { repo: absolute("--repo", &repo)?, contract: absolute("CONTRACT", &contract)? };
    let request = match &options.request {
        None => request.encode(),
        Some(file) => std::fs::read(file)
            .map_err(|error| Refusal::Usage(format!("--request {}: {error}", file.display())))?,
    };
    let exe = context.exe.as_ref().map_err(|why| {
        start_failed("no-executable", format!("the host cannot find its own executable: {why}"))
    })?;
    let (engine, origin, own_deadline) = match engine {
        Engine::Drill(drill) => {
            let (engine, deadline) = (parts.drilled)(&drill, origin, cwd)?;
            // What is wrong with a drill's program is not the fault of whoever chose the drill.
            (engine, "the drill's start", deadline)
        }
        other => (other, origin, None),
    };
    let deadline = deadline.or(own_deadline).unwrap_or(Limits::default().deadline);
    let path = context.var("PATH");
    let command = resolve(&engine, origin, cwd, exe, path.as_deref(), parts.embedded)?;
    let policy = Policy {
        wishes: options.wishes.clone(),
        inherit: options.inherit_env,
        uv: matches!(engine, Engine::Checkout(_)),
    };
    let mut environment = select(&context.vars, &policy);
    tracing::info!(chosen_by = origin, program = ?command.program.path(), args = ?command.args, "engine");
    for (name, why) in &environment.passed {
        tracing::debug!(name, why, "variable passed");
    }
    for EnvRequest { name, reason } in &policy.wishes {
        tracing::info!(name, reason, "variable asked for");
    }
    for warning in &environment.warnings {
        tracing::warn!("{}", escape(warning));
    }
    let Command { program, args, cwd } = command;
    let launch = Launch {
        program,
        args,
        cwd,
        env: std::mem::take(&mut environment.vars),
        stdin: Stdin::Bytes(request),
        stdout: Capture::Head(MAX_BYTES),
        stderr: Capture::Tail(STDERR),
    };
    Ok(Plan { engine, launch, environment, limits: Limits { deadline, ..Limits::default() } })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use super::*;
    use crate::host::cli::{Invocation, parse};

    fn planned(words: &[&str], vars: &[(&str, &str)]) -> Result<Plan, Refusal> {
        let words = ["satyrn-host", "implement"].iter().chain(words).map(OsString::from);
        let Invocation::Implement(options) = parse(&words.collect::<Vec<_>>()) else {
            panic!("not understood")
        };
        let context = Context {
            vars: vars.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: Ok(HERE.into()),
            exe: Ok("/bin/host".into()),
        };
        let drilled = |_: &std::path::Path, _: &str, _: &std::path::Path| unreachable!();
        plan(&options, &context, Parts { embedded: || 0, drilled })
    }

    const HERE: &str = if cfg!(windows) { r"C:\here" } else { "/here" };

    #[test]
    fn paths_are_made_absolute() {
        let cases: &[(&[&str], &str, &str)] = if cfg!(windows) {
            &[
                (&["c.yaml"], HERE, r"C:\here\c.yaml"),
                (&["--repo", "../r", "/c.yaml"], r"C:\r", r"C:\c.yaml"),
                (&["--repo", r"D:\a/b\.", r"\\s\t\c.yaml"], r"D:\a\b", r"\\s\t\c.yaml"),
                (&["--repo", r"\r", r"\\?\C:\c.yaml"], r"C:\r", r"\\?\C:\c.yaml"),
            ]
        } else {
            &[
                (&["c.yaml"], HERE, "/here/c.yaml"),
                (&["--repo", "../r", "/c.yaml"], "/here/../r", "/c.yaml"),
            ]
        };
        for (words, repo, contract) in cases {
            let plan = planned(words, &[]).unwrap();
            let expected = Request { repo: (*repo).into(), contract: (*contract).into() };
            let Stdin::Bytes(request) = &plan.launch.stdin else { panic!("{words:?}") };
            assert_eq!(Request::parse(request), Ok(expected), "{words:?}");
            assert_eq!(plan.launch.cwd, PathBuf::from(HERE));
        }
    }

    #[test]
    fn the_deadline_comes_from_the_flag_then_the_variable() {
        let deadline = |words: &[&str], vars: &[(&str, &str)]| {
            planned(words, vars).map(|plan| plan.limits.deadline)
        };
        let set = [("SATYRN_DEADLINE", "2s")];
        assert_eq!(deadline(&["c"], &[]), Ok(Duration::from_secs(30)));
        assert_eq!(deadline(&["c"], &set), Ok(Duration::from_secs(2)));
        assert_eq!(deadline(&["--deadline", "1s", "c"], &set), Ok(Duration::from_secs(1)));
        for bad in ["", "0s", "x", "99h"] {
            let refusal = deadline(&["c"], &[("SATYRN_DEADLINE", bad)]);
            assert!(matches!(refusal, Err(Refusal::Usage(_))), "{bad}");
        }
    }
}
